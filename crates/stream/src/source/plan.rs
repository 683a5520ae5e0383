//! What a source is to send, in plain types, and whether that can be done.
//!
//! Invariant: after `SourcePlan::check` no arithmetic of the simulator overflows and every event fits the
//! front-end buffer.

use std::time::Duration;

use rustix::thread::CpuSet;

use super::SourceError;
use crate::wire::{ControlMessage, ElementType, HEADER_BYTES, Hello, STREAM_ID_END, StreamInfo};

/// Most connections of one source.
const CONNECTIONS_MAX: u32 = 64;
/// Highest rate that makes sense on a clock of whole nanoseconds, events per second.
const RATE_MAX: f64 = 1e9;

/// How fast events become due.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// Events per second of all streams together, open loop.
    EventsPerSecond(f64),
    /// Closed loop: as fast as the recorder accepts; nothing is ever lost at the source.
    Max,
}

/// How large events are, payload bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EventSize {
    /// All the same.
    Fixed(u64),
    /// Evenly between `min` and `max`, both included.
    Uniform {
        /// Smallest, bytes.
        min: u64,
        /// Largest, bytes.
        max: u64,
    },
    /// `median * exp(sigma * z)` with z normally distributed, cut at `max`.
    LogNormal {
        /// Half of the events are smaller, bytes.
        median: u64,
        /// Standard deviation of the logarithm.
        sigma: f64,
        /// Largest, bytes.
        max: u64,
    },
}

impl EventSize {
    /// Largest event, bytes.
    pub fn max_bytes(&self) -> u64 {
        match *self {
            EventSize::Fixed(bytes) => bytes,
            EventSize::Uniform { max, .. } | EventSize::LogNormal { max, .. } => max,
        }
    }
}

/// The rate holds for `on`, then nothing is due for `off`, again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burst {
    /// Length of a burst.
    pub on: Duration,
    /// Pause after it.
    pub off: Duration,
}

/// What a source is to send.
#[derive(Debug, Clone, PartialEq)]
pub struct SourcePlan {
    /// Payload sizes.
    pub size: EventSize,
    /// Rate of all streams together.
    pub rate: Rate,
    /// Number of streams; events go round robin over them.
    pub streams: u32,
    /// TCP connections, each with a thread; streams go round robin over them. At most 64.
    pub connections: u32,
    /// Bursts, if the rate is not steady.
    pub burst: Option<Burst>,
    /// Length of the schedule; the source ends when it is over.
    pub duration: Option<Duration>,
    /// Number of events of all streams together; without this and `duration` the source runs until stopped.
    pub events: Option<u64>,
    /// Front-end buffer of each connection, bytes; an event takes its payload and 64 bytes.
    pub buffer_bytes: u64,
    /// Where sizes and data come from.
    pub seed: u64,
    /// Element type told to the recorder.
    pub element: ElementType,
    /// Shape of one event told to the recorder; empty: opaque bytes.
    pub shape: Vec<u64>,
    /// Id of the first stream; the others follow.
    pub first_stream: u32,
    /// Cores that the sending threads may use; empty: any.
    pub cpus: Vec<usize>,
}

impl SourcePlan {
    /// One stream of opaque bytes over one connection, without an end, with a front-end buffer of 64 MiB.
    pub fn new(size: EventSize, rate: Rate) -> Self {
        Self {
            size,
            rate,
            streams: 1,
            connections: 1,
            burst: None,
            duration: None,
            events: None,
            buffer_bytes: 64 << 20,
            seed: 1,
            element: ElementType::U8,
            shape: Vec::new(),
            first_stream: 0,
            cpus: Vec::new(),
        }
    }

    /// Checks the plan before anything is opened.
    ///
    /// # Errors
    /// [`SourceError::Plan`] with the first thing that cannot work.
    pub(super) fn check(&self) -> Result<(), SourceError> {
        self.first_fault().map_or(Ok(()), |what| Err(SourceError::Plan { what }))
    }

    fn first_fault(&self) -> Option<String> {
        let last = u64::from(self.first_stream) + u64::from(self.streams);
        if self.streams == 0 || last > u64::from(STREAM_ID_END) || self.streams == STREAM_ID_END {
            return Some(format!(
                "{} streams from id {}: at least 1, at most 65535, ids below 65536",
                self.streams, self.first_stream
            ));
        }
        if self.connections == 0 || self.connections > CONNECTIONS_MAX.min(self.streams) {
            return Some(format!(
                "{} connections for {} streams: 1 to {CONNECTIONS_MAX}, not more than there are streams",
                self.connections, self.streams
            ));
        }
        if let Some(cpu) = self.cpus.iter().find(|cpu| **cpu >= CpuSet::MAX_CPU) {
            return Some(format!("core {cpu}: cores are numbered 0 to {}", CpuSet::MAX_CPU - 1));
        }
        self.rate_fault().or_else(|| self.size_fault())
    }

    fn rate_fault(&self) -> Option<String> {
        match (self.rate, self.burst) {
            (Rate::EventsPerSecond(rate), _) if !(rate > 0.0 && rate <= RATE_MAX) => {
                Some(format!("rate of {rate} events per second: must be above 0 and at most {RATE_MAX:.0}"))
            }
            (Rate::Max, Some(_)) => Some(
                "bursts with the highest rate: a closed loop has no schedule\nhint: state a rate".to_owned(),
            ),
            (_, Some(burst)) if burst.on.is_zero() => Some("bursts of no length".to_owned()),
            _ => None,
        }
    }

    fn size_fault(&self) -> Option<String> {
        let max = self.size.max_bytes();
        match self.size {
            EventSize::Uniform { min, max } if min > max => {
                return Some(format!(
                    "event sizes from {min} to {max} bytes: the smallest is above the largest"
                ));
            }
            EventSize::LogNormal { median, sigma, max }
                if median == 0 || median > max || !(0.0..=10.0).contains(&sigma) =>
            {
                return Some(format!(
                    "log-normal event sizes with median {median}, sigma {sigma}, largest {max}: \
                     median must be 1 to the largest, sigma 0 to 10"
                ));
            }
            _ => {}
        }
        if self.buffer_bytes < max.saturating_add(HEADER_BYTES as u64) {
            return Some(format!(
                "front-end buffer of {} bytes: an event takes up to {max} and {HEADER_BYTES} for its header\n\
                 hint: make the buffer larger; a detector holds several events",
                self.buffer_bytes
            ));
        }
        let shaped = self.hello(0).streams.first().and_then(StreamInfo::event_bytes);
        if !self.shape.is_empty() && (self.size != EventSize::Fixed(max) || shaped != Some(max)) {
            return Some(format!(
                "shape {:?} of {} says {} bytes per event, the size is {:?}\n\
                 hint: a shape needs events of a fixed size that it fits; leave it out for others",
                self.shape,
                self.element,
                shaped.map_or("no number of".to_owned(), |bytes| bytes.to_string()),
                self.size
            ));
        }
        self.hello(0).check().err()
    }

    /// The hello of one connection: every `connections`-th stream, beginning with its own number.
    pub(super) fn hello(&self, connection: u32) -> Hello {
        let streams = (connection..self.streams).step_by(self.connections.max(1) as usize).map(|stream| {
            let id = self.first_stream + stream;
            StreamInfo {
                id,
                name: format!("stream-{id}"),
                element: self.element,
                shape: self.shape.clone(),
                compression: None,
            }
        });
        Hello::new("keepup source", streams.collect())
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
pub(crate) mod tests;
