//! Transfer sizes against depths: a map and lines for each place, of writing and of reading.

use keepup_results::{DiskPhase, DiskSummary};

use super::{NAME_CHARACTERS_MAX, middle, places};
use crate::chart::{Axis, Chart, Heat, Scale, Series, figure, heat, plot, rate_scale, short, size_name};
use crate::format::shorten;
use crate::kinds::common::charts;
use crate::page::{Block, Cell, Table, left, right};

pub(super) fn blocks(summary: &DiskSummary) -> Vec<Block> {
    let mut points: Vec<(&str, u64, u64)> =
        summary.kinds().into_iter().filter_map(|(_, phase)| point(phase)).collect();
    points.sort_unstable();
    points.dedup();
    let rates = summary.kinds();
    let rates = rates.iter().flat_map(|(place, phase)| summary.rates(place, phase));
    let unit = rate_scale(rates.fold(0.0, f64::max));
    let mut blocks = Vec::new();
    for verb in ["write", "read"] {
        let of_verb: Vec<(u64, u64)> =
            points.iter().filter(|point| point.0 == verb).map(|point| (point.1, point.2)).collect();
        let drawn = places(summary).into_iter().flat_map(|place| {
            let surface = Surface::new(summary, &place, verb, &of_verb);
            [surface.map(unit), surface.lines(unit)].into_iter().flatten()
        });
        let title = if verb == "write" {
            "Writing: rate by transfer size and depth"
        } else {
            "Reading: rate by transfer size and depth"
        };
        let mut block: Vec<Block> = charts(title, drawn.collect::<Vec<_>>()).into_iter().collect();
        block.iter_mut().for_each(|block| block.is_beside = true);
        blocks.extend(block);
    }
    blocks
}

/// Verb, size and depth from a phase's name, as in "write 4096 B depth 8".
fn point(phase: &str) -> Option<(&str, u64, u64)> {
    let (head, depth) = phase.split_once(" B depth ")?;
    let (verb, size) = head.split_once(' ')?;
    Some((verb, size.parse().ok()?, depth.parse().ok()?))
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
            middle(summary, place, &format!("{verb} {size} B depth {depth}"), DiskPhase::bytes_per_second)
        };
        let values =
            sizes.iter().map(|size| depths.iter().map(|depth| value(*size, *depth)).collect()).collect();
        Self { place: shorten(place, NAME_CHARACTERS_MAX), verb, sizes, depths, values }
    }

    fn size_names(&self) -> Vec<String> {
        self.sizes.iter().map(|size| size_name(*size)).collect()
    }

    fn table(&self, unit: Scale) -> Table {
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
        let fields: Vec<(usize, usize, f64)> = (0..)
            .zip(&self.values)
            .flat_map(|(up, row)| {
                (0..).zip(row).filter_map(move |(across, value)| Some((across, up, unit.of((*value)?))))
            })
            .collect();
        let map = Heat {
            across: ("requests under way (depth)".into(), self.depths.iter().map(u64::to_string).collect()),
            up: ("transfer".into(), self.size_names()),
            fields,
            unit: unit.unit,
        };
        (!map.fields.is_empty()).then(|| Chart {
            title: format!("{}, {}: map of the rate, {}", self.place, self.verb, unit.unit),
            table: self.table(unit),
            ..heat(&map)
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
            title: format!("{}, {}: rate against transfer size, {}", self.place, self.verb, unit.unit),
            note: "A line for each depth; the numbers are those of the map.".into(),
            ..plot(
                &Axis::category("transfer size", self.size_names()),
                &Axis::linear(format!("rate, {}", unit.unit)),
                &series,
                220,
            )
        })
    }
}
