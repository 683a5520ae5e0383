//! `keepup info`: description of a recording.
use anyhow::Context;
use keepup_recording::info::{RecordingInfo, info, info_with_segments};
use keepup_recording::reader::Recording;
use keepup_report::listing;

use super::recording_set::{self, RecordingOrSet};
use crate::exit::Exit;
use crate::output::{json, print_listing};

/// Describe a recording: streams, rates, gaps, volumes and whether it is sealed
///
/// Reads journals and indexes but no events. Works while the recording is in progress.
#[derive(clap::Args)]
#[command(after_help = "Example:
  keepup info keepup-data/run1
  keepup info keepup-data/run1 --segments
  keepup info run-17/keepup-set.json --at daq2=/mnt/daq2/run-17")]
pub(crate) struct Args {
    #[command(flatten)]
    recording: RecordingOrSet,
    /// List every segment, and whether it is sealed, drained or archived
    #[arg(long)]
    segments: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    if let Some(set) = args.recording.set()? {
        return recording_set::info(&set, args.segments, args.json);
    }
    let recording = Recording::open_present(&args.recording.directories)?;
    let info = if args.segments { info_with_segments(&recording)? } else { info(&recording)? };
    print(&info, args.json)
}

/// Prints a description of a recording.
pub(crate) fn print(info: &RecordingInfo, as_json: bool) -> anyhow::Result<Exit> {
    match as_json {
        true => json(&serde_json::to_value(info).context("cannot encode the description")?),
        false => print_listing(|style| listing::recording(info, style)),
    }
    Ok(if info.damaged_lines.is_empty() { Exit::Done } else { Exit::Failed })
}
