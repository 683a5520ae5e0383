//! Paced writers against readers: heat maps of write rate, read rate and write latency.

use keepup_measure::sum::Sums;
use keepup_results::{DiskPart, DiskPhase, DiskSummary, LatencyFigures};

use super::phases::{Column, of_places, table};
use super::{NAME_CHARACTERS_MAX, middle, places};
use crate::chart::{Chart, HeatMap, Scale, heat_map, rate_scale, short, time_scale};
use crate::format::{rate, shorten};
use crate::kinds::common::charts;
use crate::page::Block;
use crate::table::{Table, left, right};

/// Settings of a phase, parsed from its name.
struct Setting<'a> {
    phase: &'a str,
    writers: u64,
    pace: &'a str,
    readers: &'a str,
}

pub(super) fn blocks(summary: &DiskSummary, sentences: &mut Vec<String>) -> Vec<Block> {
    let mut blocks = Vec::new();
    for place in places(summary) {
        let kinds = summary.kinds();
        let all: Vec<Setting<'_>> =
            kinds.iter().filter(|kind| kind.0 == place).filter_map(|kind| setting(kind.1)).collect();
        let mut readers: Vec<&str> = Vec::new();
        all.iter().for_each(|setting| {
            if !readers.contains(&setting.readers) {
                readers.push(setting.readers)
            }
        });
        for reader in readers {
            let of: Vec<&Setting<'_>> = all.iter().filter(|setting| setting.readers == reader).collect();
            let alone = of.iter().find(|setting| setting.writers == 0);
            let alone = alone.and_then(|setting| middle(summary, &place, setting.phase, |p| moved(p, false)));
            sentences.extend(alone.map(|alone| format!("Without writers, {reader}: {}.", rate(alone))));
            let title = format!("{}: {reader}", shorten(&place, NAME_CHARACTERS_MAX));
            let maps = maps(summary, &place, &of).into_iter().map(|map| Chart { is_in_table: true, ..map });
            let block = charts(&title, maps.collect::<Vec<_>>());
            blocks.extend(block.map(|block| Block { is_side_by_side: true, ..block }));
        }
    }
    let mut all = of_places(summary, "writers against readers", NOTE, |place| rows(summary, place));
    all.extend(blocks);
    all
}

/// Note below the table.
const NOTE: &str = "Medians. MB = 10^6 bytes. Latencies count from the due time of an event, for the slowest \
                    writer and the slowest reader.";

/// Table with a row for each combination.
fn rows(summary: &DiskSummary, place: &str) -> Table {
    let rate = |phase: &DiskPhase, writes: bool| moved(phase, writes).map(|rate| rate / 1e6);
    let asked = |phase: &DiskPhase| {
        let targets: Option<Vec<f64>> =
            of_side(phase, true).map(|part| part.target_bytes_per_second).collect();
        targets.filter(|targets| !targets.is_empty()).map(|targets| targets.iter().float_sum() / 1e6)
    };
    let latency = |phase: &DiskPhase, writes: bool, of: fn(&LatencyFigures) -> u64| {
        let times = of_side(phase, writes).filter_map(|part| part.latency.as_ref());
        times.map(of).max().map(|ns| ns as f64 / 1e6)
    };
    let columns: [Column<'_>; 7] = [
        ("written, MB/s", &|phase| rate(phase, true), 1),
        ("asked, MB/s", &asked, 1),
        ("write p50, ms", &|phase| latency(phase, true, |times| times.p50_ns), 2),
        ("write p99, ms", &|phase| latency(phase, true, |times| times.p99_ns), 2),
        ("read, MB/s", &|phase| rate(phase, false), 1),
        ("read p50, ms", &|phase| latency(phase, false, |times| times.p50_ns), 2),
        ("read p99, ms", &|phase| latency(phase, false, |times| times.p99_ns), 2),
    ];
    table(summary, place, "writers, readers", |phase| Some(phase.to_owned()), &columns)
}

/// Parses a phase name such as "2 writers every 5ms, 1 reader flat out".
fn setting(phase: &str) -> Option<Setting<'_>> {
    let (writers, readers) = phase.split_once(", ")?;
    let (number, rest) = writers.split_once(' ')?;
    let pace = rest.trim_start_matches("writers").trim_start_matches("writer").trim();
    Some(Setting { phase, writers: number.parse().ok()?, pace, readers })
}

fn of_side(phase: &DiskPhase, writes: bool) -> impl Iterator<Item = &DiskPart> {
    phase.parts.iter().filter(move |part| part.writes == writes)
}

/// Rate of all writers or all readers, bytes per second.
fn moved(phase: &DiskPhase, writes: bool) -> Option<f64> {
    of_side(phase, writes).filter_map(DiskPart::bytes_per_second).reduce(|a, b| a + b)
}

/// p99 write latency of the slowest writer, seconds.
fn slowest(phase: &DiskPhase) -> Option<f64> {
    let times = of_side(phase, true).filter_map(|part| part.latency.or(part.service));
    times.map(|times| times.p99_ns).max().map(|ns| ns as f64 / 1e9)
}

fn maps(summary: &DiskSummary, place: &str, settings: &[&Setting<'_>]) -> Vec<Chart> {
    let mut paces: Vec<&str> = Vec::new();
    let mut numbers: Vec<u64> = Vec::new();
    for setting in settings.iter().filter(|setting| setting.writers > 0) {
        if !paces.contains(&setting.pace) {
            paces.push(setting.pace);
        }
        if !numbers.contains(&setting.writers) {
            numbers.push(setting.writers);
        }
    }
    numbers.sort_unstable();
    let cells = |of: &dyn Fn(&DiskPhase) -> Option<f64>| -> Vec<(usize, usize, f64)> {
        let cell = |setting: &&Setting<'_>| {
            let across = paces.iter().position(|pace| *pace == setting.pace)?;
            let up = numbers.iter().position(|number| *number == setting.writers)?;
            Some((across, up, middle(summary, place, setting.phase, of)?))
        };
        settings.iter().filter_map(cell).collect()
    };
    let map = |title: &str, cells: Vec<(usize, usize, f64)>, scale: fn(f64) -> Scale| {
        let unit = scale(cells.iter().map(|cell| cell.2).fold(0.0, f64::max));
        let cells: Vec<_> = cells.into_iter().map(|(x, y, value)| (x, y, unit.of(value))).collect();
        let row = |(x, y, value): &(usize, usize, f64)| {
            vec![numbers[*y].to_string().into(), paces[*x].into(), short(*value).into()]
        };
        let rows = cells.iter().map(row).collect();
        let columns = vec![right("writers"), left("pace"), right(unit.unit)];
        let map = HeatMap {
            across: ("pace of each writer".into(), paces.iter().map(|pace| (*pace).to_owned()).collect()),
            up: ("writers".into(), numbers.iter().map(u64::to_string).collect()),
            cells,
            unit: unit.unit,
        };
        (!map.cells.is_empty()).then(|| Chart {
            title: format!("{title}, {}", unit.unit),
            table: Table { columns, rows },
            ..heat_map(&map)
        })
    };
    [
        map("Written by all writers", cells(&|phase| moved(phase, true)), rate_scale),
        map("Read by all readers meanwhile", cells(&|phase| moved(phase, false)), rate_scale),
        map("p99 write latency of the slowest writer", cells(&slowest), time_scale),
    ]
    .into_iter()
    .flatten()
    .collect()
}
