//! Parsers of command line values, and flags shared by several commands.
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use keepup_measure::settings::{CoreList, cores_near_cards};
use keepup_plan::reduction::{Reduction, ReductionError};
use keepup_plan::units::{ByteRate, Bytes, EventRate, Share, Span};
use keepup_recorder::config::EngineChoice;
use keepup_recorder::{PlacementKind, RecorderConfig};
use keepup_recording::retention::KeepLimit;
use keepup_sys::thread::allowed_cpus;
use keepup_workload::detector::SourceRate;
use keepup_workload::disk::mode::Access;

use crate::exit::UsageError;
use crate::loads::LoadArgs;
use crate::output::log;

/// Parses a size such as `1 GiB`, in bytes.
pub(crate) fn size(text: &str) -> Result<u64, UsageError> {
    text.parse::<Bytes>().map(|bytes| bytes.0).map_err(|e| UsageError::of(&e))
}

/// Parses a share such as `5 %`, as a fraction above 0.
pub(crate) fn share(text: &str) -> Result<f64, UsageError> {
    let share = text.parse::<Share>().map_err(|e| UsageError::of(&e))?;
    match share.fraction() {
        fraction if fraction > 0.0 => Ok(fraction),
        _ => Err(UsageError::new("it must be above 0")),
    }
}

/// Parses a rate such as `80 MB/s`, in bytes per second.
pub(crate) fn byte_rate(text: &str) -> Result<f64, UsageError> {
    text.parse::<ByteRate>().map(|rate| rate.bytes_per_second()).map_err(|e| UsageError::of(&e))
}

/// Parses a duration such as `8 h`.
pub(crate) fn duration(text: &str) -> Result<Duration, UsageError> {
    text.parse::<Span>().map(|span| span.0).map_err(|e| UsageError::of(&e))
}

/// Parses a duration above zero.
pub(crate) fn nonzero_duration(text: &str) -> Result<Duration, UsageError> {
    let none = || UsageError::new("the duration must be above 0");
    duration(text).and_then(|time| if time.is_zero() { Err(none()) } else { Ok(time) })
}

/// Parses a number of runs.
fn repeats(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=1000).contains(number));
    number.ok_or_else(|| format!("{text:?} is not a number from 1 to 1000"))
}

/// Parses a retention limit: a size such as `2 TB` or a duration such as `3 h`.
pub(crate) fn keep_limit(text: &str) -> Result<KeepLimit, String> {
    if let Ok(bytes) = text.parse::<Bytes>() {
        return Ok(KeepLimit::Bytes(bytes.0));
    }
    match text.parse::<Span>() {
        Ok(span) if span.0.as_secs() > 0 => Ok(KeepLimit::Seconds(span.0.as_secs())),
        _ => Err(format!("{text:?} is neither a size such as \"2 TB\" nor a duration such as \"3 h\"")),
    }
}

/// Parses `max`, a byte rate or an event rate.
pub(crate) fn source_rate(text: &str) -> Result<SourceRate, UsageError> {
    if text == "max" {
        return Ok(SourceRate::Max);
    }
    if let Ok(rate) = text.parse::<EventRate>() {
        return Ok(SourceRate::Events(rate.events_per_second()));
    }
    let or = |why: &str| format!("{why}, an event rate such as \"305 /s\", or \"max\"");
    byte_rate(text).map(SourceRate::Bytes).map_err(|UsageError(why)| UsageError(why.map(or)))
}

/// Parses a reduction such as `streams=0-3: spectrum | lz4`.
fn reduction(text: &str) -> Result<Reduction, String> {
    text.parse().map_err(|e: ReductionError| e.to_string())
}

/// Parses a CPU list such as `0,2-3`.
pub(crate) fn cpus(text: &str) -> Result<Cpus, String> {
    let mut list = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number =
            |n: &str| n.trim().parse::<usize>().map_err(|_| format!("{part:?} is not a CPU number or range"));
        let (first, last) = (number(first)?, number(last)?);
        if first > last || last > 4095 {
            return Err(format!("{part:?} is not a range of CPU numbers"));
        }
        list.extend(first..=last);
    }
    Ok(Cpus(list))
}

/// CPU numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cpus(pub(crate) Vec<usize>);

/// Flags of commands that repeat their measurement.
#[derive(Clone, clap::Args)]
pub(crate) struct RepeatArgs {
    /// Number of runs of each setting or volume
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = repeats)]
    pub(crate) repeats: u32,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) loads: LoadArgs,
}

/// Flags of the output of a measurement.
#[derive(Clone, clap::Args)]
pub(crate) struct OutputArgs {
    /// Print what would be done and written, then exit
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Store the result in a new subdirectory of DIR
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// Placement on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PlacementArg {
    /// Volume with the shortest queue
    Free,
    /// One fixed volume per stream
    Pinned,
}

/// I/O engine on the command line.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum EngineArg {
    /// io_uring if available, else system calls
    #[default]
    Auto,
    /// io_uring only
    #[value(name = "io_uring", alias = "ring")]
    Ring,
    /// Blocking system calls only
    #[value(name = "sync", alias = "plain")]
    Plain,
}

/// Page cache use on the command line.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum AccessArg {
    /// Bypass the page cache (O_DIRECT)
    #[default]
    Direct,
    /// Use the page cache
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

/// Directories of one recording.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RecordingDirs {
    /// Directory of the recording; one is enough unless a volume was moved
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

