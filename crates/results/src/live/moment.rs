//! Figures of a recorder at one moment.
//!
//! Totals count from the start of the run and never decrease; rates are over the time since the
//! previous reading. Unavailable figures are null.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::summary::{Count, FailedRate};

/// Figures of a recorder at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moment {
    /// Time, ns since the Unix epoch.
    pub t_unix_ns: u64,
    /// Time since the start of the run, seconds.
    pub seconds: f64,
    /// Event counts and rates.
    pub flow: Flow,
    /// The block pool.
    pub pool: PoolNow,
    /// Reduction of events before writing, if any.
    pub reduction: Option<ReductionNow>,
    /// Volumes in the given order.
    pub volumes: Vec<VolumeNow>,
    /// Declared streams, by number.
    pub streams: Vec<StreamNow>,
    /// Cores of the machine.
    pub cores: Vec<CoreNow>,
    /// CPU usage of the recorder's process since the previous reading; 1 is one core.
    pub process_cores: Option<f64>,
    /// Distance from the measured limit of this machine.
    pub margin: Option<Margin>,
    /// Current warnings, worst first.
    pub warnings: Vec<String>,
}

/// Event counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Received completely and in order.
    pub received: Count,
    /// Written (completed by the kernel).
    pub written: Count,
    /// Durable.
    pub durable: Count,
    /// Read by drains, if any.
    pub drained: Option<Drained>,
    /// Rate of received data, bytes per second.
    pub received_bytes_per_second: f64,
    /// Rate of written data, bytes per second.
    pub written_bytes_per_second: f64,
    /// Rate of durable data, bytes per second.
    pub durable_bytes_per_second: f64,
    /// Rate of received events per second.
    pub received_events_per_second: f64,
    /// Missing events so far, by cause.
    pub missing: BTreeMap<String, u64>,
    /// Missing events so far.
    pub missing_events: u64,
    /// Data that arrived and are not recorded, by source and reason.
    #[serde(default)]
    pub rejected: Vec<RejectedNow>,
    /// Open connections.
    pub connections: u64,
    /// Busy share of the intake.
    pub intake_busy: f64,
}

/// Data of one source that arrived and are not recorded, for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RejectedNow {
    /// Address of the source or sender.
    pub source: String,
    /// Reason.
    pub reason: String,
    /// Unit of the count: packet, heap, message, image, event or file.
    pub unit: String,
    /// Number so far.
    pub count: u64,
    /// Whether the sender was never admitted and not asked for.
    pub foreign: bool,
    /// Source, count and reason as a sentence.
    pub text: String,
}

/// Progress of drains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drained {
    /// Events, summed over the streams, confirmed by the drain.
    pub events: u64,
    /// Events per second.
    pub events_per_second: f64,
}

/// The block pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolNow {
    /// Size, bytes.
    pub bytes: u64,
    /// Used, bytes.
    pub used_bytes: u64,
    /// Maximum used so far, bytes.
    pub used_bytes_max: u64,
    /// Stall that the free part bridges at the current rate, seconds; null without a rate.
    pub room_seconds: Option<f64>,
    /// Total time in which a connection waited for a free block, seconds.
    pub wait_seconds: f64,
    /// Whether a connection waited since the previous reading.
    pub waiting: bool,
}

/// Reducer threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReductionNow {
    /// Reduced events.
    pub events: u64,
    /// Payload before reduction, bytes.
    pub input_bytes: u64,
    /// Payload after reduction, bytes.
    pub output_bytes: u64,
    /// Payload waiting for a thread or being reduced, bytes.
    pub waiting_bytes: u64,
    /// Input rate, bytes per second.
    pub input_bytes_per_second: f64,
    /// Output rate, bytes per second.
    pub output_bytes_per_second: f64,
    /// Busy share of each thread since the previous reading.
    pub busy: Vec<f64>,
}

/// One volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeNow {
    /// Directory of the recording; "null" if blocks are discarded.
    pub path: String,
    /// Bytes written in whole blocks.
    pub written_bytes: u64,
    /// Write rate, bytes per second.
    pub written_bytes_per_second: f64,
    /// Durable payload, bytes.
    pub durable_bytes: u64,
    /// Submitted but not yet written, bytes.
    pub queue_bytes: u64,
    /// Share of time since the previous reading with the maximum number of writes in flight.
    pub full: f64,
    /// Age of the oldest outstanding write, flush or segment wait, seconds; 0 without one.
    pub stalled_seconds: f64,
    /// Longest write so far, seconds.
    pub write_seconds_max: f64,
    /// Longest flush so far, seconds.
    pub flush_seconds_max: f64,
    /// Number of flushes.
    pub flushes: u64,
    /// Number of segments started.
    pub segments: u64,
    /// Times it was taken out of rotation for slowness.
    pub rests: u64,
    /// Reason for its failure, if it failed.
    pub failure: Option<String>,
    /// Free space of its file system, bytes.
    pub free_bytes: Option<u64>,
    /// Size of its file system, bytes.
    pub total_bytes: Option<u64>,
    /// Time until it is full at the current rate, seconds; null without a rate, or if old segments
    /// are replaced.
    pub full_in_seconds: Option<f64>,
}

/// One stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamNow {
    /// Number.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Element type.
    pub element: String,
    /// Elements per event along each dimension; empty for opaque bytes.
    pub shape: Vec<u64>,
    /// Compression of events, if any.
    pub compression: Option<String>,
    /// Whether a source is connected.
    pub connected: bool,
    /// Whether its source has ended it and none has reconnected.
    pub ended: bool,
    /// Received completely and in order.
    pub received: Count,
    /// Durable.
    pub durable: Count,
    /// Missing events so far.
    pub missing_events: u64,
    /// Rate of received data, bytes per second.
    pub received_bytes_per_second: f64,
    /// Next expected sequence number.
    pub next_sequence: u64,
    /// Time since the last event, seconds; null before the first.
    pub silent_seconds: Option<f64>,
}

/// One core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreNow {
    /// Core number.
    pub core: u32,
    /// Busy share since the previous reading.
    pub busy: f64,
}

/// Distance from the limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Margin {
    /// Qualified rate of this machine, bytes per second.
    pub qualified_bytes_per_second: f64,
    /// Current rate over qualified rate; above 1 the rate exceeds what was proven.
    pub used: f64,
    /// Lowest rate above the qualified one that failed; null if none did. Rates between the two are not
    /// proven.
    pub failed_above: Option<FailedRate>,
    /// Result of the qualification.
    pub result: String,
    /// Differences from the qualification, if any.
    pub differs: Vec<String>,
}

impl Margin {
    /// Current rate, bytes per second.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        self.used * self.qualified_bytes_per_second
    }
}
