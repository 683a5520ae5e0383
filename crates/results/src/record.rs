//! Result of `keepup trial`: recording runs, each at one rate.
//!
//! Times count from the start of the source's schedule. A run without disks receives, checks and
//! seals like any other but discards its blocks; "written" and "durable" in its ledger then mean
//! discarded. MB = 10^6 bytes. `None` means "not measured" and is written as null.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use keepup_measure::sum::Sums;

use crate::figure::{Collected, Figure, Figures, Quantity};
use crate::head::Kind;
use crate::load::LoadResult;
use crate::summary::{CpuCost, Engine, LedgerSummary};
use crate::test::test_summary;

/// Place name of runs without disks.
const NO_DISK: &str = "no disk";

test_summary! {
    /// Result of recording trials.
    pub struct RecordSummary: Kind::Record, version 1 {
        /// All runs, in order.
        pub runs: Vec<RecordRun>,
    }
}

/// One run of source and recorder at one rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordRun {
    /// Directories recorded to concurrently; empty without disks.
    pub volumes: Vec<String>,
    /// Number of the repeat, from 1.
    pub repeat: u32,
    /// Start of the source's schedule, seconds since the start of the first run.
    pub begin_seconds: f64,
    /// Requested rate, mean over bursts; null if unthrottled.
    pub asked_bytes_per_second: Option<f64>,
    /// Number of streams.
    pub streams: u32,
    /// Number of connections.
    pub connections: u32,
    /// Event payload, bytes; of the largest event if sizes differ.
    pub event_bytes: u64,
    /// Placement of blocks on volumes.
    pub placement: RecordPlacement,
    /// Whether blocks were discarded instead of written.
    pub to_null: bool,
    /// Time until the source had sent its last event, seconds.
    pub source_seconds: f64,
    /// Time until all received data was durable (without disks: discarded), seconds.
    pub seconds: f64,
    /// Payload received over `source_seconds`.
    pub achieved_bytes_per_second: f64,
    /// Payload made durable over `seconds`; null without disks.
    pub durable_bytes_per_second: Option<f64>,
    /// Times of the first events; null if the run had fewer.
    pub first: Option<RecordFirst>,
    /// Ledger of all events.
    pub ledger: LedgerSummary,
    /// CPU cost.
    pub cpu: CpuCost,
    /// Block memory, bytes.
    pub pool_bytes: u64,
    /// Maximum block memory in use, bytes.
    pub pool_bytes_used_max: u64,
    /// Maximum backlog, due but neither lost nor written, bytes: in source, network and pool.
    pub backlog_bytes_max: Option<u64>,
    /// Longest time with a backlog but no writes, at the resolution of the samples, seconds.
    pub stall_seconds_max: Option<f64>,
    /// I/O engine; null without disks.
    pub engine: Option<Engine>,
    /// Faults found by verification; null if not requested.
    pub faults: Option<u64>,
    /// Reading back in order; null if not requested.
    pub read_back: Option<RecordReadBack>,
    /// Reason for an aborted or incomplete recording.
    pub broken_off: Option<String>,
    /// Background loads.
    pub loads: Vec<LoadResult>,
    /// Notes on how it was done.
    pub notes: Vec<String>,
}

/// Placement of blocks on volumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecordPlacement {
    /// Each block to the volume with the shortest queue.
    Free,
    /// Each stream pinned to a volume.
    Pinned,
}

/// Times of the first events.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordFirst {
    /// Requested number of events.
    pub events: u64,
    /// Time at which they were received, possibly only in memory.
    pub received: RecordMoment,
    /// Time at which they were durable, over all volumes; null without disks. Detected at a flush,
    /// which may make many more events durable at once.
    pub durable: Option<RecordMoment>,
}

/// Time and amounts at the first poll that reached the requested number; counters are polled every
/// millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordMoment {
    /// Seconds since the start of the source's schedule.
    pub seconds: f64,
    /// Number of events.
    pub events: u64,
    /// Payload of the events, bytes.
    pub bytes: u64,
}

