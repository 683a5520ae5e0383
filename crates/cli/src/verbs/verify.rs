//! `keepup verify`: check of a recording.
use std::path::{Path, PathBuf};

use anyhow::Context;
use keepup_measure::clock::{Clock, SystemClock};
use keepup_recording::reader::Recording;
use keepup_recording::verify::{Seed, Selection, VerifyReport, VerifyState, verify_selected};
use keepup_report::{listing, plural};

use super::recording_set::{self, RecordingOrSet, options};
use crate::args::share;
use crate::exit::{Exit, usage};
use crate::output::{json, log, print_listing};
use crate::progress::ReadingLine;

/// Read a recording and check all checksums, sequence numbers and gaps
///
/// Reads past the page cache, from the disks, one segment of each volume at a time.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup verify /data/a/run1
  keepup verify /data/a/run1 --resume run1.verify
  keepup verify /data/a/run1 --sample '5 %'
  keepup verify run-17/keepup-set.json --at daq1=/mnt/daq1/run-17")]
pub(crate) struct Args {
    #[command(flatten)]
    recording: RecordingOrSet,
    /// Threads, each for a volume or for a part of a fast one [default: the number of CPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Read only this share of the segments, chosen at random and spread over the recording
    ///
    /// The report states what that proves. Completeness is not checked.
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "resume")]
    sample: Option<f64>,
    /// Continue the interrupted verification of this file, or create it
    ///
    /// The file has the results of the segments read so far, and is removed at the end.
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    if let Some(set) = args.recording.set()? {
        if args.sample.is_some() || args.resume.is_some() {
            return Err(usage("cannot use --sample or --resume with a recording set"));
        }
        return recording_set::verify(&set, args.threads, args.json);
    }
    let mut recording = Recording::open(&args.recording.directories)?;
    let is_being_made = recording.is_being_made();
    if !is_being_made && !recording.is_ended() {
        // The recorder may have finished after the journals were read.
        recording = Recording::open(&args.recording.directories)?;
    }
    let state = args.resume.as_ref().map(|path| VerifyState::open(path, &recording)).transpose()?;
    if let Some(known) = state.as_ref().map(VerifyState::segments).filter(|known| *known > 0) {
        log(&format!("{} read before", plural(known as u64, "segment")));
    }
    let clock = SystemClock;
    let begin_ns = clock.now_ns();
    let report = read(args, &recording, state.as_ref());
    let seconds = clock.now_ns().saturating_sub(begin_ns).max(1) as f64 / 1e9;
    match args.json {
        true => json(&serde_json::to_value(&report).context("cannot encode the report")?),
        false => {
            let directory = recording.volumes().first().map_or(Path::new(""), |volume| volume.dir());
            let (report, gaps) = (&report, &recording.gaps());
            let verified = listing::Verified { report, gaps, directory, is_being_made, seconds };
            print_listing(|style| listing::verification(&verified, style));
        }
    }
    state.map_or(Ok(()), VerifyState::remove)?;
    Ok(if report.is_complete() { Exit::Done } else { Exit::Failed })
}

/// Verifies with a progress line.
fn read(args: &Args, recording: &Recording, state: Option<&VerifyState>) -> VerifyReport {
    let seed = || Seed(SystemClock.unix_ns());
    let selection = args.sample.map_or(Selection::Whole, |share| Selection::Share(share, seed()));
    let line = ReadingLine::new();
    verify_selected(recording, options(args.threads), selection, state, &|progress| line.show(progress))
}
