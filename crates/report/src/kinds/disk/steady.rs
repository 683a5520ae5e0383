//! Hours of writing: the rate through time with its changes of level, and what else went on.

use keepup_results::{DiskFinding, DiskSummary, SteadyChange, SteadyFinding, SteadySample};

use super::NAME_CHARACTERS_MAX;
use crate::chart::{Axis, Chart, Panel, Scale, Series, Side, keys, panels, rate_scale, short, time_scale};
use crate::format::{bytes, rate, seconds, shorten};
use crate::kinds::common::charts;
use crate::page::{Block, Cell, Item, Table, left, right};

pub(super) fn blocks(summary: &DiskSummary, sentences: &mut Vec<String>) -> Vec<Block> {
    let mut blocks = Vec::new();
    for run in &summary.runs {
        let Some(DiskFinding::Steady(found)) = &run.finding else { continue };
        let place = shorten(&run.place(), NAME_CHARACTERS_MAX);
        sentences.insert(0, told(&place, found));
        blocks.extend(charts(&format!("{place}: rate through time"), chart(found)));
        if !found.changes.is_empty() {
            blocks.push(Block::new(format!("{place}: changes of level"), vec![Item::Table(changes(found))]));
        }
    }
    blocks
}

fn told(place: &str, found: &SteadyFinding) -> String {
    let lap = |overwrites: bool| found.laps.iter().find(|lap| lap.overwrites == overwrites);
    let steady =
        [(false, "first write"), (true, "overwriting")].into_iter().filter_map(|(overwrites, name)| {
            let lap = lap(overwrites)?;
            Some(match (&lap.reached, &lap.last) {
                (Some(reached), _) => format!(
                    "{name} came to rest at {} after {}",
                    rate(reached.bytes_per_second),
                    seconds(reached.at_seconds)
                ),
                (None, Some(last)) => {
                    format!("{name} did not come to rest, at the end {}", rate(last.bytes_per_second))
                }
                (None, None) => format!("{name} was too short to tell whether it comes to rest"),
            })
        });
    let steady: Vec<String> = steady.collect();
    let drops = found.changes.iter().filter(|change| change.is_drop()).count();
    format!("{place}: {}; {drops} drops were seen.", steady.join("; "))
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
    let mut keys = keys(&rates);
    if has_warmth {
        keys.extend(crate::chart::keys(&warmth));
    }
    Some(Chart {
        title: format!("Rate of writing through time, {}", unit.unit),
        note: "Vertical lines are changes of level; the grey stretch overwrote older data.".into(),
        keys,
        option,
        table: table(found, unit),
        is_told: false,
        height,
    })
}

/// The line with its changes of level and the stretch in which older data was overwritten.
fn marked(mut line: Series, found: &SteadyFinding, time: Scale) -> Series {
    for change in &found.changes {
        let name = if change.is_drop() { "drop" } else { "rise" };
        line = line.with_place(time.of(change.at_seconds), name, Side::End);
    }
    let over: Vec<f64> = found.samples.iter().filter(|s| s.overwrites).map(|s| s.at_seconds).collect();
    match (over.first(), over.last()) {
        (Some(from), Some(to)) => line.with_area(time.of(*from), time.of(*to), "overwriting"),
        _ => line,
    }
}

/// At most 40 of the samples, evenly.
fn table(found: &SteadyFinding, unit: Scale) -> Table {
    let step = found.samples.len().div_ceil(40).max(1);
    let row = |sample: &SteadySample| -> Vec<Cell> {
        vec![
            seconds(sample.at_seconds).into(),
            bytes(sample.at_bytes).into(),
            short(unit.of(sample.bytes as f64 / sample.seconds.max(1e-9))).into(),
            short(unit.of(sample.lowest_bytes_per_second)).into(),
            if sample.overwrites { "overwriting".into() } else { "first write".into() },
        ]
    };
    let columns = vec![
        right("until"),
        right("written"),
        right(format!("rate, {}", unit.unit)),
        right(format!("slowest second, {}", unit.unit)),
        left(""),
    ];
    Table { columns, rows: found.samples.iter().step_by(step).map(row).collect() }
}

fn changes(found: &SteadyFinding) -> Table {
    let row = |change: &SteadyChange| -> Vec<Cell> {
        let causes: Vec<&str> = change.causes.iter().map(|cause| cause.seen.as_str()).collect();
        vec![
            seconds(change.at_seconds).into(),
            bytes(change.at_bytes).into(),
            rate(change.before_bytes_per_second).into(),
            rate(change.after_bytes_per_second).into(),
            if causes.is_empty() { "no cause was seen".into() } else { causes.join("; ").into() },
        ]
    };
    let columns =
        vec![right("after"), right("written"), right("before"), right("since"), left("what was seen")];
    Table { columns, rows: found.changes.iter().map(row).collect() }
}
