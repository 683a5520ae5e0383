//! Page of record trials: rates of every run, event ledger and cost.

use keepup_measure::sum::Sums;
use keepup_results::{EVIDENCE_SECONDS_MIN, Figures as _, RecordRun, RecordSummary, Stored};
use serde_json::json;

use super::common::{self, PageContent, charts};
use super::timeline;
use crate::blocks;
use crate::chart::{Axis, BAD, Chart, GOOD, Mark, Series, Symbol, TEXT, figure, legend, plot, rate_scale};
use crate::format::{count, first_line, fixed, number, or_not_measured, plural, rate};
use crate::history::History;
use crate::page::{Block, Document, Item};
use crate::table::{Cell, Table, Tone, left, right};

/// Most runs drawn and listed.
const RUNS_MAX: usize = 400;

pub(super) fn document(stored: &Stored, summary: &RecordSummary, history: &History) -> Document {
    let mut content = PageContent {
        loads: summary.runs.iter().flat_map(|run| run.loads.iter().cloned()).collect(),
        cautions: cautions(summary),
        // The table over all runs has the figures.
        omits_figures: true,
        ..PageContent::default()
    };
    let lost: u64 = summary.runs.iter().map(|run| run.ledger.lost.events).saturating_sum();
    let is_whole = lost == 0 && summary.runs.iter().all(|run| run.broken_off.is_none());
    let is_evidence = summary.runs.iter().all(|run| run.seconds >= EVIDENCE_SECONDS_MIN);
    content.answer = (!summary.runs.is_empty()).then(|| match (is_whole, is_evidence) {
        (true, true) => ("NO LOSS".to_owned(), Tone::Good),
        (true, false) => ("TOO SHORT".to_owned(), Tone::Doubtful),
        (false, _) => ("LOSS".to_owned(), Tone::Bad),
    });
    content.sentences.push(match lost {
        0 => format!("No event was lost in {}.", plural(summary.runs.len() as u64, "run")),
        lost => format!("{} lost in {}.", plural(lost, "event"), plural(summary.runs.len() as u64, "run")),
    });
    content.sentences.extend(summary.runs.last().map(|run| {
        let durable = or_not_measured(run.durable_bytes_per_second, rate);
        format!("Last run: {} received, {durable} durable.", rate(run.achieved_bytes_per_second))
    }));
    content.blocks.push(runs(summary));
    content.blocks.push(over_runs(summary));
    let rates = rates(summary).map(|chart| Chart { is_in_table: true, ..chart });
    content.blocks.extend(charts("Rates of every run", rates));
    content.blocks.extend(charts("Over time", timeline::charts(history, None)));
    if let Some(last) = summary.runs.last() {
        let mut ledger = blocks::ledger(&last.ledger);
        ledger.title = "Event ledger, last run".to_owned();
        content.blocks.push(ledger);
    }
    common::document(stored, content)
}

fn cautions(summary: &RecordSummary) -> Vec<String> {
    let mut cautions: Vec<String> = Vec::new();
    for run in &summary.runs {
        for note in &run.notes {
            if !cautions.contains(note) {
                cautions.push(note.clone());
            }
        }
    }
    if summary.runs.iter().any(|run| run.to_null) {
        cautions
            .push("Runs without disks discard blocks; their written bytes are discarded bytes.".to_owned());
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
        Series::new("received", GOOD, Mark::Bars, drawn.iter().map(bar).collect()),
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
    let columns = vec![right("run"), right("asked"), right("received"), right("durable"), right("lost")];
    (!drawn.is_empty()).then(|| Chart {
        title: format!("Rate of each run, {}", unit.unit),
        note: "Hollow bars: runs that lost events or were aborted.".into(),
        legend: legend(&series),
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
        let mb = |rate: Option<f64>| Cell::from(fixed(rate.map(|rate| rate / 1e6), 1));
        let lost = run.ledger.lost.events;
        let faults = match run.faults {
            None => "not checked".into(),
            Some(0) => Cell::toned("intact", Tone::Good),
            Some(faults) => Cell::toned(plural(faults, "fault"), Tone::Bad),
        };
        vec![
            run.place().into(),
            run.repeat.to_string().into(),
            fixed(Some(run.seconds), 2).into(),
            mb(run.asked_bytes_per_second),
            mb(Some(run.achieved_bytes_per_second)),
            mb(run.durable_bytes_per_second),
            Cell::toned(number(lost), if lost > 0 { Tone::Bad } else { Tone::Plain }),
            fixed(run.stall_seconds_max, 3).into(),
            faults,
        ]
    };
    let columns = vec![
        left("volumes"),
        right("run"),
        right("time, s"),
        right("asked, MB/s"),
        right("received"),
        right("durable"),
        right("events lost"),
        right("longest stall, s"),
        left("read back"),
    ];
    let rows = summary.runs.iter().take(RUNS_MAX).map(row).collect();
    let problems = summary.runs.iter().flat_map(problems).take(RUNS_MAX).collect();
    Block::new("Every run", vec![Item::Table(Table { columns, rows }), Item::List(problems)])
}

/// Losses of a run, and why it is incomplete.
fn problems(run: &RecordRun) -> Vec<String> {
    let name = format!("run {} on {}", run.repeat, run.place());
    let causes = run.ledger.lost_by_cause.iter();
    let mut problems: Vec<String> = causes
        .map(|(cause, lost)| format!("{name} lost {}: {}", count(*lost), cause.replace('_', " ")))
        .collect();
    problems.extend(run.broken_off.iter().map(|why| format!("{name} was aborted: {}", first_line(why))));
    let on_volumes = run.ledger.on_volumes().events;
    let back = run.read_back.as_ref().filter(|back| back.events != on_volumes);
    problems.extend(back.map(|back| {
        let (read, all) = (number(back.events), number(on_volumes));
        format!("{name}: only {read} of {all} events were read back in order")
    }));
    problems
}

/// Rates, losses and cost over all runs.
fn over_runs(summary: &RecordSummary) -> Block {
    let note = "MB = 10^6 bytes of payload. CPU per GB: recorder with its kernel workers; cores busy: \
                whole machine.";
    let table = Item::Table(common::figure_rows(&summary.figures()));
    Block::new("All runs", vec![table, Item::Text(note.to_owned())])
}
