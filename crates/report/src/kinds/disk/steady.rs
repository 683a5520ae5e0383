//! Steady-state test: rate over time, its changes of level and their causes.

use keepup_results::{DiskFinding, DiskSummary, SteadyChange, SteadyFinding, SteadyLap, SteadySample};

use super::phases::rates;
use crate::chart::{
    Axis, Chart, LabelPosition, Panel, Scale, Series, legend, panels, rate_scale, time_scale,
};
use crate::format::{bar, bytes, fixed, plural, rate, seconds};
use crate::kinds::common::item;
use crate::page::{Block, Item};
use crate::table::{Cell, Table, left, right};

/// Most rows of the rate table, and the length of its bars.
const ROWS_MAX: usize = 20;
const BAR_CHARACTERS: usize = 24;

pub(super) fn blocks(summary: &DiskSummary, sentences: &mut Vec<String>) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut findings = Vec::new();
    for run in &summary.runs {
        let Some(DiskFinding::Steady(found)) = &run.finding else { continue };
        let place = format!("{}, run {}", run.place(), run.repeat);
        findings.extend(
            found.laps.iter().map(|lap| format!("{place}: {}.", steady_state(lap, found.round_seconds))),
        );
        findings.extend(found.cut_short.iter().map(|why| format!("{place}: cut short: {why}.")));
        let mut items = vec![Item::Table(curve(found))];
        items.extend(chart(found).map(item));
        blocks.push(Block::new(format!("{place}: rate over time"), items));
        blocks.push(Block::new(format!("{place}: changes of level"), changes(found)));
    }
    sentences.splice(0..0, findings);
    blocks.extend(rates(summary));
    blocks
}

/// Whether the rate became steady, for first writes or overwrites.
fn steady_state(lap: &SteadyLap, round_seconds: f64) -> String {
    let what = if lap.overwrites { "overwriting" } else { "first write" };
    let rounds = format!("{} rounds of {round_seconds} s", lap.rounds);
    match (&lap.reached, &lap.last) {
        (Some(reached), _) => format!(
            "{what}: steady after {} and {}, at {} ({rounds})",
            seconds(reached.at_seconds),
            bytes(reached.at_bytes),
            rate(reached.bytes_per_second)
        ),
        (None, Some(last)) => format!(
            "{what}: steady state not reached in {rounds}; last five rounds at {}: range {:.0} %, \
             drift {:+.0} %",
            rate(last.bytes_per_second),
            last.range_share * 100.0,
            last.drift_share * 100.0
        ),
        (None, None) => {
            format!("{what}: steady state unknown: {rounds} run, at least five required")
        }
    }
}

fn chart(found: &SteadyFinding) -> Option<Chart> {
    let end = found.samples.last()?.at_seconds;
    let time = time_scale(end);
    let of = |sample: &SteadySample| sample.bytes as f64 / sample.seconds.max(1e-9);
    let unit = rate_scale(found.samples.iter().map(of).fold(0.0, f64::max));
    let line = |name: &str, number, value: &dyn Fn(&SteadySample) -> Option<f64>| {
        let points = found.samples.iter().map(|sample| (time.of(sample.at_seconds), value(sample)));
        Series::line(name, number, points)
    };
    let rates = [
        marked(line("rate", 0, &|sample| Some(unit.of(of(sample)))), found, time),
        line("slowest second", 1, &|sample| Some(unit.of(sample.lowest_bytes_per_second))),
    ];
    let warmth = line("hottest drive", 2, &|sample| sample.conditions.drive_celsius);
    let has_warmth = found.samples.iter().any(|sample| sample.conditions.drive_celsius.is_some());
    let warmth = [warmth];
    let mut all = vec![Panel {
        up: Axis::linear(format!("rate, {}", unit.unit)).with_zero(),
        series: &rates,
        height: 230.0,
    }];
    if has_warmth {
        all.push(Panel { up: Axis::linear("degrees Celsius"), series: &warmth, height: 90.0 });
    }
    let across = Axis::linear(format!("time since the first write, {}", time.unit)).range(0.0, time.of(end));
    let (option, height) = panels(&across, &all, found.samples.len() > 120);
    let mut legend = legend(&rates);
    if has_warmth {
        legend.extend(crate::chart::legend(&warmth));
    }
    Some(Chart {
        title: format!("Write rate over time, {}", unit.unit),
        note: "Vertical lines are changes of level. In the grey area older data was overwritten.".into(),
        legend,
        option,
        table: curve(found),
        is_in_table: true,
        height,
    })
}

