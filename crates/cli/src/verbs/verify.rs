//! `keepup verify`: check of a recording.
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use keepup_measure::clock::{Clock, SystemClock};
use keepup_recording::reader::Recording;
use keepup_recording::verify::{Ending, Progress, VerifyOptions, verify};
use keepup_report::listing;

use crate::args::RecordingDirs;
use crate::exit::Exit;
use crate::output::{json, print_listing};
use crate::progress::StatusLine;

/// Read a recording and check all checksums, sequence numbers and gaps
#[derive(clap::Args)]
#[command(after_help = "Example:\n  keepup verify /data/a/run1")]
pub(crate) struct Args {
    #[command(flatten)]
    recording: RecordingDirs,
    /// Segments read in parallel [default: the number of CPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let mut recording = Recording::open(&args.recording.directories)?;
    let is_being_made = recording.is_being_made();
    if !is_being_made && !recording.is_ended() {
        // The recorder may have finished after the journals were read.
        recording = Recording::open(&args.recording.directories)?;
    }
    let available = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = args.threads.map_or_else(available, usize::from);
    let clock = SystemClock;
    let begin_ns = clock.now_ns();
    let status = Mutex::new(StatusLine::new());
    let last_ns = AtomicU64::new(begin_ns);
    let report = verify(&recording, VerifyOptions { threads }, &|progress: Progress| {
        let (now_ns, before_ns) = (clock.now_ns(), last_ns.load(Ordering::Relaxed));
        // Only one thread per second updates the progress line.
        if now_ns.saturating_sub(before_ns) < 1_000_000_000 {
            return;
        }
        if let (Ok(_), Ok(mut status)) = (
            last_ns.compare_exchange(before_ns, now_ns, Ordering::Relaxed, Ordering::Relaxed),
            status.try_lock(),
        ) {
            let (done, total) = (progress.done_bytes as f64 / 1e9, progress.total_bytes as f64 / 1e9);
            status.show(&format!("read {done:.1} of {total:.1} GB"), std::time::Duration::from_secs(1));
        }
    });
    drop(status);
    let seconds = clock.now_ns().saturating_sub(begin_ns).max(1) as f64 / 1e9;
    match args.json {
        true => json(&serde_json::to_value(&report).context("cannot encode the report")?),
        false => {
            let verified =
                listing::Verified { recording: &recording, report: &report, is_being_made, seconds };
            print_listing(|style| listing::verification(&verified, style));
        }
    }
    let whole = report.is_intact() && report.ending == Ending::Clean && report.lost_events() == 0;
    Ok(if whole { Exit::Done } else { Exit::Failed })
}
