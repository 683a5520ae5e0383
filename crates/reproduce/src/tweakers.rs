//! Tweakers.net, RAID adapters on PCI buses: loss by a bus that disks share with other traffic.
//!
//! A transfer-size sweep as in ATTO, then desktop and server traces at full speed, alone and with a
//! background reader of 25 MB/s. The loss follows from the index of the traces.
use keepup_measure::stats::median;
use keepup_model::papers::PaperUnit;
use keepup_plan::units::Bytes;
use keepup_results::{
    PaperAnswer, PaperCell, PaperColumn, PaperCurve, PaperPage, PaperRow, PaperSeries, PaperTable, Quantity,
    ReplayPlace,
};
use toml::Table;

use crate::error::ReproduceError;
use crate::measured::{Reproduced, shared_disk};
use crate::model;
use crate::published::PublishedPaper;
use crate::{
    NOT_MEASURED, PaperRequest, Reproduction, RequestOption, RequiredTrace, file, label, labelled, scaled,
    volumes,
};

const SWEEP: &str = "transfer sizes";
const SWEEP_LOADED: &str = "transfer sizes with load";
const APPLICATIONS: &str = "desktop applications";
const DESKTOP: &str = "desktop traces";
const SERVER: &str = "server traces";
/// Folders of the traces, by the test that replays them.
const TRACES: [(&str, &str, &[&str]); 3] = [
    (APPLICATIONS, "applications", &["desktop-start", "office"]),
    (DESKTOP, "desktop", &["desktop-start", "office", "image-editing"]),
    (SERVER, "server", &["web-server", "database"]),
];
const SIZES: &str = "512 B,1 KiB,2 KiB,4 KiB,8 KiB,16 KiB,32 KiB,64 KiB,128 KiB,256 KiB,512 KiB,1 MiB";
/// Duration of each trace and its minimum, seconds.
const TRACE_SECONDS: (f64, f64) = (15.0, 1.0);
const MB: f64 = 1e6;
/// Loss that must be excluded for "no significant loss", per cent (our choice: a third of the published one).
const TOLERABLE: f64 = 10.0;

/// Name of the paper.
const NAME: &str = "tweakers-pci";

/// The paper.
pub(crate) struct Tweakers;

