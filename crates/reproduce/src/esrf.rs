//! ESRF, 2007: which computer keeps a camera's frames, with and without traffic on the network.
//!
//! Tables 1 and 2: one file of 4 GB, a large file by blocks, many files, each without and with an incoming
//! stream that fills Gigabit Ethernet; figure 6: processors and network meanwhile.
use keepup_measure::stats::median;
use keepup_model::papers::{PaperUnit, PublishedFigure};
use keepup_plan::builtin;
use keepup_results::{
    PaperAnswer, PaperCell, PaperColumn, PaperCurve, PaperPage, PaperRow, PaperSeries, PaperTable, Quantity,
};
use toml::{Table, Value};

use crate::error::ReproduceError;
use crate::found::{CellFound, Reproduced};
use crate::published::{Edition, MIB};
use crate::{PaperRequest, Reproduction, file, labelled, scaled, volumes};

const NAME: &str = "esrf-2007";
/// The large file of `bonnie++` there.
const LARGE_BYTES: u64 = 6 << 30;
/// Below this part of the data the program's own quick form is used, which moves a 64th.
const QUICK_BELOW: f64 = 0.25;
const QUIET: &str = "quiet";
const BUSY: &str = "network";
const TESTDISK: &str = "testdisk";
const BLOCK: &str = "block";
/// Id of the published system whose disks share a bus with the network card.
const SHARED_BUS: &str = "E2";
/// Detector of today whose rate the camera's is: FReLoN 2k, 30 frames/s.
const CAMERA: &str = "frelon-2k";

/// The paper.
pub(crate) struct Esrf;

/// A column of both tables: which test it is from, and what that calls it.
struct Column {
    test: &'static str,
    /// What the name of the phase begins with.
    begins: &'static str,
    /// What it does not begin with.
    not: Option<&'static str>,
    /// What stands over it, and what the published figures call it.
    title: &'static str,
}

const COLUMNS: [Column; 4] = [
    Column { test: TESTDISK, begins: "create 1 x", not: None, title: "single file write" },
    Column { test: BLOCK, begins: "write", not: None, title: "block write" },
    Column { test: TESTDISK, begins: "create", not: Some("create 1 x"), title: "many files write" },
    Column { test: BLOCK, begins: "read", not: None, title: "block read" },
];

impl Reproduction for Esrf {
    fn name(&self) -> &'static str {
        NAME
    }

    fn campaign(&self, request: &PaperRequest) -> Result<Table, ReproduceError> {
        let testdisk = [("verb", "disk testdisk".into()), ("quick", (request.scale < QUICK_BELOW).into())];
        let block = [
            ("verb", Value::from("disk block")),
            ("direct", true.into()),
            ("size", scaled(LARGE_BYTES, request.scale, 1 << 20)),
            ("seeks", 512.into()),
            ("files", 1.into()),
        ];
        let tests = vec![labelled(TESTDISK, &testdisk), labelled(BLOCK, &block)];
        let loads =
            vec![labelled(QUIET, &[]), labelled(BUSY, &[("load", network(&Edition::of(NAME)).into())])];
        let title = "The camera computer: disks with and without network traffic";
        let axes = [("volume", volumes(request)?), ("test", tests), ("beside", loads)];
        let mut file = file(title, 2, Table::new(), axes);
        let baseline = Table::from_iter([("beside".to_owned(), Value::from(QUIET))]);
        file.insert("baseline".into(), Value::Table(baseline));
        Ok(file)
    }

    fn page(&self, found: &Reproduced<'_>) -> PaperPage {
        let edition = Edition::of(self.name());
        let mut page = found.begun(&edition);
        page.tables = vec![
            table(found, &edition, "table 1", QUIET, "without network load"),
            table(found, &edition, "table 2", BUSY, "with incoming Ethernet payload"),
        ];
        page.curves = curves(found);
        page.findings = findings(found, &edition);
        page.answers = answers(found, &edition);
        page.limits.extend([
            format!(
                "the network load of {} ran over loopback: no card and no bus was shared",
                network(&edition)
            ),
            "the large file was read and written past the page cache: this machine's memory would answer in \
             the disk's place, as the 4 GB of 2007 could not"
                .to_owned(),
        ]);
        if found.scale() < QUICK_BELOW {
            page.limits.push("testdisk moved a 64th of the paper's bytes: for a first look only".to_owned());
        }
        page
    }
}

/// The load that stands for the filled link there: the payload of Gigabit Ethernet with frames of 8192 bytes.
fn network(edition: &Edition) -> String {
    let payload = edition.follows("E9-full", PaperUnit::MegabytesPerSecond).unwrap_or_default();
    format!("net={payload:.1}MB/s")
}

