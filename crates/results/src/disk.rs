//! Result of `keepup disk`: the phases of a test on each volume, for every repeat.
//!
//! Rates are bytes per second, MB = 10^6 bytes. `None` means "not measured" and is written as null.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::head::Kind;
use crate::latency::LatencyFigures;
use crate::load::LoadResult;
use crate::test::test_summary;

mod cache;
mod figures;
mod finding;
mod steady;

pub use cache::{CacheFinding, CacheMemory, CacheStep};
pub use finding::{DiskFinding, ScaleFinding};
pub use steady::{
    SteadyCause, SteadyCauseKind, SteadyChange, SteadyConditions, SteadyFile, SteadyFinding, SteadyLap,
    SteadyRounds, SteadySample,
};

test_summary! {
    /// Result of a disk test.
    pub struct DiskSummary: Kind::Disk, version 4 {
        /// All runs in order: volumes alternate within each repeat.
        pub runs: Vec<DiskRun>,
    }
}

/// One run of the test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskRun {
    /// Volumes used concurrently; for most tests one.
    pub volumes: Vec<String>,
    /// Number of the repeat, from 1.
    pub repeat: u32,
    /// Completed phases, in order.
    pub phases: Vec<DiskPhase>,
    /// Phases that are impossible here.
    pub skipped: Vec<DiskSkipped>,
    /// Combined finding of the phases, if the test has one.
    pub finding: Option<DiskFinding>,
    /// Background loads during the whole run.
    pub loads: Vec<LoadResult>,
}

/// A phase that was not measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskSkipped {
    /// Name.
    pub name: String,
    /// Reason.
    pub why: String,
}

/// One phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskPhase {
    /// Name, unique within the test.
    pub name: String,
    /// Start, seconds since the start of the run; the series of the run's loads use the same
    /// origin.
    pub begin_seconds: f64,
    /// Files used.
    pub files: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Number of requests, if of one kind.
    pub operations: Option<u64>,
    /// Duration of the timed window, seconds.
    pub seconds: f64,
    /// CPU time of this process including its kernel workers, seconds.
    pub cpu_seconds: f64,
    /// CPU time of the whole machine, including kernel threads and other processes, in ticks per
    /// core, seconds.
    pub machine_cpu_seconds: Option<f64>,
    /// Time stolen by the hypervisor, seconds.
    pub steal_seconds: Option<f64>,
    /// Interrupts of the whole machine in that time, of devices and timers.
    #[serde(default)]
    pub interrupts: Option<u64>,
    /// Part of them from the adapters of disks, of all disks of the machine; null if not known.
    #[serde(default)]
    pub storage_interrupts: Option<u64>,
    /// Latency from the start to the completion of a request, if requests are of one kind.
    pub latency: Option<LatencyFigures>,
    /// Concurrent parts, if more than one.
    pub parts: Vec<DiskPart>,
    /// Rate of each of the run's loads during the phase, in their order and units; null for a phase
    /// too short to tell.
    pub load_rates: Vec<Option<f64>>,
}

/// One of several concurrent readers or writers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskPart {
    /// Name, unique within the phase.
    pub name: String,
    /// Volume.
    pub volume: String,
    /// Whether it wrote; otherwise it read.
    pub writes: bool,
    /// Bytes transferred in the measurement window.
    pub bytes: u64,
    /// Requests completed in the window.
    pub operations: u64,
    /// Length of the window of this part, seconds.
    pub seconds: f64,
    /// Time from the end of the window until all its writes were durable, seconds; writers only.
    pub flush_seconds: Option<f64>,
    /// Requested rate, bytes per second; `None` if unthrottled.
    pub target_bytes_per_second: Option<f64>,
    /// Response time: from due time to completion; equals `service` without pacing.
    pub latency: Option<LatencyFigures>,
    /// Service time: from start to completion.
    pub service: Option<LatencyFigures>,
    /// Bytes completed in each 0.1 s of the window, in order.
    pub tenths: Vec<u64>,
}

impl DiskPart {
    /// Bytes per second in the window; `None` if nothing was transferred.
    #[must_use]
    pub fn bytes_per_second(&self) -> Option<f64> {
        (self.seconds > 0.0 && self.bytes > 0).then(|| self.bytes as f64 / self.seconds)
    }
}

impl DiskPhase {
    /// Bytes per second; `None` for a phase without duration or bytes.
    #[must_use]
    pub fn bytes_per_second(&self) -> Option<f64> {
        (self.seconds > 0.0 && self.bytes > 0).then(|| self.bytes as f64 / self.seconds)
    }

    /// Rate of the first part times the number of parts, bytes per second: what the event logger's paper
    /// calls the normalised rate of files that are read or written at the same time.
    #[must_use]
    pub fn normalised_bytes_per_second(&self) -> Option<f64> {
        Some(self.parts.first()?.bytes_per_second()? * self.parts.len() as f64)
    }

    /// CPU time of this process, seconds per GB.
    #[must_use]
    pub fn cpu_seconds_per_gb(&self) -> Option<f64> {
        (self.bytes > 0).then(|| self.cpu_seconds / (self.bytes as f64 / 1e9))
    }
}

impl DiskRun {
    /// Names of its volumes, joined.
    #[must_use]
    pub fn place(&self) -> String {
        self.volumes.join(" + ")
    }
}

impl DiskSummary {
    /// Rates of one phase in one place over all repeats, bytes per second.
    pub fn rates<'a>(&'a self, place: &'a str, phase: &'a str) -> impl Iterator<Item = f64> + 'a {
        self.phases(place, phase).filter_map(DiskPhase::bytes_per_second)
    }

    /// All repetitions of one phase in one place.
    pub fn phases<'a>(&'a self, place: &'a str, phase: &'a str) -> impl Iterator<Item = &'a DiskPhase> {
        let runs = self.runs.iter().filter(move |run| run.place() == place);
        runs.flat_map(|run| &run.phases).filter(move |found| found.name == phase)
    }

    /// Places and names of phases, in order of first appearance.
    #[must_use]
    pub fn kinds(&self) -> Vec<(String, &str)> {
        let mut kinds = Vec::new();
        for (run, phase) in self.runs.iter().flat_map(|run| run.phases.iter().map(move |p| (run, p))) {
            let kind = (run.place(), phase.name.as_str());
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds
    }
}
