//! The page of a test of disks. What is drawn is told from the test's phases, so that a new test has a page
//! before it has a drawing of its own.

mod block;
mod cache;
mod concurrent;
mod phases;
mod scale;
mod steady;
mod sweep;
mod testdisk;
mod throttle;

use keepup_measure::stats::median;
use keepup_results::{DiskPhase, DiskSummary, LatencyFigures, Stored};
use serde_json::json;

use super::common::{self, Found, charts};
use super::latency;
use crate::chart::{Axis, Chart, Mark, Series, colour, figure, plot, rate_scale, short};
use crate::format::{rate, shorten};
use crate::page::{Block, Cell, Document, Table, left, right};

/// Bars of one chart; what is more is in the table of figures.
const BARS_MAX: usize = 60;
/// Longest name of a place or a phase in a chart.
const NAME_CHARACTERS_MAX: usize = 28;

pub(super) fn document(stored: &Stored, summary: &DiskSummary) -> Document {
    let mut found = Found {
        sentences: best(summary).into_iter().collect(),
        cautions: cautions(summary),
        loads: summary.runs.iter().flat_map(|run| run.loads.iter().cloned()).collect(),
        ..Found::default()
    };
    found.blocks = match summary.workload.as_str() {
        "sweep" => sweep::blocks(summary),
        "scale" => scale::blocks(summary, &mut found.sentences),
        "throttle" => throttle::blocks(summary, &mut found.sentences),
        "concurrent" => concurrent::blocks(summary),
        "cache" => cache::blocks(summary, &mut found.sentences),
        "steady" => steady::blocks(summary, &mut found.sentences),
        "block" => with_rates(summary, block::blocks(summary)),
        "testdisk" => with_rates(summary, testdisk::blocks(summary)),
        _ => with_rates(summary, phases::rates(summary)),
    };
    // Of writers and readers at once the table tells how long they took.
    if summary.workload != "throttle" {
        let times = charts("How long requests took", latencies(summary));
        found.blocks.extend(times.map(Block::detail));
    }
    common::document(stored, found)
}

/// Tables of all phases with their bars.
fn with_rates(summary: &DiskSummary, mut tables: Vec<Block>) -> Vec<Block> {
    tables.extend(charts("Rates", bars(summary).map(|chart| Chart { is_told: true, ..chart })));
    tables
}

/// Places in the order in which they first came.
fn places(summary: &DiskSummary) -> Vec<String> {
    let mut places: Vec<String> = Vec::new();
    for run in &summary.runs {
        if !places.contains(&run.place()) {
            places.push(run.place());
        }
    }
    places
}

/// The middle of a figure of one phase in one place over all repeats.
fn middle(
    summary: &DiskSummary,
    place: &str,
    phase: &str,
    of: impl Fn(&DiskPhase) -> Option<f64>,
) -> Option<f64> {
    median(&summary.phases(place, phase).filter_map(of).collect::<Vec<_>>())
}

/// The fastest that was written and read.
fn best(summary: &DiskSummary) -> Option<String> {
    let mut told = Vec::new();
    for verb in ["write", "read"] {
        let rates =
            summary.kinds().into_iter().filter(|(_, phase)| phase.starts_with(verb)).filter_map(|kind| {
                let value = middle(summary, &kind.0, kind.1, DiskPhase::bytes_per_second)?;
                Some((value, kind))
            });
        if let Some((value, (place, phase))) = rates.max_by(|a, b| a.0.total_cmp(&b.0)) {
            let place = shorten(&place, NAME_CHARACTERS_MAX);
            told.push(format!("{} at most by \"{phase}\" on {place}", rate(value)));
        }
    }
    (!told.is_empty()).then(|| format!("{}.", told.join("; ")))
}