/// Published figures of both tables: with the network load over without, for each system and quantity that
/// has both.
fn published_ratios(edition: &Edition) -> impl Iterator<Item = (&PublishedFigure, f64)> {
    let quiet = |busy: &PublishedFigure| {
        let same = |figure: &&PublishedFigure| {
            figure.place == "table 1" && (&figure.id, &figure.quantity) == (&busy.id, &busy.quantity)
        };
        edition.figures().iter().find(same)
    };
    let busy = edition.figures().iter().filter(|figure| figure.place == "table 2");
    busy.filter_map(move |busy| Some((busy, busy.in_base()? / quiet(busy)?.in_base()?)))
}

/// What a load may cost before it is called a loss: the repeatability that the paper's own pairs show where
/// no bus is shared, one standard deviation.
fn floor(edition: &Edition) -> f64 {
    let ratios: Vec<f64> = published_ratios(edition)
        .filter(|(figure, _)| figure.id != SHARED_BUS)
        .map(|(_, ratio)| ratio)
        .collect();
    let count = ratios.len().max(1) as f64;
    let mean = ratios.iter().sum::<f64>() / count;
    (ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / count).sqrt()
}

/// The lowest and the highest of some values as text.
fn range(values: impl Iterator<Item = f64>) -> String {
    let ends = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), value| (a.min(value), b.max(value)));
    format!("{:.0} to {:.0}", ends.0, ends.1)
}

/// Values of a column for a volume, in MiB/s as the paper's program prints them.
fn values(found: &Reproduced<'_>, column: &Column, volume: &str, beside: &str) -> Vec<f64> {
    let labels = [("volume", volume), ("test", column.test), ("beside", beside)];
    let figures = found.cells(&labels).flat_map(|cell| &cell.cell.figures);
    let fits =
        |what: &str| what.starts_with(column.begins) && column.not.is_none_or(|not| !what.starts_with(not));
    let mut figures =
        figures.filter(|figure| figure.quantity == Quantity::BytesPerSecond && fits(&figure.what));
    figures.next().map_or_else(Vec::new, |figure| figure.values.iter().map(|value| value / MIB).collect())
}

