//! Contestants of a campaign and the figures of their runs.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::tools::Tool;

/// Largest write of any contestant, bytes. Amounts are multiples of it, so that all write the same.
pub(super) const UNIT_BYTES: u64 = 4 << 20;

/// Program with one setting.
pub(super) trait Contestant {
    /// Name in tables and flags.
    fn name(&self) -> &str;
    /// Command line for display.
    fn command(&self) -> String;
    /// External program that must be installed.
    fn tool(&self) -> Option<&'static Tool>;
    /// Runs once in an empty directory. Returns at least one phase.
    fn run(&self, limits: &RunLimits<'_>) -> Result<Vec<Run>>;
}

/// Directory, amount and time limit of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunLimits<'a> {
    /// Empty directory, removed after the run.
    pub(super) directory: &'a Path,
    /// Bytes of payload.
    pub(super) bytes: u64,
    /// Time limit of each program.
    pub(super) time: Duration,
}

/// Figures of one run or phase. Unmeasured ones are none.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Run {
    /// Phase, empty if there is only one.
    pub(super) phase: String,
    /// Bytes delivered; 0 if bytes are not counted.
    pub(super) bytes: u64,
    /// Events or operations.
    pub(super) events: Option<u64>,
    /// Duration, seconds. With a sender: from its start until all data is durable and the receiver has ended.
    pub(super) seconds: f64,
    /// Bytes per second by the clock of the sender, which does not wait for the disk.
    pub(super) accepted: Option<f64>,
    /// CPU of the measured process, as accounted by the kernel, ns.
    pub(super) cpu_ns: Option<u64>,
    /// Part of it used before the sender started, ns, if known.
    pub(super) cpu_before_ns: Option<u64>,
    /// CPU as reported by the program itself, ns.
    pub(super) billed_ns: Option<u64>,
    /// CPU of the sender, ns.
    pub(super) sender_cpu_ns: Option<u64>,
    /// Peak memory of the process, bytes.
    pub(super) resident_bytes_max: Option<u64>,
    /// Change of the page cache during the run, bytes.
    pub(super) cached_bytes: Option<i64>,
    /// Relative error of the duration.
    pub(super) span_error: Option<f64>,
    /// Lateness of requests.
    pub(super) lateness: Option<Lateness>,
}

/// Lateness of requests relative to their due times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lateness {
    /// Median, ns.
    pub(super) p50_ns: u64,
    /// 99th percentile, ns.
    pub(super) p99_ns: u64,
    /// Maximum, ns.
    pub(super) max_ns: u64,
}

/// Column of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Figure {
    /// MB/s until all data is durable.
    Rate,
    /// MB/s by the clock of the sender.
    Accepted,
    /// Millions of events per second until all is durable.
    Events,
    /// Operations per second.
    Operations,
    /// CPU seconds per GB of the whole process.
    Cpu,
    /// CPU seconds per GB after the start of the sender.
    CpuRunning,
    /// CPU milliseconds per GB of the process.
    CpuMs,
    /// CPU milliseconds per GB, as reported by the program.
    BilledMs,
    /// CPU reported by the program relative to that accounted by the kernel.
    BilledShare,
    /// CPU seconds per GB of the sender.
    SenderCpu,
    /// Change of the page cache, MB.
    Cached,
    /// Peak memory, MB.
    Memory,
    /// CPU microseconds per operation, as reported by the program.
    RequestCpu,
    /// Error of the duration, per cent.
    SpanError,
    /// Median lateness, microseconds.
    LateP50,
    /// 99th percentile of the lateness, microseconds.
    LateP99,
    /// Maximum lateness, microseconds.
    LateMax,
}

impl Figure {
    /// Figure of one run, `None` if not measured.
    pub(super) fn of(self, run: &Run) -> Option<f64> {
        let bytes = Some(run.bytes as f64).filter(|bytes| *bytes > 0.0);
        let seconds_per_gb = |cpu_ns: Option<u64>| Some(cpu_ns? as f64 / bytes?);
        let figure = match self {
            Self::Rate => bytes.map(|bytes| bytes / run.seconds / 1e6),
            Self::Accepted => run.accepted.map(|rate| rate / 1e6),
            Self::Events => run.events.map(|events| events as f64 / run.seconds / 1e6),
            Self::Operations => run.events.map(|events| events as f64 / run.seconds),
            Self::Cpu => seconds_per_gb(run.cpu_ns),
            Self::CpuRunning => {
                let running =
                    run.cpu_ns.zip(run.cpu_before_ns).map(|(all, before)| all.saturating_sub(before));
                seconds_per_gb(running)
            }
            Self::CpuMs => seconds_per_gb(run.cpu_ns).map(|seconds| seconds * 1e3),
            Self::BilledMs => seconds_per_gb(run.billed_ns).map(|seconds| seconds * 1e3),
            Self::BilledShare => {
                run.billed_ns.zip(run.cpu_ns).map(|(billed, counted)| billed as f64 / counted as f64)
            }
            Self::SenderCpu => seconds_per_gb(run.sender_cpu_ns),
            Self::Cached => run.cached_bytes.map(|bytes| bytes as f64 / 1e6),
            Self::Memory => run.resident_bytes_max.map(|bytes| bytes as f64 / 1e6),
            Self::RequestCpu => {
                run.billed_ns.zip(run.events).map(|(billed, events)| billed as f64 / events as f64 / 1e3)
            }
            Self::SpanError => run.span_error.map(|error| error * 100.0),
            Self::LateP50 => run.lateness.map(|late| late.p50_ns as f64 / 1e3),
            Self::LateP99 => run.lateness.map(|late| late.p99_ns as f64 / 1e3),
            Self::LateMax => run.lateness.map(|late| late.max_ns as f64 / 1e3),
        };
        figure.filter(|value| value.is_finite())
    }

    /// Column title. `rate` is the title of [`Figure::Rate`] in the group.
    pub(super) fn heading(self, rate: &str) -> &str {
        match self {
            Self::Rate => rate,
            Self::Accepted => "accepted MB/s",
            Self::Events => "10^6 events/s",
            Self::Operations => "operations/s",
            Self::Cpu => "CPU s/GB",
            Self::CpuRunning => "CPU s/GB, running",
            Self::CpuMs => "CPU ms/GB",
            Self::BilledMs => "reported CPU ms/GB",
            Self::BilledShare => "reported CPU / CPU",
            Self::SenderCpu => "sender CPU s/GB",
            Self::Cached => "page cache MB",
            Self::Memory => "peak memory MB",
            Self::RequestCpu => "CPU us/request",
            Self::SpanError => "span error %",
            Self::LateP50 => "lateness us, p50",
            Self::LateP99 => "p99",
            Self::LateMax => "max",
        }
    }

    /// Decimals.
    pub(super) fn decimals(self) -> usize {
        match self {
            Self::Rate | Self::Accepted | Self::Operations | Self::Cached | Self::Memory | Self::LateMax => 0,
            Self::CpuMs | Self::BilledMs | Self::LateP99 => 1,
            Self::Events | Self::BilledShare | Self::LateP50 => 2,
            Self::Cpu | Self::CpuRunning | Self::SenderCpu | Self::RequestCpu => 3,
            Self::SpanError => 4,
        }
    }
}

#[cfg(test)]
#[path = "contestant_tests.rs"]
mod tests;
