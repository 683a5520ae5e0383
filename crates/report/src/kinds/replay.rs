//! Page of a replay: comparison of places, request latency and timing accuracy.

mod index;
mod passes;

use keepup_results::{
    LatencyFigures, ReplayIndex, ReplayMetric, ReplayPass, ReplayPlace, ReplaySummary, ReplayTrace, Stored,
};

use super::common::{self, PageContent, charts};
use super::latency;
use crate::chart::short;
use crate::format::{bytes, number, percent, seconds, shorten, time};
use crate::page::{Block, Document, Item};
use crate::table::{Cell, Table, left, right};

const NAME_CHARACTERS_MAX: usize = 32;

pub(super) fn document(stored: &Stored, summary: &ReplaySummary) -> Document {
    let mut content = PageContent {
        cautions: cautions(summary),
        loads: summary.passes.iter().flat_map(|pass| pass.loads.iter().cloned()).collect(),
        ..PageContent::default()
    };
    if let Some(index) = &summary.index {
        content.sentences.extend(compared(index));
        content.blocks.extend(index::blocks(index));
    } else if let Some(pass) = summary.passes.iter().rev().find(|pass| pass.all.is_some()) {
        let mean = pass.all.as_ref().map(|times| time(times.service.mean_ns / 1e9)).unwrap_or_default();
        content.sentences.push(format!("Mean service time of {} on {}: {mean}.", pass.trace, pass.place));
    }
    content.blocks.extend(passes::blocks(summary));
    content.blocks.extend(times(summary).map(Block::detail));
    content.blocks.push(traces(summary));
    common::document(stored, content)
}

fn cautions(summary: &ReplaySummary) -> Vec<String> {
    let mut cautions = Vec::new();
    for pass in &summary.passes {
        let name = format!("{} on {}, pass {}", pass.trace, pass.place, pass.pass);
        if pass.failed > 0 {
            cautions.push(format!("{name}: {} requests failed.", number(pass.failed)));
        }
        if let Some(wrong) = pass.check.as_ref().map(|check| check.wrong).filter(|wrong| *wrong > 0) {
            cautions.push(format!("{name}: {} blocks differ from the data written.", number(wrong)));
        }
        if let Some(kept) = pass.fidelity.as_ref().filter(|kept| !kept.is_kept) {
            let who = if kept.is_target {
                "the target was slower than the trace"
            } else {
                "this machine submitted requests late"
            };
            cautions.push(format!("{name}: the trace timing was not kept: {who}."));
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
    let others: Vec<String> =
        index.places.iter().filter(|place| place.place != index.baseline).filter_map(of).collect();
    let what = match index.metric {
        ReplayMetric::MeanService => "service",
        ReplayMetric::MeanResponse => "response",
    };
    let all = if others.is_empty() { "none".to_owned() } else { others.join(", ") };
    vec![format!("Index of mean {what} time, {} = 1, more is better: {all}.", index.baseline)]
}

/// Percentiles of service time and lateness, last pass of each trace and place.
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
        latency::chart("Service time: from submission to completion, last pass", &service),
        latency::chart("Lateness: from due time to submission, last pass", &late),
    ];
    charts("Request latency", drawn.into_iter().flatten())
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
    Block::new("Traces", vec![Item::Table(table), Item::List(notes)])
}

/// Changes made to a trace before the replay.
fn notes(trace: &ReplayTrace) -> Vec<String> {
    let mut notes = Vec::new();
    let map = &trace.map;
    let skipped = [
        (trace.discards_left_out, "discards (as requested)"),
        (trace.writes_left_out, "writes and flushes (as requested)"),
        (trace.too_long_left_out, "requests longer than 64 MiB"),
        (map.left_out, "requests beyond the end of the target"),
    ];
    for (count, what) in skipped.into_iter().filter(|(count, _)| *count > 0) {
        notes.push(format!("skipped: {} {what}", number(count)));
    }
    if trace.orders_not_kept > 0 {
        let count = number(trace.orders_not_kept);
        notes.push(format!("{count} writes with FUA or a barrier were replayed as plain writes"));
    }
    if trace.ordered_writes > 0 {
        notes.push(format!("{} writes with FUA or a flush before them", number(trace.ordered_writes)));
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
        notes.push(format!("{count} requests were rounded to blocks of {block} bytes, {more} more in total"));
    }
    if trace.shortened_seconds > 0.0 {
        notes.push(format!("pauses were shortened by {} in total", seconds(trace.shortened_seconds)));
    }
    notes.into_iter().map(|note| format!("{}: {note}", trace.trace)).collect()
}