fn table(found: &Reproduced<'_>, edition: &Edition, stands: &str, beside: &str, title: &str) -> PaperTable {
    let quantities = COLUMNS.map(|column| column.title);
    let mut rows = edition.rows(stands, &quantities, PaperUnit::MebibytesPerSecond);
    for volume in found.labels("volume") {
        let cells = COLUMNS.iter().map(|column| {
            let values = values(found, column, volume, beside);
            if values.is_empty() { PaperCell::words("not measured") } else { PaperCell::measured(&values) }
        });
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

/// What the load left of a column: the ratio of the medians, and whether no value with it reaches one
/// without.
fn left(found: &Reproduced<'_>, column: &Column, volume: &str, floor: f64) -> Option<(f64, bool)> {
    let (busy, quiet) = (values(found, column, volume, BUSY), values(found, column, volume, QUIET));
    let most = busy.iter().copied().reduce(f64::max)?;
    let least = quiet.iter().copied().reduce(f64::min)?;
    let ratio = median(&busy)? / median(&quiet)?;
    Some((ratio, most < least && ratio < 1.0 - floor))
}

/// The column that a volume loses most in, if it does so beyond its scatter: its title and what is left.
fn loss(found: &Reproduced<'_>, volume: &str, floor: f64) -> Option<(&'static str, f64)> {
    let losses = COLUMNS.iter().filter_map(|column| match left(found, column, volume, floor)? {
        (ratio, true) => Some((column.title, ratio)),
        _ => None,
    });
    losses.min_by(|a, b| a.1.total_cmp(&b.1))
}

fn findings(found: &Reproduced<'_>, edition: &Edition) -> Vec<String> {
    let mut told = Vec::new();
    let floor = floor(edition);
    let kept = published_ratios(edition)
        .filter(|(figure, _)| figure.id == SHARED_BUS && figure.quantity.ends_with("write"))
        .map(|(_, ratio)| 100.0 * ratio);
    let kept = range(kept);
    let fastest = found
        .labels("volume")
        .iter()
        .filter_map(|volume| Some((volume, median(&values(found, &COLUMNS[1], volume, QUIET))?)));
    if let Some((volume, rate)) = fastest.max_by(|a, b| a.1.total_cmp(&b.1)) {
        told.push(format!("The fastest block write here was {rate:.0} MiB/s, on {volume}."));
    }
    for volume in found.labels("volume") {
        told.push(match loss(found, volume, floor) {
            Some((column, ratio)) => format!(
                "{volume}: with the network busy, {column} keeps {:.0} % of its rate; the paper's PCI-X card \
                 kept {kept} % of its writes when it shared its bus with the network card.",
                100.0 * ratio
            ),
            None => format!(
                "{volume}: the network load costs nothing that can be told from the scatter of the runs; the \
                 paper's own pairs scatter by {:.1} %.",
                100.0 * floor
            ),
        });
    }
    told.extend(processors(found));
    told
}

/// How much of the processors the worst moment left.
fn processors(found: &Reproduced<'_>) -> Option<String> {
    let busy = |beside| {
        let labels = [("beside", beside)];
        let cells = found.cells(&labels).flat_map(|cell| &cell.cell.figures);
        let busy = cells.filter(|figure| figure.quantity == Quantity::CoresBusy);
        busy.flat_map(|figure| figure.values.iter().copied()).reduce(f64::max)
    };
    let (quiet, network) = (busy(QUIET)?, busy(BUSY)?);
    let cores = found.cores()?;
    Some(format!(
        "Processors: at most {quiet:.2} of {cores} cores were busy without network traffic and {network:.2} \
         with it, which leaves {:.2} for display and transfer.",
        (cores as f64 - network).max(0.0)
    ))
}

fn answers(found: &Reproduced<'_>, edition: &Edition) -> Vec<PaperAnswer> {
    let floor = floor(edition);
    let camera = builtin(CAMERA).map_or(f64::NAN, |profile| profile.required_bytes_per_second() / MIB);
    let by_kernel = |figure: &&PublishedFigure| {
        let row = (figure.place.as_str(), figure.quantity.as_str());
        row == ("table 2", COLUMNS[0].title) && figure.system.contains("Linux md")
    };
    let by_kernel = edition.figures().iter().filter(by_kernel).filter_map(|f| Some(f.in_base()? / MIB));
    let volumes = found.labels("volume");
    let worst =
        volumes.iter().filter_map(|volume| loss(found, volume, floor)).min_by(|a, b| a.1.total_cmp(&b.1));
    let is_measured =
        volumes.iter().any(|volume| COLUMNS.iter().any(|c| left(found, c, volume, floor).is_some()));
    let best = found
        .labels("volume")
        .iter()
        .filter_map(|volume| median(&values(found, &COLUMNS[0], volume, BUSY)))
        .reduce(f64::max);
    vec![
        PaperAnswer {
            question: "Does incoming network traffic slow the disks down?".into(),
            published: "By a third where both share a PCI-X bus; not measurably anywhere else.".into(),
            here: match worst {
                _ if !is_measured => "not measured".into(),
                Some((column, ratio)) => format!("Yes: {column} keeps {:.0} %.", 100.0 * ratio),
                None => "Not beyond the scatter of the runs.".into(),
            },
        },
        PaperAnswer {
            question: format!(
                "Can one computer keep a camera's {camera:.0} MiB/s (FReLoN 2k, 30 frames/s) while they \
                 arrive?"
            ),
            published: format!(
                "Two disks in RAID 0 by the kernel write one file at {} MiB/s beside the traffic.",
                range(by_kernel)
            ),
            here: best.map_or_else(
                || "not measured".into(),
                |best| {
                    format!(
                        "{best:.0} MiB/s into one file beside the traffic: {:.1} times that.",
                        best / camera
                    )
                },
            ),
        },
    ]
}

/// Figure 6: processors over time, without and with the network load.
fn curves(found: &Reproduced<'_>) -> Vec<PaperCurve> {
    let mut curves = Vec::new();
    for (beside, words) in [(QUIET, "without"), (BUSY, "with")] {
        let Some(cell) = found.cells(&[("test", TESTDISK), ("beside", beside)]).next() else { continue };
        let series = cell.cores_over_time();
        if series.is_empty() {
            continue;
        }
        curves.push(PaperCurve {
            title: format!("Processors and network during testdisk, {words} network load"),
            stands: "figure 6".into(),
            x: PaperColumn::new("time", "s"),
            y: PaperColumn::new("busy share of a core; network in per cent of 125 MB/s", "%"),
            is_log_x: false,
            series: series.into_iter().chain(network_over_time(cell)).collect(),
            note: Some("the paper's curves are in a picture without numbers".into()),
        });
    }
    curves
}

fn network_over_time(cell: &CellFound<'_>) -> Option<PaperSeries> {
    let run = cell.disks().next()?.runs.first()?;
    let load = run.loads.first()?;
    let point = |(n, rate): (usize, &f64)| ((n as f64 + 0.5) * load.step_seconds, rate / 125e6 * 100.0);
    let points = load.series.iter().enumerate().map(point).collect();
    Some(PaperSeries { name: "network".into(), is_here: true, points })
}

#[cfg(test)]
#[path = "esrf_tests.rs"]
mod tests;