impl Reproduction for Tweakers {
    fn name(&self) -> &'static str {
        NAME
    }

    fn uses(&self, option: RequestOption) -> bool {
        option == RequestOption::Volume
    }

    fn traces(&self, scale: f64) -> Vec<RequiredTrace> {
        let seconds = (TRACE_SECONDS.0 * scale).max(TRACE_SECONDS.1);
        let of = |(_, folder, names): &(&str, &'static str, &'static [&'static str])| {
            let folder = *folder;
            let wanted = move |name: &&'static str| RequiredTrace {
                folder,
                personality: name,
                time: format!("{seconds} s"),
            };
            names.iter().map(wanted).collect::<Vec<_>>()
        };
        TRACES.iter().flat_map(of).collect()
    }

    fn campaign(&self, request: &PaperRequest) -> Result<Table, ReproduceError> {
        let volumes = volumes(request)?;
        let beside = load(&PublishedPaper::of(NAME));
        let mut tests = Vec::new();
        for (n, volume) in volumes.iter().enumerate() {
            // The next volume, or the same one if there is only one.
            let other = volumes[(n + 1) % volumes.len()].path.display();
            let load = [("load", format!("disk={beside}MB/s@{other},read").into())];
            let sweep = [
                ("verb", "disk sweep".into()),
                ("volume", volume.value()),
                ("sizes", SIZES.into()),
                ("depths", "4".into()),
                ("file", scaled(1 << 30, request.scale, 1 << 20)),
                ("time", format!("{:.0} ms", (500.0 * request.scale).max(50.0)).into()),
            ];
            tests.push(labelled(&label(SWEEP, &volume.name), &sweep));
            tests.push(labelled(&label(SWEEP_LOADED, &volume.name), &[&sweep[..], &load].concat()));
            for (kind, folder, _) in TRACES {
                let replay = [
                    ("verb", "replay-set".into()),
                    ("args", request.traces.join(folder).display().to_string().into()),
                    ("volume", volume.value()),
                    ("baseline", volume.value()),
                    ("mode", "afap".into()),
                    ("passes", 5.into()),
                ];
                tests.push(labelled(&label(kind, &volume.name), &[&replay[..], &load].concat()));
            }
        }
        Ok(file("Disks with other traffic on their bus", 1, Table::new(), [("test", tests)]))
    }

    fn page(&self, found: &Reproduced<'_>) -> PaperPage {
        let edition = PublishedPaper::of(self.name());
        let mut page = found.new_page(&edition);
        let beside = load(&edition);
        page.tables = vec![
            sweep_table(found),
            traces(found, &[APPLICATIONS], "Desktop applications, index with load, 1 = without load"),
            losses(found, &edition),
            traces(found, &[DESKTOP, SERVER], "Index of each trace with load, 1 = without load"),
        ];
        page.tables.extend(model::table(NAME, "test set-up and conclusion"));
        page.curves.extend(sizes(found, &edition));
        page.findings = findings(found, &edition);
        page.answers = answers(found, &edition);
        let limits = [
            format!(
                "the bus was not varied; the loss shown is caused by {beside} MB/s of background reads, not \
                 by a slower bus"
            ),
            "the paper varied RAID level and workload together (desktop traces on RAID 0, server traces on \
             RAID 5); here all traces ran on all volumes: name a RAID with --volume NAME=DIR"
                .to_owned(),
            "the traces of the paper are not public: these are generated from documented distributions and \
             replayed at full speed with 32 requests in flight"
                .to_owned(),
        ];
        page.limits.extend(limits);
        if let Some(place) = same_disk(found) {
            page.limits.push(format!(
                "the background reads come from the disk that is measured ({place}), in the paper from \
                 another: they take part of its rate, not only of the bus"
            ));
        }
        page
    }
}

/// Disk that both measurement and load use, if any.
fn same_disk(found: &Reproduced<'_>) -> Option<String> {
    let volumes = found.cells_of_kind(SWEEP);
    match volumes.as_slice() {
        [] => None,
        [(only, _)] => Some((*only).to_owned()),
        _ => shared_disk(found),
    }
}

/// Published background load, MB/s.
fn load(edition: &PublishedPaper) -> String {
    edition.text("T4", ["", "", "load"], PaperUnit::MegabytesPerSecond)
}

/// Results of a kind of traces on a volume with background load, over all runs.
struct LoadedReplay<'f> {
    volume: &'f str,
    kind: &'static str,
    places: Vec<&'f ReplayPlace>,
}

impl LoadedReplay<'_> {
    /// Loss in per cent: median of the runs with the interval.
    fn loss(&self) -> PaperCell {
        let of = |of: &dyn Fn(&ReplayPlace) -> Option<f64>| {
            let values = self.places.iter().filter_map(|place| Some(100.0 * (1.0 - of(place)?)));
            values.collect::<Vec<_>>()
        };
        let Some(value) = median(&of(&|place| place.index)) else { return PaperCell::words(NOT_MEASURED) };
        PaperCell {
            value: Some(value),
            lowest: of(&|place| place.upper).into_iter().reduce(f64::min),
            highest: of(&|place| place.lower).into_iter().reduce(f64::max),
            runs: self.places.len() as u32,
            note: None,
        }
    }

    /// Sentence about the loss, `None` if it was not measured.
    fn sentence(&self) -> Option<String> {
        let PaperCell { value, lowest, highest, .. } = self.loss();
        let (value, volume) = (value?, self.volume);
        Some(match (lowest, highest) {
            (Some(lowest), Some(highest)) if lowest > 0.0 => {
                format!("{volume}: {value:.0} % ({lowest:.0} to {highest:.0} %).")
            }
            (Some(_), Some(highest)) if highest <= TOLERABLE => {
                format!("{volume}: no significant loss, at most {:.0} %.", highest.max(0.0))
            }
            (Some(lowest), Some(highest)) => {
                format!("{volume}: cannot tell, between {lowest:.0} and {highest:.0} %.")
            }
            _ => format!("{volume}: cannot tell from one pass."),
        })
    }
}

