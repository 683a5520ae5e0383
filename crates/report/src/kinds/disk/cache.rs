//! How large the page cache is: how fast the first file is read back behind every total that was tried.

use keepup_results::{CacheFinding, DiskFinding, DiskSummary};

use crate::chart::pair;
use crate::chart::{Axis, Chart, Mark, Series, Symbol, colour, plot, rate_scale, short};
use crate::format::{bytes, percent, shorten};
use crate::kinds::common::charts;
use crate::page::{Block, Cell, Table, right};

use super::NAME_CHARACTERS_MAX;

pub(super) fn blocks(summary: &DiskSummary, sentences: &mut Vec<String>) -> Vec<Block> {
    let mut drawn = Vec::new();
    for run in &summary.runs {
        let Some(DiskFinding::Cache(found)) = &run.finding else { continue };
        let place = shorten(&run.place(), NAME_CHARACTERS_MAX);
        sentences.insert(0, told(&place, found));
        drawn.extend(chart(&format!("{place}, run {}", run.repeat), found));
    }
    charts("The first file, read back behind so much that was written", drawn).into_iter().collect()
}

fn told(place: &str, found: &CacheFinding) -> String {
    match (&found.unanswered, found.evicted_bytes) {
        (None, Some(evicted)) => {
            format!("{place}: the page cache keeps {} to {}.", bytes(found.cached_bytes), bytes(evicted))
        }
        (why, _) => format!(
            "{place}: the size of the page cache is not known{}; it keeps {} or more.",
            why.as_ref().map(|why| format!(": {why}")).unwrap_or_default(),
            bytes(found.cached_bytes)
        ),
    }
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
    let columns = vec![
        right("files"),
        right("written, GB"),
        right(format!("first file, {}", unit.unit)),
        right("from memory"),
        right("by the kernel"),
    ];
    let row = |step: &keepup_results::CacheStep| -> Vec<Cell> {
        vec![
            step.files.to_string().into(),
            short(step.total_bytes as f64 / 1e9).into(),
            short(unit.of(rate(step.seconds))).into(),
            percent(step.cached_share * 100.0).into(),
            step.resident_share.map_or_else(String::new, |share| percent(share * 100.0)).into(),
        ]
    };
    (!found.steps.is_empty()).then(|| Chart {
        title: format!("{title}: how fast the first file is read back, {}", unit.unit),
        note: "The lines are how fast a file is read that lies in memory, and one that does not.".into(),
        table: Table { columns, rows: found.steps.iter().map(row).collect() },
        ..plot(
            &Axis::linear("written since, the first file included, GB").with_zero(),
            &Axis::linear(format!("rate, {}", unit.unit)).with_zero(),
            &series,
            220,
        )
    })
}
