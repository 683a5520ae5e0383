//! Page cache size: read-back rate of the first file after each total written.

use keepup_results::{CacheFinding, CacheStep, DiskFinding, DiskSummary};

use super::places;
use crate::chart::{Axis, Chart, Mark, Series, Symbol, colour, pair, plot, rate_scale};
use crate::format::{bytes, fixed, or_not_measured, plural, rate};
use crate::kinds::common::item;
use crate::page::{Block, Item};
use crate::table::{Cell, Table, right};

pub(super) fn blocks(summary: &DiskSummary, sentences: &mut Vec<String>) -> Vec<Block> {
    let mut blocks = Vec::new();
    for run in &summary.runs {
        let Some(DiskFinding::Cache(found)) = &run.finding else { continue };
        let name = format!("{}, run {}", run.place(), run.repeat);
        let mut items = vec![Item::Table(steps(found)), Item::Text(references(found))];
        items.extend(chart(&name, found).map(item));
        blocks.push(Block::new(format!("{name}: read-back of the first file after all writes"), items));
    }
    let found = places(summary).into_iter().flat_map(|place| conclusion(summary, &place));
    sentences.splice(0..0, found.collect::<Vec<_>>());
    blocks
}

/// Range of the cache size of a volume over all runs, and the file size that other tests need.
fn conclusion(summary: &DiskSummary, place: &str) -> Vec<String> {
    let runs = summary.runs.iter().filter(|run| run.place() == place);
    let findings: Vec<&CacheFinding> = runs
        .filter_map(|run| match &run.finding {
            Some(DiskFinding::Cache(found)) => Some(found),
            _ => None,
        })
        .collect();
    let mut sentences = Vec::new();
    let ends: Vec<(u64, u64)> =
        findings.iter().filter_map(|found| Some((found.cached_bytes, found.evicted_bytes?))).collect();
    let lowest = ends.iter().map(|(cached, _)| *cached).min();
    let highest = ends.iter().map(|(_, evicted)| *evicted).max();
    if let Some((lowest, highest)) = lowest.zip(highest) {
        sentences.push(format!(
            "{place}: the page cache holds {} to {} ({}).",
            bytes(lowest),
            bytes(highest),
            plural(ends.len() as u64, "run")
        ));
        sentences.push(format!(
            "Sequential reads of files of at least {} miss this cache; most random reads in a file of that \
             size still hit it.",
            bytes(highest)
        ));
    }
    sentences.extend(findings.iter().filter_map(|found| {
        let why = found.unanswered.as_ref()?;
        let kept = bytes(found.cached_bytes);
        Some(format!("{place}: page cache size unknown: {why}. It is at least {kept}."))
    }));
    sentences.extend(findings.first().and_then(|found| found.before).map(|before| {
        format!(
            "Before the test the kernel had {} of {} of memory available, {} in the page cache.",
            bytes(before.available_bytes),
            bytes(before.total_bytes),
            bytes(before.cached_bytes)
        )
    }));
    sentences
}

/// Read rates of a cached and of an uncached file.
fn references(found: &CacheFinding) -> String {
    let text = |value: Option<f64>| or_not_measured(value, rate);
    format!(
        "Read rate of a cached file: {}, of an uncached file: {}. GB = 10^9 bytes.",
        text(found.cached_bytes_per_second),
        text(found.cold_bytes_per_second)
    )
}

/// Table of all totals.
fn steps(found: &CacheFinding) -> Table {
    let row = |step: &CacheStep| -> Vec<Cell> {
        let rate = (step.seconds > 0.0).then(|| found.file_bytes as f64 / step.seconds / 1e6);
        vec![
            step.files.to_string().into(),
            fixed(Some(step.total_bytes as f64 / 1e9), 2).into(),
            fixed(rate, 0).into(),
            fixed(Some(step.cached_share * 100.0), 0).into(),
            fixed(step.resident_share.map(|share| share * 100.0), 0).into(),
            fixed(step.memory.map(|memory| memory.cached_bytes as f64 / 1e9), 2).into(),
        ]
    };
    let columns = vec![
        right("files"),
        right("written, GB"),
        right("first file, MB/s"),
        right("from memory, %"),
        right("resident (kernel), %"),
        right("page cache, GB"),
    ];
    Table { columns, rows: found.steps.iter().map(row).collect() }
}

fn chart(title: &str, found: &CacheFinding) -> Option<Chart> {
    let rate = |seconds: f64| if seconds > 0.0 { found.file_bytes as f64 / seconds } else { f64::NAN };
    let most = found.steps.iter().map(|step| rate(step.seconds)).fold(0.0, f64::max);
    let unit = rate_scale(most.max(found.cached_bytes_per_second.unwrap_or(0.0)));
    let dots = |cached: bool| {
        let steps = found.steps.iter().filter(move |step| step.is_cached() == cached);
        steps
            .map(|step| pair(step.total_bytes as f64 / 1e9, Some(unit.of(rate(step.seconds)))))
            .collect::<Vec<_>>()
    };
    let mut first = Series::new("from memory", colour(0), Mark::Dots(Symbol::Circle), dots(true));
    for (value, name) in [(found.cached_bytes_per_second, "memory"), (found.cold_bytes_per_second, "volume")]
    {
        if let Some(value) = value {
            first = first.with_horizontal_line(unit.of(value), name);
        }
    }
    let series =
        [first, Series::new("from the volume", colour(1), Mark::Dots(Symbol::Triangle), dots(false))];
    (!found.steps.is_empty()).then(|| Chart {
        title: format!("{title}: read-back rate of the first file, {}", unit.unit),
        is_in_table: true,
        note: "Lines: read rates of a cached and of an uncached file.".into(),
        table: steps(found),
        ..plot(
            &Axis::linear("written, including the first file, GB").with_zero(),
            &Axis::linear(format!("rate, {}", unit.unit)).with_zero(),
            &series,
            220,
        )
    })
}
