//! The page of a test of registers: what each way costs at every depth, and from where on one pays.

use keepup_measure::stats::{median, quantile};
use keepup_results::{
    LatencyFigures, RegisterCost, RegisterFit, RegisterMethod, RegisterPoint, RegisterRun, RegisterSummary,
    RegisterVerdict, Stored,
};

use super::common::{self, Found};
use super::latency;
use crate::chart::{Axis, Chart, Series, Side, plot, time_scale};
use crate::format::{digits, fixed, percent, time};
use crate::page::{Block, Cell, Document, Fact, Item, Table, left, right};

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
    found.cautions = cautions(run);
    let mut depths = Block::new("Time of a register, depth by depth", vec![Item::Table(rows(run))]);
    depths.items.extend(chart(summary, &run.methods).map(common::item));
    depths.items.push(Item::List(left_out(run)));
    depths.items.push(Item::Text(
        "MB = 10^6 bytes, MiB = 2^20. The time of a register is that of a trial over its depth: median, \
         lowest, and 99th percentile over the trials."
            .to_owned(),
    ));
    found.blocks.push(depths);
    found.blocks.push(break_evens(summary));
    found.blocks.push(fits(summary));
    found.blocks.extend(single(run));
    found.blocks.extend(device(run));
    common::document(stored, found)
}

fn cautions(run: &RegisterRun) -> Vec<String> {
    let mut cautions: Vec<String> = Vec::new();
    if run.device.is_simulated {
        cautions.push("A file or a program stands for the device: these are not the device's times.".into());
    }
    if run.device.is_virtual == Some(true) {
        cautions.push(
            "This machine is a virtual one: times prove the order of ways, not the speed of hardware.".into(),
        );
    }
    if run.all_ones {
        cautions.push(
            "A way read nothing but ones, as when nobody answers on the bus: check with --identity \
             OFFSET=VALUE."
                .into(),
        );
    }
    cautions
}

/// Every way at every depth.
fn rows(run: &RegisterRun) -> Table {
    let row = |method: &RegisterMethod, point: &RegisterPoint| -> Vec<Cell> {
        let us = |seconds: Option<f64>| {
            fixed(seconds.filter(|_| point.depth > 0).map(|s| s / point.depth as f64 * 1e6), 4)
        };
        let middle = median(&point.seconds).filter(|seconds| *seconds > 0.0);
        let bytes = point.depth as f64 * f64::from(run.width_bits / 8);
        let rate = |unit: f64| fixed(middle.map(|seconds| bytes / seconds / unit), 2);
        let mark = if method.writes { " (writes)" } else { "" };
        vec![
            format!("{}{mark}", method.name).into(),
            format!("{:#x}", point.depth).into(),
            us(median(&point.seconds)).into(),
            us(quantile(&point.seconds, 0.0)).into(),
            us(quantile(&point.seconds, 0.99)).into(),
            rate(1e6).into(),
            rate(1_048_576.0).into(),
            point.seconds.len().to_string().into(),
        ]
    };
    let rows =
        run.methods.iter().flat_map(|method| method.points.iter().map(move |point| row(method, point)));
    let columns = vec![
        left("way"),
        right("depth"),
        right("us/register"),
        right("lowest"),
        right("p99"),
        right("MB/s"),
        right("MiB/s"),
        right("trials"),
    ];
    Table { columns, rows: rows.collect() }
}

/// Which depths are missing.
fn left_out(run: &RegisterRun) -> Vec<String> {
    let told = |method: &RegisterMethod| {
        let depths: Vec<String> = method.left_out.iter().map(|depth| format!("{depth:#x}")).collect();
        let told =
            format!("{}: {} left out, which takes too long for --time", method.name, depths.join(", "));
        (!depths.is_empty()).then_some(told)
    };
    run.methods.iter().filter_map(told).collect()
}

/// Single reads, each timed by itself.
fn single(run: &RegisterRun) -> Option<Block> {
    let times: Vec<(String, LatencyFigures)> =
        run.methods.iter().filter_map(|method| Some((method.name.clone(), method.single?))).collect();
    let row = |(name, times): &(String, LatencyFigures)| -> Vec<Cell> {
        let us = |ns: u64, digits: usize| Cell::from(fixed(Some(ns as f64 / 1e3), digits));
        vec![
            name.as_str().into(),
            us(times.p50_ns, 2),
            us(times.p99_ns, 2),
            us(times.p99_9_ns, 2),
            us(times.max_ns, 1),
        ]
    };
    let columns =
        vec![left("way"), right("p50, us"), right("p99, us"), right("p99.9, us"), right("longest, us")];
    let note = format!("Each time includes {} of the clock itself.", time(run.clock_ns / 1e9));
    let mut items = vec![Item::Table(Table { columns, rows: times.iter().map(row).collect() })];
    let chart = latency::chart("Single reads, the clock's own call is part of them", &times);
    items.extend(chart.map(|chart| common::item(Chart { is_told: true, ..chart })));
    items.push(Item::Text(note));
    (!times.is_empty()).then(|| Block::new("Single reads", items))
}

