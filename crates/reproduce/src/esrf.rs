//! ESRF, 2007: which computer can record a camera, with and without network traffic.
//!
//! Tables 1 and 2: one file of 4 GB, a large file in blocks, and many files, each without and with an
//! incoming stream at the rate of Gigabit Ethernet. Figure 6: load of processors and network.
use keepup_measure::stats::median;
use keepup_model::papers::{PaperUnit, PublishedFigure};
use keepup_plan::builtin;
use keepup_results::{
    PaperAnswer, PaperCell, PaperColumn, PaperCurve, PaperPage, PaperRow, PaperSeries, PaperTable, Quantity,
};
use toml::{Table, Value};

use crate::error::ReproduceError;
use crate::measured::{CellResults, Reproduced};
use crate::published::{MIB, PublishedPaper};
use crate::{PaperRequest, Reproduction, file, labelled, scaled, volumes};

pub(crate) const NAME: &str = "esrf-2007";
/// Size of the `bonnie++` file in the paper.
const LARGE_BYTES: u64 = 6 << 30;
/// Scale below which testdisk's quick mode is used, which moves 1/64 of the data.
const QUICK_BELOW: f64 = 0.25;
const QUIET: &str = "quiet";
const BUSY: &str = "network";
const TESTDISK: &str = "testdisk";
const BLOCK: &str = "block";
/// Id of the published system whose disks share a bus with the network card.
const SHARED_BUS: &str = "E2";
/// Detector profile of the paper's camera: FReLoN 2k, 30 frames/s.
const CAMERA: &str = "frelon-2k";

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
    Column { test: BLOCK, prefix: "write", not: None, title: "block write" },
    Column { test: TESTDISK, prefix: "create", not: Some("create 1 x"), title: "many files write" },
    Column { test: BLOCK, prefix: "read", not: None, title: "block read" },
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
        let loads = vec![
            labelled(QUIET, &[]),
            labelled(BUSY, &[("load", network(&PublishedPaper::of(NAME)).into())]),
        ];
        let title = "The camera computer: disks with and without network traffic";
        let axes = [("volume", volumes(request)?), ("test", tests), ("beside", loads)];
        let mut file = file(title, 2, Table::new(), axes);
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
        ];
        page.curves = curves(found);
        page.findings = findings(found, &edition);
        page.answers = answers(found, &edition);
        page.limits.extend([
            format!(
                "the network load of {} ran over loopback: no network card or bus was shared",
                network(&edition)
            ),
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
    let mean = ratios.iter().sum::<f64>() / count;
    (ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / count).sqrt()
}

/// Minimum and maximum as text.
fn range(values: impl Iterator<Item = f64>) -> String {
    let ends = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), value| (a.min(value), b.max(value)));
    format!("{:.0} to {:.0}", ends.0, ends.1)
}

