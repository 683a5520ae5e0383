//! Page of a network test: rates, rate over time, datagram losses and round-trip times.

mod datagrams;
mod ends;
mod settings;

use keepup_measure::stats::median;
use keepup_results::{LatencyFigures, NetFlow, NetLatency, NetRateFinding, NetRun, NetSummary, Stored};
use serde_json::json;

use super::common::{self, PageContent, charts};
use super::latency;
use crate::chart::{Axis, BAD, Chart, Mark, Series, Symbol, colour, figure, plot, rate_scale, short};
use crate::format::{bytes, digits, fixed, number, rate, shorten};
use crate::page::{Block, Document, Item};
use crate::table::{Cell, Table, left, right};

/// Share of the best rate that counts as equally good.
const GOOD_ENOUGH: f64 = 0.98;
/// Most runs drawn over time.
const LINES_MAX: usize = 6;
const NAME_CHARACTERS_MAX: usize = 40;

pub(super) fn document(stored: &Stored, summary: &NetSummary) -> Document {
    let names = names(summary);
    let mut content = PageContent {
        cautions: cautions(summary),
        loads: summary.runs.iter().flat_map(|run| run.loads.iter().cloned()).collect(),
        ..PageContent::default()
    };
    if let Some(finding) = &summary.finding {
        content.sentences.extend(searched(finding));
        let mut block = Block::new("The search for the highest rate without loss", trials(summary));
        block.items.extend(search(summary, finding).map(common::item));
        content.blocks.push(block);
    } else {
        content.sentences.extend(best(summary, &names));
        if summary.runs.iter().any(|run| run.goodput(None).is_some()) {
            content.blocks.push(settings::block(summary, &names));
        }
    }
    // A search has its own table of trials.
    let ledger = datagrams::block(summary);
    content.blocks.extend(ledger.map(|block| Block { is_detail: summary.finding.is_some(), ..block }));
    content.blocks.extend(latencies(summary));
    content.blocks.extend(charts("Rate over time", through_time(summary)).map(Block::detail));
    content.blocks.extend(ends::blocks(summary, &names));
    common::document(stored, content)
}

/// Settings in order of their first run.
fn names(summary: &NetSummary) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for run in &summary.runs {
        if !names.contains(&run.name.as_str()) {
            names.push(&run.name);
        }
    }
    names
}

fn goodput(summary: &NetSummary, name: &str) -> Option<f64> {
    let runs = summary.runs.iter().filter(|run| run.name == name);
    median(&runs.filter_map(|run| run.goodput(None)).collect::<Vec<_>>())
}

fn cautions(summary: &NetSummary) -> Vec<String> {
    let mut cautions = Vec::new();
    let shared = summary.runs.iter().any(|run| {
        run.ends.first().is_some_and(|client| run.ends.iter().skip(1).any(|end| end.host == client.host))
    });
    if shared {
        cautions.push(
            "Both ends were on the same machine: no network card, cable or switch was tested.".to_owned(),
        );
    }
    if summary.runs.iter().any(|run| run.ends.iter().any(|end| end.sessions > 1)) {
        cautions
            .push("The server served other clients at the same time: its CPU time includes them.".to_owned());
    }
    if summary.runs.iter().map(|run| run.repeat).max() == Some(1) && summary.finding.is_none() {
        cautions.push("Each setting was measured once: the spread of repeats is unknown.".to_owned());
    }
    let is_discarded = |spec: &serde_json::Value| spec["discard"] == true;
    if summary.plan.as_array().is_some_and(|specs| specs.iter().any(is_discarded)) {
        cautions
            .push("The receiver discarded bytes in the kernel: no data was copied to user space.".to_owned());
    }
    cautions
}

/// Best setting, and the smallest one that is nearly as good.
fn best(summary: &NetSummary, names: &[&str]) -> Vec<String> {
    let empty = Vec::new();
    let specs = summary.plan.as_array().unwrap_or(&empty);
    let rated = names.iter().enumerate().filter_map(|(n, name)| Some((goodput(summary, name)?, n, *name)));
    let mut rated: Vec<(f64, usize, &str)> = rated.collect();
    let Some(top) = rated.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0)) else { return Vec::new() };
    let text = |of: (f64, usize, &str)| format!("{} ({})", of.2, rate(of.0));
    if rated.len() < 2 {
        return vec![format!("{} received with {}.", rate(top.0), top.2)];
    }
    let mut sentences = vec![format!("Best setting: {}.", text(top))];
    rated.retain(|(rate, ..)| *rate >= GOOD_ENOUGH * top.0);
    let cost = |number: usize| {
        let of = |key: &str| specs.get(number).and_then(|spec| spec[key].as_u64());
        // A buffer sized by the kernel grows on demand, so it counts as the largest.
        let buffer = |key| of(key).unwrap_or(u64::MAX);
        (of("flows"), buffer("receive_buffer_bytes"), buffer("send_buffer_bytes"), of("message_bytes"))
    };
    // Runs follow the order of the settings.
    if specs.len() == names.len() {
        let smallest = rated.iter().min_by_key(|(_, number, _)| cost(*number)).copied().unwrap_or(top);
        let share = GOOD_ENOUGH * 100.0;
        sentences.push(format!("Smallest setting that reaches {share:.0} % of it: {}.", text(smallest)));
    }
    sentences
}

