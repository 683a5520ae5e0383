//! A detector as the machine must take it: what it sends, how fast, for how long, and what is required.
//!
//! All fields are plain and public, so that flags may override them; [`Profile::validate`] is the one judge
//! of whether they make sense together.

mod check;

use serde::{Deserialize, Serialize};

use crate::reduction::Reduction;
use crate::units::{ByteRate, Bytes, EventRate, Share, Span};
pub use check::Invalid;

/// Description of a detector and what it requires.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Lower-case letters, digits and hyphens; also the stem of its file.
    pub name: String,
    /// One line for lists.
    pub title: String,
    /// What one should know about this detector; may be empty.
    pub description: String,
    /// How large one event is.
    pub event: EventSize,
    /// Type of one element, where the event is an array.
    pub element: Option<Element>,
    /// Elements of one event along each dimension; empty for opaque bytes.
    pub shape: Vec<u64>,
    /// Events per second of all streams together; while a burst is on, if there are bursts.
    pub rate: EventRate,
    /// Number of streams.
    pub streams: u32,
    /// Network connections over which the streams are dealt.
    pub connections: u32,
    /// How the detector hands over its data: a fact about it, not about how it is simulated.
    pub transport: Transport,
    /// Front-end memory of the detector, in which events wait when the link is held back.
    pub buffer: Bytes,
    /// Pattern of bursts, where it does not send evenly.
    pub burst: Option<Burst>,
    /// Length of one data-taking run.
    pub duration: Span,
    /// Volumes that its own recorder spreads the data over.
    pub volumes: u32,
    /// How streams come to volumes.
    pub placement: Placement,
    /// What is written at once.
    pub block: Bytes,
    /// Size of one file of blocks.
    pub segment: Bytes,
    /// What is done to events before they are written.
    pub reductions: Vec<Reduction>,
    /// Rate at which durable data is read out while recording goes on.
    pub drain: Option<ByteRate>,
    /// Highest rate without loss over required rate, at least.
    pub headroom: f64,
    /// Part of all processors that recording must leave to others.
    pub cpu_free: Share,
    /// Events that may be lost in one run.
    pub loss_allowed: u64,
    /// Where the figures come from.
    pub references: Vec<Reference>,
}

/// Distribution of the size of events.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EventSize {
    /// All alike.
    Fixed(Bytes),
    /// Each size from `min` to `max` equally likely.
    Uniform {
        /// Smallest size.
        min: Bytes,
        /// Largest size.
        max: Bytes,
    },
    /// Logarithm of the size normally distributed; what would be larger than `max` is `max`.
    LogNormal {
        /// Half of the events are smaller, before the cut.
        median: Bytes,
        /// Standard deviation of the natural logarithm of the size.
        sigma: f64,
        /// Largest size.
        max: Bytes,
    },
}

/// Type of one element of an event that is an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Element {
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
}

/// How the detector hands over its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// A byte stream that can be held back.
    Tcp,
    /// Datagrams, lost when nobody takes them in time.
    Udp,
    /// ZeroMQ messages.
    Zeromq,
    /// Files that the detector's own computer writes.
    File,
    /// Memory of the same machine, filled by a frame grabber or another process.
    SharedMemory,
}

/// How streams come to volumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// A block goes to the next volume with room.
    Free,
    /// Each stream has its volume.
    Pinned,
}

/// Bursts: the rate holds for `on`, then nothing is sent for `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// Time in which events are sent.
    pub on: Span,
    /// Silence that follows.
    pub off: Span,
}

