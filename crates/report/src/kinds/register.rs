//! Page of a register test: cost of each access method at every depth, and break-evens.

use keepup_measure::stats::{median, quantile};
use keepup_results::{
    LatencyFigures, RegisterCost, RegisterFit, RegisterMethod, RegisterPoint, RegisterRun, RegisterSummary,
    RegisterVerdict, Stored,
};

use super::common::{self, PageContent};
use super::latency;
use crate::chart::{Axis, Chart, LabelPosition, Series, plot, time_scale};
use crate::format::{digits, fixed, percent, time};
use crate::page::{Block, Document, Fact, Item};
use crate::table::{Cell, Table, left, right};

/// Most break-evens marked in the chart.
const MARKS_MAX: usize = 4;

pub(super) fn document(stored: &Stored, summary: &RegisterSummary) -> Document {
    let mut content = PageContent::default();
    let Some(run) = &summary.run else { return common::document(stored, content) };
    let cheapest = run.methods.iter().filter(|method| !method.writes).filter_map(|method| {
        let least = method.points.iter().filter_map(each).reduce(f64::min)?;
        Some((least, method))
    });
    if let Some((least, method)) = cheapest.min_by(|a, b| a.0.total_cmp(&b.0)) {
        content.sentences.push(format!(
            "Lowest time per register of {}: {} ({}).",
            run.target,
            time(least),
            method.name
        ));
    }
    content.sentences.extend(
        summary
            .break_evens
            .iter()
            .take(MARKS_MAX)
            .map(|pair| format!("{} compared with {}: {}.", pair.way, pair.simple, verdict(&pair.elapsed))),
    );
    content.cautions = cautions(run);
    let mut depths = Block::new("Time per register by depth", vec![Item::Table(rows(run))]);
    depths.items.extend(chart(summary, &run.methods).map(common::item));
    depths.items.push(Item::List(skipped_depths(run)));
    depths.items.push(Item::Text(
        "MB = 10^6 bytes, MiB = 2^20. Time per register = time of a trial / depth: median, minimum and 99th \
         percentile over the trials."
            .to_owned(),
    ));
    content.blocks.push(depths);
    content.blocks.push(break_evens(summary));
    content.blocks.push(fits(summary));
    content.blocks.extend(single(run));
    content.blocks.extend(device(run));
    common::document(stored, content)
}

fn cautions(run: &RegisterRun) -> Vec<String> {
    let mut cautions: Vec<String> = Vec::new();
    if run.device.is_simulated {
        cautions.push("The device is simulated: these are not times of real hardware.".into());
    }
    if run.device.is_virtual == Some(true) {
        cautions.push(
            "This is a virtual machine: times show the order of the methods, not the speed of hardware."
                .into(),
        );
    }
    if run.all_ones {
        cautions.push(
            "A method read only ones, as when no device answers on the bus. Check with --identity \
             OFFSET=VALUE."
                .into(),
        );
    }
    cautions
}

/// Table of all methods and depths.
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
        left("method"),
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

/// Skipped depths.
fn skipped_depths(run: &RegisterRun) -> Vec<String> {
    let note = |method: &RegisterMethod| {
        let depths: Vec<String> = method.left_out.iter().map(|depth| format!("{depth:#x}")).collect();
        let text = format!("{}: depth {} skipped: too slow for --time", method.name, depths.join(", "));
        (!depths.is_empty()).then_some(text)
    };
    run.methods.iter().filter_map(note).collect()
}

/// Latency of single reads.
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
        vec![left("method"), right("p50, us"), right("p99, us"), right("p99.9, us"), right("longest, us")];
    let note = format!("Each time includes {} for reading the clock.", time(run.clock_ns / 1e9));
    let mut items = vec![Item::Table(Table { columns, rows: times.iter().map(row).collect() })];
    let chart = latency::chart("Latency of single reads, including the clock read", &times);
    items.extend(chart.map(|chart| common::item(Chart { is_in_table: true, ..chart })));
    items.push(Item::Text(note));
    (!times.is_empty()).then(|| Block::new("Single reads", items))
}

