//! Tables and figures of the ESRF report beside its tables 1 and 2.
use keepup_measure::environment::{Link, Reading};
use keepup_measure::sum::Sums;
use keepup_model::papers::PaperUnit;
use keepup_results::{
    Event, PaperCell, PaperColumn, PaperCurve, PaperRow, PaperSeries, PaperTable, Quantity, StoredResult,
};
use serde_json::Value as Json;

use super::{BUSY, COLUMNS, FILL, QUIET, TESTDISK, places};
use crate::label;
use crate::measured::{CellResults, Reproduced, environment_volumes, measured};
use crate::published::{MIB, PublishedPaper};

/// Rate of Gigabit Ethernet, to which the paper scales its network curve, B/s.
const GIGABIT: f64 = 125e6;

/// Network alone, at full speed.
pub(super) fn filled(found: &Reproduced<'_>, edition: &PublishedPaper) -> PaperTable {
    let payload = edition.follows("E9-full", PaperUnit::MebibytesPerSecond);
    let published = payload.map(|payload| PaperRow {
        name: "Gigabit Ethernet, MTU 8192".into(),
        is_here: false,
        cells: vec![PaperCell::published(payload)],
        note: Some("the paper says that iperf fills it; the payload rate follows from the frames".into()),
    });
    let mut rows: Vec<PaperRow> = published.into_iter().collect();
    for cell in found.cells(&[("test", FILL)]).filter(|cell| cell.cell.skipped.is_none()) {
        let rates: Vec<f64> = cell
            .nets()
            .flat_map(|summary| &summary.runs)
            .filter_map(|run| Some(run.goodput(None)? / MIB))
            .collect();
        let target = cell.cell.command.split_whitespace().nth(3).unwrap_or_default();
        let name = match target {
            "self" | "" => "this machine, loopback".to_owned(),
            host => format!("this machine, from {host}"),
        };
        rows.push(PaperRow::here(name, vec![measured(&rates)]));
    }
    PaperTable {
        title: "Network at full speed, one TCP flow".into(),
        stands: "section 2".into(),
        head: "system".into(),
        columns: vec![PaperColumn::new("payload", "MiB/s")],
        rows,
    }
}

/// Phases of a program that are in neither table, by volume, without and with the network load.
pub(super) fn phases(found: &Reproduced<'_>, kind: &str, title: &str, stands: &str) -> PaperTable {
    let mut columns: Vec<(&str, &str)> = Vec::new();
    for place in places(found) {
        columns.extend([(place, QUIET), (place, BUSY)]);
    }
    let mut names: Vec<(&str, Quantity)> = Vec::new();
    let cells = found.cells_of_kind(kind);
    for figure in cells.iter().flat_map(|(_, cell)| &cell.cell.figures) {
        let name = (figure.what.as_str(), figure.quantity);
        if unit(figure.quantity).is_some() && is_extra(kind, figure.what.as_str()) && !names.contains(&name) {
            names.push(name);
        }
    }
    // A phase with a rate in bytes needs none in operations, except seeks.
    let has_bytes = |what: &str| names.contains(&(what, Quantity::BytesPerSecond)) && what != "seek";
    let rows = names.iter().filter(|(what, q)| *q == Quantity::BytesPerSecond || !has_bytes(what));
    let rows = rows.map(|(what, quantity)| {
        let (unit, divisor) = unit(*quantity).unwrap_or_default();
        let cell = |(place, beside): &(&str, &str)| {
            let test = label(kind, place);
            found.figure(&[("test", test.as_str()), ("beside", beside)], what, *quantity, divisor)
        };
        PaperRow::here(format!("{what}, {unit}"), columns.iter().map(cell).collect())
    });
    PaperTable {
        title: title.to_owned(),
        stands: stands.to_owned(),
        head: "phase".into(),
        columns: columns
            .iter()
            .map(|(place, beside)| PaperColumn::new(format!("{place}, {beside}"), ""))
            .collect(),
        rows: rows.collect(),
    }
}

