//! Pages of a recording set, by `info`, `verify` and `recover`.

use std::path::Path;

use keepup_recording::info::{RecordingInfo, State};
use keepup_recording::set::{
    MemberState, SetAccount, SetEnd, SetInfo, SetMemberInfo, SetMove, SetRecovery, SetStream, SetVerification,
};
use keepup_results::printable::visible;
use keepup_results::rfc3339;

use super::verification::verification_with;
use super::{ROWS_SHOWN, Verified, megabytes, missing, more, not_recorded, recover, recovery, render};
use crate::Style;
use crate::format::{bytes, plural};
use crate::page::{Block, Fact, Item};
use crate::table::{Cell, Column, Table, left, right};

/// Most hosts listed for a stream.
const HOSTS_SHOWN: usize = 4;

/// Describes a set: the recording of each host, moves of streams, and the streams over all recordings.
#[must_use]
pub fn set_info(info: &SetInfo, style: Style) -> String {
    let title = format!("recording set {} ({})", visible(&info.name), info.set);
    let made = info.recordings.iter().filter(|found| !found.member.is_absent()).count();
    let here = info.recordings.iter().filter(|found| found.member.is_here).count();
    let mut facts =
        vec![Fact::new("created", rfc3339(info.created_unix_ns)), Fact::new("fleet", visible(&info.fleet))];
    facts.extend(info.run.map(|run| Fact::new("run", run.to_string())));
    facts.push(Fact::new("here", format!("{here} of {}", plural(made as u64, "recording"))));
    let columns =
        vec![left("host"), left("state"), right("streams"), right("events"), right("MB"), right("seconds")];
    let rows = info.recordings.iter().map(member_row).collect();
    let mut below: Vec<Fact> = info.recordings.iter().flat_map(|found| member(&found.member)).collect();
    below.extend(info.moves.iter().take(ROWS_SHOWN).map(moved));
    let recordings = vec![Item::Table(Table { columns, rows }), Item::Facts(below)];
    let blocks = vec![
        Block::new(title, vec![Item::Facts(facts)]),
        Block::new("", recordings),
        Block::new("streams over all recordings", streams(&info.account)),
    ];
    render(blocks, style)
}

/// Reports the verification of each recording, and the streams over all of them. `recover_command` recovers
/// the set; without it, each recording can be recovered in its directory.
#[must_use]
pub fn set_verification(report: &SetVerification, recover_command: Option<&str>, style: Style) -> String {
    let mut text = String::new();
    for found in &report.recordings {
        text.push_str(&head(&found.member, style));
        if let Some(report) = &found.report {
            let facts = found.facts.as_ref().and_then(|facts| facts.as_ref().ok());
            let directory = facts.map(|facts| facts.directory.as_path());
            let command = match recover_command {
                Some(command) => Some(Fact::path("recover with", command.to_owned())),
                None => directory.map(|directory| recover("recover with", directory)),
            };
            let verified = Verified {
                report,
                gaps: facts.map_or(&[], |facts| &facts.gaps),
                directory: directory.unwrap_or(Path::new("")),
                is_being_made: facts.is_some_and(|facts| facts.state == State::BeingMade),
                seconds: found.seconds,
            };
            text.push_str(&verification_with(&verified, command, style));
        }
        text.push('\n');
    }
    let title = format!("recording set {} ({})", visible(&report.name), report.set);
    let faulty = report.recordings.iter().filter_map(|found| found.report.as_ref());
    // Reports of other hosts may have any figures.
    let faults = faulty.map(|report| report.fault_count).chain([report.account.faults.len() as u64]);
    let faults = faults.fold(0, u64::saturating_add);
    let conclusion = match (report.whole, faults) {
        (true, _) => "no faults; all events of all streams are present".to_owned(),
        (false, 0) => "no faults, but NOT COMPLETE".to_owned(),
        (false, 1) => "1 FAULT".to_owned(),
        (false, count) => format!("{count} FAULTS"),
    };
    let blocks = vec![Block::new(title, streams(&report.account)), Block::new(conclusion, Vec::new())];
    text.push_str(&render(blocks, style));
    text
}

