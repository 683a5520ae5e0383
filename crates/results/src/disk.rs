//! What `keepup disk` found: the phases of a test on each volume, every repeat of them.
//!
//! Rates are bytes per second, MB = 10^6 bytes. `None` means "not measured" and is written as null.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::LatencyFigures;
use crate::load::LoadResult;
use crate::summary::Kind;
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
    /// What one disk test found.
    pub struct DiskSummary: Kind::Disk, version 4 {
        /// Every run, in the order in which they were made: volumes in turns, repeat by repeat.
        pub runs: Vec<DiskRun>,
    }
}

/// One run of the test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskRun {
    /// The volumes that it used at once; for most tests one.
    pub volumes: Vec<String>,
    /// Number of the repeat, from 1.
    pub repeat: u32,
    /// Its phases, in order; fewer than planned when it was cut short.
    pub phases: Vec<DiskPhase>,
    /// Phases that cannot be here.
    pub skipped: Vec<DiskSkipped>,
    /// What the phases mean together, where the test says so.
    pub finding: Option<DiskFinding>,
    /// What ran beside it on purpose, from the begin of the run to its end.
    pub loads: Vec<LoadResult>,
}

/// A phase that was not measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskSkipped {
    /// Its name.
    pub name: String,
    /// Why it was not measured.
    pub why: String,
}

/// One phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskPhase {
    /// Its name, unique within the test.
    pub name: String,
    /// When it began, seconds after the run did: the series of the run's loads count from there.
    pub begin_seconds: f64,
    /// Files touched.
    pub files: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Requests made, where they are of one kind.
    pub operations: Option<u64>,
    /// How long it took, with what belongs into the timed window, seconds.
    pub seconds: f64,
    /// CPU of this process, its kernel workers included, seconds.
    pub cpu_seconds: f64,
    /// CPU of the whole machine in that time: also what the kernel did on its own, and neighbours; in steps
    /// of a tick of each core. Seconds.
    pub machine_cpu_seconds: Option<f64>,
    /// What the hypervisor gave to others in that time, seconds.
    pub steal_seconds: Option<f64>,
    /// From the start of a request to its end, where requests are of one kind.
    pub latency: Option<LatencyFigures>,
    /// What ran at the same time, where there was more than one thing.
    pub parts: Vec<DiskPart>,
    /// Rate that each of the run's loads achieved meanwhile, in their order and units; null for a phase too
    /// short to tell.
    pub load_rates: Vec<Option<f64>>,
}

/// One reader or writer among several that ran at the same time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskPart {
    /// Its name, unique within the phase.
    pub name: String,
    /// The volume that it was on.
    pub volume: String,
    /// Whether it wrote; else it read.
    pub writes: bool,
    /// Bytes moved within the window that counts.
    pub bytes: u64,
    /// Requests that ended within it.
    pub operations: u64,
    /// How long the window was for this part, seconds.
    pub seconds: f64,
    /// From the end of the window until all that it had written was durable, seconds; only of writers.
    pub flush_seconds: Option<f64>,
    /// Rate asked for, bytes per second; `None` when it went as fast as it could.
    pub target_bytes_per_second: Option<f64>,
    /// From when a request was due to its end; without pacing the same as `service`.
    pub latency: Option<LatencyFigures>,
    /// From when a request was made to its end.
    pub service: Option<LatencyFigures>,
    /// Bytes that ended in each tenth of a second of the window, in order.
    pub tenths: Vec<u64>,
}

impl DiskPart {
    /// Bytes per second within the window; `None` when nothing was moved.
    #[must_use]
    pub fn bytes_per_second(&self) -> Option<f64> {
        (self.seconds > 0.0 && self.bytes > 0).then(|| self.bytes as f64 / self.seconds)
    }
}

impl DiskPhase {
    /// Bytes per second; `None` for a phase that took no time or moved nothing.
    #[must_use]
    pub fn bytes_per_second(&self) -> Option<f64> {
        (self.seconds > 0.0 && self.bytes > 0).then(|| self.bytes as f64 / self.seconds)
    }

    /// CPU of this process, seconds per GB.
    #[must_use]
    pub fn cpu_seconds_per_gb(&self) -> Option<f64> {
        (self.bytes > 0).then(|| self.cpu_seconds / (self.bytes as f64 / 1e9))
    }
}

impl DiskRun {
    /// Its volumes in one word.
    #[must_use]
    pub fn place(&self) -> String {
        self.volumes.join(" + ")
    }
}

impl DiskSummary {
    /// The rates of one phase in one place over all repeats, bytes per second.
    pub fn rates<'a>(&'a self, place: &'a str, phase: &'a str) -> impl Iterator<Item = f64> + 'a {
        self.phases(place, phase).filter_map(DiskPhase::bytes_per_second)
    }

    /// One phase in one place, each time it was run.
    pub fn phases<'a>(&'a self, place: &'a str, phase: &'a str) -> impl Iterator<Item = &'a DiskPhase> {
        let runs = self.runs.iter().filter(move |run| run.place() == place);
        runs.flat_map(|run| &run.phases).filter(move |found| found.name == phase)
    }

    /// Places and names of phases, in the order in which they first came.
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