/// Unit and divisor of the rates in the table of phases.
fn unit(quantity: Quantity) -> Option<(&'static str, f64)> {
    match quantity {
        Quantity::BytesPerSecond => Some(("MiB/s", MIB)),
        Quantity::OperationsPerSecond => Some(("1/s", 1.0)),
        _ => None,
    }
}

/// Whether a phase is shown beside those of tables 1 and 2. All series of testdisk are.
fn is_extra(kind: &str, what: &str) -> bool {
    kind == TESTDISK || !COLUMNS.iter().any(|column| column.test == kind && column.prefix == what)
}

/// Processor load of all runs of testdisk.
pub(super) fn processors(found: &Reproduced<'_>) -> PaperTable {
    let mut rows = Vec::new();
    for place in places(found) {
        for beside in [QUIET, BUSY] {
            let test = label(TESTDISK, place);
            let labels = [("test", test.as_str()), ("beside", beside)];
            let cells = found.cells(&labels);
            let runs: Vec<Load> = cells.flat_map(|cell| &cell.results).filter_map(Load::of).collect();
            let of = |of: fn(&Load) -> Option<f64>| runs.iter().filter_map(of).collect::<Vec<f64>>();
            let cells = [of(|load| load.mean()), of(|load| load.most()), of(|load| load.busiest_core())];
            let cells = cells.iter().map(|values| measured(values)).collect();
            rows.push(PaperRow::here(format!("this machine, {place}, {beside}"), cells));
        }
    }
    PaperTable {
        title: "Processors during testdisk, all runs".into(),
        stands: "figure 6".into(),
        head: "system".into(),
        columns: vec![
            PaperColumn::new("mean of all cores", "%"),
            PaperColumn::new("highest second", "%"),
            PaperColumn::new("busiest core, mean", "%"),
        ],
        rows,
    }
}

/// Load of the cores over a run: seconds, and per cent of each core.
struct Load(Vec<(f64, Vec<f64>)>);

impl Load {
    fn of(result: &StoredResult) -> Option<Self> {
        let events = result.directory()?.events().ok()?;
        let mut samples = Vec::new();
        for event in events {
            let Ok(Event::Sample { t_ms, values, .. }) = event else { continue };
            let is_core = |name: &str| name.starts_with("core_") && name.ends_with("_busy_percent");
            let cores: Vec<f64> =
                values.into_iter().filter(|(name, _)| is_core(name)).map(|(_, value)| value).collect();
            if !cores.is_empty() {
                samples.push((t_ms as f64 / 1e3, cores));
            }
        }
        (!samples.is_empty()).then_some(Self(samples))
    }

    /// Mean of all cores over time.
    fn series(&self) -> Vec<(f64, f64)> {
        self.0.iter().map(|(t, cores)| (*t, cores.iter().float_sum() / cores.len() as f64)).collect()
    }

    fn mean(&self) -> Option<f64> {
        let series = self.series();
        (!series.is_empty()).then(|| series.iter().map(|point| point.1).float_sum() / series.len() as f64)
    }

    fn most(&self) -> Option<f64> {
        self.series().into_iter().map(|point| point.1).reduce(f64::max)
    }

    fn busiest_core(&self) -> Option<f64> {
        let cores = self.0.iter().map(|(_, cores)| cores.len()).min()?;
        let mean =
            |core: usize| self.0.iter().map(|(_, cores)| cores[core]).float_sum() / self.0.len() as f64;
        (0..cores).map(mean).reduce(f64::max)
    }
}

