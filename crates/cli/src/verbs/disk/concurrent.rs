//! `keepup disk concurrent`: concurrent readers or writers.
use clap::ValueEnum;
use keepup_workload::disk::concurrent::Concurrent;
use keepup_workload::disk::{IoDirection, Point};

use super::mode::{ModeArgs, SpaceArg, depth, described, request};
use super::run::{Common, Purpose, Test, measure};
use crate::args::size;
use crate::exit::Exit;

/// Write or read 1 to N files concurrently and time the first
///
/// The test of the CDF event logger. Reports its normalised rate (rate of the first file times the number of
/// files) and the total rate. The paper's settings are --access buffered --engine sync --space new --depth
/// 1.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup disk concurrent --volume /data/a
  keepup disk concurrent --volume /data/a --files 8 --size '4 GiB' --kind write --repeats 5
  keepup disk concurrent --volume /data/a --access buffered --engine sync --space new --depth 1")]
pub(crate) struct Args {
    /// Largest number of concurrent files
    #[arg(
        long,
        default_value_t = 4,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=256),
    )]
    files: u32,
    /// Size of the timed file; the others are twice as large
    #[arg(long, default_value = "1 GiB", value_parser = size, value_name = "SIZE")]
    size: u64,
    /// Operations
    #[arg(long, value_enum, default_value_t)]
    kind: KindArg,
    /// Request size
    #[arg(long, default_value = "256 KiB", value_parser = request, value_name = "SIZE")]
    request: usize,
    /// Queue depth per file
    #[arg(long, default_value = "4", value_name = "N", value_parser = depth)]
    depth: usize,
    /// Space before writes
    #[arg(long, value_enum, default_value_t)]
    space: SpaceArg,
    /// Use parts of a single file
    #[arg(long)]
    shared: bool,
    #[command(flatten)]
    mode: ModeArgs,
    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum KindArg {
    #[default]
    Both,
    Write,
    Read,
}

pub(super) fn run(args: &Args, purpose: Purpose) -> anyhow::Result<Exit> {
    let kinds = match args.kind {
        KindArg::Both => vec![IoDirection::Write, IoDirection::Read],
        KindArg::Write => vec![IoDirection::Write],
        KindArg::Read => vec![IoDirection::Read],
    };
    let mode = args.mode.mode(args.space.space())?;
    let file_bytes = args.size.max(1).next_multiple_of(args.request as u64);
    let point = Point { bytes: args.request, depth: args.depth };
    let test = Test {
        test: Concurrent { kinds, most: args.files, point, file_bytes, is_shared: args.shared, mode },
        together: false,
        plan: serde_json::json!({
            "files": args.files, "file_bytes": file_bytes, "request_bytes": args.request, "depth": args.depth,
            "shared_file": args.shared, "mode": described(&mode),
        }),
    };
    measure(&args.common, purpose, &test)
}
