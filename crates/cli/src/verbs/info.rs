//! `keepup info`: description of a recording.
use std::time::Duration;

use anyhow::Context;
use keepup_recording::info::{RecordingInfo, State, StreamSummaryInfo, info};
use keepup_recording::journal::{Rotation, RotationState};
use keepup_recording::reader::Recording;
use keepup_recording::retention::{Keep, KeepLimit};

use crate::args::RecordingDirs;
use crate::exit::Exit;
use crate::output::{json, missing, result};

/// Describe a recording: streams, rates, gaps, volumes and whether it is sealed
///
/// Reads journals and indexes but no events. Works while the recording is in progress.
#[derive(clap::Args)]
#[command(after_help = "Example:
  keepup info keepup-data/run1")]
pub(crate) struct Args {
    #[command(flatten)]
    recording: RecordingDirs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let recording = Recording::open_present(&args.recording.directories)?;
    let info = info(&recording)?;
    match args.json {
        true => json(&serde_json::to_value(&info).context("cannot encode the description")?),
        false => result(&page(&info)),
    }
    Ok(if info.damaged_lines.is_empty() { Exit::Done } else { Exit::Failed })
}

/// Describes a recording as text.
pub(crate) fn page(info: &RecordingInfo) -> String {
    const STREAMS_SHOWN: usize = 20;
    let mut lines = vec![
        format!("recording {} ({}), {}", info.name.escape_debug(), info.recording, state(&info.state)),
        format!("created {} by keepup {}", time(info.created_unix_ns), info.tool_version),
    ];
    lines.extend(info.origin.as_ref().map(|origin| {
        let (name, id) = (origin.name.escape_debug(), origin.recording.escape_debug());
        format!("copy of {name} ({id}), created {}", time(origin.created_unix_ns))
    }));
    lines.extend(info.run.map(|run| format!("run {run}")));
    let entry =
        |(key, value): (&String, &String)| format!("{}: {}", key.escape_debug(), value.escape_debug());
    lines.extend(info.metadata.iter().map(entry));
    for volume in &info.volumes {
        let (directory, open) = (volume.directory.display(), volume.open);
        let gb = volume.bytes as f64 / 1e9;
        lines.push(format!("{directory}: {} segments sealed, {open} open; {gb:.3} GB", volume.sealed));
    }
    lines.extend(info.reductions.iter().map(|text| format!("reduced: {}", text.escape_debug())));
    lines.extend(info.rotations.iter().map(rotation));
    lines.extend(info.missing_volumes.iter().map(|volume| format!("MISSING volume {}", volume.display())));
    lines.extend(info.damaged_lines.iter().map(|line| format!("FAULT {line}")));
    lines.extend(info.master.iter().map(|path| format!("as one file, for h5py: {}", path.display())));
    lines.push(format!(
        "{:<6} {:<24} {:<16} {:>12} {:>14} {:>12} {:>10}",
        "stream", "name", "type", "events", "bytes", "rate", "missing"
    ));
    lines.extend(info.streams.iter().take(STREAMS_SHOWN).map(|(id, stream)| row(*id, stream)));
    if info.streams.len() > STREAMS_SHOWN {
        lines.push(format!("… and {} more streams (--json has all)", info.streams.len() - STREAMS_SHOWN));
    }
    lines.extend(info.keep.as_ref().map(keep));
    let removed: u64 = info.streams.values().map(|stream| stream.removed.events).sum();
    if removed > 0 {
        lines.push(format!("removed: {removed} events, by --keep"));
    }
    lines.extend(missing(info.streams.values().flat_map(|stream| stream.missing.clone())));
    if info.state == State::CutOff {
        let directory = info.volumes.first().map(|v| v.directory.display().to_string()).unwrap_or_default();
        lines.push(format!("hint: keepup recover {directory}"));
    }
    lines.join("\n")
}

fn state(state: &State) -> String {
    match state {
        State::BeingMade => "in progress; durable so far:".into(),
        State::Clean => "ended cleanly".into(),
        State::Unclean { reason } => format!("ended: {reason}"),
        State::CutOff => "CUT OFF, not recovered; known to be durable:".into(),
    }
}

fn keep(keep: &Keep) -> String {
    let limit = match keep.limit {
        KeepLimit::Bytes(bytes) => format!("{:.1} GB", bytes as f64 / 1e9),
        KeepLimit::Seconds(seconds) => format!("{seconds} s"),
    };
    let which = if keep.disposable {
        "older segments are removed"
    } else {
        "older segments are removed after they are drained"
    };
    format!("kept: {limit}; {which}")
}

fn rotation(rotation: &Rotation) -> String {
    let became = match rotation.state {
        RotationState::Failed => "FAILED",
        RotationState::Slow => "taken out of rotation",
        RotationState::Back => "back in rotation",
    };
    format!("{} volume {} {became}: {}", time(rotation.time_unix_ns), rotation.volume, rotation.why)
}

fn time(unix_ns: u64) -> String {
    keepup_results::rfc3339(unix_ns)
}

fn row(id: u32, stream: &StreamSummaryInfo) -> String {
    let info = &stream.info;
    let shape: Vec<String> = info.shape.iter().map(u64::to_string).collect();
    let compression = info.compression.map_or(String::new(), |c| format!(" {}", c.as_str()));
    let kind = match shape.is_empty() {
        true => "bytes".to_owned(),
        false => format!("{} {}{compression}", info.element, shape.join("x")),
    };
    let span = stream.first_timestamp_ns.zip(stream.last_timestamp_ns).map(|(first, last)| last - first);
    let seconds = span.map(|ns| Duration::from_nanos(ns).as_secs_f64()).filter(|s| *s > 0.0);
    let rate = match (seconds, stream.payload_bytes) {
        (Some(seconds), Some(bytes)) => format!("{:.1} MB/s", bytes as f64 / seconds / 1e6),
        (Some(seconds), None) => format!("{:.1} /s", stream.events as f64 / seconds),
        _ => "-".into(),
    };
    let bytes = stream.payload_bytes.map_or("-".into(), |bytes| bytes.to_string());
    let missing = stream.missing.values().fold(0, |sum: u64, events| sum.saturating_add(*events));
    // Names are escaped, because senders choose them.
    let (name, events) = (info.name.escape_debug().to_string(), stream.events);
    format!("{id:<6} {name:<24} {kind:<16} {events:>12} {bytes:>14} {rate:>12} {missing:>10}")
}