fn searched(finding: &NetRateFinding) -> Vec<String> {
    let text = |value: Option<f64>| value.map_or_else(|| "none".to_owned(), rate);
    let mut sentences = vec![format!(
        "Sustained for the whole soak without loss: {}. Highest rate without loss in trials: {}; lowest with \
         loss: {}.",
        text(finding.safe_bytes_per_second),
        text(finding.knee_lower_bytes_per_second),
        text(finding.knee_upper_bytes_per_second),
    )];
    sentences.extend(finding.loss_events_per_second_max.map(|most| {
        format!("No loss in {:.0} s: less than {most:.3} losses per second at 95 % confidence.", 3.0 / most)
    }));
    if let Some((pause, buffer)) = finding.longest_pause_ns.zip(finding.buffer_needed_bytes) {
        sentences.push(format!(
            "Longest receiver pause with datagrams waiting: {}, bridged by {} of buffer.",
            crate::format::seconds(pause as f64 / 1e9),
            bytes(buffer)
        ));
    }
    sentences.push(format!("{}.", finding.end));
    sentences
}

fn lost_share(run: &NetRun) -> Option<f64> {
    let ledger = run.ledger.as_ref()?;
    Some((ledger.lost + ledger.refused) as f64 * 100.0 / ledger.due.max(1) as f64)
}

/// Rate and loss of every trial of the search.
fn search(summary: &NetSummary, finding: &NetRateFinding) -> Option<Chart> {
    let points: Vec<(usize, f64, f64)> = (1..)
        .zip(&summary.runs)
        .filter_map(|(number, run)| Some((number, run.goodput(None)?, lost_share(run)?)))
        .collect();
    let unit = rate_scale(points.iter().map(|point| point.1).fold(0.0, f64::max));
    let dots = |is_lost: bool| {
        let of = points.iter().filter(move |point| (point.2 > 0.0) == is_lost);
        of.map(|(n, value, lost)| {
            json!({ "value": [n, figure(unit.of(*value))],
                "label": { "show": is_lost, "position": "top",
                    "formatter": format!("{} % lost", digits(*lost)),
                    "color": BAD, "fontSize": 11 }, "labelLayout": { "hideOverlap": true } })
        })
        .collect::<Vec<_>>()
    };
    let mut held = Series::new("no loss", colour(0), Mark::Dots(Symbol::Circle), dots(false));
    if let Some(safe) = finding.safe_bytes_per_second {
        held = held.with_horizontal_line(unit.of(safe), &format!("held for the soak: {}", rate(safe)));
    }
    let series = [held, Series::new("loss", BAD, Mark::Dots(Symbol::Cross), dots(true))];
    let row = |(n, value, lost): &(usize, f64, f64)| -> Vec<Cell> {
        vec![n.to_string().into(), short(unit.of(*value)).into(), digits(*lost).into()]
    };
    let columns = vec![right("trial"), right(format!("received, {}", unit.unit)), right("lost, %")];
    (!points.is_empty()).then(|| Chart {
        title: format!("Received rate of each trial, {}", unit.unit),
        note: "The search raises the rate without loss and lowers it after a loss.".into(),
        is_in_table: true,
        table: Table { columns, rows: points.iter().map(row).collect() },
        ..plot(
            &Axis::linear("trial, in order").range(0.0, summary.runs.len() as f64 + 1.0),
            &Axis::linear(format!("rate, {}", unit.unit)).with_zero(),
            &series,
            220,
        )
    })
}

/// Received rate and loss of every trial of the search.
fn trials(summary: &NetSummary) -> Vec<Item> {
    let row = |(number, run): (usize, &NetRun)| -> Vec<Cell> {
        vec![
            number.to_string().into(),
            run.name.as_str().into(),
            fixed(run.goodput(None).map(|rate| rate / 1e6), 1).into(),
            fixed(lost_share(run), 4).into(),
        ]
    };
    let columns = vec![right("trial"), left("settings"), right("received, MB/s"), right("lost, %")];
    let rows = (1..).zip(&summary.runs).map(row).collect();
    vec![Item::Table(Table { columns, rows }), Item::Text("MB = 10^6 bytes of payload.".to_owned())]
}

