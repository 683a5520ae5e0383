//! Rates and backlogs of a trial over time, from the counters of its threads.
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use keepup_measure::cpu::{CoreTimes, core_usage};
use keepup_recorder::counters::Counters;
use keepup_recorder::drain::DrainCounters;
use keepup_stream::source::SourceCounters;

use super::FileIndexes;
use crate::Context;
use crate::net::SourceTimeline;

/// Minimum interval for core usage: the kernel counts in steps of 10 ms.
const CORES_EVERY_NS: u64 = 250_000_000;

/// All counters at one moment, in payload bytes since the start of the trial.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Seconds since the start of the trial.
    pub t_s: f64,
    /// Bytes due at the source.
    pub due_bytes: u64,
    /// Bytes lost at the source.
    pub lost_bytes: u64,
    /// Bytes sent by the source.
    pub sent_bytes: u64,
    /// Bytes received by the recorder.
    pub received_bytes: u64,
    /// Bytes written (completed by the kernel).
    pub written_bytes: u64,
    /// Durable bytes.
    pub durable_bytes: u64,
    /// Durable bytes as stored; differs from the payload where events are reduced.
    pub stored_bytes: u64,
    /// Bytes of the pool in use.
    pub pool_bytes: u64,
    /// Durable bytes not yet read by the drain.
    pub drain_behind_bytes: u64,
    /// Bytes delivered by the drain.
    pub drained_bytes: u64,
    /// Age of the oldest outstanding write, flush or segment wait of any volume, ns; 0 without one.
    pub stall_ns: u64,
}

impl Sample {
    /// Bytes due and neither lost nor written: in the source, network or pool.
    pub fn backlog_bytes(&self) -> u64 {
        self.due_bytes.saturating_sub(self.lost_bytes + self.written_bytes)
    }

    /// Replaces the counters of the source by those that it had at the time of the sample. The live ones
    /// were those of the last report received by then, which may have waited on a full path.
    pub(super) fn align(&mut self, timeline: &SourceTimeline, begin_ns: u64) {
        let t_ns = begin_ns.saturating_add((self.t_s * 1e9).round() as u64);
        if let Some(counts) = timeline.at(t_ns) {
            (self.due_bytes, self.lost_bytes) = (counts.due_bytes, counts.lost_bytes);
            self.sent_bytes = counts.sent_bytes;
        }
    }
}

/// Sources of samples.
pub(super) struct Feeds {
    pub(super) source: Arc<SourceCounters>,
    pub(super) recorder: Arc<Counters>,
    pub(super) drain: Option<Arc<DrainCounters>>,
    /// What the recorder added to the events of the source.
    pub(super) index: Option<FileIndexes>,
}

impl Feeds {
    pub(super) fn read(&self, now_ns: u64, begin_ns: u64) -> Sample {
        // Downstream counters first, so that progress in between appears as backlog, never as
        // negative.
        // The index is exact when nothing is being written; until then it is a little too small.
        let index_bytes = self.index.as_ref().map_or(0, |index| index.durable().bytes);
        let without_index = |bytes: u64| bytes.saturating_sub(index_bytes);
        let durable_bytes = without_index(self.recorder.durable_payload_bytes());
        let written_bytes = without_index(self.recorder.written_payload_bytes());
        let drain = self.drain.as_ref();
        Sample {
            t_s: now_ns.saturating_sub(begin_ns) as f64 / 1e9,
            durable_bytes,
            stored_bytes: without_index(self.recorder.stored_payload_bytes()),
            written_bytes,
            received_bytes: without_index(self.recorder.received_bytes()),
            pool_bytes: self.recorder.pool_bytes_used(),
            lost_bytes: self.source.lost_bytes.load(Relaxed),
            sent_bytes: self.source.sent_bytes.load(Relaxed),
            due_bytes: self.source.due_bytes.load(Relaxed),
            drain_behind_bytes: drain.map_or(0, |d| d.behind_bytes.load(Relaxed)),
            drained_bytes: drain.map_or(0, |d| d.sent_bytes.load(Relaxed)),
            stall_ns: self.stall_ns(now_ns),
        }
    }

    fn stall_ns(&self, now_ns: u64) -> u64 {
        let since = self.recorder.volumes.iter().map(|volume| volume.oldest_ns.load(Relaxed));
        since.filter(|since_ns| *since_ns > 0).map(|ns| now_ns.saturating_sub(ns)).max().unwrap_or(0)
    }
}

/// Core usage at sufficiently long intervals.
#[derive(Default)]
pub(super) struct CoreFeed {
    read_ns: Option<u64>,
}

impl CoreFeed {
    /// Core times if the interval has passed; `None` also if the kernel does not provide them.
    pub(super) fn read(&mut self, now_ns: u64, root: &Path) -> Option<Vec<CoreTimes>> {
        if self.read_ns.is_some_and(|read_ns| now_ns.saturating_sub(read_ns) < CORES_EVERY_NS) {
            return None;
        }
        self.read_ns = Some(now_ns);
        CoreTimes::read_all(root).ok()
    }
}

/// Emits samples with the usage of each core since the previous reading.
pub(super) fn record_samples(context: &mut Context, samples: &[(Sample, Option<Vec<CoreTimes>>)]) {
    let mut earlier: Option<&[CoreTimes]> = None;
    for (sample, cores) in samples {
        let mut values = values(sample);
        if let Some(cores) = cores {
            let usage = earlier.map(|earlier| core_usage(earlier, cores)).unwrap_or_default();
            let named = |core: u32| format!("core_{core}_busy_percent");
            values.extend(usage.iter().map(|used| (named(used.core), used.busy_percent)));
            earlier = Some(cores);
        }
        (context.sample)((sample.t_s * 1e3) as u64, values);
    }
}

fn values(sample: &Sample) -> BTreeMap<String, f64> {
    let values = [
        ("due_bytes", sample.due_bytes as f64),
        ("lost_bytes", sample.lost_bytes as f64),
        ("sent_bytes", sample.sent_bytes as f64),
        ("received_bytes", sample.received_bytes as f64),
        ("written_bytes", sample.written_bytes as f64),
        ("durable_bytes", sample.durable_bytes as f64),
        ("pool_bytes", sample.pool_bytes as f64),
        ("drain_behind_bytes", sample.drain_behind_bytes as f64),
        ("drained_bytes", sample.drained_bytes as f64),
        ("stall_ms", sample.stall_ns as f64 / 1e6),
    ];
    values.iter().map(|&(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
#[path = "sampling_tests.rs"]
mod tests;
