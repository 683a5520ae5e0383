//! The page of a test of the network: rates, the rate through time, where datagrams were lost, times there
//! and back.

use keepup_measure::stats::median;
use keepup_results::{
    LatencyFigures, NetFlow, NetLayer, NetLedger, NetLoss, NetRateFinding, NetRun, NetSummary, Stored,
};
use serde_json::json;

use super::common::{self, Found, charts};
use super::latency;
use crate::chart::{Axis, BAD, Chart, Mark, Series, Symbol, TEXT, colour, figure, plot, rate_scale, short};
use crate::format::{bytes, digits, number, percent, rate, shorten};
use crate::page::{Block, Cell, Document, Item, Table, Tone, left, right};

/// Runs whose rate through time can still be told apart in one chart.
const LINES_MAX: usize = 6;
const NAME_CHARACTERS_MAX: usize = 40;

pub(super) fn document(stored: &Stored, summary: &NetSummary) -> Document {
    let names = names(summary);
    let mut found = Found {
        cautions: cautions(summary),
        loads: summary.runs.iter().flat_map(|run| run.loads.iter().cloned()).collect(),
        ..Found::default()
    };
    if let Some(finding) = &summary.finding {
        found.sentences.extend(searched(finding));
        found.blocks.extend(charts("The search for the highest rate without loss", search(summary, finding)));
    } else {
        let best = names.iter().filter_map(|name| Some((goodput(summary, name)?, name)));
        let best = best.max_by(|a, b| a.0.total_cmp(&b.0));
        found.sentences.extend(best.map(|(value, name)| format!("{} arrived by {name}.", rate(value))));
        found.blocks.extend(charts("Payload that arrived", settings(summary, &names)));
    }
    found.blocks.extend(charts("Rate through time", through_time(summary)));
    found.blocks.extend(ledger(summary));
    let times: Vec<(String, LatencyFigures)> = summary
        .runs
        .iter()
        .filter_map(|run| Some((format!("{}, run {}", run.name, run.repeat), run.latency.as_ref()?.figures?)))
        .collect();
    found.blocks.extend(charts(
        "Time there and back",
        latency::chart("From when a message was due to its answer", &times),
    ));
    found.blocks.extend(ends(summary));
    common::document(stored, found)
}

/// Settings in the order in which they first came.
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
        cautions.push("The server served others meanwhile: its CPU is for all of them.".to_owned());
    }
    if summary.runs.iter().map(|run| run.repeat).max() == Some(1) && summary.finding.is_none() {
        cautions.push("Each was measured once: how far repeats differ is not known.".to_owned());
    }
    cautions
}

fn searched(finding: &NetRateFinding) -> Vec<String> {
    let told = |value: Option<f64>| value.map_or_else(|| "none".to_owned(), rate);
    let mut sentences = vec![format!(
        "Held for the whole soak without loss: {}. Highest without loss in trials: {}; lost from {} on.",
        told(finding.safe_bytes_per_second),
        told(finding.knee_lower_bytes_per_second),
        told(finding.knee_upper_bytes_per_second),
    )];
    if let Some((pause, buffer)) = finding.longest_pause_ns.zip(finding.buffer_needed_bytes) {
        sentences.push(format!(
            "A receiver paused for {} at most with datagrams waiting; {} of buffer bridge that.",
            crate::format::seconds(pause as f64 / 1e9),
            bytes(buffer)
        ));
    }
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
        held = held.with_level(unit.of(safe), &format!("held for the soak: {}", rate(safe)));
    }
    let series = [held, Series::new("loss", BAD, Mark::Dots(Symbol::Cross), dots(true))];
    let row = |(n, value, lost): &(usize, f64, f64)| -> Vec<Cell> {
        vec![n.to_string().into(), rate(*value).into(), percent(*lost).into()]
    };
    let columns = vec![right("trial"), right("arrived"), right("lost")];
    (!points.is_empty()).then(|| Chart {
        title: format!("Rate that arrived in each trial, {}", unit.unit),
        note: "The search goes up where nothing was lost and down where something was.".into(),
        table: Table { columns, rows: points.iter().map(row).collect() },
        ..plot(
            &Axis::linear("trial, in the order in which they were run")
                .range(0.0, summary.runs.len() as f64 + 1.0),
            &Axis::linear(format!("rate, {}", unit.unit)).with_zero(),
            &series,
            220,
        )
    })
}

/// Goodput of every setting.
fn settings(summary: &NetSummary, names: &[&str]) -> Option<Chart> {
    let values: Vec<(&str, f64)> =
        names.iter().filter_map(|name| Some((*name, goodput(summary, name)?))).collect();
    let unit = rate_scale(values.iter().map(|value| value.1).fold(0.0, f64::max));
    let bar = |(_, value): &(&str, f64)| {
        json!({ "value": figure(unit.of(*value)), "label": { "show": true, "position": "right", "color": TEXT,
            "formatter": short(unit.of(*value)), "fontSize": 11 } })
    };
    let series = [Series::new("", colour(0), Mark::Bars, values.iter().map(bar).collect())];
    let labels: Vec<String> = values.iter().map(|value| shorten(value.0, NAME_CHARACTERS_MAX)).collect();
    let rows = values.iter().map(|(name, value)| vec![(*name).into(), rate(*value).into()]).collect();
    (!values.is_empty()).then(|| Chart {
        title: format!("Payload that arrived, all flows together, {}", unit.unit),
        note: "Medians over all repeats.".into(),
        table: Table { columns: vec![left("setting"), right("rate")], rows },
        ..plot(
            &Axis::linear(format!("rate, {}", unit.unit)).with_zero(),
            &Axis::category("", labels.clone()).downwards(),
            &series,
            28 * labels.len() as u32,
        )
        .with_room_at_right(48)
    })
}

