//! `keepup disk cache`: how much of what is written the page cache keeps.
use std::path::Path;

use anyhow::Context as _;
use keepup_error::Cause;
use keepup_measure::memory::Memory;
use keepup_workload::disk::cache::{CacheProbe, Limit};

use super::run::{Common, Purpose, Test, measure};
use crate::args::size;
use crate::exit::{Exit, usage};

/// Find how large the page cache is: how much may be written until the first of it must be read from disk
///
/// Files are written through the page cache, then the first is read back and timed. The totals are doubled,
/// then the gap is halved. A disk test through the cache that is smaller than what is found measures memory.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup disk cache --volume /data/a
  keepup disk cache --volume /data/a --max '8 GiB' --repeats 3")]
pub(crate) struct Args {
    /// Size of each file
    #[arg(long, value_parser = size, value_name = "SIZE", default_value = "128 MiB")]
    file: u64,
    /// Most that is written at a time [default: twice the memory, as far as there is room]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    max: Option<u64>,
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(args: &Args, purpose: Purpose) -> anyhow::Result<Exit> {
    if args.file < 1 << 20 {
        return Err(usage("a file below 1 MiB is read too fast to be timed"));
    }
    let limit = match args.max {
        Some(bytes) => Limit { bytes, by: "--max".into() },
        None => {
            let memory = Memory::read(Path::new("/")).context("cannot tell how much memory there is")?;
            Limit::of(&args.common.room()?, memory.total_bytes)
        }
    };
    if limit.bytes < args.file {
        let why =
            format!("cannot probe the cache: {} allows {} bytes, less than one file", limit.by, limit.bytes);
        return Err(usage(Cause::new(why).with_hint("a smaller --file")));
    }
    let plan = serde_json::json!({
        "file_bytes": args.file, "limit_bytes": limit.bytes, "limit": limit.by, "access": "buffered",
    });
    let test = CacheProbe { file_bytes: args.file, limit };
    let test = Test { test, together: false, plan };
    measure(&args.common, purpose, &test)
}
