//! `keepup recover`: seals an interrupted recording.
use std::path::PathBuf;

use anyhow::Context;
use keepup_recording::recover::{RecoverOptions, recover};
use keepup_recording::unborn;
use keepup_report::listing;

use super::recording_set::{self, RecordingOrSet};
use crate::exit::Exit;
use crate::output::{json, print_listing, result};
use crate::progress::ReadingLine;

/// Seal a recording that was interrupted by a crash, a full disk or a lost volume
///
/// Seals every segment with its intact blocks, records missing events in the journals and writes the NeXus
/// master. Sealed segments are not changed, and a second recovery does nothing.
#[derive(clap::Args)]
#[command(after_help = "Example:
  keepup recover keepup-data/run1")]
pub(crate) struct Args {
    #[command(flatten)]
    recording: RecordingOrSet,
    /// Recover on a file system without locks; make sure that no recorder runs
    #[arg(long)]
    without_locks: bool,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let options = RecoverOptions { without_locks: args.without_locks };
    if let Some(set) = args.recording.set()? {
        return recording_set::recover(&set, options, args.json);
    }
    if let Some(exit) = end_unborn(&args.recording.directories, args.json)? {
        return Ok(exit);
    }
    let line = ReadingLine::new();
    let report = recover(&args.recording.directories, options, &mut |progress| line.show(progress))?;
    drop(line);
    match args.json {
        true => json(&serde_json::to_value(&report).context("cannot encode the report")?),
        false => print_listing(|style| listing::recovery(&report, style)),
    }
    Ok(if report.complete { Exit::Done } else { Exit::Failed })
}

/// Removes what a recorder left that ended before it began to record; `None` if the directories have
/// something else.
fn end_unborn(directories: &[PathBuf], as_json: bool) -> anyhow::Result<Option<Exit>> {
    let remains = match (unborn::find(directories), directories) {
        (Some(remains), _) => remains,
        (None, [only]) if unborn::is_empty(only) => Vec::new(),
        (None, _) => return Ok(None),
    };
    unborn::remove(&remains)?;
    match as_json {
        true => {
            json(&serde_json::json!({ "complete": true, "changed": !remains.is_empty(), "removed": remains }))
        }
        false => {
            let end =
                "the recorder ended before it began to record: nothing was recorded, and nothing is lost";
            let removed = remains.iter().map(|directory| format!("\nremoved {}", directory.display()));
            result(&format!("{end}{}", removed.collect::<String>()));
        }
    }
    Ok(Some(Exit::Done))
}
