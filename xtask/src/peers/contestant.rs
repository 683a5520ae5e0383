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
    /// Runs once in an empty directory.
    fn run(&self, place: &Place<'_>) -> Result<Run>;
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

/// What one run gave.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Run {
    /// Bytes that arrived where they should.
    pub(super) bytes: u64,
    /// Events that these were, where there are events.
    pub(super) events: Option<u64>,
    /// From the start of the sender until all was durable and the receiver had ended, in seconds.
    pub(super) seconds: f64,
    /// Bytes per second by the sender's own clock, which does not wait for the disk.
    pub(super) accepted: Option<f64>,
    /// CPU of the receiving process from its first to its last moment, in ns.
    pub(super) cpu_ns: u64,
    /// The part of it that it had used before the sender started, in ns; unknown where the kernel does not
    /// tell.
    pub(super) cpu_before_ns: Option<u64>,
    /// CPU of the sender, in ns.
    pub(super) sender_cpu_ns: Option<u64>,
    /// Most memory that the receiving process held, in bytes.
    pub(super) resident_bytes_max: u64,
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
    /// CPU seconds per GB of the whole process.
    Cpu,
    /// The same without what came before the sender.
    CpuRunning,
    /// CPU seconds per GB of the sender.
    SenderCpu,
    /// Most memory held, in MB.
    Memory,
}

impl Figure {
    /// The figure of one run; `None` where it was not or cannot be measured.
    pub(super) fn of(self, run: &Run) -> Option<f64> {
        let gigabytes = run.bytes as f64 / 1e9;
        let seconds_per_gb = |cpu_ns: u64| cpu_ns as f64 / 1e9 / gigabytes;
        let figure = match self {
            Self::Rate => Some(run.bytes as f64 / run.seconds / 1e6),
            Self::Accepted => run.accepted.map(|rate| rate / 1e6),
            Self::Events => run.events.map(|events| events as f64 / run.seconds / 1e6),
            Self::Cpu => Some(seconds_per_gb(run.cpu_ns)),
            Self::CpuRunning => {
                run.cpu_before_ns.map(|before| seconds_per_gb(run.cpu_ns.saturating_sub(before)))
            }
            Self::SenderCpu => run.sender_cpu_ns.map(seconds_per_gb),
            Self::Memory => Some(run.resident_bytes_max as f64 / 1e6),
        };
        figure.filter(|value| value.is_finite())
    }
}

#[cfg(test)]
#[path = "contestant_tests.rs"]
mod tests;
