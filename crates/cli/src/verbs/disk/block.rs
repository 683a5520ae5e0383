//! `keepup disk block`: bonnie++'s phases.
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

/// Write, rewrite and read a large file block by block, seek in it, create and delete very many small files
///
/// The phases of bonnie++, with what each costs in CPU. CacheMode the page cache the file must be twice as
/// large as the memory. A write ends with a flush inside the time that counts.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup disk block --volume /data/a
  keepup disk block --volume /data/a --direct --size '16 GiB' --repeats 5
  keepup disk block --volume /data/a --quick")]
pub(crate) struct Args {
    /// Size of the large file [default: twice the memory, 4 GiB with --direct; 0 B leaves it out]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    size: Option<u64>,
    /// Size of each read and write [default: 8 KiB, 1 MiB with --direct]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    chunk: Option<u64>,
    /// Files to create in each order, in thousands (1024)
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = value_parser!(u32).range(0..=4096))]
    files: u32,
    /// Random seeks, by five at once; one in ten writes back [default: 8192]
    #[arg(long, value_name = "N")]
    seeks: Option<u64>,
    /// Past the page cache
    #[arg(long, conflicts_with = "cached")]
    direct: bool,
    /// CacheMode the page cache with a file that fits into memory: figures of the cache, and named so
    #[arg(long)]
    cached: bool,
    /// 1 GiB (past the page cache unless --cached), 1024 files, 1000 seeks: a first look
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(args: &Args, purpose: Purpose) -> anyhow::Result<Exit> {
    let memory = Memory::read(Path::new("/")).context("cannot tell how much memory there is")?;
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
            "a chunk of {chunk_bytes} bytes is not a multiple of 512 from 512 B to 64 MiB"
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
        seeks: args.seeks.unwrap_or(if args.quick { 1000 } else { SEEKS }),
        files: if args.quick { 1 } else { args.files } * FILES_UNIT,
    };
    if let Some(why) = test.objection(memory.total_bytes).filter(|_| size_bytes > 0) {
        return Err(usage(why));
    }
    let plan = serde_json::json!({
        "size_bytes": test.size_bytes, "chunk_bytes": chunk_bytes, "access": through.name(),
        "seeks": test.seeks, "files": test.files, "memory_bytes": memory.total_bytes,
    });
    let test = Test { test, together: false, plan };
    measure(&args.common, purpose, &test)
}
