//! `keepup verify`: check of a recording.
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use keepup_measure::clock::{Clock, SystemClock};
use keepup_recording::reader::Recording;
use keepup_recording::verify::{Ending, Progress, VerifyOptions, VerifyReport, verify};

use crate::args::RecordingDirs;
use crate::exit::Exit;
use crate::output::{json, missing, result};
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
        false => result(&account(&recording, &report, is_being_made, seconds)),
    }
    let whole = report.is_intact() && report.ending == Ending::Clean && report.lost_events() == 0;
    Ok(if whole { Exit::Done } else { Exit::Failed })
}

fn account(recording: &Recording, report: &VerifyReport, is_being_made: bool, seconds: f64) -> String {
    const STREAMS_SHOWN: usize = 20;
    const FAULTS_SHOWN: usize = 20;
    let mut lines = vec![format!("recording {} ({})", report.name.escape_debug(), report.recording)];
    for (id, stream) in report.streams.iter().take(STREAMS_SHOWN) {
        let mut line = format!(
            "stream {id} {:?}: {} events, {} bytes",
            stream.name, stream.recorded.events, stream.recorded.bytes
        );
        for (count, what) in [
            (stream.damaged_events, "damaged"),
            (stream.removed.events, "removed by --keep"),
            (stream.lost_events, "lost, with a cause in the journal"),
            (stream.unsettled_events, "not settled before recovery"),
        ] {
            if count > 0 {
                line.push_str(&format!(", {count} {what}"));
            }
        }
        lines.push(line);
    }
    if report.streams.len() > STREAMS_SHOWN {
        lines.push(format!("… and {} more streams", report.streams.len() - STREAMS_SHOWN));
    }
    let total =
        report.streams.values().fold((0, 0), |sum, s| (sum.0 + s.recorded.events, sum.1 + s.recorded.bytes));
    lines.push(format!(
        "total: {} events, {} bytes, {} blocks, {} segments; read {:.2} GB in {seconds:.2} s, {:.2} GB/s",
        total.0,
        total.1,
        report.blocks,
        report.segments,
        report.bytes as f64 / 1e9,
        report.bytes as f64 / 1e9 / seconds
    ));
    if report.duplicate_blocks > 0 {
        let twice = report.duplicate_blocks;
        lines.push(format!("{twice} blocks are on two volumes and count once"));
    }
    lines.extend(missing(recording.gaps().into_iter().map(|gap| (gap.cause, gap.events))));
    lines.extend(ending(recording, &report.ending, is_being_made));
    for fault in report.faults.iter().take(FAULTS_SHOWN) {
        let stream = fault.stream.map_or(String::new(), |s| format!(", stream {s}"));
        let event = fault.event.map_or(String::new(), |e| format!(", event {e}"));
        lines.push(format!(
            "FAULT {} at offset {}{stream}{event}: {}",
            fault.file.display(),
            fault.offset,
            fault.what
        ));
    }
    if report.fault_count > FAULTS_SHOWN as u64 {
        lines.push(format!("… {} faults in total (--json lists the first thousand)", report.fault_count));
    }
    lines.push(if report.is_intact() {
        "no faults".into()
    } else {
        format!("{} FAULTS", report.fault_count)
    });
    lines.join("\n")
}

/// Describes the end of the run.
fn ending(recording: &Recording, ending: &Ending, is_being_made: bool) -> Vec<String> {
    let stops = match ending {
        Ending::Clean => return vec!["the run ended cleanly".into()],
        Ending::Unclean { reason } => return vec![format!("the run did not end cleanly: {reason}")],
        Ending::NotEnded { stops } => stops,
    };
    let state = if is_being_made { "is in progress" } else { "was cut off" };
    let mut lines = vec![format!("the run {state}; checked up to the last durable event:")];
    lines.extend(stops.iter().map(|s| format!("  {} up to byte {}", s.file.display(), s.durable_bytes)));
    if !is_being_made {
        lines.push(format!("hint: keepup recover {}", recording.volumes()[0].dir().display()));
    }
    lines
}
