//! Values on the command line, and the flags that several verbs share.
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use keepup_plan::reduction::{Reduction, ReductionError};
use keepup_plan::units::{ByteRate, Bytes, EventRate, Span};
use keepup_recorder::config::EngineChoice;
use keepup_recorder::{PlacementKind, RecorderConfig};
use keepup_recording::retention::KeepLimit;
use keepup_workload::detector::SourceRate;
use keepup_workload::disk::mode::Access;

use crate::exit::UsageError;
use crate::loads::LoadArgs;

/// A size such as `1 GiB`, in bytes.
pub(crate) fn size(text: &str) -> Result<u64, UsageError> {
    text.parse::<Bytes>().map(|bytes| bytes.0).map_err(|e| UsageError::of(&e))
}

/// A rate such as `80 MB/s`, in bytes per second.
pub(crate) fn byte_rate(text: &str) -> Result<f64, UsageError> {
    text.parse::<ByteRate>().map(|rate| rate.bytes_per_second()).map_err(|e| UsageError::of(&e))
}

/// A length of time such as `8 h`.
pub(crate) fn span(text: &str) -> Result<Duration, UsageError> {
    text.parse::<Span>().map(|span| span.0).map_err(|e| UsageError::of(&e))
}

/// A length of time that is not nothing.
pub(crate) fn some_time(text: &str) -> Result<Duration, UsageError> {
    let none = || UsageError::new("no time at all");
    span(text).and_then(|time| if time.is_zero() { Err(none()) } else { Ok(time) })
}

/// A number of runs.
fn repeats(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=1000).contains(number));
    number.ok_or_else(|| format!("{text:?} is not a number from 1 to 1000"))
}

/// How much of a recording is kept: a size such as `2 TB`, or a length of time such as `3 h`.
pub(crate) fn keep(text: &str) -> Result<KeepLimit, String> {
    if let Ok(bytes) = text.parse::<Bytes>() {
        return Ok(KeepLimit::Bytes(bytes.0));
    }
    match text.parse::<Span>() {
        Ok(span) if span.0.as_secs() > 0 => Ok(KeepLimit::Seconds(span.0.as_secs())),
        _ => Err(format!("{text:?} is neither a size as in \"2 TB\" nor a time as in \"3 h\"")),
    }
}

/// `max`, a rate in bytes, or one in events.
pub(crate) fn source_rate(text: &str) -> Result<SourceRate, UsageError> {
    if text == "max" {
        return Ok(SourceRate::Max);
    }
    if let Ok(rate) = text.parse::<EventRate>() {
        return Ok(SourceRate::Events(rate.events_per_second()));
    }
    let or = |why: &str| format!("{why}; or a rate of events as in \"305 /s\", or \"max\"");
    byte_rate(text).map(SourceRate::Bytes).map_err(|UsageError(why)| UsageError(why.map(or)))
}

/// A reduction such as `streams=0-3: spectrum | lz4`.
fn reduction(text: &str) -> Result<Reduction, String> {
    text.parse().map_err(|e: ReductionError| e.to_string())
}

/// Processors such as `0,2-3`.
pub(crate) fn cpus(text: &str) -> Result<Cpus, String> {
    let mut list = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |n: &str| {
            n.trim().parse::<usize>().map_err(|_| format!("{part:?} is not a processor or a range"))
        };
        let (first, last) = (number(first)?, number(last)?);
        if first > last || last > 4095 {
            return Err(format!("{part:?} is not a range of processors"));
        }
        list.extend(first..=last);
    }
    Ok(Cpus(list))
}

/// A list of processors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cpus(pub(crate) Vec<usize>);

/// Flags of everything that is measured in runs.
#[derive(Clone, clap::Args)]
pub(crate) struct Runs {
    /// Runs of each setting or volume
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = repeats)]
    pub(crate) repeats: u32,
    #[command(flatten)]
    pub(crate) outlet: Outlet,
    #[command(flatten)]
    pub(crate) loads: LoadArgs,
}

/// What becomes of the result of a test.
#[derive(Clone, clap::Args)]
pub(crate) struct Outlet {
    /// Say what would be done and written, and stop
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Keep the result too, in a directory of its own below this one
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// Placement, as users write it.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PlacementArg {
    /// The volume with the least waiting
    Free,
    /// Every stream on its own volume
    Pinned,
}