/// PCI Express links of the disks, from the environment record.
pub(super) fn links(found: &Reproduced<'_>, edition: &PublishedPaper) -> PaperTable {
    let of = |condition, quantity| edition.text("E11", ["", condition, quantity], PaperUnit::Lanes);
    let lanes = format!("{} of {}", of("analyser", "lanes"), of("card", "lanes"));
    let published = PaperRow {
        name: edition.system("E11").to_owned(),
        is_here: false,
        cells: vec![PaperCell::words(lanes), PaperCell::default(), PaperCell::default()],
        note: Some("seen by a bus analyser".into()),
    };
    let mut rows = vec![published];
    let mut known: Vec<String> = Vec::new();
    for volume in environment_volumes(found) {
        let disks = volume.get("disks").and_then(Json::as_object);
        for (name, disk) in disks.into_iter().flatten() {
            if known.contains(name) {
                continue;
            }
            known.push(name.clone());
            let link = disk.get("link").and_then(|link| serde_json::from_value::<Link>(link.clone()).ok());
            let cells = link.map_or_else(
                || vec![PaperCell::words("no PCI Express link"), PaperCell::default(), PaperCell::default()],
                |link| link_cells(&link),
            );
            rows.push(PaperRow::here(format!("this machine, {name}"), cells));
        }
    }
    PaperTable {
        title: "PCI Express links of the disks".into(),
        stands: "section 3.3".into(),
        head: "device".into(),
        columns: vec![
            PaperColumn::new("lanes", ""),
            PaperColumn::new("speed", "GT/s"),
            PaperColumn::new("limit", "MiB/s"),
        ],
        rows,
    }
}

/// Lanes, speed and limit of a link.
fn link_cells(link: &Link) -> Vec<PaperCell> {
    fn of<T: std::fmt::Display>(now: &Reading<T>, most: &Reading<T>) -> PaperCell {
        match (now.value(), most.value()) {
            (Some(now), Some(most)) => PaperCell::words(format!("{now} of {most}")),
            (Some(now), None) => PaperCell::words(now.to_string()),
            _ => PaperCell::default(),
        }
    }
    let limit = link.bytes_per_second().map(|rate| PaperCell::published(rate / MIB));
    vec![
        of(&link.lanes, &link.lanes_max),
        of(&link.gigatransfers, &link.gigatransfers_max),
        limit.unwrap_or_default(),
    ]
}

/// Figure 6: processors and network over time, of every run.
pub(super) fn curves(found: &Reproduced<'_>) -> Vec<PaperCurve> {
    let mut curves = Vec::new();
    for place in places(found) {
        for (beside, words) in [(QUIET, "without"), (BUSY, "with")] {
            let test = label(TESTDISK, place);
            let Some(cell) = found.cells(&[("test", test.as_str()), ("beside", beside)]).next() else {
                continue;
            };
            let runs = cell.results.iter().enumerate();
            let series = runs.filter_map(|(n, result)| {
                let name = format!("processors, run {}", n + 1);
                Some(PaperSeries { name, is_here: true, points: Load::of(result)?.series() })
            });
            let series: Vec<PaperSeries> = series.chain(network_over_time(cell)).collect();
            if series.is_empty() {
                continue;
            }
            curves.push(PaperCurve {
                title: format!("Processors and network during testdisk on {place}, {words} network load"),
                stands: "figure 6".into(),
                x: PaperColumn::new("time", "s"),
                y: PaperColumn::new("mean of all cores; network in per cent of 125 MB/s", "%"),
                is_log_x: false,
                series,
                note: Some("the curves of the paper have no numbers".into()),
            });
        }
    }
    curves
}

/// Network load of every run, in per cent of Gigabit Ethernet.
fn network_over_time(cell: &CellResults<'_>) -> Vec<PaperSeries> {
    let runs = cell.disks().flat_map(|summary| &summary.runs).enumerate();
    let series = runs.filter_map(|(n, run)| {
        let load = run.loads.first()?;
        let point = |(n, rate): (usize, &f64)| ((n as f64 + 0.5) * load.step_seconds, rate / GIGABIT * 100.0);
        let points = load.series.iter().enumerate().map(point).collect();
        Some(PaperSeries { name: format!("network, run {}", n + 1), is_here: true, points })
    });
    series.collect()
}
