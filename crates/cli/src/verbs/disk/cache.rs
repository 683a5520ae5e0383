//! `keepup disk cache`: size of the page cache for written data.
use std::path::Path;

use anyhow::Context as _;
use keepup_error::Cause;
use keepup_measure::memory::Memory;
use keepup_workload::disk::cache::{CacheProbe, Limit};

use super::run::{Common, Purpose, Test, measure};
use crate::args::size;
use crate::exit::{Exit, usage};

/// Find the size of the page cache
///
/// The size is the amount of data after which the first file is evicted. The test writes files through the
/// page cache, then times a read of the first one; a binary search over the amount finds the size. A buffered
/// disk test with less data than this measures memory.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup disk cache --volume /data/a
  keepup disk cache --volume /data/a --max '8 GiB' --repeats 3")]
pub(crate) struct Args {
    /// Size of each file
    #[arg(long, value_parser = size, value_name = "SIZE", default_value = "128 MiB")]
    file: u64,
    /// Limit on the data of a step [default: 2x memory, if space permits]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    max: Option<u64>,
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(args: &Args, purpose: Purpose) -> anyhow::Result<Exit> {
    if args.file < 1 << 20 {
        return Err(usage("cannot use --file below 1 MiB: its read is too short to be timed"));
    }
    let limit = match args.max {
        Some(bytes) => Limit { bytes, by: "--max".into() },
        None => {
            let memory = Memory::read(Path::new("/")).context("cannot read the size of the memory")?;
            Limit::of(&args.common.checked_volumes()?, memory.total_bytes)
        }
    };
    if limit.bytes < args.file {
        let why = format!(
            "cannot probe the cache: {} limits the data to {} bytes, less than one file",
            limit.by, limit.bytes
        );
        return Err(usage(Cause::new(why).with_hint("use a smaller --file")));
    }
    let plan = serde_json::json!({
        "file_bytes": args.file, "limit_bytes": limit.bytes, "limit": limit.by, "access": "buffered",
    });
    let test = CacheProbe { file_bytes: args.file, limit };
    let test = Test { test, together: false, plan };
    measure(&args.common, purpose, &test)
}