/// Engine, as users write it.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum EngineArg {
    /// io_uring where the kernel allows it, else plain calls
    #[default]
    Auto,
    /// io_uring or nothing
    Ring,
    /// Plain calls
    Plain,
}

/// Access, as users write it.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum AccessArg {
    /// Past the page cache
    #[default]
    Direct,
    /// Through the page cache
    Buffered,
}

impl AccessArg {
    pub(crate) fn access(self) -> Access {
        match self {
            Self::Direct => Access::Direct,
            Self::Buffered => Access::Buffered,
        }
    }
}

/// Which recording.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Directories {
    /// The recording's directory; one is enough when it has several volumes and none was moved
    #[arg(required = true, value_name = "RECORDING")]
    pub(crate) directories: Vec<PathBuf>,
}

impl EngineArg {
    pub(crate) fn choice(self) -> EngineChoice {
        match self {
            Self::Auto => EngineChoice::Auto,
            Self::Ring => EngineChoice::Ring,
            Self::Plain => EngineChoice::Plain,
        }
    }
}

/// Flags of everything that records.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Recording {
    /// Memory for blocks, the bound on all event memory, as in "512 MiB" [default: 512 MiB]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub(crate) pool: Option<u64>,
    /// Part of the pool that may keep blocks which are written and not yet flushed: they are written to
    /// another volume when theirs fails; 0 keeps none [default: a quarter of the pool]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub(crate) unflushed: Option<u64>,
    /// Events are packed into blocks of about this size [default: 1 MiB, or the profile's]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub(crate) block: Option<u64>,
    /// Size of a segment file [default: 1 GiB, or the profile's]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub(crate) segment: Option<u64>,
    /// Blocks under way per volume
    #[arg(long, default_value_t = 8, value_name = "N")]
    pub(crate) depth: usize,
    /// How blocks are written
    #[arg(long, value_enum, default_value_t)]
    pub(crate) engine: EngineArg,
    /// Which volume a stream's next block goes to [default: free, or the profile's]
    #[arg(long, value_enum)]
    pub(crate) placement: Option<PlacementArg>,
    /// What is done to events before they are written, as in "streams=0-507 keep=both: spectrum | lz4";
    /// once for each set of streams [default: the profile's]
    #[arg(long, value_parser = reduction, value_name = "REDUCTION")]
    pub(crate) reduce: Vec<Reduction>,
    /// Threads that do it
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) reduce_threads: usize,
    /// Processors of the recorder's threads, as in "0,2-3" [default: any]
    #[arg(long, value_parser = cpus, value_name = "LIST")]
    pub(crate) cpus: Option<Cpus>,
}

impl Recording {
    /// Puts the flags that were given over `config`.
    pub(crate) fn apply(&self, config: &mut RecorderConfig) {
        let as_size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        config.pool_bytes = self.pool.map_or(config.pool_bytes, as_size);
        config.unflushed_bytes = self.unflushed.map(as_size).or(config.unflushed_bytes);
        config.block_bytes = self.block.map_or(config.block_bytes, as_size);
        config.segment_bytes = self.segment.unwrap_or(config.segment_bytes);
        config.depth = self.depth;
        config.reduce_threads = self.reduce_threads;
        if !self.reduce.is_empty() {
            config.reductions = self.reduce.clone();
        }
        config.engine = self.engine.choice();
        config.placement = match self.placement {
            None => config.placement,
            Some(PlacementArg::Free) => PlacementKind::Free,
            Some(PlacementArg::Pinned) => PlacementKind::Pinned,
        };
        config.cpus = self.cpus.clone().unwrap_or_default().0;
    }
}

/// Where results and recordings go unless told otherwise.
pub(crate) fn default_volume() -> PathBuf {
    PathBuf::from("keepup-data")
}

/// The volumes that were given, or the default one, which is created.
pub(crate) fn volumes_or_default(given: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    if !given.is_empty() {
        return Ok(given.to_vec());
    }
    let volume = default_volume();
    std::fs::create_dir_all(&volume).with_context(|| format!("cannot make {}", volume.display()))?;
    Ok(vec![volume])
}