/// Marks the changes of level and the interval of overwriting.
fn marked(mut line: Series, found: &SteadyFinding, time: Scale) -> Series {
    for change in &found.changes {
        let name = if change.is_drop() { "drop" } else { "rise" };
        line = line.with_vertical_line(time.of(change.at_seconds), name, LabelPosition::End);
    }
    let over: Vec<f64> = found.samples.iter().filter(|s| s.overwrites).map(|s| s.at_seconds).collect();
    match (over.first(), over.last()) {
        (Some(from), Some(to)) => line.with_shaded_area(time.of(*from), time.of(*to), "overwriting"),
        _ => line,
    }
}

/// Rate over time and bytes, samples merged into a few rows.
fn curve(found: &SteadyFinding) -> Table {
    let step = found.samples.len().div_ceil(ROWS_MAX).max(1);
    let rows: Vec<(&SteadySample, f64, f64)> = found
        .samples
        .chunks(step)
        .filter_map(|row| {
            let (time, moved) = row.iter().fold((0.0, 0), |sum, s| (sum.0 + s.seconds, sum.1 + s.bytes));
            let lowest = row.iter().map(|s| s.lowest_bytes_per_second).fold(f64::INFINITY, f64::min);
            Some((row.last()?, moved as f64 / time.max(1e-9), lowest))
        })
        .collect();
    let most = rows.iter().map(|row| row.1).fold(0.0, f64::max);
    let row = |(last, rate, lowest): &(&SteadySample, f64, f64)| -> Vec<Cell> {
        vec![
            fixed(Some(last.at_seconds), 0).into(),
            fixed(Some(last.at_bytes as f64 / 1e9), 1).into(),
            fixed(Some(rate / 1e6), 0).into(),
            fixed(Some(lowest / 1e6), 0).into(),
            bar(*rate, most, BAR_CHARACTERS).into(),
            if last.overwrites { "overwriting".into() } else { "first write".into() },
        ]
    };
    let columns = vec![
        right("until, s"),
        right("written, GB"),
        right("MB/s"),
        right("slowest second, MB/s"),
        left(""),
        left(""),
    ];
    Table { columns, rows: rows.iter().map(row).collect() }
}

/// Changes of level with observed causes.
fn changes(found: &SteadyFinding) -> Vec<Item> {
    if found.changes.is_empty() {
        return vec![Item::Text("No changes of level.".to_owned())];
    }
    let row = |change: &SteadyChange| -> Vec<Cell> {
        let causes: Vec<&str> = change.causes.iter().map(|cause| cause.seen.as_str()).collect();
        vec![
            fixed(Some(change.at_seconds), 0).into(),
            fixed(Some(change.at_bytes as f64 / 1e9), 1).into(),
            fixed(Some(change.before_bytes_per_second / 1e6), 0).into(),
            fixed(Some(change.after_bytes_per_second / 1e6), 0).into(),
            if change.is_drop() { "drop".into() } else { "rise".into() },
            if causes.is_empty() { "no cause found".into() } else { causes.join("; ").into() },
        ]
    };
    let columns = vec![
        right("at, s"),
        right("written, GB"),
        right("before, MB/s"),
        right("after, MB/s"),
        left("change"),
        left("observed"),
    ];
    let mut items = vec![Item::Table(Table { columns, rows: found.changes.iter().map(row).collect() })];
    if found.changes_left_out > 0 {
        let all = found.changes.len() as u64 + found.changes_left_out;
        items.push(Item::Text(format!("{} in total; later ones are not listed.", plural(all, "change"))));
    }
    items
}
