//! Account of the sender of a stream, by `source` and `drain`, and of copies to and from an archive.

use std::path::Path;

use keepup_stream::ledger::Count;
use keepup_stream::source::{FleetReport, SourceReport};

use super::{megabytes, per_gb, render};
use crate::Style;
use crate::format::{bytes, plural, rate, seconds, time};
use crate::page::{Block, Fact, Item};
use crate::table::{Cell, Table, left, right};

/// Account of a drain.
#[derive(Clone, Copy, Debug)]
pub struct Drained {
    /// Events sent.
    pub sent: Count,
    /// Events durable at the destination.
    pub durable: Count,
    /// Events that were not sent, because they are missing or unreadable.
    pub missing_events: u64,
    /// Whether everything else was sent.
    pub is_complete: bool,
    /// Total elapsed time.
    pub seconds: f64,
}

/// Account of a copy to or from an archive.
#[derive(Clone, Copy, Debug)]
pub struct Archived<'a> {
    /// Address of the archive.
    pub archive: &'a str,
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of those that an interrupted copy had transferred.
    pub known_bytes: u64,
    /// Sealed segments on the volumes, segments in the archive, and damaged ones among those; for a copy to
    /// an archive.
    pub segments: Option<(u64, u64, u64)>,
    /// Directory of the copy; for a restore.
    pub directory: Option<&'a Path>,
    /// State of the copy.
    pub state: &'a str,
    /// Total elapsed time.
    pub seconds: f64,
}

/// Row of the table: label, events, bytes if known, comment.
type Row<'a> = (&'a str, u64, Option<u64>, String);

/// Reports what a simulated detector sent, and what the recorder made durable.
#[must_use]
pub fn source(report: &SourceReport, style: Style) -> String {
    let (due, sent) = (report.total(|stream| stream.due), report.total(|stream| stream.sent));
    let lost = report.total(|stream| stream.lost);
    let elapsed = report.elapsed_ns.max(1) as f64 / 1e9;
    let mut items = Vec::new();
    if report.closed_loop {
        items.push(Item::Text("closed loop: sent at full speed, not at the detector's times".to_owned()));
    }
    let speed = rate(sent.bytes as f64 / elapsed);
    let mut rows = vec![
        ("due", due.events, Some(due.bytes), String::new()),
        ("sent", sent.events, Some(sent.bytes), speed),
        ("lost", lost.events, Some(lost.bytes), "at the source, front-end buffer full".to_owned()),
    ];
    if let Some(FleetReport { sent_again, .. }) = report.fleet {
        let why = "repeated after a broken connection".to_owned();
        rows.push(("sent again", sent_again.events, Some(sent_again.bytes), why));
    }
    if report.is_acknowledged {
        let who = if report.fleet.is_some() { "recorders" } else { "recorder" };
        let durable = format!("acknowledged by the {who}");
        rows.push(("durable", report.durable_events, report.durable_bytes(), durable));
    }
    items.push(table(rows));
    let mut facts = Vec::new();
    if !report.closed_loop {
        let at = |quantile| time(report.lateness_ns.value_at_quantile(quantile) as f64 / 1e9);
        let longest = time(report.lateness_ns.max() as f64 / 1e9);
        let backlog = bytes(report.max_backlog_bytes);
        let text =
            format!("median {}, p99 {}, maximum {longest}; backlog at most {backlog}", at(0.5), at(0.99));
        facts.push(Fact::new("lateness", text));
    }
    if let Some(fleet) = &report.fleet {
        let moved = match fleet.moved_streams {
            0 => "no stream moved".to_owned(),
            moves => format!("{} to another recorder", plural(moves, "move")),
        };
        let longest = time(fleet.longest_without_recorder_ns as f64 / 1e9);
        facts.push(Fact::new("fleet", format!("{moved}; longest time without a recorder {longest}")));
        if fleet.lost_at_recorders > 0 {
            let lost = format!("{} received but not stored", plural(fleet.lost_at_recorders, "event"));
            facts.push(Fact::new("LOST by recorders", lost));
        }
    }
    if sent.bytes > 0 {
        let cost = per_gb(report.cpu_ns as f64 / 1e9, sent.bytes);
        let waited = report.blocked_ns as f64 / 1e9;
        facts.push(Fact::new(
            "CPU",
            format!("{cost}; waited {} of {} for the network", seconds(waited), seconds(elapsed)),
        ));
    }
    items.push(Item::Facts(facts));
    render(vec![Block::new("", items)], style)
}

/// Reports what a drain sent, and whether it is complete.
#[must_use]
pub fn drain(drained: &Drained, style: Style) -> String {
    let complete = match (drained.is_complete, drained.missing_events) {
        (true, 0) => "complete".to_owned(),
        (true, missing) => format!(
            "complete, except {} that are missing in the recording or unreadable",
            plural(missing, "event")
        ),
        (false, _) => "stopped before the end".to_owned(),
    };
    let (sent, durable) = (drained.sent, drained.durable);
    let speed = rate(sent.bytes as f64 / drained.seconds.max(1e-9));
    let items = vec![
        table(vec![
            ("sent", sent.events, Some(sent.bytes), speed),
            ("durable", durable.events, Some(durable.bytes), "at the destination".to_owned()),
        ]),
        Item::Text(complete),
    ];
    render(vec![Block::new("", items)], style)
}

/// Reports a copy to or from an archive.
#[must_use]
pub fn archive(archived: &Archived<'_>, style: Style) -> String {
    let moved = archived.bytes.saturating_sub(archived.known_bytes);
    let speed = rate(moved as f64 / archived.seconds.max(1e-9));
    let mut facts = vec![
        Fact::path("archive", archived.archive.to_owned()),
        Fact::new("files", format!("{}, {}", plural(archived.files, "file"), bytes(archived.bytes))),
        Fact::new("copied", format!("{} in {}, {speed}", bytes(moved), time(archived.seconds))),
    ];
    if archived.known_bytes > 0 {
        facts.push(Fact::new("copied before", bytes(archived.known_bytes)));
    }
    if let Some((sealed, confirmed, damaged)) = archived.segments {
        let damaged = if damaged > 0 { format!(", {damaged} of them DAMAGED") } else { String::new() };
        let text = format!("{sealed} sealed on the volumes, {confirmed} archived{damaged}");
        facts.push(Fact::new("segments", text));
    }
    facts
        .extend(archived.directory.map(|directory| Fact::path("directory", directory.display().to_string())));
    facts.push(Fact::new("state", archived.state.to_owned()));
    render(vec![Block::new("", vec![Item::Facts(facts)])], style)
}

fn table(rows: Vec<Row<'_>>) -> Item {
    let row = |(label, events, size, comment): Row<'_>| -> Vec<Cell> {
        let size = size.map_or_else(|| "unknown".to_owned(), megabytes);
        vec![label.into(), events.to_string().into(), size.into(), comment.into()]
    };
    let columns = vec![left(""), right("events"), right("MB"), left("")];
    Item::Table(Table { columns, rows: rows.into_iter().map(row).collect() })
}