/// What arrived in each tenth of a second, in the last runs.
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
            &Axis::linear("time in the window, s").with_zero(),
            &Axis::linear(format!("rate, {}", unit.unit)).with_zero(),
            &series,
            220,
        )
    })
}

/// Tenths of all flows together.
fn tenths(flows: &[NetFlow]) -> Vec<u64> {
    let mut sums: Vec<u64> = Vec::new();
    for moved in flows.iter().filter_map(|flow| flow.received.as_ref()) {
        sums.resize(sums.len().max(moved.tenths.len()), 0);
        sums.iter_mut().zip(&moved.tenths).for_each(|(sum, tenth)| *sum = sum.saturating_add(*tenth));
    }
    sums
}

fn layer(layer: NetLayer) -> &'static str {
    match layer {
        NetLayer::SenderInterface => "the sender's interface",
        NetLayer::Interface => "the receiver's interface",
        NetLayer::Softirq => "a core's queue of received packets",
        NetLayer::Ip => "putting fragments together",
        NetLayer::SocketBuffer => "the socket's receive buffer",
        NetLayer::Program => "the receiver itself",
    }
}

/// Where datagrams went, of the runs that have a ledger.
fn ledger(summary: &NetSummary) -> Option<Block> {
    let of: Vec<(&NetRun, &NetLedger)> =
        summary.runs.iter().filter_map(|run| Some((run, run.ledger.as_ref()?))).collect();
    let mut sums: Vec<(&'static str, u64)> = Vec::new();
    let mut add = |name: &'static str, count: u64| match sums.iter_mut().find(|sum| sum.0 == name) {
        Some(sum) => sum.1 += count,
        None => sums.push((name, count)),
    };
    for (_, ledger) in &of {
        ledger.losses.iter().for_each(|loss: &NetLoss| add(layer(loss.layer), loss.datagrams));
        add("the network between, counted by nobody", ledger.unexplained);
    }
    let lost: u64 = sums.iter().map(|sum| sum.1).sum();
    let row = |(run, ledger): &(&NetRun, &NetLedger)| -> Vec<Cell> {
        let tone = if ledger.lost > 0 { Tone::Bad } else { Tone::Plain };
        vec![
            shorten(&run.name, NAME_CHARACTERS_MAX).into(),
            number(ledger.due).into(),
            number(ledger.sent).into(),
            number(ledger.received).into(),
            Cell::toned(number(ledger.lost), tone),
            number(ledger.reordered).into(),
            number(ledger.duplicates).into(),
        ]
    };
    let columns = vec![
        left("run"),
        right("due"),
        right("sent"),
        right("received"),
        right("lost"),
        right("out of order"),
        right("twice"),
    ];
    let mut items = vec![Item::Table(Table { columns, rows: of.iter().map(row).collect() })];
    if lost > 0 {
        let bar = |(_, count): &(&str, u64)| {
            json!({ "value": count, "label": { "show": true, "position": "right", "formatter": number(*count),
                "color": TEXT, "fontSize": 11 } })
        };
        let series = [Series::new("", BAD, Mark::Bars, sums.iter().map(bar).collect())];
        let names: Vec<String> = sums.iter().map(|sum| sum.0.to_owned()).collect();
        let rows = sums.iter().map(|(name, count)| vec![(*name).into(), number(*count).into()]).collect();
        items.push(common::item(Chart {
            title: "Datagrams lost at each layer, all runs together".into(),
            note: "In the order in which a datagram passes them.".into(),
            table: Table { columns: vec![left("layer"), right("datagrams")], rows },
            ..plot(
                &Axis::linear("datagrams").with_zero(),
                &Axis::category("", names.clone()).downwards(),
                &series,
                27 * names.len() as u32,
            )
            .with_room_at_right(60)
        }));
    }
    (!of.is_empty()).then(|| Block::new("Where datagrams went", items))
}

/// What both ends paid, of the last run.
fn ends(summary: &NetSummary) -> Option<Block> {
    let run = summary.runs.last()?;
    let gb = run.received_bytes() as f64 / 1e9;
    let each = |seconds: f64| if gb > 0.0 { format!("{} s/GB", digits(seconds / gb)) } else { String::new() };
    let row = |end: &keepup_results::NetEnd| -> Vec<Cell> {
        vec![
            shorten(&end.name, NAME_CHARACTERS_MAX).into(),
            each(end.cpu_seconds).into(),
            end.machine_cpu_seconds.map(each).unwrap_or_default().into(),
            end.softirq_seconds.map(each).unwrap_or_default().into(),
            end.steal_seconds.map(crate::format::seconds).unwrap_or_default().into(),
        ]
    };
    let columns = vec![
        left("end"),
        right("keepup"),
        right("whole machine"),
        right("deferred interrupts"),
        right("taken by a hypervisor"),
    ];
    let rows: Vec<Vec<Cell>> = run.ends.iter().map(row).collect();
    (!rows.is_empty())
        .then(|| Block::new("CPU of both ends, last run", vec![Item::Table(Table { columns, rows })]))
}
