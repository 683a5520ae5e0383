//! Page of a disk test. Tests without a page of their own are shown by their phases.

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

use super::common::{self, PageContent, charts};
use super::latency;
use crate::chart::{Axis, Chart, Mark, Series, colour, figure, plot, rate_scale, short};
use crate::format::{plural, rate, shorten};
use crate::page::{Block, Document};
use crate::table::{Cell, Table, left, right};

/// Most bars in one chart. The table of figures has all.
const BARS_MAX: usize = 60;
/// Longest name in a chart.
const NAME_CHARACTERS_MAX: usize = 28;

pub(super) fn document(stored: &Stored, summary: &DiskSummary) -> Document {
    let mut content = PageContent {
        sentences: best(summary).into_iter().collect(),
        cautions: cautions(summary),
        loads: summary.runs.iter().flat_map(|run| run.loads.iter().cloned()).collect(),
        ..PageContent::default()
    };
    content.blocks = match summary.workload.as_str() {
        "sweep" => sweep::blocks(summary),
        "scale" => scale::blocks(summary, &mut content.sentences),
        "throttle" => throttle::blocks(summary, &mut content.sentences),
        "concurrent" => concurrent::blocks(summary),
        "cache" => cache::blocks(summary, &mut content.sentences),
        "steady" => steady::blocks(summary, &mut content.sentences),
        "block" => with_rates(summary, block::blocks(summary)),
        "testdisk" => with_rates(summary, testdisk::blocks(summary)),
        _ => with_rates(summary, phases::rates(summary)),
    };
    // The throttle table has latencies already.
    if summary.workload != "throttle" {
        let times = charts("Request latency", latencies(summary));
        content.blocks.extend(times.map(Block::detail));
    }
    common::document(stored, content)
}

/// Tables of all phases, with a bar chart.
fn with_rates(summary: &DiskSummary, mut tables: Vec<Block>) -> Vec<Block> {
    tables.extend(charts("Rates", bars(summary).map(|chart| Chart { is_in_table: true, ..chart })));
    tables
}

/// Places in order of their first run.
fn places(summary: &DiskSummary) -> Vec<String> {
    let mut places: Vec<String> = Vec::new();
    for run in &summary.runs {
        if !places.contains(&run.place()) {
            places.push(run.place());
        }
    }
    places
}

/// Median of a figure of a phase and place over all repeats.
fn middle(
    summary: &DiskSummary,
    place: &str,
    phase: &str,
    of: impl Fn(&DiskPhase) -> Option<f64>,
) -> Option<f64> {
    median(&summary.phases(place, phase).filter_map(of).collect::<Vec<_>>())
}

/// Highest write and read rate.
fn best(summary: &DiskSummary) -> Option<String> {
    let mut sentences = Vec::new();
    for verb in ["write", "read"] {
        let rates =
            summary.kinds().into_iter().filter(|(_, phase)| phase.starts_with(verb)).filter_map(|kind| {
                let value = middle(summary, &kind.0, kind.1, DiskPhase::bytes_per_second)?;
                Some((value, kind))
            });
        if let Some((value, (place, phase))) = rates.max_by(|a, b| a.0.total_cmp(&b.0)) {
            let place = shorten(&place, NAME_CHARACTERS_MAX);
            sentences.push(format!("Highest {verb} rate: {} (\"{phase}\" on {place}).", rate(value)));
        }
    }
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

fn cautions(summary: &DiskSummary) -> Vec<String> {
    let mut cautions = Vec::new();
    if summary.plan["access"] == "cached" {
        cautions.push("The file may be in the page cache: these are not figures of the disk.".to_owned());
    }
    let steal = summary
        .runs
        .iter()
        .flat_map(|run| &run.phases)
        .filter(|phase| phase.steal_seconds.is_some_and(|stolen| stolen > 0.05 * phase.seconds));
    let stolen = steal.count();
    if stolen > 0 {
        let phases = plural(stolen as u64, "phase");
        cautions.push(format!("In {phases} the hypervisor took more than 5 % of a core (steal time)."));
    }
    let mut skipped: Vec<String> = Vec::new();
    for skip in summary.runs.iter().flat_map(|run| &run.skipped) {
        let note = format!("Not measured: {}, {}.", skip.name, skip.why);
        if !skipped.contains(&note) {
            skipped.push(note);
        }
    }
    let more = skipped.len().saturating_sub(6);
    cautions.extend(skipped.into_iter().take(6));
    if more > 0 {
        cautions.push(format!("{more} more phases were not measured."));
    }
    if summary.runs.iter().map(|run| run.repeat).max() == Some(1) {
        cautions.push("Each phase was measured once: the spread of repeats is unknown.".to_owned());
    }
    cautions
}

/// Bar chart of all phases, grouped by place.
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
            &Axis::category("", names).reversed(),
            &series,
            height,
        )
        .with_right_margin(48)
    })
}

/// Latency charts of the last repeat of each phase. Many phases are split into writes and others.
fn latencies(summary: &DiskSummary) -> Vec<Chart> {
    let several = places(summary).len() > 1;
    let of = |(place, phase): (String, &str)| -> Option<(String, LatencyFigures)> {
        let times = summary.phases(&place, phase).filter_map(|phase| phase.latency).last()?;
        let place =
            if several { format!(", {}", shorten(&place, NAME_CHARACTERS_MAX)) } else { String::new() };
        Some((format!("{phase}{place}"), times))
    };
    let times: Vec<(String, LatencyFigures)> = summary.kinds().into_iter().filter_map(of).collect();
    let title = "Latency from submission to completion, last repeat";
    if times.len() <= latency::LINES_MAX {
        return latency::chart(title, &times).into_iter().collect();
    }
    let (writes, others): (Vec<_>, Vec<_>) =
        times.into_iter().partition(|(name, _)| name.starts_with("write"));
    let parts = [(format!("{title}, writes"), writes), (format!("{title}, others"), others)];
    parts.iter().filter_map(|(title, times)| latency::chart(title, times)).collect()
}
