//! Comparison of places: index over all traces and ratio of each trace.

use keepup_results::{ReplayIndex, ReplayPlace, ReplayRatio};
use serde_json::json;

use super::NAME_CHARACTERS_MAX;
use crate::chart::{Axis, Chart, LabelPosition, Mark, Series, TEXT, colour, figure, plot, short};
use crate::format::{fixed, shorten};
use crate::kinds::common::charts;
use crate::page::{Block, Item};
use crate::table::{Cell, Table, left, right};

pub(super) fn blocks(index: &ReplayIndex) -> Vec<Block> {
    let note = "Geometric mean over all traces of baseline time / time of this place. More than 1 is faster \
                than the baseline.";
    let places_block = Block::new(
        format!("Index of each place, {} = 1, mode {}", index.baseline, index.mode),
        vec![Item::Table(of_places(index)), Item::Text(note.to_owned())],
    );
    let traces = Block::new("Ratio of each trace", vec![Item::Table(of_traces(index))]);
    let drawn = charts("Comparison of places", [places(index), ratios(index)].into_iter().flatten());
    let drawn = drawn.map(|block| Block { is_side_by_side: true, ..block });
    [places_block, traces].into_iter().chain(drawn).collect()
}

fn of_places(index: &ReplayIndex) -> Table {
    let row = |place: &ReplayPlace| -> Vec<Cell> {
        let extremes = place.best.as_ref().zip(place.worst.as_ref());
        vec![
            place.place.as_str().into(),
            fixed(place.index, 3).into(),
            fixed(place.lower, 3).into(),
            fixed(place.upper, 3).into(),
            fixed(place.arithmetic_mean, 3).into(),
            fixed(place.loss_percent, 1).into(),
            extremes.map_or_else(|| "-".to_owned(), |(best, worst)| format!("{best}, {worst}")).into(),
        ]
    };
    let columns = vec![
        left("place"),
        right("index"),
        right("95 % from"),
        right("to"),
        right("arithm. mean"),
        right("loss, %"),
        left("best and worst trace"),
    ];
    Table { columns, rows: index.places.iter().map(row).collect() }
}

fn of_traces(index: &ReplayIndex) -> Table {
    let row = |place: &ReplayPlace, ratio: &ReplayRatio| -> Vec<Cell> {
        let ms = |ns: Option<f64>| fixed(ns.map(|ns| ns / 1e6), 3);
        let noisy = if ratio.is_noisy { "noisy: passes differ by more than 5 %" } else { "" };
        vec![
            place.place.as_str().into(),
            ratio.trace.as_str().into(),
            fixed(ratio.ratio, 3).into(),
            ms(ratio.mean_ns).into(),
            ms(ratio.half_width_ns).into(),
            ratio.passes.to_string().into(),
            ratio.why.as_deref().unwrap_or(noisy).into(),
        ]
    };
    let rows = index.places.iter().flat_map(|place| place.ratios.iter().map(move |ratio| row(place, ratio)));
    let columns = vec![
        left("place"),
        left("trace"),
        right("ratio"),
        right("mean, ms"),
        right("+/-, ms"),
        right("passes"),
        left(""),
    ];
    Table { columns, rows: rows.collect() }
}

/// Index of each place with its interval.
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
    let mut series = Series::new("", colour(0), Mark::Bars, known.iter().map(bar).collect())
        .with_vertical_line(1.0, &shorten(&index.baseline, 20), LabelPosition::Start);
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
    let most =
        known.iter().map(|(place, value)| place.upper.unwrap_or(*value).max(*value)).fold(1.0, f64::max);
    (!known.is_empty()).then(|| Chart {
        title: format!("Index of each place, {} = 1", shorten(&index.baseline, NAME_CHARACTERS_MAX)),
        note: "Geometric mean over all traces; the thick line is the 95 % interval over the passes.".into(),
        table: of_places(index),
        is_in_table: true,
        ..plot(
            &Axis::linear("index, more is better").range(0.0, (most * 1.05 * 20.0).ceil() / 20.0),
            &Axis::category("", names.clone()).reversed(),
            std::slice::from_ref(&series),
            34 * names.len() as u32,
        )
        .with_right_margin(48)
    })
}

/// Ratio of each trace.
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
    let names: Vec<String> = traces.iter().map(|trace| shorten(trace, NAME_CHARACTERS_MAX)).collect();
    (!traces.is_empty()).then(|| Chart {
        title: "Ratio of each trace".into(),
        note: "Baseline mean time / mean time of this place. More than 1 is faster than the baseline.".into(),
        table: of_traces(index),
        is_in_table: true,
        ..plot(
            &Axis::linear("ratio, more is better").with_zero(),
            &Axis::category("", names).reversed(),
            &series,
            (10 + 14 * index.places.len() as u32) * traces.len() as u32,
        )
    })
}