/// What the reader should know of the device and of how it was measured.
fn device(run: &RegisterRun) -> Option<Block> {
    let device = &run.device;
    let mut facts: Vec<Fact> = Vec::new();
    let mut add = |label: &str, value: Option<String>| {
        facts.extend(value.map(|value| Fact::new(label, value)));
    };
    add("device", device.id.clone());
    add("driver", device.driver.clone());
    let lanes = device.link_width.as_ref().map(|width| format!("{width} lanes"));
    let link: Vec<String> = device.link_speed.clone().into_iter().chain(lanes).collect();
    add("link", (!link.is_empty()).then(|| link.join(", ")));
    add("low-power states", device.link_states.clone());
    add("largest payload", device.payload_bytes_max.map(|bytes| format!("{bytes} B")));
    add("largest read request", device.read_request_bytes_max.map(|bytes| format!("{bytes} B")));
    let kind = device.iommu_type.as_ref().map_or_else(String::new, |kind| format!(" ({kind})"));
    add("IOMMU group", device.iommu_group.as_ref().map(|group| format!("{group}{kind}")));
    add("processor", run.cpu.map(|cpu| cpu.to_string()));
    let off = run.methods.iter().filter(|method| method.loop_taken_off);
    let off = off.map(|method| method.name.as_str()).collect::<Vec<_>>().join(", ");
    let own = run.loop_seconds_per_register.filter(|_| !off.is_empty());
    add("subtracted", own.map(|own| format!("the loop's own {:.5} us per register, from {off}", own * 1e6)));
    (!facts.is_empty()).then(|| Block::new("Device and method", vec![Item::Facts(facts)]))
}

/// Seconds for each register at a depth.
fn each(point: &RegisterPoint) -> Option<f64> {
    median(&point.seconds).filter(|_| point.depth > 0).map(|seconds| seconds / point.depth as f64)
}

fn chart(summary: &RegisterSummary, methods: &[RegisterMethod]) -> Option<Chart> {
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
        is_told: true,
        ..plot(
            &Axis::log("registers at a time (logarithmic)"),
            &Axis::log(format!("time for each, {} (logarithmic)", unit.unit)),
            &series,
            270,
        )
    })
}

fn verdict(verdict: &RegisterVerdict) -> String {
    // A number of registers is a whole one: the first at which it holds, or the last.
    let around = |ends: [f64; 3]| {
        format!("{} registers ({} to {} at 95 %)", ends[0] as u64, ends[1] as u64, ends[2] as u64)
    };
    match *verdict {
        RegisterVerdict::Always => "takes less at every length".to_owned(),
        RegisterVerdict::Never => "takes less at no length".to_owned(),
        RegisterVerdict::From { registers, lower, upper } => {
            format!("takes less from {} on", around([registers, lower, upper].map(f64::ceil)))
        }
        RegisterVerdict::UpTo { registers, lower, upper } => {
            format!("takes less up to {}", around([registers, lower, upper].map(f64::floor)))
        }
        RegisterVerdict::NotResolved => "not resolved by these measurements".to_owned(),
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
    let columns = vec![left("way"), left("instead of"), left("time"), left("CPU")];
    let rows: Vec<Vec<Cell>> = summary.break_evens.iter().map(row).collect();
    let items = match rows.is_empty() {
        true => vec![Item::Text("There was one way only, so nothing to compare.".to_owned())],
        false => vec![Item::Table(Table { columns, rows })],
    };
    Block::new("From where on a way pays", items)
}

fn fits(summary: &RegisterSummary) -> Block {
    let row = |method: &str, of: &str, cost: &RegisterCost| -> Vec<Cell> {
        vec![
            method.into(),
            of.into(),
            fixed(Some(cost.set_up_seconds * 1e6), 4).into(),
            fixed(Some(cost.each_seconds * 1e6), 5).into(),
            fixed(cost.half_rate_registers, 1).into(),
            fixed(cost.bytes_per_second.map(|rate| rate / 1e6), 2).into(),
        ]
    };
    let rows = |fit: &RegisterFit| {
        let both = [("time", &fit.elapsed), ("CPU", &fit.cpu)];
        both.into_iter()
            .filter_map(|(of, cost)| Some(row(&fit.method, of, cost.as_ref()?)))
            .collect::<Vec<_>>()
    };
    let columns = vec![
        left("way"),
        left("of"),
        right("set-up, us"),
        right("each, us"),
        right("half the rate at, registers"),
        right("highest rate, MB/s"),
    ];
    let knees = summary.fits.iter().filter_map(|fit| {
        let knee = fit.knee?;
        let way = if knee.off > 0.0 { "more" } else { "less" };
        let off = percent(knee.off.abs() * 100.0);
        let (method, depth) = (&fit.method, knee.depth);
        Some(format!("{method}: the line says {off} {way} than was measured at {depth:#x} registers: a knee"))
    });
    let table = Table { columns, rows: summary.fits.iter().flat_map(rows).collect() };
    Block::new(
        "What a transfer and a register cost: T(n) = set-up + n times each",
        vec![Item::Table(table), Item::List(knees.collect())],
    )
}