/// Reading back by stream in event order, one thread per volume, with a cold page cache; every
/// checksum is verified.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordReadBack {
    /// Streams with events.
    pub streams: u32,
    /// Events read.
    pub events: u64,
    /// Payload of the events, bytes.
    pub bytes: u64,
    /// Duration, seconds.
    pub seconds: f64,
    /// Number of threads.
    pub threads: u32,
    /// CPU time of this process including its kernel workers, seconds.
    pub cpu_seconds: f64,
    /// CPU time of the whole machine, seconds.
    pub machine_cpu_seconds: Option<f64>,
}

impl RecordMoment {
    /// Mean bytes per second until this moment; `None` at time 0.
    #[must_use]
    pub fn bytes_per_second(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.bytes as f64 / self.seconds)
    }
}

impl RecordReadBack {
    /// Payload bytes per second; `None` if nothing was read.
    #[must_use]
    pub fn bytes_per_second(&self) -> Option<f64> {
        (self.seconds > 0.0 && self.bytes > 0).then(|| self.bytes as f64 / self.seconds)
    }

    /// CPU time of this process, seconds per GB of payload.
    #[must_use]
    pub fn cpu_seconds_per_gb(&self) -> Option<f64> {
        (self.bytes > 0).then(|| self.cpu_seconds / (self.bytes as f64 / 1e9))
    }
}

impl RecordRun {
    /// Names of its volumes, joined.
    #[must_use]
    pub fn place(&self) -> String {
        if self.to_null { NO_DISK.to_owned() } else { self.volumes.join(" + ") }
    }

    /// Recording rate: durable bytes, or received bytes without disks.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        self.durable_bytes_per_second.unwrap_or(self.achieved_bytes_per_second)
    }

    /// Mean CPU usage of the machine, cores; `None` if not measured.
    #[must_use]
    pub fn cores_busy(&self) -> Option<f64> {
        let cores = &self.cpu.per_core_percent;
        (!cores.is_empty()).then(|| cores.iter().float_sum() / 100.0)
    }

    /// Whether all due data was recorded undamaged, and verified if requested.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.ledger.lost.events == 0
            && self.broken_off.is_none()
            && self.faults.unwrap_or(0) == 0
            && self.read_back.as_ref().is_none_or(|read| read.events == self.ledger.on_volumes().events)
    }
}

impl Figures for RecordSummary {
    fn figures(&self) -> Vec<Figure> {
        let mut figures = Collected::default();
        for run in &self.runs {
            add_run(&mut figures, &run.place(), run);
        }
        figures.done()
    }
}

fn add_run(figures: &mut Collected, place: &str, run: &RecordRun) {
    figures.measured_for(Some(run.seconds));
    figures.add(place, "record", Quantity::BytesPerSecond, Some(run.bytes_per_second()));
    figures.add(place, "record", Quantity::CpuSecondsPerGb, run.cpu.seconds_per_gb);
    figures.add(place, "record", Quantity::CoresBusy, run.cores_busy());
    figures.add(place, "record", Quantity::Lost, Some(run.ledger.lost.events as f64));
    if let Some(first) = &run.first {
        let mut add = |what: &str, moment: Option<RecordMoment>| {
            let what = format!("first {} {what}", first.events);
            let rate = moment.and_then(|moment| moment.bytes_per_second());
            figures.add(place, &what, Quantity::BytesPerSecond, rate);
        };
        add("received", Some(first.received));
        add("durable", first.durable);
    }
    if let Some(read) = &run.read_back {
        figures.measured_for(Some(read.seconds));
        figures.add(place, "read back", Quantity::BytesPerSecond, read.bytes_per_second());
        figures.add(place, "read back", Quantity::CpuSecondsPerGb, read.cpu_seconds_per_gb());
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