/// Round-trip times of every run that measured them.
fn latencies(summary: &NetSummary) -> Option<Block> {
    let of: Vec<(String, &NetLatency)> = summary
        .runs
        .iter()
        .filter_map(|run| Some((format!("{}, run {}", run.name, run.repeat), run.latency.as_ref()?)))
        .collect();
    let row = |(name, latency): &(String, &NetLatency)| -> Vec<Cell> {
        let us = |of: fn(&LatencyFigures) -> u64| {
            Cell::from(fixed(latency.figures.as_ref().map(|times| of(times) as f64 / 1e3), 1))
        };
        let unanswered = latency.sent.saturating_sub(latency.answered);
        vec![
            name.as_str().into(),
            latency.bytes.to_string().into(),
            number(latency.sent).into(),
            number(unanswered).into(),
            us(|times| times.p50_ns),
            us(|times| times.p99_ns),
            us(|times| times.p99_9_ns),
            us(|times| times.max_ns),
        ]
    };
    let columns = vec![
        left("run"),
        right("message, B"),
        right("sent"),
        right("unanswered"),
        right("p50, us"),
        right("p99, us"),
        right("p99.9, us"),
        right("longest, us"),
    ];
    let times: Vec<(String, LatencyFigures)> =
        of.iter().filter_map(|(name, latency)| Some((name.clone(), latency.figures?))).collect();
    let mut items = vec![Item::Table(Table { columns, rows: of.iter().map(row).collect() })];
    let chart = latency::chart("Round-trip time, from the due time of a message", &times);
    items.extend(chart.map(|chart| common::item(Chart { is_in_table: true, ..chart })));
    (!of.is_empty()).then(|| Block::new("Round-trip time", items))
}

/// Received rate in each tenth of a second, last runs.
fn through_time(summary: &NetSummary) -> Option<Chart> {
    let runs = summary.runs.iter().skip(summary.runs.len().saturating_sub(LINES_MAX));
    let lines: Vec<(String, Vec<u64>)> = runs
        .map(|run| (format!("{}, run {}", run.name, run.repeat), tenths(&run.flows)))
        .filter(|(_, tenths)| tenths.len() > 1)
        .collect();
    let most = lines.iter().flat_map(|line| &line.1).max().copied().unwrap_or(0) as f64 * 10.0;
    let unit = rate_scale(most);
    let series: Vec<Series> = (0..)
        .zip(&lines)
        .map(|(number, (name, tenths))| {
            let points = (1..)
                .zip(tenths)
                .map(|(n, b): (u32, _)| (f64::from(n) / 10.0, Some(unit.of(*b as f64 * 10.0))));
            Series::line(shorten(name, NAME_CHARACTERS_MAX), number, points)
        })
        .collect();
    let row = |(name, tenths): &(String, Vec<u64>)| -> Vec<Cell> {
        let rates: Vec<f64> = tenths.iter().map(|bytes| unit.of(*bytes as f64 * 10.0)).collect();
        let extreme =
            |pick: fn(f64, f64) -> f64| rates.iter().copied().reduce(pick).map_or_else(String::new, short);
        let middle = median(&rates).map_or_else(String::new, short);
        vec![name.as_str().into(), extreme(f64::min).into(), middle.into(), extreme(f64::max).into()]
    };
    let columns = vec![left("run"), right("lowest tenth"), right("middle"), right("highest tenth")];
    (!lines.is_empty()).then(|| Chart {
        title: format!("What arrived in each tenth of a second, {}", unit.unit),
        note: String::new(),
        table: Table { columns, rows: lines.iter().map(row).collect() },
        ..plot(
            &Axis::linear("time in the measured interval, s").with_zero(),
            &Axis::linear(format!("rate, {}", unit.unit)).with_zero(),
            &series,
            220,
        )
    })
}

/// Bytes of all flows in each tenth of a second.
fn tenths(flows: &[NetFlow]) -> Vec<u64> {
    let mut sums: Vec<u64> = Vec::new();
    for moved in flows.iter().filter_map(|flow| flow.received.as_ref()) {
        sums.resize(sums.len().max(moved.tenths.len()), 0);
        sums.iter_mut().zip(&moved.tenths).for_each(|(sum, tenth)| *sum = sum.saturating_add(*tenth));
    }
    sums
}

#[cfg(test)]
#[path = "net_tests.rs"]
mod tests;
