//! How large the page cache is: how fast the first file is read back behind every total that was tried.

use keepup_results::{CacheFinding, CacheStep, DiskFinding, DiskSummary};

use super::places;
use crate::chart::{Axis, Chart, Mark, Series, Symbol, colour, pair, plot, rate_scale};
use crate::format::{bytes, fixed, or_not_measured, plural, rate};
use crate::kinds::common::item;
use crate::page::{Block, Cell, Item, Table, right};

pub(super) fn blocks(summary: &DiskSummary, sentences: &mut Vec<String>) -> Vec<Block> {
    let mut blocks = Vec::new();
    for run in &summary.runs {
        let Some(DiskFinding::Cache(found)) = &run.finding else { continue };
        let name = format!("{}, run {}", run.place(), run.repeat);
        let mut items = vec![Item::Table(steps(found)), Item::Text(references(found))];
        items.extend(chart(&name, found).map(item));
        blocks.push(Block::new(
            format!("{name}: the first file, read back behind all that was written"),
            items,
        ));
    }
    let found = places(summary).into_iter().flat_map(|place| conclusion(summary, &place));
    sentences.splice(0..0, found.collect::<Vec<_>>());
    blocks
}

/// Between which totals the cache of a volume ends, over all runs, and what follows for other tests.
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
            "{place}: the page cache keeps {} to {} ({}).",
            bytes(lowest),
            bytes(highest),
            plural(ends.len() as u64, "run")
        ));
        sentences.push(format!(
            "Files of at least {} defeat this cache when they are read from the front; most random reads in \
             a file of that size still hit it.",
            bytes(highest)
        ));
    }
    sentences.extend(findings.iter().filter_map(|found| {
        let why = found.unanswered.as_ref()?;
        let kept = bytes(found.cached_bytes);
        Some(format!("{place}: the size of the page cache is not known: {why}. It keeps {kept} or more."))
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

/// How fast a file is read that lies in memory, and one that does not.
fn references(found: &CacheFinding) -> String {
    let told = |value: Option<f64>| or_not_measured(value, rate);
    format!(
        "A file in memory is read at {}, one on the volume at {}. GB = 10^9 bytes.",
        told(found.cached_bytes_per_second),
        told(found.cold_bytes_per_second)
    )
}

/// Every total that was tried.
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
        right("resident by the kernel, %"),
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
            first = first.with_level(unit.of(value), name);
        }
    }
    let series =
        [first, Series::new("from the volume", colour(1), Mark::Dots(Symbol::Triangle), dots(false))];
    (!found.steps.is_empty()).then(|| Chart {
        title: format!("{title}: how fast the first file is read back, {}", unit.unit),
        is_told: true,
        note: "The lines are how fast a file is read that lies in memory, and one that does not.".into(),
        table: steps(found),
        ..plot(
            &Axis::linear("written since, the first file included, GB").with_zero(),
            &Axis::linear(format!("rate, {}", unit.unit)).with_zero(),
            &series,
            220,
        )
    })
}
