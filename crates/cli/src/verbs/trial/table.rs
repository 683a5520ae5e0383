//! What a trial will do and what it found, for people.
use keepup_measure::stats::median;
use keepup_results::{Figures as _, LoadResult, Quantity, RecordRun, RecordSummary};
use keepup_stream::source::Rate;
use keepup_workload::Footprint;

use super::Plan;
use crate::loads;

/// What will be done.
pub(super) fn plan(plan: &Plan, repeats: u32, footprint: &Footprint) -> String {
    let source = &plan.spec.source;
    let place = match &plan.volumes[..] {
        [] => "to nowhere".to_owned(),
        volumes => {
            let names: Vec<String> = volumes.iter().map(|volume| volume.display().to_string()).collect();
            format!("on {}", names.join(" + "))
        }
    };
    let rate = match (source.rate, plan.asked_bytes_per_second) {
        (Rate::EventsPerSecond(_), Some(rate)) => format!("{:.1} MB/s", rate / 1e6),
        _ => "as fast as it goes".to_owned(),
    };
    let time = source.duration.map(|time| format!("{} s", time.as_secs_f64()));
    let events = source.events.map(|events| format!("{events} events"));
    let until: Vec<String> = time.into_iter().chain(events).collect();
    let written: u64 = footprint.bytes_written.values().sum();
    let cost = match plan.volumes.is_empty() {
        true => "nothing is written".to_owned(),
        false => {
            let all = written as f64 / 1e9 * f64::from(repeats);
            format!("at most {all:.1} GB written in all, removed afterwards")
        }
    };
    format!(
        "trial of {} {place}: {repeats} {}, {rate}, {}; {} of {} bytes over {}; {cost}",
        plan.profile.name,
        if repeats == 1 { "run" } else { "runs" },
        until.join(" or "),
        several(source.streams, "stream"),
        source.size.max_bytes(),
        several(source.connections, "connection")
    )
}

fn several(number: u32, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A run that has ended.
pub(super) fn run(run: &RecordRun, repeats: u32) -> String {
    let (mb, ledger) = (|bytes: f64| bytes / 1e6, &run.ledger);
    let mut head = format!(
        "{}, run {} of {repeats}: {} events, {:.1} MB in {:.2} s; received {:.1} MB/s",
        run.place(),
        run.repeat,
        ledger.durable.events,
        mb(ledger.durable.bytes as f64),
        run.seconds,
        mb(run.achieved_bytes_per_second)
    );
    if let Some(rate) = run.durable_bytes_per_second {
        head.push_str(&format!(", durable {:.1} MB/s", mb(rate)));
    }
    let mut lines = vec![head];
    lines.extend(ledger.lost_by_cause.iter().map(|(cause, lost)| {
        format!("  LOST {} events, {:.1} MB: {cause}", lost.events, mb(lost.bytes as f64))
    }));
    lines.extend(run.broken_off.iter().map(|why| format!("  {}", first_line(why))));
    if let Some(faults) = run.faults.filter(|faults| *faults > 0) {
        lines.push(format!("  {faults} FAULTS on reading back"));
    }
    if let Some(read) = run.read_back.as_ref().filter(|read| read.events != ledger.durable.events) {
        lines.push(format!("  only {} events were read back in order", read.events));
    }
    lines.join("\n")
}

/// All runs: one row for each figure; nothing without runs.
pub(super) fn page(summary: &RecordSummary) -> Option<String> {
    if summary.runs.is_empty() {
        return None;
    }
    let mut lines = vec![format!(
        "{:<24} {:<22} {:<18} {:>4} {:>10} {:>10} {:>10}",
        "place", "what", "figure", "runs", "median", "lowest", "highest"
    )];
    for figure in summary.figures() {
        let (scale, unit, digits) = match figure.quantity {
            Quantity::BytesPerSecond => (1e6, "MB/s", 1),
            Quantity::Lost => (1.0, "events", 0),
            other => (1.0, other.unit(), 3),
        };
        let values: Vec<f64> = figure.values.iter().map(|value| value / scale).collect();
        let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.digits$}"));
        lines.push(format!(
            "{:<24} {:<22} {:<18} {:>4} {:>10} {:>10} {:>10}",
            figure.place,
            figure.what,
            format!("{}, {unit}", figure.quantity.name()),
            values.len(),
            cell(median(&values)),
            cell(values.iter().copied().reduce(f64::min)),
            cell(values.iter().copied().reduce(f64::max))
        ));
    }
    let mut notes: Vec<&String> = summary.runs.iter().flat_map(|run| &run.notes).collect();
    notes.dedup();
    lines.extend(notes.into_iter().map(|note| format!("note: {}", first_line(note))));
    let beside: Vec<&[LoadResult]> = summary.runs.iter().map(|run| &run.loads[..]).collect();
    lines.extend(loads::over_runs(&beside));
    lines.push(
        "MB = 10^6 bytes of payload; CPU per GB of the recorder with its kernel workers, cores busy of all"
            .into(),
    );
    Some(lines.join("\n"))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
