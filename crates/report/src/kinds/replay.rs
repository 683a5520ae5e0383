//! The page of a replay: how places compare, how long requests took, whether the trace's time was kept.

mod index;
mod passes;

use keepup_results::{
    LatencyFigures, ReplayIndex, ReplayMetric, ReplayPass, ReplayPlace, ReplaySummary, ReplayTrace, Stored,
};

use super::common::{self, Found, charts};
use super::latency;
use crate::chart::short;
use crate::format::{bytes, number, percent, seconds, shorten, time};
use crate::page::{Block, Cell, Document, Item, Table, left, right};

const NAME_CHARACTERS_MAX: usize = 32;

pub(super) fn document(stored: &Stored, summary: &ReplaySummary) -> Document {
    let mut found = Found {
        cautions: cautions(summary),
        loads: summary.passes.iter().flat_map(|pass| pass.loads.iter().cloned()).collect(),
        ..Found::default()
    };
    if let Some(index) = &summary.index {
        found.sentences.extend(compared(index));
        found.blocks.extend(index::blocks(index));
    } else if let Some(pass) = summary.passes.iter().rev().find(|pass| pass.all.is_some()) {
        let mean = pass.all.as_ref().map(|times| time(times.service.mean_ns / 1e9)).unwrap_or_default();
        found
            .sentences
            .push(format!("A request of {} on {} took {mean} on average.", pass.trace, pass.place));
    }
    found.blocks.extend(passes::blocks(summary));
    found.blocks.extend(times(summary).map(Block::detail));
    found.blocks.push(traces(summary));
    common::document(stored, found)
}

fn cautions(summary: &ReplaySummary) -> Vec<String> {
    let mut cautions = Vec::new();
    for pass in &summary.passes {
        let name = format!("{} on {}, pass {}", pass.trace, pass.place, pass.pass);
        if pass.failed > 0 {
            cautions.push(format!("{name}: {} requests failed.", number(pass.failed)));
        }
        if let Some(wrong) = pass.check.as_ref().map(|check| check.wrong).filter(|wrong| *wrong > 0) {
            cautions.push(format!("{name}: {} blocks were not as written.", number(wrong)));
        }
        if let Some(kept) = pass.fidelity.as_ref().filter(|kept| !kept.is_kept) {
            let who = if kept.is_target {
                "the target was slower than the trace"
            } else {
                "this machine made requests late"
            };
            cautions.push(format!("{name}: the trace's time was not kept, {who}."));
        }
    }
    let more = cautions.len().saturating_sub(8);
    cautions.truncate(8);
    if more > 0 {
        cautions.push(format!("{more} more are in the table of passes."));
    }
    cautions
}

fn compared(index: &ReplayIndex) -> Vec<String> {
    let of = |place: &ReplayPlace| {
        let value = place.index?;
        let bounds = place.lower.zip(place.upper);
        let bounds = bounds.map(|(lower, upper)| format!(" ({} to {} at 95 %)", short(lower), short(upper)));
        Some(format!("{} {}{}", place.place, short(value), bounds.unwrap_or_default()))
    };
    let told: Vec<String> =
        index.places.iter().filter(|place| place.place != index.baseline).filter_map(of).collect();
    let what = match index.metric {
        ReplayMetric::MeanService => "service",
        ReplayMetric::MeanResponse => "response",
    };
    let all = if told.is_empty() { "none".to_owned() } else { told.join(", ") };
    vec![format!("Index of mean {what} time, {} = 1, more is better: {all}.", index.baseline)]
}

/// Percentiles of service and of lateness, of the last warm pass of each trace in each place.
fn times(summary: &ReplaySummary) -> Option<Block> {
    let mut last: Vec<(String, &ReplayPass)> = Vec::new();
    for pass in &summary.passes {
        let name = format!(
            "{}, {}",
            shorten(&pass.trace, NAME_CHARACTERS_MAX),
            shorten(&pass.place, NAME_CHARACTERS_MAX)
        );
        match last.iter_mut().find(|known| known.0 == name) {
            Some(known) => known.1 = pass,
            None => last.push((name, pass)),
        }
    }
    let service: Vec<(String, LatencyFigures)> =
        last.iter().filter_map(|(name, pass)| Some((name.clone(), pass.all.as_ref()?.service))).collect();
    let late: Vec<(String, LatencyFigures)> =
        last.iter().filter_map(|(name, pass)| Some((name.clone(), pass.lateness?))).collect();
    let drawn = [
        latency::chart("Service: from when a request was made to its end, last pass", &service),
        latency::chart("Lateness: from when a request was due until it was made, last pass", &late),
    ];
    charts("How long requests took", drawn.into_iter().flatten())
}

fn traces(summary: &ReplaySummary) -> Block {
    let row = |trace: &ReplayTrace| -> Vec<Cell> {
        vec![
            shorten(&trace.trace, NAME_CHARACTERS_MAX).into(),
            shorten(&trace.origin, NAME_CHARACTERS_MAX).into(),
            number(trace.records).into(),
            bytes(trace.bytes_read).into(),
            bytes(trace.bytes_written).into(),
            seconds(trace.span_seconds).into(),
            trace.map.policy.as_str().into(),
        ]
    };
    let columns = vec![
        left("trace"),
        left("origin"),
        right("requests"),
        right("read"),
        right("written"),
        right("span"),
        left("addresses"),
    ];
    let table = Table { columns, rows: summary.traces.iter().map(row).collect() };
    let notes = summary.traces.iter().flat_map(notes).collect();
    Block::new("The traces", vec![Item::Table(table), Item::List(notes)])
}

/// What became of a trace before it was replayed.
fn notes(trace: &ReplayTrace) -> Vec<String> {
    let mut notes = Vec::new();
    let map = &trace.map;
    let left_out = [
        (trace.discards_left_out, "discards: none is made"),
        (trace.writes_left_out, "writes and flushes, as asked"),
        (trace.too_long_left_out, "requests longer than 64 MiB"),
        (map.left_out, "requests that the target has no space for"),
    ];
    for (count, what) in left_out.into_iter().filter(|(count, _)| *count > 0) {
        notes.push(format!("left out: {} {what}", number(count)));
    }
    if trace.orders_not_kept > 0 {
        let count = number(trace.orders_not_kept);
        notes.push(format!("{count} writes with FUA or a barrier were made as ordinary ones"));
    }
    notes.extend(trace.corrected.iter().map(|(what, count)| format!("{} {what}", number(*count))));
    if map.moved > 0 {
        let share = |share: Option<f64>| share.map_or_else(|| "-".into(), |s| percent(100.0 * s));
        let moved = 100.0 * map.moved as f64 / (trace.reads + trace.writes).max(1) as f64;
        notes.push(format!(
            "--map {}: {} of requests were moved; sequential {} before, {} after",
            map.policy,
            percent(moved),
            share(map.sequential_before),
            share(map.sequential_after)
        ));
    }
    if map.aligned > 0 {
        let (count, block, more) = (number(map.aligned), map.block_bytes, bytes(map.aligned_bytes));
        notes.push(format!("{count} requests were rounded to blocks of {block} bytes, {more} more in all"));
    }
    if trace.shortened_seconds > 0.0 {
        notes.push(format!("pauses were shortened by {} in all", seconds(trace.shortened_seconds)));
    }
    notes.into_iter().map(|note| format!("{}: {note}", trace.trace)).collect()
}
