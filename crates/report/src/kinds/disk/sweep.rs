//! Transfer sizes against queue depths: heat map and lines for each place, writes and reads.

use std::collections::BTreeSet;

use keepup_results::{DiskPhase, DiskSummary};

use super::{NAME_CHARACTERS_MAX, middle, places};
use crate::chart::{
    Axis, Chart, HeatMap, Scale, Series, figure, heat_map, plot, rate_scale, short, size_name,
};
use crate::format::{fixed, shorten};
use crate::kinds::common::item;
use crate::page::{Block, Item};
use crate::table::{Cell, Table, left, right};

pub(super) fn blocks(summary: &DiskSummary) -> Vec<Block> {
    let kinds = summary.kinds();
    let mut points: Vec<(&str, u64, u64)> = kinds.iter().filter_map(|(_, phase)| point(phase)).collect();
    points.sort_unstable();
    points.dedup();
    let rates = kinds.iter().flat_map(|(place, phase)| summary.rates(place, phase));
    let unit = rate_scale(rates.fold(0.0, f64::max));
    let mut blocks = Vec::new();
    for place in places(summary) {
        for verb in ["write", "read"] {
            let of_verb: Vec<(u64, u64)> =
                points.iter().filter(|point| point.0 == verb).map(|point| (point.1, point.2)).collect();
            if !of_verb.is_empty() {
                blocks.extend(of_surface(summary, &Surface::new(summary, &place, verb, &of_verb), unit));
            }
        }
    }
    let skipped = summary.runs.iter().flat_map(|run| &run.skipped);
    let reasons: BTreeSet<&str> = skipped.map(|skipped| skipped.why.as_str()).collect();
    let mut notes: Vec<String> = reasons.iter().map(|why| format!("-: {why}")).collect();
    notes.push("Medians. MB = 10^6 bytes. CPU: keepup with its kernel workers.".to_owned());
    if let Some(last) = blocks.last_mut() {
        last.items.push(Item::List(notes));
    }
    blocks
}

/// Rates of a surface with charts, then CPU cost.
fn of_surface(summary: &DiskSummary, surface: &Surface, unit: Scale) -> [Block; 2] {
    let megabytes = |phase: &DiskPhase| phase.bytes_per_second().map(|rate| rate / 1e6);
    let cpu = |phase: &DiskPhase| phase.cpu_seconds_per_gb().map(|seconds| seconds * 1e3);
    let title =
        |unit: &str| format!("{}: {}, {unit} by transfer size and depth", surface.place, surface.verb);
    let mut items = vec![Item::Table(surface.table(summary, &megabytes, 0))];
    items.extend([surface.map(unit), surface.lines(unit)].into_iter().flatten().map(item));
    let rates = Block::new(title("MB/s"), items);
    let costs = Block::new(title("CPU ms/GB"), vec![Item::Table(surface.table(summary, &cpu, 1))]);
    [rates, costs]
}

/// Parses a phase name such as "write 4096 B depth 8".
fn point(phase: &str) -> Option<(&str, u64, u64)> {
    let (head, depth) = phase.split_once(" B depth ")?;
    let (verb, size) = head.split_once(' ')?;
    Some((verb, size.parse().ok()?, depth.parse().ok()?))
}

/// Phase name of a verb, size and depth.
fn phase(verb: &str, size: u64, depth: u64) -> String {
    format!("{verb} {size} B depth {depth}")
}

struct Surface {
    place: String,
    verb: &'static str,
    sizes: Vec<u64>,
    depths: Vec<u64>,
    /// By size, then by depth.
    values: Vec<Vec<Option<f64>>>,
}

impl Surface {
    fn new(summary: &DiskSummary, place: &str, verb: &'static str, points: &[(u64, u64)]) -> Self {
        let sorted = |mut values: Vec<u64>| {
            values.sort_unstable();
            values.dedup();
            values
        };
        let sizes = sorted(points.iter().map(|point| point.0).collect());
        let depths = sorted(points.iter().map(|point| point.1).collect());
        let value = |size: u64, depth: u64| {
            middle(summary, place, &phase(verb, size, depth), DiskPhase::bytes_per_second)
        };
        let values =
            sizes.iter().map(|size| depths.iter().map(|depth| value(*size, *depth)).collect()).collect();
        Self { place: place.to_owned(), verb, sizes, depths, values }
    }

    /// Shortened place.
    fn name(&self) -> String {
        shorten(&self.place, NAME_CHARACTERS_MAX)
    }

    fn size_names(&self) -> Vec<String> {
        self.sizes.iter().map(|size| size_name(*size)).collect()
    }

    /// Table with a row for each size and a column for each depth.
    fn table(&self, summary: &DiskSummary, of: &dyn Fn(&DiskPhase) -> Option<f64>, digits: usize) -> Table {
        let mut columns = vec![right("depth")];
        columns.extend(self.depths.iter().map(|depth| right(depth.to_string())));
        let row = |size: &u64| -> Vec<Cell> {
            let value = |depth: &u64| {
                let phase = phase(self.verb, *size, *depth);
                Cell::from(fixed(middle(summary, &self.place, &phase, of), digits))
            };
            std::iter::once(Cell::from(size_name(*size))).chain(self.depths.iter().map(value)).collect()
        };
        Table { columns, rows: self.sizes.iter().map(row).collect() }
    }

    /// Table of the charts.
    fn drawn(&self, unit: Scale) -> Table {
        let mut columns = vec![left("transfer")];
        columns.extend(self.depths.iter().map(|depth| right(format!("depth {depth}, {}", unit.unit))));
        let row = |(size, values): (&u64, &Vec<Option<f64>>)| -> Vec<Cell> {
            let cells =
                values.iter().map(|value| value.map_or_else(String::new, |v| short(unit.of(v))).into());
            std::iter::once(Cell::from(size_name(*size))).chain(cells).collect()
        };
        Table { columns, rows: self.sizes.iter().zip(&self.values).map(row).collect() }
    }

    fn map(&self, unit: Scale) -> Option<Chart> {
        let cells: Vec<(usize, usize, f64)> = (0..)
            .zip(&self.values)
            .flat_map(|(up, row)| {
                (0..).zip(row).filter_map(move |(across, value)| Some((across, up, unit.of((*value)?))))
            })
            .collect();
        let map = HeatMap {
            across: ("queue depth".into(), self.depths.iter().map(u64::to_string).collect()),
            up: ("transfer".into(), self.size_names()),
            cells,
            unit: unit.unit,
        };
        (!map.cells.is_empty()).then(|| Chart {
            title: format!("{}, {}: rate by size and depth, {}", self.name(), self.verb, unit.unit),
            table: self.drawn(unit),
            is_in_table: true,
            ..heat_map(&map)
        })
    }

    fn lines(&self, unit: Scale) -> Option<Chart> {
        let series: Vec<Series> = (0..)
            .zip(&self.depths)
            .map(|(number, depth)| {
                let mut line = Series::line(format!("depth {depth}"), number, []);
                let value = |row: &Vec<Option<f64>>| row.get(number).copied().flatten().unwrap_or(f64::NAN);
                line.points = self.values.iter().map(|row| figure(unit.of(value(row)))).collect();
                line
            })
            .collect();
        (self.sizes.len() > 1).then(|| Chart {
            title: format!("{}, {}: rate against transfer size, {}", self.name(), self.verb, unit.unit),
            is_in_table: true,
            note: "One line per depth.".into(),
            ..plot(
                &Axis::category("transfer size", self.size_names()),
                &Axis::linear(format!("rate, {}", unit.unit)),
                &series,
                220,
            )
        })
    }
}