/// Flags of commands that run a recorder.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RecorderArgs {
    /// Memory for event blocks [default: 512 MiB for each intake thread]
    ///
    /// This is the limit on all memory that holds events.
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub(crate) pool: Option<u64>,
    /// Limit on written, unflushed blocks in the pool [default: 1/4 of it]
    ///
    /// If a volume fails, the recorder writes these blocks to another volume. 0 disables this.
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub(crate) unflushed: Option<u64>,
    /// Largest block of several events [default: the profile's, or 1 MiB]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub(crate) block: Option<u64>,
    /// Size of a segment file [default: the profile's, or 1 to 16 GiB]
    ///
    /// By default, segments start at 1 GiB and double with the rate, so that one takes at least 4 s to fill,
    /// up to 16 GiB and 1/8 of the free space. With --keep they do not grow.
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub(crate) segment: Option<u64>,
    /// Queue depth per volume, in blocks
    #[arg(long, default_value_t = 8, value_name = "N")]
    pub(crate) depth: usize,
    /// I/O engine: io_uring, or blocking system calls (sync)
    #[arg(long, value_enum, default_value_t)]
    pub(crate) engine: EngineArg,
    /// Placement [default: the profile's]
    ///
    /// Choice of the volume for the next block. Without a profile the default is `free`.
    #[arg(long, value_enum)]
    pub(crate) placement: Option<PlacementArg>,
    /// Reduction of events; repeatable [default: the profile's]
    ///
    /// Events are reduced before they are written. Give the flag once for each set of streams, for example
    /// "streams=0-507 keep=both: spectrum | lz4".
    #[arg(long, value_parser = reduction, value_name = "REDUCTION")]
    pub(crate) reduce: Vec<Reduction>,
    /// Number of reduction threads
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) reduce_threads: usize,
    /// Number of intake threads
    ///
    /// One thread receives 4 to 5 GB/s. Each connection, with all its streams, is served by one thread; each
    /// thread has an equal part of the pool. At most 64.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) intake_threads: usize,
    /// CPUs of the recorder threads, such as "0,2-3" [default: any]
    #[arg(long, value_parser = cpus, value_name = "LIST")]
    pub(crate) cpus: Option<Cpus>,
    /// CPUs of the intake threads [default: those of --cpus, for all threads]
    ///
    /// Without --cpus, several intake threads run on the NUMA node of the network cards. This requires
    /// several nodes, all cards that are up on one of them, and an allowed CPU there for each thread.
    /// Otherwise the kernel chooses.
    ///
    /// With at least as many CPUs as intake threads, each thread gets its own consecutive part of the list. A
    /// client with new streams goes to the thread with the fewest streams. Among equals, it goes to the
    /// thread on the CPU that receives its packets.
    #[arg(long, value_parser = cpus, value_name = "LIST")]
    pub(crate) intake_cpus: Option<Cpus>,
    /// CPUs of the writer threads [default: those of --cpus]
    #[arg(long, value_parser = cpus, value_name = "LIST")]
    pub(crate) writer_cpus: Option<Cpus>,
}

impl RecorderArgs {
    /// Overrides `config` with the flags that were given.
    pub(crate) fn apply(&self, config: &mut RecorderConfig) {
        let as_size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let pool_bytes = config.pool_bytes.saturating_mul(self.intake_threads.max(1));
        config.pool_bytes = self.pool.map_or(pool_bytes, as_size);
        config.unflushed_bytes = self.unflushed.map(as_size).or(config.unflushed_bytes);
        config.block_bytes = self.block.map_or(config.block_bytes, as_size);
        config.segment_bytes = self.segment.unwrap_or(config.segment_bytes);
        config.segment_auto &= self.segment.is_none();
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
        config.intake_threads = self.intake_threads;
        config.cpus = self.cpus.clone().unwrap_or_default().0;
        config.intake_cpus = match (&self.intake_cpus, &self.cpus) {
            (Some(chosen), _) => chosen.0.clone(),
            (None, Some(_)) => Vec::new(),
            (None, None) => intake_cpus_near_cards(self.intake_threads),
        };
        config.writer_cpus = self.writer_cpus.clone().unwrap_or_default().0;
    }
}

/// CPUs on the NUMA node of the network cards, for several intake threads.
///
/// Empty (any CPU) if the machine has one node, the cards are on several nodes, or too few of the CPUs are
/// allowed.
fn intake_cpus_near_cards(threads: usize) -> Vec<usize> {
    let near = (threads > 1).then(|| cores_near_cards(Path::new("/"))).flatten();
    let Some((cores, cards)) = near else { return Vec::new() };
    let allowed = allowed_cpus().unwrap_or_default();
    let cpus: Vec<usize> =
        cores.0.iter().map(|&core| core as usize).filter(|c| allowed.contains(c)).collect();
    if cpus.len() < threads {
        return Vec::new();
    }
    let used = CoreList(cores.0.into_iter().filter(|&core| cpus.contains(&(core as usize))).collect());
    log(&format!("intake threads run on CPUs {used}, near {}", cards.join(", ")));
    cpus
}

/// Default directory for recordings and test files.
pub(crate) fn default_volume() -> PathBuf {
    PathBuf::from("keepup-data")
}

/// The given volumes, or the default volume, which is created if missing.
pub(crate) fn volumes_or_default(given: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    if !given.is_empty() {
        return Ok(given.to_vec());
    }
    let volume = default_volume();
    std::fs::create_dir_all(&volume).with_context(|| format!("cannot create {}", volume.display()))?;
    Ok(vec![volume])
}
