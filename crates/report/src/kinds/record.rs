//! The page of trials of a recording: rates of every run, where events went, what it cost.

use keepup_results::{RecordRun, RecordSummary, Stored};
use serde_json::json;

use super::common::{self, Found, charts};
use super::timeline;
use crate::blocks;
use crate::chart::{Axis, BAD, Chart, GOOD, Mark, Series, Symbol, TEXT, figure, keys, plot, rate_scale};
use crate::format::{NOT_MEASURED, digits, number, or_not_measured, plural, rate, seconds};
use crate::history::History;
use crate::page::{Block, Cell, Document, Item, Table, Tone, left, right};

/// Runs that are drawn and listed.
const RUNS_MAX: usize = 400;

pub(super) fn document(stored: &Stored, summary: &RecordSummary, history: &History) -> Document {
    let mut found = Found {
        loads: summary.runs.iter().flat_map(|run| run.loads.iter().cloned()).collect(),
        cautions: cautions(summary),
        ..Found::default()
    };
    let lost: u64 = summary.runs.iter().map(|run| run.ledger.lost.events).sum();
    let is_whole = lost == 0 && summary.runs.iter().all(|run| run.broken_off.is_none());
    found.answer = (!summary.runs.is_empty()).then(|| match is_whole {
        true => ("NO LOSS".to_owned(), Tone::Good),
        false => ("LOSS".to_owned(), Tone::Bad),
    });
    found.sentences.push(match lost {
        0 => format!("No event was lost in {}.", plural(summary.runs.len() as u64, "run")),
        lost => format!("{} lost in {}.", plural(lost, "event"), plural(summary.runs.len() as u64, "run")),
    });
    found.sentences.extend(summary.runs.last().map(|run| {
        let durable = or_not_measured(run.durable_bytes_per_second, rate);
        format!(
            "In the last run {} got in and {durable} became durable.",
            rate(run.achieved_bytes_per_second)
        )
    }));
    found.blocks.extend(charts("Rates of every run", rates(summary)));
    found.blocks.extend(charts("Through time", timeline::charts(history, None)));
    if let Some(last) = summary.runs.last() {
        let mut ledger = blocks::ledger(&last.ledger);
        ledger.title = "Where events went, last run".to_owned();
        found.blocks.push(ledger);
    }
    found.blocks.push(runs(summary));
    common::document(stored, found)
}

fn cautions(summary: &RecordSummary) -> Vec<String> {
    let mut cautions: Vec<String> = Vec::new();
    for run in &summary.runs {
        let broken = run.broken_off.iter().map(|why| format!("Run {} broke off: {why}.", run.repeat));
        for told in broken.chain(run.notes.iter().cloned()) {
            if !cautions.contains(&told) {
                cautions.push(told);
            }
        }
    }
    if summary.runs.iter().any(|run| run.to_null) {
        cautions
            .push("Without disks blocks were dropped: what is called written was dropped then.".to_owned());
    }
    cautions.truncate(8);
    cautions
}

fn rates(summary: &RecordSummary) -> Option<Chart> {
    let drawn: Vec<&RecordRun> = summary.runs.iter().take(RUNS_MAX).collect();
    let most =
        drawn.iter().map(|run| run.achieved_bytes_per_second.max(run.asked_bytes_per_second.unwrap_or(0.0)));
    let unit = rate_scale(most.fold(0.0, f64::max));
    let bar = |run: &&RecordRun| {
        let is_whole = run.ledger.lost.events == 0 && run.broken_off.is_none();
        let style = match is_whole {
            true => json!({ "color": GOOD }),
            false => json!({ "color": "transparent", "borderColor": BAD, "borderWidth": 2 }),
        };
        json!({ "value": figure(unit.of(run.achieved_bytes_per_second)), "itemStyle": style,
            "label": { "show": run.ledger.lost.events > 0, "position": "top", "color": BAD, "fontSize": 11,
                "formatter": format!("{} lost", number(run.ledger.lost.events)) } })
    };
    let dots = |of: &dyn Fn(&RecordRun) -> Option<f64>| {
        let each =
            (0..).zip(&drawn).filter_map(|(n, run): (usize, _)| Some(json!([n, figure(unit.of(of(run)?))])));
        each.collect::<Vec<_>>()
    };
    let series = [
        Series::new("got in", GOOD, Mark::Bars, drawn.iter().map(bar).collect()),
        Series::new("durable", TEXT, Mark::Dots(Symbol::Circle), dots(&|run| run.durable_bytes_per_second)),
        Series::new("asked", TEXT, Mark::Dots(Symbol::Diamond), dots(&|run| run.asked_bytes_per_second)),
    ];
    let names = (1..)
        .zip(&drawn)
        .map(|(n, run): (usize, _)| format!("{n}{}", if run.to_null { " no disk" } else { "" }));
    let row = |(n, run): (usize, &&RecordRun)| -> Vec<Cell> {
        vec![
            n.to_string().into(),
            or_not_measured(run.asked_bytes_per_second, rate).into(),
            rate(run.achieved_bytes_per_second).into(),
            or_not_measured(run.durable_bytes_per_second, rate).into(),
            number(run.ledger.lost.events).into(),
        ]
    };
    let columns = vec![right("run"), right("asked"), right("got in"), right("durable"), right("lost")];
    (!drawn.is_empty()).then(|| Chart {
        title: format!("Rate of each run, {}", unit.unit),
        note: "Hollow bars lost something or broke off.".into(),
        keys: keys(&series),
        table: Table { columns, rows: (1..).zip(&drawn).map(row).collect() },
        ..plot(
            &Axis::category("run, in order", names.collect()),
            &Axis::linear(format!("rate, {}", unit.unit)).with_zero(),
            &series,
            220,
        )
    })
}

fn runs(summary: &RecordSummary) -> Block {
    let row = |run: &RecordRun| -> Vec<Cell> {
        let lost = run.ledger.lost.events;
        let faults = match run.faults {
            None => NOT_MEASURED.into(),
            Some(0) => Cell::toned("intact", Tone::Good),
            Some(faults) => Cell::toned(plural(faults, "fault"), Tone::Bad),
        };
        let back = run.read_back.as_ref().filter(|back| back.seconds > 0.0);
        vec![
            if run.to_null { "no disk".into() } else { run.volumes.join(" + ").into() },
            run.repeat.to_string().into(),
            plural(u64::from(run.streams), "stream").into(),
            seconds(run.seconds).into(),
            Cell::toned(number(lost), if lost > 0 { Tone::Bad } else { Tone::Plain }),
            or_not_measured(run.stall_seconds_max, seconds).into(),
            or_not_measured(run.cpu.seconds_per_gb, |cpu| format!("{} s/GB", digits(cpu))).into(),
            back.map_or_else(|| NOT_MEASURED.to_owned(), |back| rate(back.bytes as f64 / back.seconds))
                .into(),
            faults,
        ]
    };
    let columns = vec![
        left("volumes"),
        right("repeat"),
        right("streams"),
        right("time"),
        right("lost"),
        right("longest stall"),
        right("CPU"),
        right("read back at"),
        left("read back"),
    ];
    let rows = summary.runs.iter().take(RUNS_MAX).map(row).collect();
    Block::new("Every run", vec![Item::Table(Table { columns, rows })])
}