fn loaded_replays<'f>(found: &'f Reproduced<'_>) -> Vec<LoadedReplay<'f>> {
    let mut all = Vec::new();
    for (kind, _, _) in TRACES {
        for (volume, cell) in found.cells_of_kind(kind) {
            let indices = cell.replays().filter_map(|summary| summary.index.as_ref());
            let places =
                indices.flat_map(|index| index.places.iter().filter(|place| place.place != index.baseline));
            all.push(LoadedReplay { volume, kind, places: places.collect() });
        }
    }
    all
}

fn losses(found: &Reproduced<'_>, edition: &PublishedPaper) -> PaperTable {
    let published = edition.figures().iter().filter(|figure| figure.quantity == "loss");
    let row = |figure: &keepup_model::papers::PublishedFigure| PaperRow {
        name: format!("{}: {}", figure.system, figure.condition),
        is_here: false,
        cells: vec![crate::published::cell(figure, PaperUnit::Percent)],
        note: figure.note.clone(),
    };
    let mut rows: Vec<PaperRow> = published.map(row).collect();
    let load = load(edition);
    let mut note = "95 % interval over the passes; negative values are gains".to_owned();
    if same_disk(found).is_some() {
        note.push_str("; the load reads from the same disk");
    }
    rows.extend(loaded_replays(found).iter().map(|beside| PaperRow {
        name: format!("{}: {}, with {load} MB/s of background reads", beside.volume, beside.kind),
        is_here: true,
        cells: vec![beside.loss()],
        note: Some(note.clone()),
    }));
    PaperTable {
        title: "Loss by a slower bus (paper) or by other traffic (this machine)".into(),
        stands: "conclusion".into(),
        head: "system".into(),
        columns: vec![PaperColumn::new("loss", "%")],
        rows,
    }
}

