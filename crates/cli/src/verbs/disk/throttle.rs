//! `keepup disk throttle`: rate-limited writers and readers.
use std::time::Duration;

use keepup_error::Cause;
use keepup_workload::disk::throttle::{ClientGroup, Setting, Throttle};
use keepup_workload::disk::{Pace, Point};

use super::mode::{ModeArgs, SpaceArg, depth, described, request};
use super::run::{Common, Purpose, Test, measure};
use crate::args::{duration, nonzero_duration, size};
use crate::exit::{Exit, usage};

/// Measure rates and latencies of writers at a fixed interval against concurrent readers
///
/// Events are due at fixed times, even if the previous event has not completed. Latency counts from the due
/// time. With --pause a writer waits after each event instead, like the CDF event logger's test. A delay of 0
/// is full speed.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup disk throttle --volume /data/a
  keepup disk throttle --volume /data/a --writers 1,2,3,4 --delays '2 ms,5 ms,10 ms,20 ms' --pause
  keepup disk throttle --volume /data/a --writers 8 --delays '2 ms,4 ms' --read-delays '2 ms,4 ms'
  keepup disk throttle --volume /data/a --volume /data/b --together")]
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
    /// Intervals between the events of a writer
    #[arg(
        long,
        default_value = "5 ms,10 ms,20 ms",
        value_name = "TIMES",
        value_delimiter = ',',
        value_parser = duration,
    )]
    delays: Vec<Duration>,
    /// Numbers of readers
    #[arg(long, default_value = "1", value_name = "NUMBERS", value_delimiter = ',', value_parser = number)]
    readers: Vec<u32>,
    /// Intervals between the events of a reader
    #[arg(long, default_value = "0 ms", value_name = "TIMES", value_delimiter = ',', value_parser = duration)]
    read_delays: Vec<Duration>,
    /// Closed loop: delay after the end of each event, as in the paper
    #[arg(long)]
    pause: bool,
    /// Measure all volumes at once, each with all writers and readers
    #[arg(long)]
    together: bool,
    /// Event size
    #[arg(long, default_value = "256 KiB", value_parser = request, value_name = "SIZE")]
    event: usize,
    /// Queue depth per writer or reader
    #[arg(long, default_value = "4", value_name = "N", value_parser = depth)]
    depth: usize,
    /// Size of each file
    ///
    /// At the end of a file, writers start a new one and readers rewind.
    #[arg(long, default_value = "1 GiB", value_parser = size, value_name = "SIZE")]
    file: u64,
    /// Warm-up time, not measured
    #[arg(long, default_value = "1 s", value_parser = duration, value_name = "TIME")]
    ramp: Duration,
    /// Measurement time per combination
    #[arg(long, default_value = "10 s", value_parser = nonzero_duration, value_name = "TIME")]
    time: Duration,
    /// Space before writes
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
    let writers = ClientGroup::all(&args.writers, &paces(&args.delays));
    let readers = ClientGroup::all(&args.readers, &paces(&args.read_delays));
    let settings = Setting::all(&writers, &readers);
    if settings.is_empty() {
        let why = Cause::new("cannot measure: neither writers nor readers are given");
        return Err(usage(why.with_hint("--writers 1,2 or --readers 1")));
    }
    let mode = args.mode.mode(args.space.space())?;
    let file_bytes = args.file.max(1).next_multiple_of(args.event as u64);
    let point = Point { bytes: args.event, depth: args.depth };
    let seconds = |times: &[Duration]| times.iter().map(Duration::as_secs_f64).collect::<Vec<_>>();
    let test = Test {
        test: Throttle {
            settings,
            point,
            file_bytes,
            ramp: args.ramp,
            run: args.time,
            mode,
            together: args.together,
        },
        together: args.together,
        plan: serde_json::json!({
            "writers": args.writers, "delays_seconds": seconds(&args.delays), "readers": args.readers,
            "read_delays_seconds": seconds(&args.read_delays), "closed_loop": args.pause,
            "together": args.together,
            "event_bytes": args.event, "depth": args.depth, "file_bytes": file_bytes,
            "ramp_seconds": args.ramp.as_secs_f64(), "run_seconds": args.time.as_secs_f64(),
            "mode": described(&mode),
        }),
    };
    measure(&args.common, purpose, &test)
}
