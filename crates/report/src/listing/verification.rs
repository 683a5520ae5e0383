//! Report of a verification, by `verify`.

use std::path::Path;

use keepup_recording::verify::{Ending, Fault, StreamReport, VerifyReport};
use keepup_results::printable::visible;
use keepup_stream::ledger::Gap;

use super::{ROWS_SHOWN, megabytes, missing, more, not_recorded, recover, render};
use crate::Style;
use crate::format::{bytes, percent, plural, rate, time};
use crate::page::{Block, Fact, Item};
use crate::table::{Cell, Table, left, right};

/// A verification of a recording.
#[derive(Clone, Copy)]
pub struct Verified<'a> {
    /// Its report.
    pub report: &'a VerifyReport,
    /// Missing events in its journals.
    pub gaps: &'a [Gap],
    /// Its directory on the first volume, to recover it.
    pub directory: &'a Path,
    /// Whether a recorder was writing the recording.
    pub is_being_made: bool,
    /// Duration of the verification.
    pub seconds: f64,
}

/// Reports the streams, the end of the run and the faults of a recording.
#[must_use]
pub fn verification(verified: &Verified<'_>, style: Style) -> String {
    verification_with(verified, Some(recover("recover with", verified.directory)), style)
}

/// The same with another command that recovers the recording, or without one.
pub(super) fn verification_with(verified: &Verified<'_>, recover: Option<Fact>, style: Style) -> String {
    let report = verified.report;
    let title = format!("recording {} ({})", visible(&report.name), report.recording);
    let mut items = vec![Item::Table(streams(report))];
    items.extend(more(report.streams.len(), "streams"));
    let mut facts = totals(verified);
    facts.extend(missing(verified.gaps.iter().map(|gap| (gap.cause, gap.events))));
    facts.extend(not_recorded(&report.rejected));
    facts.extend(ending(verified, recover));
    facts.extend(report.faults.iter().take(ROWS_SHOWN).map(fault));
    if report.fault_count > ROWS_SHOWN as u64 {
        let all = format!("... {} in total (--json lists the first thousand)", report.fault_count);
        facts.push(Fact::new("FAULT", all));
    }
    items.push(Item::Facts(facts));
    let conclusion = match report.fault_count {
        0 => "no faults".into(),
        1 => "1 FAULT".into(),
        count => format!("{count} FAULTS"),
    };
    render(vec![Block::new(title, items), Block::new(conclusion, Vec::new())], style)
}

/// Table of streams with a column for each kind of loss that occurred.
fn streams(report: &VerifyReport) -> Table {
    type Count = fn(&StreamReport) -> u64;
    let losses: [(&str, Count); 4] = [
        ("damaged", |stream| stream.damaged_events),
        ("removed by --keep", |stream| stream.removed.events),
        ("lost, with a cause in the journal", |stream| stream.lost_events),
        ("not settled before recovery", |stream| stream.unsettled_events),
    ];
    let losses: Vec<(&str, Count)> = losses
        .into_iter()
        .filter(|(_, count)| report.streams.values().any(|stream| count(stream) > 0))
        .collect();
    let mut columns = vec![left("stream"), left("name"), right("events"), right("MB")];
    columns.extend(losses.iter().map(|(title, _)| right(*title)));
    let row = |(id, stream): (&u32, &StreamReport)| -> Vec<Cell> {
        let mut row: Vec<Cell> = vec![
            id.to_string().into(),
            visible(&stream.name).into(),
            stream.recorded.events.to_string().into(),
            megabytes(stream.recorded.bytes).into(),
        ];
        row.extend(losses.iter().map(|(_, count)| Cell::from(count(stream).to_string())));
        row
    };
    Table { columns, rows: report.streams.iter().take(ROWS_SHOWN).map(row).collect() }
}

/// Sums over all streams, and the speed of the verification.
fn totals(verified: &Verified<'_>) -> Vec<Fact> {
    let (report, seconds) = (verified.report, verified.seconds);
    let recorded = || report.streams.values().map(|stream| stream.recorded);
    // Reports of other hosts may have any figures.
    let events = plural(recorded().map(|count| count.events).fold(0, u64::saturating_add), "event");
    let size = bytes(recorded().map(|count| count.bytes).fold(0, u64::saturating_add));
    let (blocks, segments) = (plural(report.blocks, "block"), plural(report.segments, "segment"));
    let speed = rate(report.bytes as f64 / seconds.max(1e-9));
    let mut facts = vec![
        Fact::new("total", format!("{events} ({size}) in {blocks}, {segments}")),
        Fact::new("read", format!("{} in {}, {speed}", bytes(report.bytes), time(seconds))),
    ];
    if report.unread_segments > 0 {
        let all = report.segments.saturating_add(report.unread_segments);
        let text = format!("{} of {all} segments; completeness was not checked", report.segments);
        facts.push(Fact::new("sample", text));
        facts.extend(report.damaged_share_max().map(|most| {
            let most = percent(100.0 * most);
            Fact::new("", format!("with 95 % confidence fewer than {most} of the segments are damaged"))
        }));
    }
    for file in &report.unchecked {
        facts.push(Fact::path("unchecked", format!("{}: it has no checksum", file.display())));
    }
    if report.duplicate_blocks > 0 {
        let twice = plural(report.duplicate_blocks, "block");
        facts.push(Fact::new("duplicates", format!("{twice} on two volumes, counted once")));
    }
    facts
}

/// End of the run.
fn ending(verified: &Verified<'_>, recover: Option<Fact>) -> Vec<Fact> {
    let stops = match &verified.report.ending {
        Ending::Clean => return vec![Fact::new("end", "the run ended cleanly")],
        Ending::Unclean { reason } => {
            return vec![Fact::new("end", format!("the run did not end cleanly: {reason}"))];
        }
        Ending::NotEnded { stops } => stops,
    };
    let state = if verified.is_being_made { "is in progress" } else { "was cut off" };
    let mut facts = vec![Fact::new("end", format!("the run {state}; checked up to the last durable event"))];
    for stop in stops {
        facts.push(Fact::path("checked", stop.file.display().to_string()));
        facts.push(Fact::new("", format!("up to byte {}", stop.durable_bytes)));
    }
    facts.extend(recover.filter(|_| !verified.is_being_made));
    facts
}

fn fault(fault: &Fault) -> Fact {
    let stream = fault.stream.map_or(String::new(), |stream| format!(", stream {stream}"));
    let event = fault.event.map_or(String::new(), |event| format!(", event {event}"));
    let (file, offset) = (fault.file.display(), fault.offset);
    Fact::path("FAULT", format!("{file} at offset {offset}{stream}{event}: {}", fault.what))
}