/// Reports the recovery of each recording.
#[must_use]
pub fn set_recovery(report: &SetRecovery, style: Style) -> String {
    let mut text = String::new();
    for found in &report.recordings {
        text.push_str(&head(&found.member, style));
        match &found.report {
            Some(report) => text.push_str(&recovery(report, style)),
            None if found.member.is_here && found.member.problem.is_none() => {
                text.push_str("nothing to do: the recording is sealed\n");
            }
            None => {}
        }
        text.push('\n');
    }
    let conclusion = match report.complete {
        true => "all recordings are here and sealed",
        false => "NOT COMPLETE: see above",
    };
    text.push_str(&render(vec![Block::new(conclusion, Vec::new())], style));
    text
}

/// Host and state of a recording, above its page.
fn head(found: &MemberState, style: Style) -> String {
    let title = format!("host {}", found.host);
    render(vec![Block::new(title, vec![Item::Facts(member(found))])], style)
}

/// End of a recording and its state here, unless it is as it should be.
fn member(member: &MemberState) -> Vec<Fact> {
    let host = &member.host;
    let mut facts = Vec::new();
    let end = match member.end {
        SetEnd::Finished => None,
        SetEnd::Failed => Some("its recorder failed"),
        SetEnd::Lost => Some("lost, or its end is unknown"),
        SetEnd::Absent => Some("it made no recording"),
    };
    if let Some(end) = end {
        let why = member.why.as_ref().map_or_else(String::new, |why| format!(": {}", visible(why)));
        facts.push(Fact::path("end", format!("{host}: {end}{why}")));
    }
    if let Some(problem) = &member.problem {
        let label = if member.is_here { "PROBLEM" } else { "NOT HERE" };
        let mut lines = problem.lines();
        facts.push(Fact::path(label, format!("{host}: {}", lines.next().unwrap_or_default())));
        facts.extend(lines.map(|hint| Fact::path("", hint.to_owned())));
    }
    facts
}

fn member_row(found: &SetMemberInfo) -> Vec<Cell> {
    let state = match (&found.info, found.member.is_here) {
        (Some(info), _) => match info.state {
            State::BeingMade => "in progress",
            State::Clean => "ended cleanly",
            State::Unclean { .. } => "ended uncleanly",
            State::CutOff => "CUT OFF",
        },
        (None, true) => "UNREADABLE",
        (None, false) if found.member.is_absent() => "none",
        (None, false) => "NOT HERE",
    };
    let mut row: Vec<Cell> = vec![found.member.host.clone().into(), state.into()];
    let figures = found.info.as_ref().map_or_else(|| [const { "-" }; 4].map(str::to_owned), figures);
    row.extend(figures.map(Cell::from));
    row
}

/// Streams, events, MB and seconds of a recording.
fn figures(info: &RecordingInfo) -> [String; 4] {
    let streams = || info.streams.values();
    let events = streams().map(|stream| stream.events).fold(0, u64::saturating_add);
    let stored = info.volumes.iter().map(|volume| volume.bytes).fold(0, u64::saturating_add);
    let first = streams().filter_map(|stream| stream.first_timestamp_ns).min();
    let last = streams().filter_map(|stream| stream.last_timestamp_ns).max();
    let seconds = first.zip(last).map(|(first, last)| last.saturating_sub(first) as f64 / 1e9);
    [
        info.streams.len().to_string(),
        events.to_string(),
        megabytes(stored),
        seconds.map_or("-".to_owned(), |seconds| format!("{seconds:.1}")),
    ]
}

fn moved(change: &SetMove) -> Fact {
    let to = change.to.as_deref().unwrap_or("the other recorders");
    let (time, epoch) = (rfc3339(change.at_unix_ns), change.epoch);
    Fact::path("moved", format!("{time} streams of {} to {to}, epoch {epoch}", change.from))
}

