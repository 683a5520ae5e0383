//! Description of a recording, by `info`.

use std::path::Path;

use keepup_measure::sum::Sums;
use keepup_recording::info::{RecordingInfo, SegmentInfo, State, StreamSummaryInfo};
use keepup_recording::journal::{Rotation, RotationState};
use keepup_recording::retention::{Keep, KeepLimit, KeepUntil};
use keepup_results::printable::visible;
use keepup_results::rfc3339;

use super::{ROWS_SHOWN, megabytes, missing, more, not_recorded, recover, render};
use crate::Style;
use crate::format::{bytes, plural, seconds};
use crate::page::{Block, Fact, Item};
use crate::table::{Cell, Column, Table, left, right};

/// Describes a recording: state, volumes, streams, missing events.
#[must_use]
pub fn recording(info: &RecordingInfo, style: Style) -> String {
    let title = format!("recording {} ({}), {}", visible(&info.name), info.recording, state(&info.state));
    let facts = head(info).into_iter().chain(place(info)).collect();
    let mut items: Vec<Item> = vec![Item::Facts(facts)];
    let entry =
        |(key, value): (&String, &String)| Item::Text(format!("{}: {}", visible(key), visible(value)));
    items.extend(info.metadata.iter().map(entry));
    let streams = info.streams.iter().take(ROWS_SHOWN).map(|(id, stream)| row(*id, stream)).collect();
    let mut below: Vec<Fact> = info.keep.iter().map(|kept| Fact::new("kept", keep(kept))).collect();
    let removed: u64 = info.streams.values().map(|stream| stream.removed.events).saturating_sum();
    if removed > 0 {
        below.push(Fact::new("removed", format!("{}, by --keep", plural(removed, "event"))));
    }
    below.extend(missing(info.streams.values().flat_map(|stream| stream.missing.clone())));
    below.extend(not_recorded(&info.rejected));
    if info.state == State::CutOff {
        let first = info.volumes.first().map(|volume| volume.directory.as_path());
        below.push(recover("recover with", first.unwrap_or(Path::new(""))));
    }
    let mut table = vec![Item::Table(Table { columns: columns(), rows: streams })];
    table.extend(more(info.streams.len(), "streams"));
    table.push(Item::Facts(below));
    let mut blocks = vec![Block::new(title, items), Block::new("", table)];
    blocks.extend(segments(info));
    render(blocks, style)
}

/// State of each segment, where that was requested.
fn segments(info: &RecordingInfo) -> Option<Block> {
    let row = |volume: usize, segment: &SegmentInfo| -> Vec<Cell> {
        let states = [
            (segment.sealed, "sealed"),
            (!segment.sealed, "open"),
            (segment.drained, "drained"),
            (segment.archived, "archived"),
        ];
        let states: Vec<&str> = states.iter().filter(|(is_it, _)| *is_it).map(|(_, state)| *state).collect();
        vec![
            volume.to_string().into(),
            segment.index.to_string().into(),
            megabytes(segment.bytes).into(),
            states.join(", ").into(),
        ]
    };
    let volumes = info.volumes.iter().enumerate();
    let all =
        volumes.flat_map(|(volume, part)| part.segments.iter().map(move |segment| row(volume, segment)));
    let rows: Vec<Vec<Cell>> = all.collect();
    let columns = vec![right("volume"), right("segment"), right("MB"), left("state")];
    (!rows.is_empty()).then(|| Block::new("", vec![Item::Table(Table { columns, rows })]))
}

/// Origin of a recording.
fn head(info: &RecordingInfo) -> Vec<Fact> {
    let created = format!("{} by keepup {}", rfc3339(info.created_unix_ns), visible(&info.tool_version));
    let mut facts = vec![Fact::new("created", created)];
    facts.extend(info.origin.as_ref().map(|origin| {
        let (name, id) = (visible(&origin.name), visible(&origin.recording));
        Fact::new("copy of", format!("{name} ({id}), created {}", rfc3339(origin.created_unix_ns)))
    }));
    facts.extend(info.run.map(|run| Fact::new("run", run.to_string())));
    facts
}

