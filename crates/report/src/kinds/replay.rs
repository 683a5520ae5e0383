//! The page of a replay: how places compare, how long requests took, whether the trace's time was kept.

use keepup_measure::stats::median;
use keepup_results::{
    LatencyFigures, ReplayIndex, ReplayMetric, ReplayPass, ReplayPlace, ReplaySummary, Stored,
};
use serde_json::json;

use super::common::{self, Found, charts};
use super::latency;
use crate::chart::{Axis, Chart, Mark, Series, Side, TEXT, colour, figure, plot, short};
use crate::format::{bytes, number, or_not_measured, percent, rate, seconds, shorten, time};
use crate::page::{Block, Cell, Document, Item, Table, Tone, left, right};

const NAME_CHARACTERS_MAX: usize = 32;

pub(super) fn document(stored: &Stored, summary: &ReplaySummary) -> Document {
    let mut found = Found {
        cautions: cautions(summary),
        loads: summary.passes.iter().flat_map(|pass| pass.loads.iter().cloned()).collect(),
        ..Found::default()
    };
    if let Some(index) = &summary.index {
        found.sentences.extend(compared(index));
        let mut block: Vec<Block> =
            charts("How places compare", [places(index), ratios(index)].into_iter().flatten())
                .into_iter()
                .collect();
        block.iter_mut().for_each(|block| block.is_beside = true);
        found.blocks.extend(block);
    } else if let Some(pass) = summary.passes.iter().rev().find(|pass| pass.all.is_some()) {
        let mean = pass.all.as_ref().map(|times| time(times.service.mean_ns / 1e9)).unwrap_or_default();
        found
            .sentences
            .push(format!("A request of {} on {} took {mean} on average.", pass.trace, pass.place));
    }
    found.blocks.extend(times(summary));
    found.blocks.push(passes(summary));
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

/// The index of each place with its interval.
fn places(index: &ReplayIndex) -> Option<Chart> {
    let known: Vec<(&ReplayPlace, f64)> =
        index.places.iter().filter_map(|place| Some((place, place.index?))).collect();
    let bar = |(place, value): &(&ReplayPlace, f64)| {
        let side = if place.upper.is_some_and(|upper| upper > value * 1.02) { "insideLeft" } else { "right" };
        let text = if side == "right" { TEXT } else { "--on-bar" };
        json!({ "value": figure(*value), "label": { "show": true, "position": side,
            "formatter": short(*value),
            "color": text, "fontSize": 11 } })
    };
    let mut series = Series::new("", colour(0), Mark::Bars, known.iter().map(bar).collect()).with_place(
        1.0,
        &shorten(&index.baseline, 20),
        Side::Start,
    );
    for (row, (place, _)) in (0..).zip(&known) {
        if let Some((lower, upper)) = place.lower.zip(place.upper) {
            let row: usize = row;
            series.lines.push(json!([
                { "coord": [figure(lower), row], "lineStyle": { "type": "solid", "width": 3, "color": TEXT },
                    "label": { "show": false } },
                { "coord": [figure(upper), row] },
            ]));
        }
    }
    let names: Vec<String> =
        known.iter().map(|(place, _)| shorten(&place.place, NAME_CHARACTERS_MAX)).collect();
    let row = |(place, value): &(&ReplayPlace, f64)| -> Vec<Cell> {
        vec![
            place.place.as_str().into(),
            short(*value).into(),
            place.lower.map_or_else(String::new, short).into(),
            place.upper.map_or_else(String::new, short).into(),
            place.arithmetic_mean.map_or_else(String::new, short).into(),
            place.loss_percent.map_or_else(String::new, percent).into(),
        ]
    };
    let most =
        known.iter().map(|(place, value)| place.upper.unwrap_or(*value).max(*value)).fold(1.0, f64::max);
    let columns = vec![
        left("place"),
        right("index"),
        right("lower"),
        right("upper"),
        right("arithmetic mean"),
        right("loss"),
    ];
    (!known.is_empty()).then(|| Chart {
        title: format!("Index of each place, {} = 1", shorten(&index.baseline, NAME_CHARACTERS_MAX)),
        note: "Geometric mean over all traces; the thick line is the 95 % interval over the passes.".into(),
        table: Table { columns, rows: known.iter().map(row).collect() },
        ..plot(
            &Axis::linear("index, more is better").range(0.0, (most * 1.05 * 20.0).ceil() / 20.0),
            &Axis::category("", names.clone()).downwards(),
            std::slice::from_ref(&series),
            34 * names.len() as u32,
        )
        .with_room_at_right(48)
    })
}

/// The ratio of each trace.
fn ratios(index: &ReplayIndex) -> Option<Chart> {
    let mut traces: Vec<&str> = Vec::new();
    for ratio in index.places.iter().flat_map(|place| &place.ratios) {
        if !traces.contains(&ratio.trace.as_str()) {
            traces.push(&ratio.trace);
        }
    }
    let value = |place: &ReplayPlace, trace: &str| {
        place.ratios.iter().find(|ratio| ratio.trace == trace).and_then(|ratio| ratio.ratio)
    };
    let series: Vec<Series> = (0..)
        .zip(&index.places)
        .map(|(number, place)| {
            let points = traces.iter().map(|trace| figure(value(place, trace).unwrap_or(f64::NAN)));
            Series::new(
                shorten(&place.place, NAME_CHARACTERS_MAX),
                colour(number),
                Mark::Bars,
                points.collect(),
            )
        })
        .collect();
    let rows = index.places.iter().flat_map(|place| {
        place.ratios.iter().map(move |ratio| -> Vec<Cell> {
            let noisy = if ratio.is_noisy { "passes differ by more than 5 %" } else { "" };
            vec![
                place.place.as_str().into(),
                ratio.trace.as_str().into(),
                ratio.ratio.map_or_else(String::new, short).into(),
                or_not_measured(ratio.mean_ns, |ns| time(ns / 1e9)).into(),
                or_not_measured(ratio.half_width_ns, |ns| time(ns / 1e9)).into(),
                ratio.passes.to_string().into(),
                ratio.why.as_deref().unwrap_or(noisy).into(),
            ]
        })
    });
    let columns = vec![
        left("place"),
        left("trace"),
        right("ratio"),
        right("mean"),
        right("+/-"),
        right("passes"),
        left(""),
    ];
    let names: Vec<String> = traces.iter().map(|trace| shorten(trace, NAME_CHARACTERS_MAX)).collect();
    (!traces.is_empty()).then(|| Chart {
        title: "Ratio of each trace".into(),
        note: "The baseline's mean time over this place's: more than 1 is faster than the baseline.".into(),
        table: Table { columns, rows: rows.collect() },
        ..plot(
            &Axis::linear("ratio, more is better").with_zero(),
            &Axis::category("", names).downwards(),
            &series,
            (10 + 14 * index.places.len() as u32) * traces.len() as u32,
        )
    })
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

fn passes(summary: &ReplaySummary) -> Block {
    let row = |pass: &ReplayPass| -> Vec<Cell> {
        let kept = match &pass.fidelity {
            None => "".into(),
            Some(kept) if kept.is_kept => Cell::toned("kept", Tone::Good),
            Some(kept) => Cell::toned(kept.why.join("; "), Tone::Doubtful),
        };
        vec![
            shorten(&pass.trace, NAME_CHARACTERS_MAX).into(),
            shorten(&pass.place, NAME_CHARACTERS_MAX).into(),
            format!("{}{}", pass.pass, if pass.is_cold { " cold" } else { "" }).into(),
            seconds(pass.seconds).into(),
            number(pass.requests).into(),
            pass.bytes_per_second().map_or_else(String::new, rate).into(),
            pass.all.map_or_else(String::new, |times| time(times.service.mean_ns / 1e9)).into(),
            number(pass.failed).into(),
            kept,
        ]
    };
    let columns = vec![
        left("trace"),
        left("place"),
        left("pass"),
        right("time"),
        right("requests"),
        right("rate"),
        right("mean service"),
        right("failed"),
        left("the trace's time"),
    ];
    let rows = summary.passes.iter().take(400).map(row).collect();
    let warm = summary.passes.iter().filter(|pass| !pass.is_cold);
    let text = median(&warm.map(|pass| pass.seconds).collect::<Vec<_>>())
        .map(|middle| Item::Text(format!("Warm passes took {} in the middle.", seconds(middle))));
    Block::new("Every pass", text.into_iter().chain([Item::Table(Table { columns, rows })]).collect())
}

fn traces(summary: &ReplaySummary) -> Block {
    let row = |trace: &keepup_results::ReplayTrace| -> Vec<Cell> {
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
    Block::new(
        "The traces",
        vec![Item::Table(Table { columns, rows: summary.traces.iter().map(row).collect() })],
    )
}
