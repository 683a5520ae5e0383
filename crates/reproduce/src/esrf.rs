//! ESRF, 2007: which computer can record a camera, with and without network traffic.
//!
//! Tables 1 and 2: one file of 4 GB, a large file in blocks, and many files, each without and with an
//! incoming stream at the rate of Gigabit Ethernet; the network alone; the other phases of both programs.
//! Figure 6: load of processors and network.
mod tables;

use keepup_measure::stats::median;
use keepup_measure::sum::Sums;
use keepup_model::papers::{PaperUnit, PublishedFigure};
use keepup_plan::builtin;
use keepup_results::{
    CampaignRatio, EVIDENCE_SECONDS_MIN, PaperAnswer, PaperColumn, PaperPage, PaperRow, PaperTable, Quantity,
};
use toml::{Table, Value};

use crate::error::ReproduceError;
use crate::measured::{Reproduced, measured};
use crate::published::{MIB, PublishedPaper};
use crate::{
    NOT_MEASURED, PaperRequest, Reproduction, RequestOption, file, label, labelled, network_target, scaled,
    volumes,
};

pub(crate) const NAME: &str = "esrf-2007";
/// Size of the `bonnie++` file in the paper.
const LARGE_BYTES: u64 = 6 << 30;
/// Scale below which testdisk's quick mode is used, which moves 1/64 of the data.
const QUICK_BELOW: f64 = 0.25;
/// Time for which the network is filled at full scale, seconds.
const FILL_SECONDS: f64 = 10.0;
/// Seeks and small files (in units of 1024) of bonnie++ at full scale, and the least number of seeks.
const SEEKS: f64 = 8192.0;
const FILES: f64 = 16.0;
const SEEKS_MIN: f64 = 512.0;
const QUIET: &str = "quiet";
const BUSY: &str = "network";
const TESTDISK: &str = "testdisk";
const BONNIE: &str = "bonnie++";
const FILL: &str = "network";
/// Pairs of runs without and with network traffic: the least number of which a difference can be significant.
const PAIRS: i64 = 5;
/// Data that bonnie++ writes and reads by character.
const CHARACTER_BYTES: u64 = 256 << 20;
/// Id of the published system whose disks share a bus with the network card.
const SHARED_BUS: &str = "E2";
/// Detector profile of the paper's camera: FReLoN 2k, 30 frames/s.
const CAMERA: &str = "frelon-2k";
/// Loss that must be excluded for "no significant loss" (our choice: a third of the published loss).
const TOLERABLE: f64 = 0.1;

/// The paper.
pub(crate) struct Esrf;

/// Column of both tables, with the test and phases that measure it.
struct Column {
    test: &'static str,
    /// Prefix of the phase name.
    prefix: &'static str,
    /// Excluded prefix.
    not: Option<&'static str>,
    /// Title, also the name of the published quantity.
    title: &'static str,
}

const COLUMNS: [Column; 4] = [
    Column { test: TESTDISK, prefix: "create 1 x", not: None, title: "single file write" },
    Column { test: BONNIE, prefix: "write", not: Some("write by"), title: "block write" },
    Column { test: TESTDISK, prefix: "create", not: Some("create 1 x"), title: "many files write" },
    Column { test: BONNIE, prefix: "read", not: Some("read by"), title: "block read" },
];