/// Volumes and their faults.
fn place(info: &RecordingInfo) -> Vec<Fact> {
    let mut facts = Vec::new();
    for volume in &info.volumes {
        facts.push(Fact::path("volume", volume.directory.display().to_string()));
        let sealed = plural(volume.sealed as u64, "segment");
        facts.push(Fact::new("", format!("{sealed} sealed, {} open; {}", volume.open, bytes(volume.bytes))));
        let copies = [
            volume.drained.map(|drained| format!("{drained} drained")),
            (!info.archives.is_empty()).then(|| format!("{} archived", volume.archived)),
        ];
        let copies: Vec<String> = copies.into_iter().flatten().collect();
        if !copies.is_empty() {
            facts.push(Fact::new("", format!("of the sealed segments, {}", copies.join(", "))));
        }
    }
    for archive in &info.archives {
        facts.push(Fact::path("archive", visible(&archive.to)));
        let damaged = match archive.damaged {
            0 => String::new(),
            damaged => format!("; {} DAMAGED", plural(damaged, "segment")),
        };
        let segments = plural(archive.segments, "segment");
        facts.push(Fact::new("", format!("{segments} confirmed, {}{damaged}", bytes(archive.bytes))));
    }
    let faults = info.archive_faults.iter();
    facts.extend(faults.map(|what| Fact::path("WARNING", visible(what))));
    facts.extend(info.reductions.iter().map(|text| Fact::path("reduced", visible(text))));
    facts.extend(info.rotations.iter().map(|change| Fact::path("rotation", rotation(change))));
    let missing = info.missing_volumes.iter();
    facts.extend(missing.map(|volume| Fact::path("MISSING", format!("volume {}", volume.display()))));
    facts.extend(info.damaged_lines.iter().map(|line| Fact::path("FAULT", line.to_string())));
    facts.extend(info.master.iter().map(|path| Fact::path("for h5py", path.display().to_string())));
    facts
}

fn state(state: &State) -> String {
    match state {
        State::BeingMade => "in progress; durable so far".into(),
        State::Clean => "ended cleanly".into(),
        State::Unclean { reason } => format!("ended: {reason}"),
        State::CutOff => "CUT OFF, not recovered; known to be durable".into(),
    }
}

fn keep(keep: &Keep) -> String {
    let limit = match keep.limit {
        KeepLimit::Bytes(limit) => bytes(limit),
        KeepLimit::Seconds(limit) => seconds(limit as f64),
    };
    match (keep.disposable, keep.until) {
        (true, _) => format!("{limit}; older segments are removed"),
        (false, KeepUntil::Drained) => format!("{limit}; older segments are removed after they are drained"),
        (false, KeepUntil::Archived) => {
            format!("{limit}; older segments are removed after they are archived")
        }
    }
}

fn rotation(rotation: &Rotation) -> String {
    let became = match rotation.state {
        RotationState::Failed => "FAILED",
        RotationState::Slow => "taken out of rotation",
        RotationState::Back => "back in rotation",
    };
    format!("{} volume {} {became}: {}", rfc3339(rotation.time_unix_ns), rotation.volume, rotation.why)
}

fn columns() -> Vec<Column> {
    vec![
        left("stream"),
        left("name"),
        left("type"),
        right("events"),
        right("MB"),
        right("rate"),
        right("missing"),
    ]
}

fn row(id: u32, stream: &StreamSummaryInfo) -> Vec<Cell> {
    let info = &stream.info;
    let shape: Vec<String> = info.shape.iter().map(u64::to_string).collect();
    let compression = info.compression.map_or(String::new(), |c| format!(" {}", c.as_str()));
    let kind = match shape.is_empty() {
        true => "bytes".to_owned(),
        false => format!("{} {}{compression}", info.element, shape.join("x")),
    };
    let span = stream.first_timestamp_ns.zip(stream.last_timestamp_ns).map(|(first, last)| last - first);
    let seconds = span.map(|ns| ns as f64 / 1e9).filter(|seconds| *seconds > 0.0);
    let rate = match (seconds, stream.payload_bytes) {
        (Some(seconds), Some(bytes)) => format!("{:.1} MB/s", bytes as f64 / seconds / 1e6),
        (Some(seconds), None) => format!("{:.1} /s", stream.events as f64 / seconds),
        _ => "-".into(),
    };
    let missing = stream.missing.values().fold(0, |sum: u64, events| sum.saturating_add(*events));
    vec![
        id.to_string().into(),
        // Names are escaped, because senders choose them.
        visible(&info.name).into(),
        kind.into(),
        stream.events.to_string().into(),
        stream.payload_bytes.map_or("-".into(), megabytes).into(),
        rate.into(),
        missing.to_string().into(),
    ]
}
