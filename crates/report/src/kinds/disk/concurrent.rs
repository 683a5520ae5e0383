//! Concurrent files: total rate, and the rate of the first file times the number of files.

use keepup_measure::sum::Sums;
use keepup_results::{DiskPhase, DiskSummary};

use super::phases::{Column, table};
use super::{NAME_CHARACTERS_MAX, middle, places};
use crate::chart::{Axis, Chart, Series, figure, plot, rate_scale, short};
use crate::format::shorten;
use crate::kinds::common::item;
use crate::page::{Block, Item};
use crate::table::{Cell, Table, right};

pub(super) fn blocks(summary: &DiskSummary) -> Vec<Block> {
    let mut blocks = Vec::new();
    for place in places(summary) {
        for verb in ["write", "read"] {
            let rows = rows(summary, &place, verb);
            if !rows.rows.is_empty() {
                blocks.push(Block::new(format!("{place}: {verb}, MB/s"), vec![Item::Table(rows)]));
            }
        }
        if let (Some(last), Some(chart)) = (blocks.last_mut(), drawn(summary, &place)) {
            last.items.push(item(Chart { is_in_table: true, ..chart }));
        }
    }
    if let Some(last) = blocks.last_mut() {
        last.items.push(Item::Text(NOTE.to_owned()));
    }
    blocks
}

/// Note below the table.
const NOTE: &str = "Medians. Normalised: rate of the first file times the number of files, as in the event \
                    logger's test. All: rate of all files until the first one finished (durable, if \
                    written).";

/// Table with a row for each number of files.
fn rows(summary: &DiskSummary, place: &str, verb: &str) -> Table {
    let moved = |phase: &DiskPhase| {
        let bytes: u64 = phase.parts.iter().map(|part| part.bytes).saturating_sum();
        let seconds = phase.parts.first().map(|first| first.seconds).filter(|seconds| *seconds > 0.0)?;
        Some(bytes as f64 / seconds / 1e6)
    };
    let one = |phase: &DiskPhase, best: fn(f64, f64) -> f64| {
        let rates = phase.parts.iter().map(|part| part.bytes_per_second().unwrap_or(0.0));
        rates.reduce(best).map(|rate| rate / 1e6)
    };
    let columns: [Column<'_>; 6] = [
        ("normalised", &|phase| phase.normalised_bytes_per_second().map(|rate| rate / 1e6), 1),
        ("all", &moved, 1),
        ("slowest", &|phase| one(phase, f64::min), 1),
        ("fastest", &|phase| one(phase, f64::max), 1),
        ("p99, ms", &|phase| phase.latency.map(|latency| latency.p99_ns as f64 / 1e6), 2),
        ("CPU, s/GB", &DiskPhase::cpu_seconds_per_gb, 3),
    ];
    let label = |phase: &str| {
        let files = phase.strip_prefix(verb)?.trim_start().strip_suffix(" at once")?;
        Some(files.to_owned())
    };
    table(summary, place, "files at once", label, &columns)
}

fn drawn(summary: &DiskSummary, place: &str) -> Option<Chart> {
    let kinds = summary.kinds();
    let parse = |phase: &str| {
        let (verb, rest) = phase.split_once(' ')?;
        Some((verb.to_owned(), rest.strip_suffix(" at once")?.parse::<u64>().ok()?))
    };
    let points: Vec<(String, u64)> =
        kinds.iter().filter(|kind| kind.0 == place).filter_map(|kind| parse(kind.1)).collect();
    let mut verbs: Vec<&str> = Vec::new();
    points.iter().for_each(|(verb, _)| {
        if !verbs.contains(&verb.as_str()) {
            verbs.push(verb)
        }
    });
    let most_files = points.iter().map(|point| point.1).max()?;
    let numbers: Vec<u64> = (1..=most_files).filter(|n| points.iter().any(|point| point.1 == *n)).collect();
    type Of = fn(&DiskPhase) -> Option<f64>;
    let definitions: [(&str, Of); 2] = [
        ("total", DiskPhase::bytes_per_second),
        ("first file times N", DiskPhase::normalised_bytes_per_second),
    ];
    let mut lines: Vec<(String, Vec<Option<f64>>)> = Vec::new();
    for verb in &verbs {
        for (name, of) in definitions {
            let value = |n: &u64| middle(summary, place, &format!("{verb} {n} at once"), of);
            lines.push((format!("{verb}, {name}"), numbers.iter().map(value).collect()));
        }
    }
    let unit = rate_scale(lines.iter().flat_map(|line| line.1.iter().flatten()).copied().fold(0.0, f64::max));
    let series: Vec<Series> = (0..)
        .zip(&lines)
        .map(|(number, (name, values))| {
            let mut line = Series::line(name.clone(), number, []);
            line.points = values.iter().map(|v| figure(v.map_or(f64::NAN, |v| unit.of(v)))).collect();
            line
        })
        .collect();
    let mut columns = vec![right("files at once")];
    columns.extend(lines.iter().map(|(name, _)| right(format!("{name}, {}", unit.unit))));
    let row = |(place, files): (usize, &u64)| -> Vec<Cell> {
        let value = |line: &(String, Vec<Option<f64>>)| line.1.get(place).copied().flatten();
        let cells =
            lines.iter().map(|line| value(line).map_or_else(String::new, |v| short(unit.of(v))).into());
        std::iter::once(Cell::from(files.to_string())).chain(cells).collect()
    };
    let table = Table { columns, rows: (0..).zip(&numbers).map(row).collect() };
    Some(Chart {
        title: format!("{}: rate by number of files, {}", shorten(place, NAME_CHARACTERS_MAX), unit.unit),
        note: "Total: rate of all files together. First file times N: the definition of the event logger's \
               test."
            .into(),
        table,
        ..plot(
            &Axis::category("files at once", numbers.iter().map(u64::to_string).collect()),
            &Axis::linear(format!("rate, {}", unit.unit)).with_zero(),
            &series,
            230,
        )
    })
}