/// Streams over all recordings, totals, missing events and faults.
fn streams(account: &SetAccount) -> Vec<Item> {
    let has_different = account.streams.values().any(|stream| stream.different.is_some_and(|n| n > 0));
    let mut columns: Vec<Column> = vec![left("stream"), left("name"), left("hosts"), right("events")];
    columns.extend([right("MB"), right("duplicates"), right("missing")]);
    columns.extend(has_different.then(|| right("DIFFERENT")));
    let row = |(id, stream): (&u32, &SetStream)| -> Vec<Cell> {
        let mut row: Vec<Cell> = vec![
            id.to_string().into(),
            // Names are escaped, because senders choose them.
            visible(&stream.name).into(),
            hosts(&stream.hosts).into(),
            stream.events.to_string().into(),
            stream.payload_bytes.map_or("-".into(), megabytes).into(),
            stream.duplicates.to_string().into(),
            not_here(stream).to_string().into(),
        ];
        row.extend(has_different.then(|| Cell::from(stream.different.unwrap_or(0).to_string())));
        row
    };
    let rows = account.streams.iter().take(ROWS_SHOWN).map(row).collect();
    let mut items = vec![Item::Table(Table { columns, rows })];
    items.extend(more(account.streams.len(), "streams"));
    items.push(Item::Facts(totals(account)));
    items.push(Item::Facts(not_recorded(&account.rejected)));
    items
}

/// Names of hosts, not more than fit a column.
fn hosts(all: &[String]) -> String {
    let (shown, hidden) = all.split_at(all.len().min(HOSTS_SHOWN));
    let shown = shown.join(" ");
    if hidden.is_empty() { shown } else { format!("{shown} +{}", hidden.len()) }
}

/// Events of a stream that are in no recording here.
fn not_here(stream: &SetStream) -> u64 {
    stream.missing.values().fold(stream.unexplained, |sum, events| sum.saturating_add(*events))
}

fn totals(account: &SetAccount) -> Vec<Fact> {
    let streams = || account.streams.values();
    let sum = |count: fn(&SetStream) -> u64| streams().map(count).fold(0, u64::saturating_add);
    let events = plural(sum(|stream| stream.events), "event");
    let mut sizes = streams().map(|stream| stream.payload_bytes);
    let size = sizes.try_fold(0, |sum: u64, size| Some(sum.saturating_add(size?)));
    let size = size.map_or_else(String::new, |size| format!(" ({})", bytes(size)));
    let mut facts = vec![Fact::new("total", format!("{events}{size}, each counted once"))];
    let duplicates = sum(|stream| stream.duplicates);
    if duplicates > 0 {
        let is_compared = streams().all(|stream| stream.different.is_some());
        let compared = if is_compared { "; their payloads were compared" } else { "" };
        let copies = plural(duplicates, "event");
        facts.push(Fact::new("duplicates", format!("{copies} in more than one recording{compared}")));
    }
    let removed = sum(|stream| stream.removed);
    if removed > 0 {
        facts.push(Fact::new("removed", format!("{}, by --keep", plural(removed, "event"))));
    }
    facts.extend(missing(streams().flat_map(|stream| stream.missing.clone())));
    let hosts = account.incomplete_hosts.join(", ");
    let unexplained = sum(|stream| stream.unexplained);
    if unexplained > 0 {
        let place = match account.incomplete_hosts.is_empty() {
            true => "in no recording".to_owned(),
            false => format!("may be on {hosts}"),
        };
        facts.push(Fact::path("missing", format!("{}, {place}", plural(unexplained, "event"))));
    }
    if !account.incomplete_hosts.is_empty() {
        facts.push(Fact::path("NOT HERE", format!("all or a part of the recording of {hosts}")));
    }
    let open = streams().filter(|stream| !stream.is_end_known).count();
    if open > 0 {
        let open = plural(open as u64, "stream");
        let what = format!("{open}: the last recording did not end cleanly, later events may be missing");
        facts.push(Fact::new("end", what));
    }
    let faults = account.faults.iter().take(ROWS_SHOWN);
    facts.extend(faults.map(|what| Fact::path("FAULT", visible(what))));
    if account.faults.len() > ROWS_SHOWN {
        facts.push(Fact::new("FAULT", format!("... {} in total (--json lists all)", account.faults.len())));
    }
    facts
}

#[cfg(test)]
#[path = "recording_set_tests.rs"]
mod tests;
