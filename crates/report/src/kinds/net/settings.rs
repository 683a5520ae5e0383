//! Settings of a network test: received rate and CPU cost of both ends.

use keepup_measure::stats::median;
use keepup_results::{NetEnd, NetRun, NetSummary};
use serde_json::json;

use super::{NAME_CHARACTERS_MAX, goodput};
use crate::chart::{Axis, Chart, Mark, Series, TEXT, colour, figure, plot, rate_scale, short};
use crate::format::{fixed, rate, shorten};
use crate::kinds::common::item;
use crate::page::{Block, Item};
use crate::table::{Cell, Table, left, right};

/// Note below the table.
const NOTE: &str = "Medians. MB = 10^6 bytes of received payload. CPU in seconds per GB: keepup at each \
                    end, all programs on the client's machine, and the softirq share of that.";

/// Column: title, value of a run, decimals.
type Column = (&'static str, fn(&NetRun) -> Option<f64>, usize);

pub(super) fn block(summary: &NetSummary, names: &[&str]) -> Block {
    let mut items = vec![Item::Table(table(summary, names)), Item::Text(NOTE.to_owned())];
    items.extend(chart(summary, names).map(|chart| item(Chart { is_in_table: true, ..chart })));
    Block::new("Received data and CPU cost", items)
}

fn table(summary: &NetSummary, names: &[&str]) -> Table {
    let both =
        |run: &NetRun| run.flows.iter().any(|f| f.from_client) && run.flows.iter().any(|f| !f.from_client);
    let mut columns: Vec<Column> = vec![("MB/s", |run| megabytes(run, None), 1)];
    if summary.runs.iter().any(both) {
        columns.push(("to server, MB/s", |run| megabytes(run, Some(true)), 1));
        columns.push(("from server, MB/s", |run| megabytes(run, Some(false)), 1));
    }
    let costs: [Column; 5] = [
        ("retransmitted segments", retransmitted, 0),
        ("client, s/GB", |run| per_gb(run, client(run, |end| Some(end.cpu_seconds))), 3),
        ("server, s/GB", |run| per_gb(run, servers(run)), 3),
        ("machine, s/GB", |run| per_gb(run, client(run, |end| end.machine_cpu_seconds)), 3),
        ("softirq, s/GB", |run| per_gb(run, client(run, |end| end.softirq_seconds)), 3),
    ];
    columns.extend(costs);
    let mut heads = vec![left("setting"), right("runs")];
    heads.extend(columns.iter().map(|(title, ..)| right(*title)));
    let row = |name: &&str| -> Vec<Cell> {
        let runs: Vec<&NetRun> = summary.runs.iter().filter(|run| run.name == *name).collect();
        let middle = |of: fn(&NetRun) -> Option<f64>| {
            median(&runs.iter().filter_map(|run| of(run)).collect::<Vec<_>>())
        };
        let mut row: Vec<Cell> = vec![(*name).into(), runs.len().to_string().into()];
        row.extend(columns.iter().map(|(_, of, digits)| Cell::from(fixed(middle(*of), *digits))));
        row
    };
    Table { columns: heads, rows: names.iter().map(row).collect() }
}

fn megabytes(run: &NetRun, from_client: Option<bool>) -> Option<f64> {
    run.goodput(from_client).map(|rate| rate / 1e6)
}

/// Retransmitted segments of all flows.
fn retransmitted(run: &NetRun) -> Option<f64> {
    let each = run.flows.iter().filter_map(|flow| flow.sender.as_ref());
    each.map(|sender| sender.retransmits as f64).reduce(|a, b| a + b)
}

fn client(run: &NetRun, of: fn(&NetEnd) -> Option<f64>) -> Option<f64> {
    run.ends.first().and_then(of)
}

fn servers(run: &NetRun) -> Option<f64> {
    run.ends.iter().skip(1).map(|end| end.cpu_seconds).reduce(|a, b| a + b)
}

fn per_gb(run: &NetRun, seconds: Option<f64>) -> Option<f64> {
    let gb = run.received_bytes() as f64 / 1e9;
    seconds.filter(|_| gb > 0.0).map(|seconds| seconds / gb)
}

/// Goodput of every setting.
fn chart(summary: &NetSummary, names: &[&str]) -> Option<Chart> {
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
        title: format!("Received payload, all flows, {}", unit.unit),
        note: "Medians over all repeats.".into(),
        table: Table { columns: vec![left("setting"), right("rate")], rows },
        ..plot(
            &Axis::linear(format!("rate, {}", unit.unit)).with_zero(),
            &Axis::category("", labels.clone()).reversed(),
            &series,
            28 * labels.len() as u32,
        )
        .with_right_margin(48)
    })
}
