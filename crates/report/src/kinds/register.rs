//! The page of a test of registers: what each way costs at every depth, and from where on one pays.

use keepup_measure::stats::median;
use keepup_results::{
    LatencyFigures, RegisterMethod, RegisterPoint, RegisterSummary, RegisterVerdict, Stored,
};

use super::common::{self, Found, charts};
use super::latency;
use crate::chart::{Axis, Chart, Series, Side, plot, short, time_scale};
use crate::format::{digits, or_not_measured, rate, time};
use crate::page::{Block, Cell, Document, Item, Table, left, right};

/// Break-evens that are marked in the chart.
const MARKS_MAX: usize = 4;

pub(super) fn document(stored: &Stored, summary: &RegisterSummary) -> Document {
    let mut found = Found::default();
    let Some(run) = &summary.run else { return common::document(stored, found) };
    let cheapest = run.methods.iter().filter(|method| !method.writes).filter_map(|method| {
        let least = method.points.iter().filter_map(each).reduce(f64::min)?;
        Some((least, method))
    });
    if let Some((least, method)) = cheapest.min_by(|a, b| a.0.total_cmp(&b.0)) {
        found.sentences.push(format!(
            "A register of {} takes {} at least, by {}.",
            run.target,
            time(least),
            method.name
        ));
    }
    found.sentences.extend(
        summary
            .break_evens
            .iter()
            .take(MARKS_MAX)
            .map(|pair| format!("{} against {}: {}.", pair.way, pair.simple, verdict(&pair.elapsed))),
    );
    if run.device.is_simulated {
        found
            .cautions
            .push("A file or a program stands for the device: these are not the device's times.".into());
    }
    if run.device.is_virtual == Some(true) {
        found.cautions.push(
            "This machine is a virtual one: times prove the order of ways, not the speed of hardware.".into(),
        );
    }
    if run.all_ones {
        found.cautions.push("A way read nothing but ones, as when nobody answers on the bus.".into());
    }
    found.blocks.extend(charts(
        "Time for each register against how many are read at a time",
        depths(summary, &run.methods),
    ));
    found.blocks.push(break_evens(summary));
    found.blocks.push(fits(summary));
    let single: Vec<(String, LatencyFigures)> =
        run.methods.iter().filter_map(|method| Some((method.name.clone(), method.single?))).collect();
    found.blocks.extend(charts(
        "Single reads",
        latency::chart("Single reads, the clock's own call is part of them", &single),
    ));
    common::document(stored, found)
}

/// Seconds for each register at a depth.
fn each(point: &RegisterPoint) -> Option<f64> {
    median(&point.seconds).filter(|_| point.depth > 0).map(|seconds| seconds / point.depth as f64)
}

