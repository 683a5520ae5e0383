//! Rates and backlogs of a trial over time, read from the counters of its threads.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use keepup_recorder::counters::Counters;
use keepup_recorder::drain::DrainCounters;
use keepup_stream::source::SourceCounters;

use crate::Context;

/// All counters at one moment. Bytes are payload bytes since the trial began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Seconds since the trial began.
    pub t_s: f64,
    /// Bytes that were due at the source.
    pub due_bytes: u64,
    /// Bytes lost at the source.
    pub lost_bytes: u64,
    /// Bytes the source handed to the network.
    pub sent_bytes: u64,
    /// Bytes the recorder received.
    pub received_bytes: u64,
    /// Bytes confirmed by the kernel.
    pub written_bytes: u64,
    /// Bytes on stable storage.
    pub durable_bytes: u64,
    /// Bytes of the pool in use.
    pub pool_bytes: u64,
    /// Durable bytes that the drain has not read yet.
    pub drain_behind_bytes: u64,
    /// Bytes the drain delivered.
    pub drained_bytes: u64,
}

impl Sample {
    /// What is due and neither lost nor written: in the source, the network or the pool.
    pub fn backlog_bytes(&self) -> u64 {
        self.due_bytes.saturating_sub(self.lost_bytes + self.written_bytes)
    }
}

/// Where samples come from.
pub(super) struct Feeds {
    pub(super) source: Arc<SourceCounters>,
    pub(super) recorder: Arc<Counters>,
    pub(super) drain: Option<Arc<DrainCounters>>,
}

impl Feeds {
    pub(super) fn read(&self, now_ns: u64, begin_ns: u64) -> Sample {
        // Downstream first: what moves on meanwhile shows as backlog, never as bytes from nowhere.
        let durable_bytes = self.recorder.durable_payload_bytes();
        let written_bytes = self.recorder.written_payload_bytes();
        let drain = self.drain.as_ref();
        Sample {
            t_s: now_ns.saturating_sub(begin_ns) as f64 / 1e9,
            durable_bytes,
            written_bytes,
            received_bytes: self.recorder.intake.received_bytes.load(Relaxed),
            pool_bytes: self.recorder.intake.pool_bytes_used.load(Relaxed),
            lost_bytes: self.source.lost_bytes.load(Relaxed),
            sent_bytes: self.source.sent_bytes.load(Relaxed),
            due_bytes: self.source.due_bytes.load(Relaxed),
            drain_behind_bytes: drain.map_or(0, |d| d.behind_bytes.load(Relaxed)),
            drained_bytes: drain.map_or(0, |d| d.sent_bytes.load(Relaxed)),
        }
    }
}

/// Hands a sample to whoever keeps the result.
pub(super) fn record_sample(context: &mut Context, sample: &Sample) {
    let values = [
        ("due_bytes", sample.due_bytes),
        ("lost_bytes", sample.lost_bytes),
        ("sent_bytes", sample.sent_bytes),
        ("received_bytes", sample.received_bytes),
        ("written_bytes", sample.written_bytes),
        ("durable_bytes", sample.durable_bytes),
        ("pool_bytes", sample.pool_bytes),
        ("drain_behind_bytes", sample.drain_behind_bytes),
        ("drained_bytes", sample.drained_bytes),
    ];
    let values: BTreeMap<String, f64> = values.iter().map(|&(name, v)| (name.to_owned(), v as f64)).collect();
    (context.sample)((sample.t_s * 1e3) as u64, values);
}