impl Reproduction for Esrf {
    fn name(&self) -> &'static str {
        NAME
    }

    fn uses(&self, option: RequestOption) -> bool {
        matches!(option, RequestOption::Volume | RequestOption::Host)
    }

    fn campaign(&self, request: &PaperRequest) -> Result<Table, ReproduceError> {
        let testdisk = [("verb", "disk testdisk".into()), ("quick", (request.scale < QUICK_BELOW).into())];
        let bonnie = [
            ("verb", Value::from("disk block")),
            ("direct", true.into()),
            ("size", scaled(LARGE_BYTES, request.scale, 1 << 20)),
            ("characters", scaled(CHARACTER_BYTES, request.scale, 1 << 20)),
            ("seeks", ((SEEKS * request.scale).max(SEEKS_MIN) as i64).into()),
            ("files", ((FILES * request.scale).round().max(1.0) as i64).into()),
        ];
        let mut tests = Vec::new();
        for volume in volumes(request)? {
            for (kind, settings) in [(TESTDISK, &testdisk[..]), (BONNIE, &bonnie[..])] {
                let volume_setting = [("volume", volume.value())];
                tests.push(labelled(&label(kind, &volume.name), &[settings, &volume_setting].concat()));
            }
        }
        let fill = [
            ("verb", "net tcp".into()),
            ("args", network_target(request)),
            ("direction", "receive".into()),
            ("ramp", "500 ms".into()),
            ("time", format!("{:.0} ms", 1e3 * (FILL_SECONDS * request.scale).max(0.5)).into()),
        ];
        tests.push(labelled(FILL, &fill));
        let edition = PublishedPaper::of(NAME);
        let load = match &request.host {
            Some(host) => format!("{}@{host}", network(&edition)),
            None => network(&edition),
        };
        let loads = vec![labelled(QUIET, &[]), labelled(BUSY, &[("load", load.into())])];
        let title = "The camera computer: disks with and without network traffic";
        let mut file = file(title, PAIRS, Table::new(), [("test", tests), ("beside", loads)]);
        let when = [("test", FILL), ("beside", BUSY)].map(|(axis, label)| (axis.to_owned(), label.into()));
        let skip = [
            ("when".to_owned(), Value::Table(Table::from_iter(when))),
            ("why".to_owned(), "the network is measured alone".into()),
        ];
        file.insert("skip".into(), Value::Array(vec![Value::Table(Table::from_iter(skip))]));
        let baseline = Table::from_iter([("beside".to_owned(), Value::from(QUIET))]);
        file.insert("baseline".into(), Value::Table(baseline));
        Ok(file)
    }

    fn page(&self, found: &Reproduced<'_>) -> PaperPage {
        let edition = PublishedPaper::of(self.name());
        let mut page = found.new_page(&edition);
        page.tables = vec![
            table(found, &edition, "table 1", QUIET, "without network load"),
            table(found, &edition, "table 2", BUSY, "with incoming Ethernet payload"),
            tables::filled(found, &edition),
            tables::phases(found, TESTDISK, "All transfers of testdisk", "appendix"),
            tables::phases(found, BONNIE, "Other phases of bonnie++", "section 2.1"),
            tables::processors(found),
            tables::links(found, &edition),
        ];
        page.curves = tables::curves(found);
        page.findings = findings(found);
        page.answers = answers(found, &edition);
        if !is_remote(found) {
            page.limits.push(format!(
                "the network load of {} ran over loopback: no network card or bus was shared",
                network(&edition)
            ));
        }
        page.limits.extend([
            "the large file bypassed the page cache, because the memory of this machine could hold it"
                .to_owned(),
        ]);
        if found.scale() < QUICK_BELOW {
            page.limits.push("testdisk moved 1/64 of the paper's data: only a quick check".to_owned());
        }
        page
    }
}

/// Network load: the payload rate of Gigabit Ethernet with frames of 8192 bytes.
fn network(edition: &PublishedPaper) -> String {
    let payload = edition.follows("E9-full", PaperUnit::MegabytesPerSecond).unwrap_or_default();
    format!("net={payload:.1}MB/s")
}

/// Ratios of the published figures with and without network load, for each system and quantity with both.
fn published_ratios(edition: &PublishedPaper) -> impl Iterator<Item = (&PublishedFigure, f64)> {
    let quiet = |busy: &PublishedFigure| {
        let same = |figure: &&PublishedFigure| {
            figure.place == "table 1" && (&figure.id, &figure.quantity) == (&busy.id, &busy.quantity)
        };
        edition.figures().iter().find(same)
    };
    let busy = edition.figures().iter().filter(|figure| figure.place == "table 2");
    busy.filter_map(move |busy| Some((busy, busy.in_base()? / quiet(busy)?.in_base()?)))
}

/// Repeatability of the paper's figures: standard deviation of the ratios of systems without a shared bus.
/// Smaller losses are not significant.
pub(crate) fn repeatability(edition: &PublishedPaper) -> f64 {
    let ratios: Vec<f64> = published_ratios(edition)
        .filter(|(figure, _)| figure.id != SHARED_BUS)
        .map(|(_, ratio)| ratio)
        .collect();
    let count = ratios.len().max(1) as f64;
    let mean = ratios.iter().float_sum() / count;
    (ratios.iter().map(|ratio| (ratio - mean).powi(2)).float_sum() / count).sqrt()
}

/// Minimum and maximum as text.
fn range(values: impl Iterator<Item = f64>) -> String {
    let ends = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), value| (a.min(value), b.max(value)));
    format!("{:.0} to {:.0}", ends.0, ends.1)
}

/// Whether the network load came from another host.
fn is_remote(found: &Reproduced<'_>) -> bool {
    found.cells(&[("beside", BUSY)]).any(|cell| cell.cell.command.contains("MB/s@"))
}

