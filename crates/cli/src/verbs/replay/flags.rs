//! Common flags of `replay` and `replay-set`.
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use keepup_replay::{IoOptions, Mode, PASSES_MIN, Policy, ReplayOptions, ScriptOptions, TargetSpec};
use keepup_trace::Level;
use keepup_workload::disk::mode::{Access, EngineChoice};
use keepup_workload::load::LoadPlan;

use crate::args::{
    AccessArg, EngineArg, OutputArgs, byte_rate, duration, nonzero_duration, size, volumes_or_default,
};
use crate::exit::{UsageError, usage};
use crate::loads::LoadArgs;
use crate::verbs::trace::HintArgs;

/// Limit on requests in flight in modes that follow the trace's times.
const OPEN_LIMIT: usize = 4096;
/// Default queue depth of `afap`, which keeps a current disk busy.
const DEFAULT_DEPTH: usize = 32;

/// Flags of a replay.
#[derive(Clone, clap::Args)]
pub(super) struct Common {
    /// Directory on the disk to measure; repeatable [default: ./keepup-data]
    #[arg(long, value_name = "DIR")]
    volume: Vec<PathBuf>,
    /// Directory for the requests to one device of the trace; repeat for each device
    ///
    /// All of them together are one target: requests to the devices go to different disks, at the times of
    /// the trace.
    #[arg(long, value_name = "DEVICE=DIR", value_parser = assigned)]
    assign: Vec<(String, PathBuf)>,
    /// Block device to read from; repeatable
    ///
    /// The device is never written. Its content is unknown; reads of blocks that were never written can be
    /// faster than real reads.
    #[arg(long, value_name = "DEV")]
    raw: Vec<PathBuf>,
    /// Simulated disk: null, memory or throttled=RATE; repeatable
    #[arg(long, value_name = "TARGET", value_parser = target)]
    target: Vec<TargetSpec>,
    /// Timing
    #[arg(long, value_enum, default_value_t)]
    mode: ModeArg,
    /// Speed-up factor against the trace, for timed and dep
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    speed: Option<f64>,
    /// Requests per second, for paced
    #[arg(long, value_name = "RATE", value_parser = factor)]
    rate: Option<f64>,
    /// Queue depth, for afap [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    depth: Option<u32>,
    /// Address mapping
    #[arg(long, value_enum, default_value_t)]
    map: MapArg,
    /// Size of the target [default: the trace's footprint, or the device]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    size: Option<u64>,
    /// Replay only this part of the trace, such as "10s..70s" or "5min.."
    #[arg(long, value_name = "FROM..UNTIL", value_parser = window)]
    window: Option<(Duration, Option<Duration>)>,
    /// Limit on the number of requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_records: Option<u64>,
    /// Limit on pauses between requests
    #[arg(long, value_name = "TIME", value_parser = nonzero_duration)]
    cap_gap: Option<Duration>,
    /// Skip writes and flushes
    #[arg(long)]
    reads_only: bool,
    /// Passes per target; the first one is cold and not compared
    #[arg(
        long,
        value_name = "N",
        default_value_t = PASSES_MIN,
        value_parser = clap::value_parser!(u32).range(i64::from(PASSES_MIN)..=1000),
    )]
    pub(super) passes: u32,
    /// Page cache [default: as traced]
    #[arg(long, value_enum)]
    access: Option<AccessArg>,
    /// I/O engine: io_uring, or blocking system calls (sync)
    #[arg(long, value_enum, default_value_t)]
    engine: EngineArg,
    /// Read back and compare all written data at the end
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    pub(super) hints: HintArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    #[command(flatten)]
    pub(super) loads: LoadArgs,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum ModeArg {
    /// At the traced times
    #[default]
    Timed,
    /// As fast as possible
    Afap,
    /// After the requests they depended on
    Dep,
    /// At a constant rate
    Paced,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum MapArg {
    /// None: the target must hold all addresses
    #[default]
    Identity,
    /// Skip requests beyond the end
    Clip,
    /// Wrap around at the end
    Wrap,
    /// Scale addresses down, in units of 1 MiB
    Scale,
}

/// Parses a number above 0.
fn factor(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches("/s").trim().parse::<f64>().ok();
    number
        .filter(|n| n.is_finite() && (1e-6..=1e9).contains(n))
        .ok_or_else(|| "expected a number above 0".into())
}

fn target(text: &str) -> Result<TargetSpec, UsageError> {
    match text.split_once('=') {
        None if text == "null" => Ok(TargetSpec::Null),
        None if text == "memory" => Ok(TargetSpec::Memory),
        Some(("throttled", rate)) => match byte_rate(rate)? {
            rate if rate > 0.0 => Ok(TargetSpec::Throttled(rate)),
            _ => Err(UsageError::new("the rate must be above 0")),
        },
        _ => Err(UsageError::new("expected null, memory or throttled=RATE such as throttled=100MB/s")),
    }
}

/// Parses a device of a trace and its directory. Device names may contain commas and colons.
fn assigned(text: &str) -> Result<(String, PathBuf), UsageError> {
    match text.split_once('=') {
        Some((device, path)) if !device.is_empty() && !path.is_empty() => Ok((device.into(), path.into())),
        _ => Err(UsageError::new(
            "expected DEVICE=DIR such as 8,0=/data/a; `keepup trace info` shows the devices",
        )),
    }
}

/// Parses a time range of a trace.
fn window(text: &str) -> Result<(Duration, Option<Duration>), UsageError> {
    let form = || UsageError::new("expected FROM..UNTIL such as \"10s..70s\"");
    let (from, until) = text.split_once("..").ok_or_else(form)?;
    let from = if from.is_empty() { Duration::ZERO } else { duration(from)? };
    let until = (!until.is_empty()).then(|| duration(until)).transpose()?;
    match until {
        Some(until) if until <= from => Err(UsageError::new(format!("{text:?} ends before it starts"))),
        _ => Ok((from, until)),
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Common {
    /// Targets; without a flag the default volume, which is created if missing.
    pub(super) fn targets(&self) -> anyhow::Result<Vec<TargetSpec>> {
        let mut targets: Vec<TargetSpec> = self.volume.iter().cloned().map(TargetSpec::Volume).collect();
        targets.extend(self.raw.iter().cloned().map(TargetSpec::Device));
        targets.extend(self.target.iter().cloned());
        for (n, (device, _)) in self.assign.iter().enumerate() {
            if self.assign[..n].iter().any(|(other, _)| other == device) {
                return Err(usage(format!("cannot assign device {device} twice")));
            }
        }
        if !self.assign.is_empty() {
            targets.push(TargetSpec::Assigned(self.assign.clone()));
        }
        if targets.is_empty() {
            targets.extend(volumes_or_default(&[])?.into_iter().map(TargetSpec::Volume));
        }
        for (n, target) in targets.iter().enumerate() {
            if targets[..n].contains(target) {
                return Err(usage(format!("cannot use target {target} twice")));
            }
        }
        Ok(targets)
    }

    /// Options of the replay. The access mode is set later, because it depends on the trace.
    pub(super) fn options(&self, loads: LoadPlan, with_and_without: bool) -> anyhow::Result<ReplayOptions> {
        let only = |given: bool, flag: &str, modes: &str| match given {
            true => Err(UsageError::new(format!("cannot use {flag}: it applies to --mode {modes}"))),
            false => Ok(()),
        };
        let speed = self.speed.unwrap_or(1.0);
        let mode = match self.mode {
            ModeArg::Timed => Mode::Timed { speed },
            ModeArg::Dep => Mode::Dep { speed },
            ModeArg::Afap => Mode::Afap { depth: self.depth.map_or(DEFAULT_DEPTH, |depth| depth as usize) },
            ModeArg::Paced => Mode::Paced {
                rate: self.rate.ok_or_else(|| UsageError::new("cannot use --mode paced without --rate"))?,
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

    /// Page cache use: from the flag, else as the trace was recorded.
    pub(super) fn access(&self, level: Level) -> Access {
        match self.access {
            Some(access) => access.access(),
            None if level == Level::File => Access::Buffered,
            None => Access::Direct,
        }
    }

    /// Selection and mapping of a trace's requests.
    pub(super) fn script_options(&self, block_bytes: u64) -> ScriptOptions {
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
            in_memory: None,
        }
    }

    /// Settings that must agree for two results to be compared.
    pub(super) fn settings(&self, options: &ReplayOptions, baseline: Option<&str>) -> serde_json::Value {
        let (from, until) = self.window.unwrap_or_default();
        let rate = if let Mode::Paced { rate } = options.mode { Some(rate) } else { None };
        serde_json::json!({
            "mode": options.mode.name(),
            "speed": self.speed,
            "rate": rate,
            "outstanding_limit": options.limit,
            "passes": options.passes,
            "map": self.script_options(1).policy.name(),
            "size_bytes": self.size,
            "window_from_seconds": from.as_secs_f64(),
            "window_until_seconds": until.map(|until| until.as_secs_f64()),
            "max_records": self.max_records,
            "cap_gap_seconds": self.cap_gap.map(|gap| gap.as_secs_f64()),
            "reads_only": self.reads_only,
            "access": self.access.map(|access| format!("{access:?}").to_lowercase()),
            "engine": engine(options.io.engine),
            "check": self.check,
            "loads": options.loads.specs.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "baseline": baseline,
        })
    }
}

fn engine(choice: EngineChoice) -> &'static str {
    match choice {
        EngineChoice::Auto => "auto",
        EngineChoice::Ring => "io_uring",
        EngineChoice::Plain => "sync",
        EngineChoice::Mapped => "mmap",
    }
}