/// Ratios of each trace on each volume.
fn ratios<'f>(beside: &[LoadedReplay<'f>]) -> Vec<(&'f str, &'static str, &'f str, Vec<f64>)> {
    let mut all: Vec<(&str, &'static str, &str, Vec<f64>)> = Vec::new();
    for set in beside {
        for ratio in set.places.iter().flat_map(|place| &place.ratios) {
            let Some(value) = ratio.ratio else { continue };
            let known =
                all.iter_mut().find(|(trace, _, volume, _)| *trace == ratio.trace && *volume == set.volume);
            match known {
                Some((_, _, _, values)) => values.push(value),
                None => all.push((&ratio.trace, set.kind, set.volume, vec![value])),
            }
        }
    }
    all
}

fn name_of_trace(trace: &str) -> &str {
    trace.strip_suffix(".trace").unwrap_or(trace)
}

fn traces(found: &Reproduced<'_>, kinds: &[&str], title: &str) -> PaperTable {
    let mut beside = loaded_replays(found);
    beside.retain(|set| kinds.contains(&set.kind));
    let ratios = ratios(&beside);
    let mut volumes: Vec<&str> = Vec::new();
    let mut names: Vec<(&str, &str)> = Vec::new();
    for (trace, kind, volume, _) in &ratios {
        if !volumes.contains(volume) {
            volumes.push(volume);
        }
        if !names.contains(&(trace, kind)) {
            names.push((trace, kind));
        }
    }
    let row = |(trace, kind): &(&str, &str)| {
        let of = |volume: &&str| {
            let known = ratios.iter().find(|(t, _, v, _)| t == trace && v == volume);
            known.map_or_else(PaperCell::default, |(_, _, _, values)| PaperCell::measured(values))
        };
        PaperRow {
            name: format!("{} ({kind})", name_of_trace(trace)),
            is_here: true,
            cells: volumes.iter().map(of).collect(),
            note: None,
        }
    };
    PaperTable {
        title: format!("{title}. The figures of the paper are lost"),
        stands: "desktop and server performance".into(),
        head: "trace".into(),
        columns: volumes.iter().map(|volume| PaperColumn::new(*volume, "")).collect(),
        rows: names.iter().map(row).collect(),
    }
}

/// Parses "write 512 B depth 4" as write and 512.
fn transfer(name: &str) -> Option<(&str, f64)> {
    let mut words = name.split(' ');
    Some((words.next()?, words.next()?.parse().ok()?))
}

/// Sweeps as a table: transfer sizes by volume and direction, without and with load.
fn sweep_table(found: &Reproduced<'_>) -> PaperTable {
    let series = swept(found);
    let row = |size: &str| {
        let bytes = size.parse::<Bytes>().map_or(0.0, |bytes| bytes.0 as f64);
        let at = |series: &PaperSeries| {
            let point = series.points.iter().find(|point| point.0 == bytes);
            point.map_or_else(|| PaperCell::words(NOT_MEASURED), |point| PaperCell::published(point.1))
        };
        PaperRow { name: size.to_owned(), is_here: true, cells: series.iter().map(at).collect(), note: None }
    };
    PaperTable {
        title: "Rate by transfer size, 4 transfers in flight, medians. The charts of the paper are lost"
            .into(),
        stands: "low-level performance".into(),
        head: "transfer".into(),
        columns: series.iter().map(|series| PaperColumn::new(series.name.clone(), "MB/s")).collect(),
        rows: SIZES.split(',').map(row).collect(),
    }
}

/// Sweep of each volume and direction, without and with load: MB/s by transfer size in bytes.
fn swept(found: &Reproduced<'_>) -> Vec<PaperSeries> {
    [(SWEEP, ""), (SWEEP_LOADED, ", with load")]
        .iter()
        .flat_map(|(kind, words)| swept_by(found, kind, words))
        .collect()
}

fn swept_by(found: &Reproduced<'_>, kind: &str, words: &str) -> Vec<PaperSeries> {
    let mut all: Vec<PaperSeries> = Vec::new();
    for (volume, cell) in found.cells_of_kind(kind) {
        let rates = cell.cell.figures.iter().filter(|figure| figure.quantity == Quantity::BytesPerSecond);
        for figure in rates {
            let Some((verb, bytes)) = transfer(&figure.what) else { continue };
            let Some(rate) = median(&figure.values) else { continue };
            let name = format!("{verb}, {volume}{words}");
            let known = all.iter().position(|series| series.name == name).unwrap_or_else(|| {
                all.push(PaperSeries { name, is_here: true, points: Vec::new() });
                all.len() - 1
            });
            all[known].points.push((bytes, rate / MB));
        }
    }
    all
}

/// Published maximum rates of bus, adapter and disk, MB/s.
fn ceilings(edition: &PublishedPaper) -> Vec<(String, f64)> {
    let is_ceiling = |quantity: &str, system: &str| match quantity {
        "peak rate" => system.starts_with("PCI"),
        "most it does" => true,
        "rate" => system.starts_with("Maxtor"),
        _ => false,
    };
    let figures = edition.figures().iter().filter(|figure| is_ceiling(&figure.quantity, &figure.system));
    figures.filter_map(|figure| Some((figure.system.clone(), figure.in_base()? / MB))).collect()
}

fn sizes(found: &Reproduced<'_>, edition: &PublishedPaper) -> Option<PaperCurve> {
    let mut series = swept(found);
    let all = || series.iter().flat_map(|series| series.points.iter().map(|point| point.0));
    let (least, most) = (all().reduce(f64::min)?, all().reduce(f64::max)?);
    let flat = ceilings(edition).into_iter().map(|(system, rate)| PaperSeries {
        name: format!("{system}, at most {rate:.0} MB/s"),
        is_here: false,
        points: vec![(least, rate), (most, rate)],
    });
    series.extend(flat.collect::<Vec<_>>());
    Some(PaperCurve {
        title: "Rate by transfer size, 4 transfers in flight".into(),
        stands: "ATTO".into(),
        x: PaperColumn::new("transfer", "B"),
        y: PaperColumn::new("rate", "MB/s"),
        is_log_x: true,
        series,
        note: Some("the charts of the paper are lost; flat lines are its published maximum rates".into()),
    })
}

fn findings(found: &Reproduced<'_>, edition: &PublishedPaper) -> Vec<String> {
    let mut findings = Vec::new();
    let (beside, load) = (loaded_replays(found), load(edition));
    for set in &beside {
        let loss = set.sentence().unwrap_or_else(|| format!("{}: not measured.", set.volume));
        findings.push(format!("Loss of the {} with {load} MB/s of background reads, {loss}", set.kind));
    }
    let ratios = ratios(&beside);
    let medians = || {
        let ratios = ratios.iter();
        ratios.filter_map(|(trace, _, volume, values)| Some((name_of_trace(trace), *volume, median(values)?)))
    };
    let worst = medians().min_by(|a, b| a.2.total_cmp(&b.2));
    let best = medians().max_by(|a, b| a.2.total_cmp(&b.2));
    if let (Some(worst), Some(best)) = (worst, best) {
        findings.push(format!(
            "Slowest trace with load: {} on {}, {:.2} of its speed; fastest: {} on {}, {:.2}.",
            worst.0, worst.1, worst.2, best.0, best.1, best.2
        ));
    }
    let series = swept(found);
    let points = series.iter().flat_map(|s| s.points.iter().map(move |point| (&s.name, point)));
    let bus = ceilings(edition).into_iter().find(|(system, _)| system.starts_with("PCI"));
    let peak = points.max_by(|a, b| a.1.1.total_cmp(&b.1.1));
    if let (Some((name, (bytes, rate))), Some((_, bus))) = (peak, bus) {
        findings.push(format!(
            "Highest rate of the sweep: {rate:.0} MB/s ({name}, transfers of {:.0} KiB), {:.1}x the peak \
             rate of 32-bit 33 MHz PCI.",
            bytes / 1024.0,
            rate / bus
        ));
    }
    findings
}

fn answers(found: &Reproduced<'_>, edition: &PublishedPaper) -> Vec<PaperAnswer> {
    let (all, load) = (loaded_replays(found), load(edition));
    let lost = |id| edition.text(id, ["RAID 0", "", "loss"], PaperUnit::Percent);
    let bus = edition.text("T1", ["PCI bus", "", "peak rate"], PaperUnit::MegabytesPerSecond);
    let answer = |kind: &str| {
        let sentences: Vec<String> =
            all.iter().filter(|set| set.kind == kind).filter_map(LoadedReplay::sentence).collect();
        match sentences.is_empty() {
            true => NOT_MEASURED.to_owned(),
            false => format!("With {load} MB/s of background reads, {}", sentences.join(" ")),
        }
    };
    vec![
        PaperAnswer {
            question: "How much does a desktop lose if disks share a bus?".into(),
            published: format!(
                "{} % on a bus of {bus} MB/s; up to {} % with other devices on it.",
                lost("T3"),
                lost("T4")
            ),
            here: answer(DESKTOP),
        },
        PaperAnswer {
            question: "How much does a server lose?".into(),
            published: "Less; the charts are lost.".into(),
            here: answer(SERVER),
        },
    ]
}

#[cfg(test)]
#[path = "tweakers_tests.rs"]
mod tests;
