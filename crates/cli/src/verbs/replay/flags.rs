//! What `replay` and `replay-set` are told alike.
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use keepup_trace::Level;
use keepup_workload::disk::mode::{Access, EngineChoice};
use keepup_workload::load::LoadPlan;
use keepup_workload::replay::{
    IoOptions, Mode, PASSES_MIN, Policy, ReplayOptions, ScriptOptions, TargetSpec,
};

use crate::args::{AccessArg, EngineArg, Outlet, byte_rate, size, some_time, span, volumes_or_default};
use crate::exit::{UsageError, usage};
use crate::loads::LoadArgs;
use crate::verbs::trace::HintArgs;

/// Requests under way at most where the trace says when they are made.
const OPEN_LIMIT: usize = 4096;
/// Requests under way in `afap`, unless told otherwise: what a disk of today takes to be busy.
const USUAL_DEPTH: usize = 32;

/// The flags.
#[derive(Clone, clap::Args)]
pub(super) struct Common {
    /// Directory on the disk to measure; several are measured in turns [default: ./keepup-data]
    #[arg(long, value_name = "DIR")]
    volume: Vec<PathBuf>,
    /// A block device, which is only read; what its blocks hold is not known, and some that were never
    /// written cost a disk nothing
    #[arg(long, value_name = "DEV")]
    raw: Vec<PathBuf>,
    /// Instead of a disk: null, memory, or throttled=RATE, a made-up disk of that rate
    #[arg(long, value_name = "TARGET", value_parser = target)]
    target: Vec<TargetSpec>,
    /// When requests are made
    #[arg(long, value_enum, default_value_t)]
    mode: ModeArg,
    /// So many times as fast as the trace; of timed and dep
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    speed: Option<f64>,
    /// Requests per second; of paced
    #[arg(long, value_name = "RATE", value_parser = factor)]
    rate: Option<f64>,
    /// Requests under way; of afap [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    depth: Option<u32>,
    /// What becomes of addresses that the target does not have
    #[arg(long, value_enum, default_value_t)]
    map: MapArg,
    /// Size of the target [default: as large as the trace needs it, or the device]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    size: Option<u64>,
    /// Only requests of this part of the trace's time, as in "10s..70s" or "5min.."
    #[arg(long, value_name = "FROM..UNTIL", value_parser = window)]
    window: Option<(Duration, Option<Duration>)>,
    /// Only the first so many requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_records: Option<u64>,
    /// Longer pauses between requests become as long as this
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    cap_gap: Option<Duration>,
    /// Leave out what writes
    #[arg(long)]
    reads_only: bool,
    /// Passes on each place; the first is cold, and is not compared
    #[arg(
        long,
        value_name = "N",
        default_value_t = PASSES_MIN,
        value_parser = clap::value_parser!(u32).range(i64::from(PASSES_MIN)..=1000),
    )]
    pub(super) passes: u32,
    /// Past the page cache or through it [default: as the trace was taken]
    #[arg(long, value_enum)]
    access: Option<AccessArg>,
    /// How requests are made
    #[arg(long, value_enum, default_value_t)]
    engine: EngineArg,
    /// Read back in the end what was written, and compare
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    pub(super) hints: HintArgs,
    #[command(flatten)]
    pub(super) outlet: Outlet,
    #[command(flatten)]
    pub(super) loads: LoadArgs,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum ModeArg {
    /// At the trace's own times
    #[default]
    Timed,
    /// As fast as possible
    Afap,
    /// After what they were seen to wait for
    Dep,
    /// At a constant rate
    Paced,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum MapArg {
    /// Nothing: the target must have all
    #[default]
    Identity,
    /// Requests beyond it are left out
    Clip,
    /// Modulo its size
    Wrap,
    /// Nearer to each other, 1 MiB by 1 MiB
    Scale,
}

/// A number above 0.
fn factor(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches("/s").trim().parse::<f64>().ok();
    number.filter(|n| n.is_finite() && (1e-6..=1e9).contains(n)).ok_or_else(|| "a number above 0".into())
}

fn target(text: &str) -> Result<TargetSpec, UsageError> {
    match text.split_once('=') {
        None if text == "null" => Ok(TargetSpec::Null),
        None if text == "memory" => Ok(TargetSpec::Memory),
        Some(("throttled", rate)) => match byte_rate(rate)? {
            rate if rate > 0.0 => Ok(TargetSpec::Throttled(rate)),
            _ => Err(UsageError::new("a disk of rate 0 never ends")),
        },
        _ => Err(UsageError::new("null, memory, or throttled=RATE as in throttled=100MB/s")),
    }
}

/// A part of a trace's time.
fn window(text: &str) -> Result<(Duration, Option<Duration>), UsageError> {
    let form = || UsageError::new("FROM..UNTIL, as in \"10s..70s\"");
    let (from, until) = text.split_once("..").ok_or_else(form)?;
    let from = if from.is_empty() { Duration::ZERO } else { span(from)? };
    let until = (!until.is_empty()).then(|| span(until)).transpose()?;
    match until {
        Some(until) if until <= from => Err(UsageError::new(format!("{text:?} ends before it starts"))),
        _ => Ok((from, until)),
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Common {
    /// Where requests go; the usual volume, which is made, where nothing is said.
    pub(super) fn places(&self) -> anyhow::Result<Vec<TargetSpec>> {
        let mut places: Vec<TargetSpec> = self.volume.iter().cloned().map(TargetSpec::Volume).collect();
        places.extend(self.raw.iter().cloned().map(TargetSpec::Device));
        places.extend(self.target.iter().cloned());
        if places.is_empty() {
            places.extend(volumes_or_default(&[])?.into_iter().map(TargetSpec::Volume));
        }
        for (n, place) in places.iter().enumerate() {
            if places[..n].contains(place) {
                return Err(usage(format!("{place} is given twice")));
            }
        }
        Ok(places)
    }

    /// How a trace is replayed; how it is accessed depends on the trace.
    pub(super) fn manner(&self, loads: LoadPlan, with_and_without: bool) -> anyhow::Result<ReplayOptions> {
        let only = |given: bool, flag: &str, modes: &str| match given {
            true => Err(UsageError::new(format!("{flag} is for --mode {modes}"))),
            false => Ok(()),
        };
        let speed = self.speed.unwrap_or(1.0);
        let mode = match self.mode {
            ModeArg::Timed => Mode::Timed { speed },
            ModeArg::Dep => Mode::Dep { speed },
            ModeArg::Afap => Mode::Afap { depth: self.depth.map_or(USUAL_DEPTH, |depth| depth as usize) },
            ModeArg::Paced => Mode::Paced {
                rate: self.rate.ok_or_else(|| UsageError::new("--mode paced takes --rate as well"))?,
            },
        };
        only(
            self.speed.is_some() && !matches!(self.mode, ModeArg::Timed | ModeArg::Dep),
            "--speed",
            "timed or dep",
        )?;
        only(self.rate.is_some() && !matches!(self.mode, ModeArg::Paced), "--rate", "paced")?;
        only(self.depth.is_some() && !matches!(self.mode, ModeArg::Afap), "--depth", "afap")?;
        let limit = match mode {
            Mode::Afap { depth } => depth,
            _ => OPEN_LIMIT,
        };
        let io = IoOptions { engine: self.engine.choice(), access: Access::Direct, check: self.check };
        let with_and_without = with_and_without && !loads.specs.is_empty();
        Ok(ReplayOptions { mode, limit, passes: self.passes, io, loads, with_and_without, id: String::new() })
    }

    /// Past the page cache or through it: as asked, or where the trace was taken.
    pub(super) fn access(&self, level: Level) -> Access {
        match self.access {
            Some(access) => access.access(),
            None if level == Level::File => Access::Buffered,
            None => Access::Direct,
        }
    }

    /// What of a trace is replayed, in pieces of `block_bytes`.
    pub(super) fn choice(&self, block_bytes: u64) -> ScriptOptions {
        let (from, until) = self.window.unwrap_or_default();
        ScriptOptions {
            from_ns: ns(from),
            until_ns: until.map(ns),
            records_max: self.max_records,
            gap_max_ns: self.cap_gap.map(ns),
            policy: match self.map {
                MapArg::Identity => Policy::Identity,
                MapArg::Clip => Policy::Clip,
                MapArg::Wrap => Policy::Wrap,
                MapArg::Scale => Policy::Scale,
            },
            target_bytes: self.size,
            block_bytes,
            reads_only: self.reads_only,
        }
    }

    /// All that decides whether two results may be compared.
    pub(super) fn settings(&self, manner: &ReplayOptions, baseline: Option<&str>) -> serde_json::Value {
        let (from, until) = self.window.unwrap_or_default();
        let rate = if let Mode::Paced { rate } = manner.mode { Some(rate) } else { None };
        serde_json::json!({
            "mode": manner.mode.name(),
            "speed": self.speed,
            "rate": rate,
            "outstanding_limit": manner.limit,
            "passes": manner.passes,
            "map": self.choice(1).policy.name(),
            "size_bytes": self.size,
            "window_from_seconds": from.as_secs_f64(),
            "window_until_seconds": until.map(|until| until.as_secs_f64()),
            "max_records": self.max_records,
            "cap_gap_seconds": self.cap_gap.map(|gap| gap.as_secs_f64()),
            "reads_only": self.reads_only,
            "access": self.access.map(|access| format!("{access:?}").to_lowercase()),
            "engine": engine(manner.io.engine),
            "check": self.check,
            "loads": manner.loads.specs.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "baseline": baseline,
        })
    }
}

fn engine(choice: EngineChoice) -> &'static str {
    match choice {
        EngineChoice::Auto => "auto",
        EngineChoice::Ring => "ring",
        EngineChoice::Plain => "plain",
        EngineChoice::Mapped => "mmap",
    }
}
