//! What takes part in a campaign, and what one run of it gave.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::tools::Tool;

/// The largest write of any contestant, in bytes. All of them write whole numbers of it, so that all write
/// the same.
pub(super) const UNIT_BYTES: u64 = 4 << 20;

/// A program under one setting. Its file knows how to start it, and nothing else does.
pub(super) trait Contestant {
    /// Its name in tables and flags.
    fn name(&self) -> &str;
    /// What is run, for people.
    fn command(&self) -> String;
    /// The program that somebody else has to install.
    fn tool(&self) -> Option<&'static Tool>;
    /// Runs once in an empty directory. One for each phase of what it did, at least one.
    fn run(&self, place: &Place<'_>) -> Result<Vec<Run>>;
}

/// Where and how much a contestant writes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    /// An empty directory, removed afterwards.
    pub(super) directory: &'a Path,
    /// Bytes of payload.
    pub(super) bytes: u64,
    /// No program may run longer.
    pub(super) limit: Duration,
}

/// What one run gave, or one phase of it. What was not measured is none.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Run {
    /// Which phase; empty where there is but one.
    pub(super) phase: String,
    /// Bytes that arrived where they should; 0 where not bytes are counted.
    pub(super) bytes: u64,
    /// Events, or operations, that these were.
    pub(super) events: Option<u64>,
    /// How long it took, in seconds; with a sender, from its start until all was durable and the receiver had
    /// ended.
    pub(super) seconds: f64,
    /// Bytes per second by the sender's own clock, which does not wait for the disk.
    pub(super) accepted: Option<f64>,
    /// CPU of the process that is measured, by the kernel's account when it has ended, in ns.
    pub(super) cpu_ns: Option<u64>,
    /// The part of it that it had used before the sender started, in ns; unknown where the kernel does not
    /// tell.
    pub(super) cpu_before_ns: Option<u64>,
    /// CPU as the program itself counts it, in ns.
    pub(super) billed_ns: Option<u64>,
    /// CPU of the sender, in ns.
    pub(super) sender_cpu_ns: Option<u64>,
    /// Most memory that the process held, in bytes.
    pub(super) resident_bytes_max: Option<u64>,
    /// How far what it took is from what it was to take, as a share.
    pub(super) span_error: Option<f64>,
    /// How late requests were made.
    pub(super) lateness: Option<Lateness>,
}

/// How much later than their times requests were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lateness {
    /// Half of them at most so much, in ns.
    pub(super) p50_ns: u64,
    /// 99 of 100 of them at most so much, in ns.
    pub(super) p99_ns: u64,
    /// All of them, in ns.
    pub(super) max_ns: u64,
}

/// One column of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Figure {
    /// MB/s until all is durable.
    Rate,
    /// MB/s by the sender's own clock.
    Accepted,
    /// Millions of events per second until all is durable.
    Events,
    /// Operations per second.
    Operations,
    /// CPU seconds per GB of the whole process.
    Cpu,
    /// The same without what came before the sender.
    CpuRunning,
    /// CPU of the process in milliseconds per GB, where there is little of it.
    CpuMs,
    /// CPU in milliseconds per GB, as the program itself counts it.
    BilledMs,
    /// What the program counts of the CPU that the kernel counts.
    BilledShare,
    /// CPU seconds per GB of the sender.
    SenderCpu,
    /// Most memory held, in MB.
    Memory,
    /// CPU in microseconds per operation, as the program itself counts it.
    RequestCpu,
    /// What it took to what it was to take, per cent away.
    SpanError,
    /// Lateness of the middle request, in microseconds.
    LateP50,
    /// Lateness that 99 of 100 requests do not exceed, in microseconds.
    LateP99,
    /// The largest lateness, in microseconds.
    LateMax,
}

impl Figure {
    /// The figure of one run; `None` where it was not or cannot be measured.
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

    /// What its column is called; `rate` is what the group calls [`Figure::Rate`].
    pub(super) fn heading(self, rate: &str) -> &str {
        match self {
            Self::Rate => rate,
            Self::Accepted => "accepted MB/s",
            Self::Events => "10^6 events/s",
            Self::Operations => "operations/s",
            Self::Cpu => "CPU s/GB",
            Self::CpuRunning => "CPU s/GB, running",
            Self::CpuMs => "CPU ms/GB",
            Self::BilledMs => "own account ms/GB",
            Self::BilledShare => "own account to CPU",
            Self::SenderCpu => "sender's CPU s/GB",
            Self::Memory => "peak memory MB",
            Self::RequestCpu => "CPU us/request",
            Self::SpanError => "span error %",
            Self::LateP50 => "late by us, p50",
            Self::LateP99 => "p99",
            Self::LateMax => "max",
        }
    }

    /// How many digits stand behind its point.
    pub(super) fn decimals(self) -> usize {
        match self {
            Self::Rate | Self::Accepted | Self::Operations | Self::Memory | Self::LateMax => 0,
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
