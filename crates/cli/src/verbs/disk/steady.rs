//! `keepup disk steady`: long-term write rate.
use std::time::Duration;

use keepup_workload::disk::Point;
use keepup_workload::disk::steady::{Steady, available_span};

use super::mode::{FirstSpaceArg, ModeArgs, depth, described};
use super::run::{Common, Purpose, Test, measure};
use crate::args::{duration, nonzero_duration, size};
use crate::exit::{Exit, usage};

/// Default number of files.
const FILES: u64 = 16;

/// Write for hours and find changes of the rate, their cause and the steady state
///
/// Writes like the recorder: direct, with queue depth, into one preallocated file after another. When --span
/// is full, the oldest file is overwritten. Changes of the rate are printed when they occur.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup disk steady --volume /data/a --time '8 h' --span '500 GiB'
  keepup disk steady --volume /data/a --fill
  keepup disk steady --volume /data/a --bytes '100 GB' --round '5 s'")]
pub(crate) struct Args {
    /// Fill the free space once, except 5 % of the volume (at most 10 GiB)
    #[arg(long, conflicts_with_all = ["time", "bytes", "span"])]
    fill: bool,
    /// Duration [default: 5 min, or until --bytes or --fill]
    #[arg(long, value_parser = nonzero_duration, value_name = "TIME")]
    time: Option<Duration>,
    /// Amount of data
    #[arg(long, value_parser = size, value_name = "SIZE")]
    bytes: Option<u64>,
    /// Space for the files [default: 16 files, if space permits]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    span: Option<u64>,
    /// Size of each file
    #[arg(long, value_parser = size, value_name = "SIZE", default_value = "1 GiB")]
    file: u64,
    /// Request size
    #[arg(long, value_parser = size, value_name = "SIZE", default_value = "1 MiB")]
    block: u64,
    /// Queue depth
    #[arg(long, default_value = "8", value_name = "N", value_parser = depth)]
    depth: usize,
    /// Length of a round; five rounds decide on steadiness
    #[arg(long, value_parser = duration, value_name = "TIME", default_value = "30 s")]
    round: Duration,
    /// Space before the first write
    #[arg(long, value_enum, default_value_t)]
    space: FirstSpaceArg,
    #[command(flatten)]
    mode: ModeArgs,
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(args: &Args, purpose: Purpose) -> anyhow::Result<Exit> {
    if !(4096..=64 << 20).contains(&args.block) || !args.block.is_multiple_of(4096) {
        let block = args.block;
        return Err(usage(format!(
            "cannot use --block {block} B: it must be a multiple of 4096 B up to 64 MiB"
        )));
    }
    if args.round < Duration::from_secs(1) {
        return Err(usage("cannot use --round below 1 s"));
    }
    let file_bytes = args.file.max(1).next_multiple_of(args.block);
    let span_bytes = match args.span {
        Some(bytes) => bytes.max(1).next_multiple_of(file_bytes),
        None => {
            let least = available_span(&args.common.checked_volumes()?, file_bytes).max(file_bytes);
            if args.fill { least } else { least.min(FILES * file_bytes) }
        }
    };
    let time = match (args.time, args.bytes, args.fill) {
        (None, None, false) => Some(Duration::from_secs(300)),
        (time, ..) => time,
    };
    let bytes = if args.fill { Some(span_bytes) } else { args.bytes.map(|b| b.next_multiple_of(args.block)) };
    let point = Point { bytes: usize::try_from(args.block)?, depth: args.depth };
    let mode = args.mode.mode(args.space.space())?;
    let test = Steady { span_bytes, file_bytes, point, mode, time, bytes, round: args.round };
    let plan = serde_json::json!({
        "span_bytes": span_bytes, "file_bytes": file_bytes, "block_bytes": args.block, "depth": args.depth,
        "seconds": time.map(|time| time.as_secs_f64()), "bytes": bytes, "fill": args.fill,
        "round_seconds": args.round.as_secs_f64(), "mode": described(&mode),
    });
    measure(&args.common, purpose, &Test { test, together: false, plan })
}
