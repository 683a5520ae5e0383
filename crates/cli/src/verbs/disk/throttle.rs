//! `keepup disk throttle`: paced writers against readers.
use std::time::Duration;

use keepup_error::Cause;
use keepup_workload::disk::throttle::{ClientGroup, Setting, Throttle};
use keepup_workload::disk::{Pace, Point};

use super::mode::{ModeArgs, SpaceArg, depth, described, request};
use super::run::{Common, Purpose, Test, measure};
use crate::args::{size, some_time, span};
use crate::exit::{Exit, usage};

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
    let writers = ClientGroup::all(&args.writers, &paces(&args.delays));
    let readers = ClientGroup::all(&args.readers, &paces(&args.read_delays));
    let settings = Setting::all(&writers, &readers);
    if settings.is_empty() {
        let why = Cause::new("cannot measure: neither writers nor readers were asked for");
        return Err(usage(why.with_hint("--writers 1,2 or --readers 1")));
    }
    let mode = args.mode.mode(args.space.space())?;
    let file_bytes = args.file.max(1).next_multiple_of(args.event as u64);
    let point = Point { bytes: args.event, depth: args.depth };
    let seconds = |times: &[Duration]| times.iter().map(Duration::as_secs_f64).collect::<Vec<_>>();
    let test = Test {
        test: Throttle { settings, point, file_bytes, ramp: args.ramp, run: args.time, mode },
        together: false,
        plan: serde_json::json!({
            "writers": args.writers, "delays_seconds": seconds(&args.delays), "readers": args.readers,
            "read_delays_seconds": seconds(&args.read_delays), "closed_loop": args.pause,
            "event_bytes": args.event, "depth": args.depth, "file_bytes": file_bytes,
            "ramp_seconds": args.ramp.as_secs_f64(), "run_seconds": args.time.as_secs_f64(),
            "mode": described(&mode),
        }),
    };
    measure(&args.common, purpose, &test)
}