fn cautions(summary: &DiskSummary) -> Vec<String> {
    let mut cautions = Vec::new();
    if summary.plan["access"] == "cached" {
        cautions.push("The file may lie in memory: these are not figures of the disk.".to_owned());
    }
    let steal = summary
        .runs
        .iter()
        .flat_map(|run| &run.phases)
        .filter(|phase| phase.steal_seconds.is_some_and(|stolen| stolen > 0.05 * phase.seconds));
    let stolen = steal.count();
    if stolen > 0 {
        cautions
            .push(format!("In {stolen} phases a hypervisor took more than 5 % of a core from this machine."));
    }
    let mut skipped: Vec<String> = Vec::new();
    for left_out in summary.runs.iter().flat_map(|run| &run.skipped) {
        let told = format!("Not measured: {}, {}.", left_out.name, left_out.why);
        if !skipped.contains(&told) {
            skipped.push(told);
        }
    }
    let more = skipped.len().saturating_sub(6);
    cautions.extend(skipped.into_iter().take(6));
    if more > 0 {
        cautions.push(format!("{more} more were not measured either."));
    }
    if summary.runs.iter().map(|run| run.repeat).max() == Some(1) {
        cautions.push("Each was measured once: how far repeats differ is not known.".to_owned());
    }
    cautions
}

/// A bar for each phase, places beside each other.
fn bars(summary: &DiskSummary) -> Option<Chart> {
    let mut phases: Vec<&str> = Vec::new();
    for (_, phase) in summary.kinds() {
        if !phases.contains(&phase) {
            phases.push(phase);
        }
    }
    phases.retain(|phase| places(summary).iter().any(|place| summary.rates(place, phase).next().is_some()));
    phases.truncate(BARS_MAX);
    let places = places(summary);
    let value = |place: &str, phase: &str| middle(summary, place, phase, DiskPhase::bytes_per_second);
    let all = phases.iter().flat_map(|phase| places.iter().filter_map(|place| value(place, phase)));
    let unit = rate_scale(all.fold(0.0, f64::max));
    let series = (0..).zip(&places).map(|(number, place)| {
        let bar = |phase: &&str| {
            let of = value(place, phase).map(|value| unit.of(value));
            json!({ "value": figure(of.unwrap_or(f64::NAN)),
                "label": { "show": true, "position": "right", "formatter": of.map(short).unwrap_or_default(),
                    "color": "--text", "fontSize": 11 } })
        };
        let name = if places.len() > 1 { shorten(place, NAME_CHARACTERS_MAX) } else { String::new() };
        Series::new(name, colour(number), Mark::Bars, phases.iter().map(bar).collect())
    });
    let series: Vec<Series> = series.collect();
    let names: Vec<String> = phases.iter().map(|phase| shorten(phase, NAME_CHARACTERS_MAX)).collect();
    let mut columns = vec![left("phase")];
    columns.extend(
        places.iter().map(|place| right(format!("{}, {}", shorten(place, NAME_CHARACTERS_MAX), unit.unit))),
    );
    let row = |phase: &&str| -> Vec<Cell> {
        let cells = places
            .iter()
            .map(|place| value(place, phase).map_or_else(String::new, |v| short(unit.of(v))).into());
        std::iter::once(Cell::from(*phase)).chain(cells).collect()
    };
    let height = (10 + 16 * places.len() as u32) * names.len() as u32;
    (!phases.is_empty()).then(|| Chart {
        title: format!("Rate of each phase, {}", unit.unit),
        note: "Medians over all repeats.".into(),
        table: Table { columns, rows: phases.iter().map(row).collect() },
        ..plot(
            &Axis::linear(format!("rate, {}", unit.unit)).with_zero(),
            &Axis::category("", names).downwards(),
            &series,
            height,
        )
        .with_room_at_right(48)
    })
}

/// Times of requests of each phase, of repeats the last; of writing and of reading apart where there are
/// many.
fn latencies(summary: &DiskSummary) -> Vec<Chart> {
    let several = places(summary).len() > 1;
    let of = |(place, phase): (String, &str)| -> Option<(String, LatencyFigures)> {
        let times = summary.phases(&place, phase).filter_map(|phase| phase.latency).last()?;
        let place =
            if several { format!(", {}", shorten(&place, NAME_CHARACTERS_MAX)) } else { String::new() };
        Some((format!("{phase}{place}"), times))
    };
    let times: Vec<(String, LatencyFigures)> = summary.kinds().into_iter().filter_map(of).collect();
    let title = "From the start of a request to its end, last repeat";
    if times.len() <= latency::LINES_MAX {
        return latency::chart(title, &times).into_iter().collect();
    }
    let (writes, others): (Vec<_>, Vec<_>) =
        times.into_iter().partition(|(name, _)| name.starts_with("write"));
    let parts = [(format!("{title}, writing"), writes), (format!("{title}, the others"), others)];
    parts.iter().filter_map(|(title, times)| latency::chart(title, times)).collect()
}