/// Names of the volumes.
fn places<'f>(found: &'f Reproduced<'_>) -> Vec<&'f str> {
    let mut places: Vec<&str> = Vec::new();
    for (place, _) in found.cells_of_kind(TESTDISK) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// Values of a column for a volume, MiB/s.
fn values(found: &Reproduced<'_>, column: &Column, volume: &str, beside: &str) -> Vec<f64> {
    let test = label(column.test, volume);
    let labels = [("test", test.as_str()), ("beside", beside)];
    let figures = found.cells(&labels).flat_map(|cell| &cell.cell.figures);
    let mut figures =
        figures.filter(|figure| figure.quantity == Quantity::BytesPerSecond && column.is_of(&figure.what));
    figures.next().map_or_else(Vec::new, |figure| figure.values.iter().map(|value| value / MIB).collect())
}

fn table(
    found: &Reproduced<'_>,
    edition: &PublishedPaper,
    stands: &str,
    beside: &str,
    title: &str,
) -> PaperTable {
    let quantities = COLUMNS.map(|column| column.title);
    let mut rows = edition.rows(stands, &quantities, PaperUnit::MebibytesPerSecond);
    for volume in places(found) {
        let cells = COLUMNS.iter().map(|column| measured(&values(found, column, volume, beside)));
        let name = format!("this machine, {volume}");
        rows.push(PaperRow { name, is_here: true, cells: cells.collect(), note: None });
    }
    PaperTable {
        title: format!("Results {title}"),
        stands: stands.to_owned(),
        head: "system".to_owned(),
        columns: COLUMNS.iter().map(|column| PaperColumn::new(column.title, "MiB/s")).collect(),
        rows,
    }
}

/// Rates with load over rates without, in pairs of runs.
fn remaining<'f>(found: &'f Reproduced<'_>, column: &Column, volume: &str) -> Option<&'f CampaignRatio> {
    let test = label(column.test, volume);
    let labels = [("test", test.as_str()), ("beside", BUSY)];
    let ratios = found.cells(&labels).flat_map(|cell| &cell.cell.ratios);
    let mut ratios =
        ratios.filter(|ratio| ratio.quantity == Quantity::BytesPerSecond && column.is_of(&ratio.what));
    ratios.next()
}

/// Effect of the network load on a volume.
enum Effect {
    /// Column with the largest significant loss, and its ratio.
    Loss(&'static str, CampaignRatio),
    /// No column loses more than this share.
    AtMost(f64),
    /// The scatter or the number of pairs does not tell; the lowest end of the intervals, if any.
    Unknown(Option<f64>),
    /// Every measurement was too short to be evidence.
    TooShort,
}

/// Effect of the network load on a volume; `None` without runs. A loss is significant if the pairs say so and
/// it exceeds `threshold`, the repeatability of the paper.
fn effect(found: &Reproduced<'_>, volume: &str, threshold: f64) -> Option<Effect> {
    let of = |column: &Column| Some((column.title, remaining(found, column, volume)?));
    let ratios: Vec<(&'static str, &CampaignRatio)> = COLUMNS.iter().filter_map(of).collect();
    let lowest = |lower: f64, (_, ratio): &(&str, &CampaignRatio)| Some(lower.min(ratio.lower?));
    let lost = ratios.iter().filter(|(_, ratio)| ratio.flagged && ratio.ratio < 1.0 - threshold);
    if let Some((title, ratio)) = lost.min_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio)) {
        return Some(Effect::Loss(title, (*ratio).clone()));
    }
    if ratios.is_empty() {
        let is_measured = COLUMNS.iter().any(|column| !values(found, column, volume, QUIET).is_empty());
        return is_measured.then_some(Effect::TooShort);
    }
    let has_pairs = ratios.iter().all(|(_, ratio)| i64::from(ratio.pairs) >= PAIRS);
    Some(match ratios.iter().try_fold(f64::INFINITY, lowest) {
        Some(lower) if has_pairs && lower >= 1.0 - TOLERABLE => Effect::AtMost((1.0 - lower).max(0.0)),
        lower => Effect::Unknown(lower.filter(|_| has_pairs)),
    })
}

impl Column {
    /// Whether a phase is that of the column.
    fn is_of(&self, what: &str) -> bool {
        what.starts_with(self.prefix) && self.not.is_none_or(|not| !what.starts_with(not))
    }
}

impl Effect {
    /// Sentence about a volume.
    fn sentence(&self, volume: &str) -> String {
        match self {
            Self::Loss(column, ratio) => {
                format!("{volume}: {column} keeps {} of its rate with the network load.", kept(ratio))
            }
            Self::AtMost(share) => format!(
                "{volume}: no significant loss by the network load; at most {:.0} % in any column (95 %).",
                100.0 * share
            ),
            Self::Unknown(Some(lower)) => format!(
                "{volume}: cannot tell whether the network load slows it down: the intervals reach down to \
                 {:.0} % of the rate.",
                100.0 * lower
            ),
            Self::Unknown(None) => format!(
                "{volume}: cannot tell whether the network load slows it down: there are fewer than {PAIRS} \
                 pairs of runs."
            ),
            Self::TooShort => format!(
                "{volume}: cannot tell whether the network load slows it down: each test took less than \
                 {EVIDENCE_SECONDS_MIN} s."
            ),
        }
    }
}

/// Ratio in per cent with its interval.
fn kept(ratio: &CampaignRatio) -> String {
    let interval = match (ratio.lower, ratio.upper) {
        (Some(lower), Some(upper)) => format!(" ({:.0} to {:.0} %)", 100.0 * lower, 100.0 * upper),
        _ => String::new(),
    };
    format!("{:.0} %{interval}", 100.0 * ratio.ratio)
}

fn findings(found: &Reproduced<'_>) -> Vec<String> {
    let mut findings = Vec::new();
    let fastest = places(found)
        .into_iter()
        .filter_map(|volume| Some((volume, median(&values(found, &COLUMNS[1], volume, QUIET))?)));
    if let Some((volume, rate)) = fastest.max_by(|a, b| a.1.total_cmp(&b.1)) {
        findings.push(format!("Fastest block write: {rate:.0} MiB/s, on {volume}."));
    }
    findings.extend(processors(found));
    findings
}

/// Highest processor load with and without network traffic.
fn processors(found: &Reproduced<'_>) -> Option<String> {
    let busy = |beside| {
        let labels = [("beside", beside)];
        let cells = found.cells(&labels).flat_map(|cell| &cell.cell.figures);
        let busy = cells.filter(|figure| figure.quantity == Quantity::CoresBusy);
        busy.flat_map(|figure| figure.values.iter().copied()).reduce(f64::max)
    };
    let cores = found.cores()?;
    // The kernel counts in ticks: the sum may exceed the number of cores a little.
    let [quiet, network] = [busy(QUIET)?, busy(BUSY)?].map(|busy| busy.min(cores as f64));
    Some(format!(
        "Processors: at most {quiet:.2} of {cores} cores busy without network traffic, {network:.2} with it; \
         {:.2} remain for display and transfer.",
        cores as f64 - network
    ))
}

fn answers(found: &Reproduced<'_>, edition: &PublishedPaper) -> Vec<PaperAnswer> {
    let threshold = repeatability(edition);
    let camera = builtin(CAMERA).map_or(f64::NAN, |profile| profile.required_bytes_per_second() / MIB);
    let by_kernel = |figure: &&PublishedFigure| {
        let row = (figure.place.as_str(), figure.quantity.as_str());
        row == ("table 2", COLUMNS[0].title) && figure.system.contains("Linux md")
    };
    let by_kernel = edition.figures().iter().filter(by_kernel).filter_map(|f| Some(f.in_base()? / MIB));
    let effects = places(found).into_iter().filter_map(|v| Some(effect(found, v, threshold)?.sentence(v)));
    let effects: Vec<String> = effects.collect();
    let best = places(found)
        .into_iter()
        .filter_map(|volume| {
            let values = values(found, &COLUMNS[0], volume, BUSY);
            Some((median(&values)?, values.into_iter().reduce(f64::min)?))
        })
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let shared = published_ratios(edition).filter(|(figure, _)| figure.id == SHARED_BUS);
    let lost = range(shared.filter(|(f, _)| f.quantity.ends_with("write")).map(|(_, r)| 100.0 * (1.0 - r)));
    let others = 100.0 * threshold;
    vec![
        PaperAnswer {
            question: "Does incoming network traffic slow down the disks?".into(),
            published: format!(
                "Writes lose {lost} % if both share a PCI-X bus. On other systems the rates with and without \
                 traffic differ by {others:.1} % (standard deviation)."
            ),
            here: if effects.is_empty() { NOT_MEASURED.into() } else { effects.join(" ") },
        },
        PaperAnswer {
            question: format!(
                "Can one computer store {camera:.0} MiB/s of a camera (FReLoN 2k, 30 frames/s) while \
                 receiving it?"
            ),
            published: format!(
                "Two disks in a Linux md RAID 0 write one file at {} MiB/s with the traffic.",
                range(by_kernel)
            ),
            here: best.map_or_else(
                || NOT_MEASURED.into(),
                |(best, least)| {
                    let word = match (least >= camera, best >= camera) {
                        (true, _) => "Yes",
                        (false, true) => "Not in every run",
                        (false, false) => "No",
                    };
                    format!(
                        "{word}: {best:.0} MiB/s into one file with the traffic, at least {:.1}x the camera \
                         rate in every run.",
                        least / camera
                    )
                },
            ),
        },
    ]
}

#[cfg(test)]
#[path = "esrf_tests.rs"]
mod tests;
