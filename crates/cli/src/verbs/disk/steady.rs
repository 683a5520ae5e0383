//! `keepup disk steady`: hours of writing.
use std::time::Duration;

use keepup_workload::disk::Point;
use keepup_workload::disk::steady::{Steady, available_span};

use super::mode::{FirstSpaceArg, ModeArgs, depth, described};
use super::run::{Common, Purpose, Test, measure};
use crate::args::{size, some_time, span};
use crate::exit::{Exit, usage};

/// Files of the series where neither --span nor --fill says how much space it takes.
const FILES: u64 = 16;

/// Write for hours: does the rate hold, where does it change and why, does it come to rest
///
/// As the recorder writes: direct, several requests at a time, one reserved file after another; when --span
/// is used up the oldest is written over. A change of level is told at once.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup disk steady --volume /data/a --time '8 h' --span '500 GiB'
  keepup disk steady --volume /data/a --fill
  keepup disk steady --volume /data/a --bytes '100 GB' --round '5 s'")]
pub(crate) struct Args {
    /// Write all the room there is, once (5 % of the volume, at most 10 GiB, are left alone)
    #[arg(long, conflicts_with_all = ["time", "bytes", "span"])]
    fill: bool,
    /// How long to write [default: 5 min, without --bytes and --fill]
    #[arg(long, value_parser = some_time, value_name = "TIME")]
    time: Option<Duration>,
    /// How much to write
    #[arg(long, value_parser = size, value_name = "SIZE")]
    bytes: Option<u64>,
    /// Space that the files take [default: 16 files, as far as there is room]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    span: Option<u64>,
    /// Size of each file
    #[arg(long, value_parser = size, value_name = "SIZE", default_value = "1 GiB")]
    file: u64,
    /// Size of each request
    #[arg(long, value_parser = size, value_name = "SIZE", default_value = "1 MiB")]
    block: u64,
    /// Requests under way
    #[arg(long, default_value = "8", value_name = "N", value_parser = depth)]
    depth: usize,
    /// Length of a round; five in a row decide whether the rate is steady
    #[arg(long, value_parser = span, value_name = "TIME", default_value = "30 s")]
    round: Duration,
    /// What lies where a file is written for the first time
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
        return Err(usage(format!("a request of {block} bytes is not a multiple of 4096 up to 64 MiB")));
    }
    if args.round < Duration::from_secs(1) {
        return Err(usage("a round is at least one second long"));
    }
    let file_bytes = args.file.max(1).next_multiple_of(args.block);
    let span_bytes = match args.span {
        Some(bytes) => bytes.max(1).next_multiple_of(file_bytes),
        None => {
            let least = available_span(&args.common.room()?, file_bytes).max(file_bytes);
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
