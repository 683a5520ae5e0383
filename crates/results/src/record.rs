//! What `keepup trial` found: runs of the path that records, each at one rate.
//!
//! Times count from the moment when the source's schedule began. A run without disks receives, checks and
//! seals as any other and drops its blocks: what its ledger calls written and durable was dropped then.
//! MB = 10^6 bytes. `None` means "not measured" and is written as null.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::figure::{Collected, Figure, Figures, Quantity};
use crate::load::LoadResult;
use crate::summary::{CpuCost, Engine, Kind, LedgerSummary};
use crate::test::test_summary;

/// Where runs without disks took place, for people.
const NO_DISK: &str = "no disk";

test_summary! {
    /// What the trials of a recording found.
    pub struct RecordSummary: Kind::Record, version 1 {
        /// Every run, in the order in which they were made.
        pub runs: Vec<RecordRun>,
    }
}

/// One run of source and recorder at one rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordRun {
    /// Directories that were recorded to, at the same time; empty without disks.
    pub volumes: Vec<String>,
    /// Number of the repeat, from 1.
    pub repeat: u32,
    /// When the source's schedule began, seconds since the first run of the measurement began.
    pub begin_seconds: f64,
    /// Rate asked of the source, mean over bursts; null when it went as fast as it was taken.
    pub asked_bytes_per_second: Option<f64>,
    /// Streams that were sent.
    pub streams: u32,
    /// Connections that they were dealt over.
    pub connections: u32,
    /// Payload of an event, bytes; of the largest where sizes differ.
    pub event_bytes: u64,
    /// How blocks came to volumes.
    pub placement: RecordPlacement,
    /// Whether blocks were dropped instead of written.
    pub to_null: bool,
    /// Until the source had handed its last event to the network, seconds.
    pub source_seconds: f64,
    /// Until all that came was durable (without disks: taken), seconds.
    pub seconds: f64,
    /// Payload that got into the recorder, over `source_seconds`.
    pub achieved_bytes_per_second: f64,
    /// Payload that became durable, over `seconds`; null without disks.
    pub durable_bytes_per_second: Option<f64>,
    /// How long the first events took; null when the run had fewer.
    pub first: Option<RecordFirst>,
    /// Where each event went.
    pub ledger: LedgerSummary,
    /// The whole CPU bill.
    pub cpu: CpuCost,
    /// Memory for blocks, bytes.
    pub pool_bytes: u64,
    /// Most of it in use at a time, bytes.
    pub pool_bytes_used_max: u64,
    /// Most that was due and neither lost nor written, bytes: in the source, the network, the pool.
    pub backlog_bytes_max: Option<u64>,
    /// Longest time in which something waited and nothing was written, as far as samples show it, seconds.
    pub stall_seconds_max: Option<f64>,
    /// How blocks were written; null without disks.
    pub engine: Option<Engine>,
    /// Faults that reading everything back and checking it found; null when that was not done.
    pub faults: Option<u64>,
    /// Reading the recording back in order; null when that was not done.
    pub read_back: Option<RecordReadBack>,
    /// Why the recording broke off, if it did.
    pub broken_off: Option<String>,
    /// What ran beside it on purpose.
    pub loads: Vec<LoadResult>,
    /// What the reader should know of how it was done.
    pub notes: Vec<String>,
}

/// How blocks came to volumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecordPlacement {
    /// A block went to the volume with the least waiting.
    Free,
    /// Each stream had its volume.
    Pinned,
}

/// How long the first events took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordFirst {
    /// So many were asked for.
    pub events: u64,
    /// When so many had been received: they may have been in memory only.
    pub received: RecordMoment,
    /// When so many were durable, on all volumes together; null without disks. A recorder learns that from
    /// a flush, so that it may be many more at once.
    pub durable: Option<RecordMoment>,
}

/// A moment, and what had been reached then. Counts are looked at each millisecond: all three figures are
/// of the first look that saw enough.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordMoment {
    /// Seconds since the source's schedule began.
    pub seconds: f64,
    /// Events by then.
    pub events: u64,
    /// Their payload, bytes.
    pub bytes: u64,
}

/// Reading a recording back: stream by stream, each in the order of its events, one thread for each volume,
/// with nothing of it in the page cache at first; every checksum is compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordReadBack {
    /// Streams that had events.
    pub streams: u32,
    /// Events that were read.
    pub events: u64,
    /// Their payload, bytes.
    pub bytes: u64,
    /// Time it took, seconds.
    pub seconds: f64,
    /// Threads that read.
    pub threads: u32,
    /// CPU of this process meanwhile, its kernel workers included, seconds.
    pub cpu_seconds: f64,
    /// CPU of the whole machine meanwhile, seconds.
    pub machine_cpu_seconds: Option<f64>,
}

impl RecordMoment {
    /// Bytes per second from the beginning to this moment; `None` at the beginning itself.
    #[must_use]
    pub fn bytes_per_second(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.bytes as f64 / self.seconds)
    }
}

impl RecordReadBack {
    /// Payload bytes per second; `None` when nothing was read.
    #[must_use]
    pub fn bytes_per_second(&self) -> Option<f64> {
        (self.seconds > 0.0 && self.bytes > 0).then(|| self.bytes as f64 / self.seconds)
    }

    /// CPU of this process, seconds per GB of payload.
    #[must_use]
    pub fn cpu_seconds_per_gb(&self) -> Option<f64> {
        (self.bytes > 0).then(|| self.cpu_seconds / (self.bytes as f64 / 1e9))
    }
}

impl RecordRun {
    /// Its volumes in one word.
    #[must_use]
    pub fn place(&self) -> String {
        if self.to_null { NO_DISK.to_owned() } else { self.volumes.join(" + ") }
    }

    /// What it recorded per second: durable bytes, or bytes received where there are no disks.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        self.durable_bytes_per_second.unwrap_or(self.achieved_bytes_per_second)
    }

    /// Processors of the machine that were busy on average; `None` when not measured.
    #[must_use]
    pub fn cores_busy(&self) -> Option<f64> {
        let cores = &self.cpu.per_core_percent;
        (!cores.is_empty()).then(|| cores.iter().sum::<f64>() / 100.0)
    }

    /// Whether all that was due got through undamaged, and was read back where that was asked for.
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
        figures.add(place, "read back", Quantity::BytesPerSecond, read.bytes_per_second());
        figures.add(place, "read back", Quantity::CpuSecondsPerGb, read.cpu_seconds_per_gb());
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