/// Where a figure of a profile comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// The figure that is meant: "event size".
    pub what: String,
    /// The figure as the source has it: "256 KB".
    pub value: String,
    /// Paper, page or manual, with section where there is one.
    pub from: String,
    /// Whether the source says so itself; otherwise the figure is derived, common knowledge or a choice.
    pub verified: bool,
    /// How it was derived, or what to beware of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Profile {
    /// Bytes per second, mean over bursts and the silence between them: what disks must take in the long run.
    pub fn required_bytes_per_second(&self) -> f64 {
        let duty = self.burst.map_or(1.0, |Burst { on, off }| {
            let on = on.0.as_secs_f64();
            on / (on + off.0.as_secs_f64())
        });
        self.peak_bytes_per_second() * duty
    }

    /// Bytes per second while a burst is on: what the link must take.
    pub fn peak_bytes_per_second(&self) -> f64 {
        self.rate.events_per_second() * self.event.mean_bytes()
    }

    /// The same detector with events of `size`, opaque bytes, at the same rate of events; what must hold an
    /// event grows with it. Opaque bytes cannot be reduced.
    #[must_use]
    pub fn with_events_of(mut self, size: Bytes) -> Self {
        self.event = EventSize::Fixed(size);
        (self.element, self.shape) = (None, Vec::new());
        self.reductions.clear();
        // Of the simulated source, an event takes a little more than its payload.
        self.buffer = self.buffer.max(Bytes(size.0.saturating_mul(2)));
        self.segment = self.segment.max(size);
        self
    }

    /// The same detector with so many streams, over as many connections as it has, or as there are streams.
    #[must_use]
    pub fn with_streams(mut self, streams: u32) -> Self {
        self.streams = streams;
        self.connections = self.connections.min(streams);
        self
    }

    /// The same detector recorded to so many volumes; pinned only where each volume has a stream.
    #[must_use]
    pub fn on_volumes(mut self, volumes: u32) -> Self {
        self.volumes = volumes;
        if volumes > self.streams {
            self.placement = Placement::Free;
        }
        self
    }

    /// Payload of one whole run, to which a recording adds a few per mille of its own.
    pub fn space_needed(&self) -> Bytes {
        // A float above the range of u64 becomes its maximum, which `validate` refuses.
        Bytes((self.peak_bytes_per_second() * self.sending_seconds()).ceil() as u64)
    }

    /// Seconds within one run in which events are sent.
    fn sending_seconds(&self) -> f64 {
        let run = self.duration.0.as_secs_f64();
        let Some(Burst { on, off }) = self.burst else { return run };
        let (on, off) = (on.0.as_secs_f64(), off.0.as_secs_f64());
        let bursts = (run / (on + off)).floor();
        bursts * on + (run - bursts * (on + off)).min(on)
    }
}

impl EventSize {
    /// Mean size in bytes.
    pub fn mean_bytes(&self) -> f64 {
        match *self {
            Self::Fixed(size) => size.0 as f64,
            Self::Uniform { min, max } => (min.0 as f64 + max.0 as f64) / 2.0,
            Self::LogNormal { median, sigma, max } => {
                cut_lognormal_mean(median.0 as f64, sigma, max.0 as f64)
            }
        }
    }

    /// Size of the largest event that can come.
    pub fn max(&self) -> Bytes {
        match *self {
            Self::Fixed(size) => size,
            Self::Uniform { max, .. } | Self::LogNormal { max, .. } => max,
        }
    }
}

impl Element {
    /// Bytes of one element.
    pub fn bytes(self) -> u64 {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }
}

impl std::fmt::Display for Element {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F32 => "f32",
            Self::F64 => "f64",
        })
    }
}

/// Mean of a log-normal variable of which all that exceeds `max` is counted as `max`:
/// E[min(X, M)] = e^(mu + sigma^2/2) Phi((ln M - mu)/sigma - sigma) + M (1 - Phi((ln M - mu)/sigma)).
fn cut_lognormal_mean(median: f64, sigma: f64, max: f64) -> f64 {
    let reach = (max / median).ln() / sigma;
    median * (sigma * sigma / 2.0).exp() * normal_cdf(reach - sigma) + max * normal_cdf(-reach)
}

/// Distribution function of the normal distribution, by Abramowitz and Stegun 26.2.17 (error below 7.5e-8).
fn normal_cdf(x: f64) -> f64 {
    const B: [f64; 5] = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let series = B.iter().rev().fold(0.0, |sum, b| (sum + b) * t);
    let upper = (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * series;
    if x < 0.0 { upper } else { 1.0 - upper }
}

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;
