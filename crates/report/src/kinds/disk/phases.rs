//! Tables of phases: one row per phase, medians over all repeats.

use keepup_measure::stats::median;
use keepup_results::{DiskPhase, DiskSummary, LoadResult, LoadUnit};

use super::places;
use crate::format::fixed;
use crate::page::{Block, Item};
use crate::table::{Cell, Table, left, right};

/// Column: title with unit, value of a phase, decimals.
pub(super) type Column<'a> = (&'a str, &'a dyn Fn(&DiskPhase) -> Option<f64>, usize);

/// Note below tables with CPU columns.
const CPU: &str = "MB = 10^6 bytes. CPU: keepup with its kernel workers; machine: all programs.";

/// CPU of keepup, per cent of one core.
pub(super) fn cpu_percent(phase: &DiskPhase) -> Option<f64> {
    percent_of(phase, phase.cpu_seconds)
}

/// CPU of the whole machine, per cent of one core.
pub(super) fn machine_percent(phase: &DiskPhase) -> Option<f64> {
    percent_of(phase, phase.machine_cpu_seconds?)
}

fn percent_of(phase: &DiskPhase, seconds: f64) -> Option<f64> {
    (phase.seconds > 0.0).then(|| 100.0 * seconds / phase.seconds)
}

/// Rate, MB/s.
pub(super) fn megabytes(phase: &DiskPhase) -> Option<f64> {
    phase.bytes_per_second().map(|rate| rate / 1e6)
}

/// Table with a row for each phase of a place, in order of the first run. `label` is the text of a phase in
/// column `head`; phases without a label are omitted. Repeated phases get a column with the number of runs.
pub(super) fn table<'a>(
    summary: &'a DiskSummary,
    place: &str,
    head: &str,
    label: impl Fn(&'a str) -> Option<String>,
    columns: &[Column<'_>],
) -> Table {
    let kinds = summary.kinds();
    let named: Vec<(&str, String)> = kinds
        .iter()
        .filter(|kind| kind.0 == place)
        .filter_map(|kind| Some((kind.1, label(kind.1)?)))
        .collect();
    let runs = |phase: &str| summary.phases(place, phase).count();
    let is_repeated = named.iter().any(|(phase, _)| runs(phase) > 1);
    let are_figures = named.iter().all(|(_, label)| label.parse::<f64>().is_ok());
    let mut heads = vec![if are_figures { right(head) } else { left(head) }];
    heads.extend(is_repeated.then(|| right("runs")));
    heads.extend(columns.iter().map(|(title, ..)| right(*title)));
    let row = |(phase, label): &(&str, String)| -> Vec<Cell> {
        let mut row: Vec<Cell> = vec![label.as_str().into()];
        row.extend(is_repeated.then(|| Cell::from(runs(phase).to_string())));
        row.extend(columns.iter().map(|(_, of, digits)| {
            let values: Vec<f64> = summary.phases(place, phase).filter_map(of).collect();
            Cell::from(fixed(median(&values), *digits))
        }));
        row
    };
    Table { columns: heads, rows: named.iter().map(row).collect() }
}

/// Table for each place, with a note below the last one.
pub(super) fn of_places(
    summary: &DiskSummary,
    title: &str,
    note: &str,
    table: impl Fn(&str) -> Table,
) -> Vec<Block> {
    let mut blocks: Vec<Block> = places(summary)
        .iter()
        .map(|place| Block::new(format!("{place}: {title}"), vec![Item::Table(table(place))]))
        .collect();
    if let Some(last) = blocks.last_mut() {
        last.items.push(Item::Text(note.to_owned()));
    }
    blocks
}

/// Median, minimum and maximum rate, CPU cost and background load of every phase.
pub(super) fn rates(summary: &DiskSummary) -> Vec<Block> {
    of_places(summary, "rate of each phase", CPU, |place| of_rates(summary, place))
}

fn of_rates(summary: &DiskSummary, place: &str) -> Table {
    let loads = summary.runs.first().map_or(&[][..], |run| &run.loads);
    let machine = |phase: &DiskPhase| {
        let gb = phase.bytes as f64 / 1e9;
        phase.machine_cpu_seconds.filter(|_| gb > 0.0).map(|seconds| seconds / gb)
    };
    let mut columns = vec![
        left("phase"),
        right("runs"),
        right("median, MB/s"),
        right("lowest"),
        right("highest"),
        right("CPU, s/GB"),
        right("machine, s/GB"),
    ];
    columns.extend(loads.iter().map(|load| right(load_head(load))));
    let row = |phase: &str| -> Vec<Cell> {
        let rates: Vec<f64> = summary.rates(place, phase).map(|rate| rate / 1e6).collect();
        let middle = |of: &dyn Fn(&DiskPhase) -> Option<f64>| {
            median(&summary.phases(place, phase).filter_map(of).collect::<Vec<_>>())
        };
        let mut row: Vec<Cell> = vec![
            phase.into(),
            rates.len().to_string().into(),
            fixed(median(&rates), 1).into(),
            fixed(rates.iter().copied().reduce(f64::min), 1).into(),
            fixed(rates.iter().copied().reduce(f64::max), 1).into(),
            fixed(middle(&DiskPhase::cpu_seconds_per_gb), 3).into(),
            fixed(middle(&machine), 3).into(),
        ];
        row.extend((0..).zip(loads).map(|(number, load): (usize, _)| {
            let value = middle(&|phase| phase.load_rates.get(number).copied().flatten());
            Cell::from(match load.unit {
                LoadUnit::Cores => fixed(value, 2),
                LoadUnit::BytesPerSecond => fixed(value.map(|rate| rate / 1e6), 1),
            })
        }));
        row
    };
    let kinds = summary.kinds();
    let rows = kinds.iter().filter(|kind| kind.0 == place).map(|kind| row(kind.1)).collect();
    Table { columns, rows }
}

/// Column title of a background load.
fn load_head(load: &LoadResult) -> String {
    let unit = if load.unit == LoadUnit::Cores { "cores" } else { "MB/s" };
    format!("load {}, {unit}", load.kind)
}
