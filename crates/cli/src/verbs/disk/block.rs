//! `keepup disk block`: the phases of bonnie++.
use std::path::Path;

use anyhow::Context as _;
use clap::value_parser;
use keepup_measure::memory::Memory;
use keepup_workload::disk::block::{
    BlockTest, CHUNK_BYTES, CacheMode, DIRECT_CHUNK_BYTES, FILES_UNIT, SEEKS,
};

use super::run::{Common, Purpose, Test, measure};
use crate::args::size;
use crate::exit::{Exit, usage};

/// Run the phases of bonnie++: write, rewrite, read, seek, create and delete files
///
/// Reports throughput and CPU cost of each phase of bonnie++. With the page cache the file must be twice as
/// large as the memory. The measured time of a write includes the final flush.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup disk block --volume /data/a
  keepup disk block --volume /data/a --direct --size '16 GiB' --repeats 5
  keepup disk block --volume /data/a --quick")]
pub(crate) struct Args {
    /// Size of the large file, 0 B for none [default: 2x memory; --direct: 4 GiB]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    size: Option<u64>,
    /// Request size [default: 8 KiB; --direct: 1 MiB, but 8 KiB for seeks]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    chunk: Option<u64>,
    /// Small files per order, in units of 1024
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = value_parser!(u32).range(0..=4096))]
    files: u32,
    /// Random seeks, by 5 threads; 1 in 10 writes back [default: 8192]
    #[arg(long, value_name = "N")]
    seeks: Option<u64>,
    /// Data to write and read by character, through the page cache
    #[arg(long, value_parser = size, default_value = "0 B", value_name = "SIZE")]
    characters: u64,
    /// Bypass the page cache (O_DIRECT)
    #[arg(long, conflicts_with = "cached")]
    direct: bool,
    /// Measure the page cache, with a file that fits into memory
    #[arg(long)]
    cached: bool,
    /// Short test: 1 GiB, 1024 files, 1000 seeks; direct unless --cached
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(args: &Args, purpose: Purpose) -> anyhow::Result<Exit> {
    let memory = Memory::read(Path::new("/")).context("cannot read the size of the memory")?;
    let through = match (args.direct || (args.quick && !args.cached), args.cached) {
        (true, _) => CacheMode::Direct,
        (_, true) => CacheMode::Cached,
        _ => CacheMode::Buffered,
    };
    let direct = through == CacheMode::Direct;
    let default_chunk = if direct { DIRECT_CHUNK_BYTES } else { CHUNK_BYTES } as u64;
    let chunk_bytes = args.chunk.unwrap_or(default_chunk);
    if !(512..=64 << 20).contains(&chunk_bytes) || !chunk_bytes.is_multiple_of(512) {
        return Err(usage(format!(
            "cannot use --chunk {chunk_bytes} B: it must be a multiple of 512 B up to 64 MiB"
        )));
    }
    let size_bytes = match args.size {
        Some(bytes) => bytes,
        None if args.quick => 1 << 30,
        None if through == CacheMode::Buffered => memory.total_bytes.saturating_mul(2),
        None => 4 << 30,
    };
    let test = BlockTest {
        size_bytes: size_bytes.next_multiple_of(chunk_bytes),
        chunk_bytes: usize::try_from(chunk_bytes)?,
        through,
        character_bytes: args.characters,
        seek_bytes: args.chunk.map_or(Ok(CHUNK_BYTES), usize::try_from)?,
        seeks: args.seeks.unwrap_or(if args.quick { 1000 } else { SEEKS }),
        files: if args.quick { 1 } else { args.files } * FILES_UNIT,
    };
    if let Some(why) = test.objection(memory.total_bytes).filter(|_| size_bytes > 0) {
        return Err(usage(why));
    }
    let plan = serde_json::json!({
        "size_bytes": test.size_bytes, "chunk_bytes": chunk_bytes, "access": through.name(),
        "character_bytes": test.character_bytes,
        "seek_bytes": test.seek_bytes, "seeks": test.seeks, "files": test.files,
        "memory_bytes": memory.total_bytes,
    });
    let test = Test { test, together: false, plan };
    measure(&args.common, purpose, &test)
}