/// Values of a column for a volume, MiB/s.
fn values(found: &Reproduced<'_>, column: &Column, volume: &str, beside: &str) -> Vec<f64> {
    let labels = [("volume", volume), ("test", column.test), ("beside", beside)];
    let figures = found.cells(&labels).flat_map(|cell| &cell.cell.figures);
    let fits =
        |what: &str| what.starts_with(column.prefix) && column.not.is_none_or(|not| !what.starts_with(not));
    let mut figures =
        figures.filter(|figure| figure.quantity == Quantity::BytesPerSecond && fits(&figure.what));
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

/// Ratio of the medians with and without load, and whether the loss is significant: the ranges do not
/// overlap.
fn remaining(found: &Reproduced<'_>, column: &Column, volume: &str, threshold: f64) -> Option<(f64, bool)> {
    let (busy, quiet) = (values(found, column, volume, BUSY), values(found, column, volume, QUIET));
    let most = busy.iter().copied().reduce(f64::max)?;
    let least = quiet.iter().copied().reduce(f64::min)?;
    let ratio = median(&busy)? / median(&quiet)?;
    Some((ratio, most < least && ratio < 1.0 - threshold))
}

/// Column with the largest significant loss of a volume, and the remaining share.
fn loss(found: &Reproduced<'_>, volume: &str, threshold: f64) -> Option<(&'static str, f64)> {
    let losses = COLUMNS.iter().filter_map(|column| match remaining(found, column, volume, threshold)? {
        (ratio, true) => Some((column.title, ratio)),
        _ => None,
    });
    losses.min_by(|a, b| a.1.total_cmp(&b.1))
}

fn findings(found: &Reproduced<'_>, edition: &PublishedPaper) -> Vec<String> {
    let mut findings = Vec::new();
    let threshold = repeatability(edition);
    let kept = published_ratios(edition)
        .filter(|(figure, _)| figure.id == SHARED_BUS && figure.quantity.ends_with("write"))
        .map(|(_, ratio)| 100.0 * ratio);
    let kept = range(kept);
    let fastest = found
        .labels("volume")
        .iter()
        .filter_map(|volume| Some((volume, median(&values(found, &COLUMNS[1], volume, QUIET))?)));
    if let Some((volume, rate)) = fastest.max_by(|a, b| a.1.total_cmp(&b.1)) {
        findings.push(format!("Fastest block write: {rate:.0} MiB/s, on {volume}."));
    }
    for volume in found.labels("volume") {
        findings.push(match loss(found, volume, threshold) {
            Some((column, ratio)) => format!(
                "{volume}: with network load, {column} keeps {:.0} % of its rate. In the paper, a PCI-X \
                 card on the bus of the network card kept {kept} % of its write rate.",
                100.0 * ratio
            ),
            None => format!(
                "{volume}: no significant loss by the network load (repeatability of the paper's figures: \
                 {:.1} %).",
                100.0 * threshold
            ),
        });
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
    let (quiet, network) = (busy(QUIET)?, busy(BUSY)?);
    let cores = found.cores()?;
    Some(format!(
        "Processors: at most {quiet:.2} of {cores} cores busy without network traffic, {network:.2} with it; \
         {:.2} remain for display and transfer.",
        (cores as f64 - network).max(0.0)
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
    let volumes = found.labels("volume");
    let worst =
        volumes.iter().filter_map(|volume| loss(found, volume, threshold)).min_by(|a, b| a.1.total_cmp(&b.1));
    let is_measured =
        volumes.iter().any(|volume| COLUMNS.iter().any(|c| remaining(found, c, volume, threshold).is_some()));
    let best = found
        .labels("volume")
        .iter()
        .filter_map(|volume| median(&values(found, &COLUMNS[0], volume, BUSY)))
        .reduce(f64::max);
    vec![
        PaperAnswer {
            question: "Does incoming network traffic slow down the disks?".into(),
            published: "By a third if both share a PCI-X bus; otherwise not measurably.".into(),
            here: match worst {
                _ if !is_measured => "not measured".into(),
                Some((column, ratio)) => format!("Yes: {column} keeps {:.0} %.", 100.0 * ratio),
                None => "No significant loss.".into(),
            },
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
                || "not measured".into(),
                |best| {
                    format!(
                        "{best:.0} MiB/s into one file with the traffic, {:.1}x the camera rate.",
                        best / camera
                    )
                },
            ),
        },
    ]
}

/// Figure 6: processors over time, without and with network load.
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
            y: PaperColumn::new("core load; network in per cent of 125 MB/s", "%"),
            is_log_x: false,
            series: series.into_iter().chain(network_over_time(cell)).collect(),
            note: Some("the curves of the paper have no numbers".into()),
        });
    }
    curves
}

fn network_over_time(cell: &CellResults<'_>) -> Option<PaperSeries> {
    let run = cell.disks().next()?.runs.first()?;
    let load = run.loads.first()?;
    let point = |(n, rate): (usize, &f64)| ((n as f64 + 0.5) * load.step_seconds, rate / 125e6 * 100.0);
    let points = load.series.iter().enumerate().map(point).collect();
    Some(PaperSeries { name: "network".into(), is_here: true, points })
}

#[cfg(test)]
#[path = "esrf_tests.rs"]
mod tests;