fn depths(summary: &RegisterSummary, methods: &[RegisterMethod]) -> Option<Chart> {
    let all = methods.iter().flat_map(|method| method.points.iter().filter_map(each));
    let unit = time_scale(all.fold(0.0, f64::max) / 100.0);
    let mut series: Vec<Series> = (0..)
        .zip(methods)
        .map(|(number, method)| {
            let points = method
                .points
                .iter()
                .filter_map(|point| Some((point.depth as f64, Some(unit.of(each(point)?)))));
            let mark = if method.writes { " (writes)" } else { "" };
            Series::line(format!("{}{mark}", method.name), number, points)
        })
        .collect();
    let depths = || methods.iter().flat_map(|method| method.points.iter().map(|point| point.depth as f64));
    // The middle of an axis of ratios, squared.
    let ends = depths().fold(f64::INFINITY, f64::min) * depths().fold(1.0, f64::max);
    if let Some(first) = series.first_mut() {
        let marks = summary.break_evens.iter().filter_map(|pair| match pair.elapsed {
            RegisterVerdict::From { registers, .. } => {
                Some((registers, format!("from {} on {}", digits(registers), pair.way)))
            }
            RegisterVerdict::UpTo { registers, .. } => {
                Some((registers, format!("up to {} {}", digits(registers), pair.way)))
            }
            _ => None,
        });
        for (registers, name) in marks.take(MARKS_MAX) {
            let marked = std::mem::replace(first, Series::line("", 0, []));
            let side = if registers * registers < ends { Side::EndRight } else { Side::EndLeft };
            *first = marked.with_place(registers, &name, side);
        }
    }
    let rows = methods.iter().flat_map(|method| {
        method.points.iter().map(move |point| -> Vec<Cell> {
            vec![
                method.name.as_str().into(),
                point.depth.to_string().into(),
                each(point).map_or_else(String::new, time).into(),
                median(&point.seconds).map_or_else(String::new, time).into(),
                point.seconds.len().to_string().into(),
            ]
        })
    });
    let columns = vec![left("way"), right("registers"), right("each"), right("all of them"), right("trials")];
    (!methods.is_empty()).then(|| Chart {
        title: format!("Time for each register, {}, one line for each way", unit.unit),
        note:
            "Both axes are logarithmic. Vertical lines are break-evens: from there, or up to there, the way \
               that is named takes less time."
                .into(),
        table: Table { columns, rows: rows.collect() },
        ..plot(
            &Axis::log("registers at a time (logarithmic)"),
            &Axis::log(format!("time for each, {} (logarithmic)", unit.unit)),
            &series,
            270,
        )
    })
}

fn verdict(verdict: &RegisterVerdict) -> String {
    let around = |registers: &f64, lower: &f64, upper: &f64| {
        let shown = |value: &f64| short(*value);
        format!("{} registers ({} to {} at 95 %)", shown(registers), shown(lower), shown(upper))
    };
    match verdict {
        RegisterVerdict::Always => "takes less at every length".to_owned(),
        RegisterVerdict::Never => "takes less at no length".to_owned(),
        RegisterVerdict::From { registers, lower, upper } => {
            format!("takes less from {} on", around(registers, lower, upper))
        }
        RegisterVerdict::UpTo { registers, lower, upper } => {
            format!("takes less up to {}", around(registers, lower, upper))
        }
        RegisterVerdict::NotResolved => "the measurements do not tell".to_owned(),
    }
}

fn break_evens(summary: &RegisterSummary) -> Block {
    let row = |pair: &keepup_results::RegisterBreakEven| -> Vec<Cell> {
        vec![
            pair.way.as_str().into(),
            pair.simple.as_str().into(),
            verdict(&pair.elapsed).into(),
            verdict(&pair.cpu).into(),
        ]
    };
    let columns = vec![left("way"), left("against"), left("time"), left("CPU")];
    let rows: Vec<Vec<Cell>> = summary.break_evens.iter().map(row).collect();
    let items = match rows.is_empty() {
        true => vec![Item::Text("There was one way only, so nothing to compare.".to_owned())],
        false => vec![Item::Table(Table { columns, rows })],
    };
    Block::new("From where on a way pays", items)
}

fn fits(summary: &RegisterSummary) -> Block {
    let row = |fit: &keepup_results::RegisterFit| -> Vec<Cell> {
        let of = |value: Option<f64>, told: fn(f64) -> String| or_not_measured(value, told);
        let cost = fit.elapsed;
        vec![
            fit.method.as_str().into(),
            of(cost.map(|cost| cost.set_up_seconds), time).into(),
            of(cost.map(|cost| cost.each_seconds), time).into(),
            of(cost.and_then(|cost| cost.half_rate_registers), short).into(),
            of(cost.and_then(|cost| cost.bytes_per_second), rate).into(),
        ]
    };
    let columns = vec![
        left("way"),
        right("set-up"),
        right("each register"),
        right("half the rate at"),
        right("highest rate"),
    ];
    let rows = summary.fits.iter().map(row).collect();
    Block::new(
        "What a transfer and a register cost: T(n) = set-up + n times each",
        vec![Item::Table(Table { columns, rows })],
    )
}