/// Device and measurement conditions.
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
    add(
        "subtracted",
        own.map(|own| format!("loop overhead of {:.5} us per register, from {off}", own * 1e6)),
    );
    (!facts.is_empty()).then(|| Block::new("Device and method", vec![Item::Facts(facts)]))
}

/// Seconds per register at a depth.
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
    // Square of the middle of the logarithmic axis.
    let ends = depths().fold(f64::INFINITY, f64::min) * depths().fold(1.0, f64::max);
    if let Some(first) = series.first_mut() {
        let marks = summary.break_evens.iter().filter_map(|pair| match pair.elapsed {
            RegisterVerdict::From { registers, .. } => {
                Some((registers, format!("from {} {}", digits(registers), pair.way)))
            }
            RegisterVerdict::UpTo { registers, .. } => {
                Some((registers, format!("up to {} {}", digits(registers), pair.way)))
            }
            _ => None,
        });
        for (registers, name) in marks.take(MARKS_MAX) {
            let marked = std::mem::replace(first, Series::line("", 0, []));
            let side =
                if registers * registers < ends { LabelPosition::EndRight } else { LabelPosition::EndLeft };
            *first = marked.with_vertical_line(registers, &name, side);
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
    let columns =
        vec![left("method"), right("registers"), right("per register"), right("total"), right("trials")];
    (!methods.is_empty()).then(|| Chart {
        title: format!("Time per register, {}", unit.unit),
        note:
            "Both axes are logarithmic. Vertical lines are break-evens: the method named is faster from or \
               up to there."
                .into(),
        table: Table { columns, rows: rows.collect() },
        is_in_table: true,
        ..plot(
            &Axis::log("registers per transfer (logarithmic)"),
            &Axis::log(format!("time per register, {} (logarithmic)", unit.unit)),
            &series,
            270,
        )
    })
}

fn verdict(verdict: &RegisterVerdict) -> String {
    // Rounded to the first or last whole number of registers at which it holds.
    let around = |ends: [f64; 3]| {
        format!("{} registers ({} to {} at 95 %)", ends[0] as u64, ends[1] as u64, ends[2] as u64)
    };
    match *verdict {
        RegisterVerdict::Always => "always faster".to_owned(),
        RegisterVerdict::Never => "never faster".to_owned(),
        RegisterVerdict::From { registers, lower, upper } => {
            format!("faster from {}", around([registers, lower, upper].map(f64::ceil)))
        }
        RegisterVerdict::UpTo { registers, lower, upper } => {
            format!("faster up to {}", around([registers, lower, upper].map(f64::floor)))
        }
        RegisterVerdict::NotResolved => "not resolved by this measurement".to_owned(),
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
    let columns = vec![left("method"), left("compared with"), left("time"), left("CPU")];
    let rows: Vec<Vec<Cell>> = summary.break_evens.iter().map(row).collect();
    let items = match rows.is_empty() {
        true => vec![Item::Text("Only one method was measured.".to_owned())],
        false => vec![Item::Table(Table { columns, rows })],
    };
    Block::new("Break-evens", items)
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
        left("method"),
        left("of"),
        right("set-up, us"),
        right("per register, us"),
        right("half of the highest rate at, registers"),
        right("highest rate, MB/s"),
    ];
    let knees = summary.fits.iter().filter_map(|fit| {
        let knee = fit.knee?;
        let way = if knee.off > 0.0 { "higher" } else { "lower" };
        let off = percent(knee.off.abs() * 100.0);
        let (method, depth) = (&fit.method, knee.depth);
        Some(format!("{method}: knee at {depth:#x} registers, where the model is {off} {way} than measured"))
    });
    let table = Table { columns, rows: summary.fits.iter().flat_map(rows).collect() };
    Block::new(
        "Cost model: T(n) = set-up + n x time per register",
        vec![Item::Table(table), Item::List(knees.collect())],
    )
}
