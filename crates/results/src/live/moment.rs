//! The figures of a recorder at one moment.
//!
//! Totals count from the start of the run and never fall within it; rates are over the time since the look
//! before. A figure that cannot be had is null.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::summary::Count;

/// A recorder at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moment {
    /// When, ns since the Unix epoch.
    pub t_unix_ns: u64,
    /// Since the run's start, in seconds.
    pub seconds: f64,
    /// Where events are, and how fast they go on.
    pub flow: Flow,
    /// The block pool.
    pub pool: PoolNow,
    /// What events are reduced by before they are written, where they are.
    pub reduction: Option<ReductionNow>,
    /// Every volume, in the order given.
    pub volumes: Vec<VolumeNow>,
    /// Every stream declared so far, by number.
    pub streams: Vec<StreamNow>,
    /// Every core of the machine.
    pub cores: Vec<CoreNow>,
    /// Processor time of the recorder's process over the time since the look before; 1 is one core.
    pub process_cores: Option<f64>,
    /// How far away the limit is that was measured on this machine.
    pub margin: Option<Margin>,
    /// What people should look at now, the worst first.
    pub warnings: Vec<String>,
}

/// Where events are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Received whole and in order.
    pub received: Count,
    /// Confirmed by the kernel.
    pub written: Count,
    /// On stable storage.
    pub durable: Count,
    /// Read out by drains, when one has been at work.
    pub drained: Option<Drained>,
    /// Rate of the received, in bytes per second.
    pub received_bytes_per_second: f64,
    /// Rate of the written, in bytes per second.
    pub written_bytes_per_second: f64,
    /// Rate of the durable, in bytes per second.
    pub durable_bytes_per_second: f64,
    /// Rate of the received, in events per second.
    pub received_events_per_second: f64,
    /// Events missing so far, by cause.
    pub missing: BTreeMap<String, u64>,
    /// Events missing so far.
    pub missing_events: u64,
    /// Connections open.
    pub connections: u64,
    /// Time in which the intake had something to do, as a share.
    pub intake_busy: f64,
}

/// What drains have read out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drained {
    /// Events, summed over the streams, by what the drain notes as safe elsewhere.
    pub events: u64,
    /// Rate, in events per second.
    pub events_per_second: f64,
}

/// The block pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolNow {
    /// Its size, in bytes.
    pub bytes: u64,
    /// In use, in bytes.
    pub used_bytes: u64,
    /// Most in use so far, in bytes.
    pub used_bytes_max: u64,
    /// For how long what is free bridges a stall at the present rate, in seconds; null without a rate.
    pub room_seconds: Option<f64>,
    /// Time in which some connection waited for a free block, in seconds, so far.
    pub wait_seconds: f64,
    /// Whether some connection waited since the look before.
    pub waiting: bool,
}

/// The threads that reduce events before they are written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReductionNow {
    /// Events reduced.
    pub events: u64,
    /// Payload of those as it came, in bytes.
    pub input_bytes: u64,
    /// Payload that they became, in bytes.
    pub output_bytes: u64,
    /// Payload that waits for a thread, or is at one, in bytes.
    pub waiting_bytes: u64,
    /// Rate of what came, in bytes per second.
    pub input_bytes_per_second: f64,
    /// Rate of what it became, in bytes per second.
    pub output_bytes_per_second: f64,
    /// Time in which each thread had something to do, as a share of the time since the look before.
    pub busy: Vec<f64>,
}

/// One volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeNow {
    /// The recording's directory on it; "null" where blocks are dropped.
    pub path: String,
    /// Bytes confirmed by the kernel: whole blocks.
    pub written_bytes: u64,
    /// Rate of those, in bytes per second.
    pub written_bytes_per_second: f64,
    /// Payload on stable storage, in bytes.
    pub durable_bytes: u64,
    /// Handed over and not yet confirmed, in bytes.
    pub queue_bytes: u64,
    /// Time with as many writes under way as allowed, as a share of the time since the look before.
    pub full: f64,
    /// How long the oldest write, flush or wait for a segment has been under way, in seconds; 0 when there is
    /// none.
    pub stalled_seconds: f64,
    /// Longest write so far, in seconds.
    pub write_seconds_max: f64,
    /// Longest flush so far, in seconds.
    pub flush_seconds_max: f64,
    /// Flushes made.
    pub flushes: u64,
    /// Segments begun.
    pub segments: u64,
    /// Times that it was taken out of rotation because it was slow.
    pub rests: u64,
    /// Why it takes no data any more, once it does not.
    pub failure: Option<String>,
    /// Bytes that may still be written to its file system.
    pub free_bytes: Option<u64>,
    /// Size of its file system, in bytes.
    pub total_bytes: Option<u64>,
    /// When it is full at the present rate, in seconds from now; null without a rate, or where old segments
    /// make room for new ones.
    pub full_in_seconds: Option<f64>,
}

/// One stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamNow {
    /// Its number.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Type of its elements.
    pub element: String,
    /// Elements of one event along each dimension; empty: opaque bytes.
    pub shape: Vec<u64>,
    /// How each event is compressed, if it is.
    pub compression: Option<String>,
    /// Whether a source feeds it.
    pub connected: bool,
    /// Whether its source said end, and none has come since.
    pub ended: bool,
    /// Received whole and in order.
    pub received: Count,
    /// On stable storage.
    pub durable: Count,
    /// Events missing so far.
    pub missing_events: u64,
    /// Rate of the received, in bytes per second.
    pub received_bytes_per_second: f64,
    /// Sequence number that is expected next.
    pub next_sequence: u64,
    /// How long nothing has come, in seconds; null when nothing ever has.
    pub silent_seconds: Option<f64>,
}

/// One core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreNow {
    /// Its number.
    pub core: u32,
    /// Time in which it was not idle since the look before, as a share.
    pub busy: f64,
}

/// How far away the limit is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Margin {
    /// The rate that this machine was qualified for, in bytes per second.
    pub qualified_bytes_per_second: f64,
    /// The present rate over it; above 1 it goes faster than was ever shown to hold.
    pub used: f64,
    /// The result that says so.
    pub result: String,
    /// What was different when it was measured, if anything.
    pub differs: Vec<String>,
}
