//! `keepup disk throttle`: paced writers against readers.
use std::time::Duration;

use keepup_results::{DiskPart, DiskPhase, DiskSummary};
use keepup_workload::disk::throttle::{Crowd, Setting, Throttle};
use keepup_workload::disk::{Pace, Point};

use super::columns::{Column, rows};
use super::mode::{ModeArgs, SpaceArg, depth, described, request};
use super::run::{Common, Purpose, Test, measure, places};
use crate::args::{size, some_time, span};
use crate::exit::Exit;
use crate::verbs::record::usage;

/// Writers that write an event every so often, against one reader or several: rates and waiting times
///
/// An event is due by the clock, whether or not the last one is through, and its latency counts from then.
/// With --pause a writer waits that long after each event instead, as the event logger's test did. A delay of
/// 0 is as fast as it goes.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup disk throttle --volume /data/a
  keepup disk throttle --volume /data/a --writers 1,2,3,4 --delays '2 ms,5 ms,10 ms,20 ms' --pause
  keepup disk throttle --volume /data/a --writers 8 --delays '2 ms,4 ms' --read-delays '2 ms,4 ms'")]
pub(crate) struct Args {
    /// Numbers of writers
    #[arg(
        long,
        default_value = "0,1,2,3,4",
        value_name = "NUMBERS",
        value_delimiter = ',',
        value_parser = number,
    )]
    writers: Vec<u32>,
    /// Times between two events of a writer
    #[arg(
        long,
        default_value = "5 ms,10 ms,20 ms",
        value_name = "TIMES",
        value_delimiter = ',',
        value_parser = span,
    )]
    delays: Vec<Duration>,
    /// Numbers of readers
    #[arg(long, default_value = "1", value_name = "NUMBERS", value_delimiter = ',', value_parser = number)]
    readers: Vec<u32>,
    /// Times between two events of a reader
    #[arg(long, default_value = "0 ms", value_name = "TIMES", value_delimiter = ',', value_parser = span)]
    read_delays: Vec<Duration>,
    /// Delays begin when an event has ended: the loop is closed, as in the paper
    #[arg(long)]
    pause: bool,
    /// Size of an event
    #[arg(long, default_value = "256 KiB", value_parser = request, value_name = "SIZE")]
    event: usize,
    /// Events under way of one writer or reader
    #[arg(long, default_value = "4", value_name = "N", value_parser = depth)]
    depth: usize,
    /// Size of each file; at its end a writer begins a new one, a reader goes to the front
    #[arg(long, default_value = "1 GiB", value_parser = size, value_name = "SIZE")]
    file: u64,
    /// Before it counts
    #[arg(long, default_value = "1 s", value_parser = span, value_name = "TIME")]
    ramp: Duration,
    /// How long each combination is measured
    #[arg(long, default_value = "10 s", value_parser = some_time, value_name = "TIME")]
    time: Duration,
    /// What lies where a writer writes
    #[arg(long, value_enum, default_value_t)]
    space: SpaceArg,
    #[command(flatten)]
    mode: ModeArgs,
    #[command(flatten)]
    common: Common,
}

fn number(text: &str) -> Result<u32, String> {
    let number = text.trim().parse().ok().filter(|number| *number <= 256);
    number.ok_or_else(|| format!("{text:?} is not a number from 0 to 256"))
}

pub(super) fn run(args: &Args, purpose: Purpose) -> anyhow::Result<Exit> {
    let pace = |delay: &Duration| match (delay.is_zero(), args.pause) {
        (true, _) => Pace::Free,
        (false, true) => Pace::Pause(*delay),
        (false, false) => Pace::Every(*delay),
    };
    let paces = |delays: &[Duration]| delays.iter().map(pace).collect::<Vec<_>>();
    let writers = Crowd::all(&args.writers, &paces(&args.delays));
    let readers = Crowd::all(&args.readers, &paces(&args.read_delays));
    let settings = Setting::all(&writers, &readers);
    if settings.is_empty() {
        return Err(usage("nobody writes and nobody reads\nhint: --writers 1,2 or --readers 1".to_owned()));
    }
    let mode = args.mode.mode(args.space.space())?;
    let file_bytes = args.file.max(1).next_multiple_of(args.event as u64);
    let point = Point { bytes: args.event, depth: args.depth };
    let seconds = |times: &[Duration]| times.iter().map(Duration::as_secs_f64).collect::<Vec<_>>();
    let test = Test {
        test: Throttle {
            settings: settings.clone(),
            point,
            file_bytes,
            ramp: args.ramp,
            run: args.time,
            mode,
        },
        together: false,
        plan: serde_json::json!({
            "writers": args.writers, "delays_seconds": seconds(&args.delays), "readers": args.readers,
            "read_delays_seconds": seconds(&args.read_delays), "closed_loop": args.pause,
            "event_bytes": args.event, "depth": args.depth, "file_bytes": file_bytes,
            "ramp_seconds": args.ramp.as_secs_f64(), "run_seconds": args.time.as_secs_f64(),
            "mode": described(&mode),
        }),
        lines: &|_| Vec::new(),
        summary: &|summary| table(summary, &settings),
    };
    measure(&args.common, purpose, &test)
}

/// Rate of all writers, or all readers, of a phase, MB/s.
fn rate(phase: &DiskPhase, writes: bool) -> Option<f64> {
    let parts = phase.parts.iter().filter(|part| part.writes == writes);
    parts.map(|part| part.bytes as f64 / part.seconds / 1e6).reduce(|a, b| a + b)
}

/// What all writers were asked for, MB/s.
fn asked(phase: &DiskPhase) -> Option<f64> {
    let parts = phase.parts.iter().filter(|part| part.writes);
    let targets: Option<Vec<f64>> = parts.map(|part| part.target_bytes_per_second).collect();
    targets.filter(|targets| !targets.is_empty()).map(|targets| targets.iter().sum::<f64>() / 1e6)
}

/// Longest of a latency over all writers, or all readers, ms.
fn latency(phase: &DiskPhase, writes: bool, of: fn(&DiskPart) -> Option<u64>) -> Option<f64> {
    let parts = phase.parts.iter().filter(|part| part.writes == writes);
    parts.filter_map(of).max().map(|ns| ns as f64 / 1e6)
}

/// Medians over all repeats.
fn table(summary: &DiskSummary, settings: &[Setting]) -> String {
    let p50: fn(&DiskPart) -> Option<u64> = |part| part.latency.map(|latency| latency.p50_ns);
    let p99: fn(&DiskPart) -> Option<u64> = |part| part.latency.map(|latency| latency.p99_ns);
    let columns: [Column<'_>; 7] = [
        ("written", &|phase| rate(phase, true), 1),
        ("asked", &asked, 1),
        ("p50 ms", &|phase| latency(phase, true, p50), 2),
        ("p99 ms", &|phase| latency(phase, true, p99), 2),
        ("read", &|phase| rate(phase, false), 1),
        ("p50 ms", &|phase| latency(phase, false, p50), 2),
        ("p99 ms", &|phase| latency(phase, false, p99), 2),
    ];
    let mut lines = Vec::new();
    for place in places(summary) {
        lines.push(format!("{place}: MB/s, and from when an event was due to its end"));
        let names: Vec<_> = settings.iter().map(|setting| (setting.name(), setting.name())).collect();
        lines.extend(rows(summary, &place, &names, &columns));
    }
    lines.push("MB = 10^6 bytes; latencies of the slowest writer, and of the slowest reader".into());
    lines.join("\n")
}
