//! Description of a detector: data, rates, run length and requirements.
//!
//! All fields are public so that flags can override them; [`Profile::validate`] checks their
//! consistency.

mod check;

use serde::{Deserialize, Serialize};

use crate::element::Element;
use crate::reduction::Reduction;
use crate::units::{ByteRate, Bytes, EventRate, Share, Span};
pub use check::Invalid;

/// A detector and its requirements.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Lower-case letters, digits and hyphens; also the stem of its file.
    pub name: String,
    /// One-line title.
    pub title: String,
    /// Description; may be empty.
    pub description: String,
    /// Size of an event.
    pub event: EventSize,
    /// Element type, if the event is an array.
    pub element: Option<Element>,
    /// Elements per event along each dimension, before compression; empty for opaque bytes.
    pub shape: Vec<u64>,
    /// Compression of images by the detector; the sizes of events are then those of compressed images.
    pub compression: Option<Compression>,
    /// Events per second of all streams together; with bursts, the rate within a burst.
    pub rate: EventRate,
    /// Number of streams.
    pub streams: u32,
    /// Number of network connections shared by the streams.
    pub connections: u32,
    /// Transport of the detector, independent of the simulation.
    pub transport: Transport,
    /// Front-end buffer of the detector, for events while the link is blocked.
    pub buffer: Bytes,
    /// Burst pattern; `None` for an even rate.
    pub burst: Option<Burst>,
    /// Length of a run.
    pub duration: Span,
    /// Number of volumes of the detector's own recorder.
    pub volumes: u32,
    /// Placement of streams on volumes.
    pub placement: Placement,
    /// Write size.
    pub block: Bytes,
    /// Segment size; `None`: chosen by the recorder.
    pub segment: Option<Bytes>,
    /// Reductions before writing.
    pub reductions: Vec<Reduction>,
    /// Read-out rate during recording.
    pub drain: Option<ByteRate>,
    /// Required headroom: highest rate without loss over required rate.
    pub headroom: f64,
    /// Share of all CPUs that must stay free.
    pub cpu_free: Share,
    /// Tolerated event losses per run.
    pub loss_allowed: u64,
    /// Whether the volumes must hold one run.
    pub whole_run: bool,
    /// Continuous recording that the rated endurance of the volumes must last; `None` for one run.
    pub lifetime: Option<Span>,
    /// Sources of the values.
    pub references: Vec<Reference>,
}

/// Distribution of event sizes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EventSize {
    /// Constant.
    Fixed(Bytes),
    /// Uniform from `min` to `max`.
    Uniform {
        /// Smallest size.
        min: Bytes,
        /// Largest size.
        max: Bytes,
    },
    /// Log-normal, truncated at `max`.
    LogNormal {
        /// Median before truncation.
        median: Bytes,
        /// Standard deviation of the natural logarithm of the size.
        sigma: f64,
        /// Largest size.
        max: Bytes,
    },
}

/// Compression of images by a detector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// Bitshuffle, then LZ4, as DECTRIS detectors compress.
    Bslz4,
}

/// Transport of a detector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// Byte stream with flow control.
    Tcp,
    /// Datagrams, lost if not received in time.
    Udp,
    /// SPEAD heaps in datagrams, lost if not received in time.
    Spead,
    /// ZeroMQ messages.
    Zeromq,
    /// Monitor of an EPICS PV, as areaDetector serves images.
    Pvaccess,
    /// Files written by the detector's own computer.
    File,
    /// Memory of the same machine, filled by a frame grabber or another process.
    SharedMemory,
}

/// Placement of streams on volumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// Each block to the next volume with free capacity.
    Free,
    /// Each stream pinned to a volume.
    Pinned,
}

/// Bursts of `on` at the full rate, followed by pauses of `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// Length of a burst.
    pub on: Span,
    /// Length of a pause.
    pub off: Span,
}

/// Source of a profile's value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// Name of the value: "event size".
    pub what: String,
    /// Value as in the source: "256 KB".
    pub value: String,
    /// Paper, page or manual, with section if applicable.
    pub from: String,
    /// Whether the source states the value; otherwise it is derived, common knowledge or a choice.
    pub verified: bool,
    /// Derivation, or a caveat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Profile {
    /// Mean bytes per second including pauses: long-term load of the disks.
    pub fn required_bytes_per_second(&self) -> f64 {
        let duty = self.burst.map_or(1.0, |Burst { on, off }| {
            let on = on.0.as_secs_f64();
            on / (on + off.0.as_secs_f64())
        });
        self.peak_bytes_per_second() * duty
    }

    /// Bytes per second within a burst: load of the link.
    pub fn peak_bytes_per_second(&self) -> f64 {
        self.rate.events_per_second() * self.event.mean_bytes()
    }

    /// Size of an image before the detector compresses it; `None` if it does not.
    pub fn uncompressed(&self) -> Option<Bytes> {
        self.compression.and_then(|_| self.array())
    }

    /// Mean bytes per second including pauses before the detector compresses; `None` if it does not.
    pub fn uncompressed_bytes_per_second(&self) -> Option<f64> {
        let image = self.uncompressed()?;
        Some(self.required_bytes_per_second() / self.event.mean_bytes() * image.0 as f64)
    }

    /// Size of the array of an event, not compressed.
    fn array(&self) -> Option<Bytes> {
        array_bytes(self.element, &self.shape)
    }

    /// The same detector with opaque events of `size` at the same event rate; buffers for an event grow with
    /// it. Opaque bytes cannot be reduced.
    #[must_use]
    pub fn with_events_of(mut self, size: Bytes) -> Self {
        self.event = EventSize::Fixed(size);
        (self.element, self.shape, self.compression) = (None, Vec::new(), None);
        self.reductions.clear();
        // The simulated source needs slightly more than the payload per event.
        self.buffer = self.buffer.max(Bytes(size.0.saturating_mul(2)));
        self.segment = self.segment.map(|segment| segment.max(size));
        self
    }

    /// The same detector with this many streams, over at most its number of connections.
    #[must_use]
    pub fn with_streams(mut self, streams: u32) -> Self {
        self.streams = streams;
        self.connections = self.connections.min(streams);
        self
    }

    /// The same detector on this many volumes; pinned only if each volume has a stream.
    #[must_use]
    pub fn on_volumes(mut self, volumes: u32) -> Self {
        self.volumes = volumes;
        if volumes > self.streams {
            self.placement = Placement::Free;
        }
        self
    }

    /// Payload of one run; a recording adds a few per mille.
    pub fn space_needed(&self) -> Bytes {
        // A float above the range of u64 saturates and is refused by `validate`.
        Bytes((self.peak_bytes_per_second() * self.sending_seconds()).ceil() as u64)
    }

    /// Seconds of one run in which events are sent.
    fn sending_seconds(&self) -> f64 {
        let run = self.duration.0.as_secs_f64();
        let Some(Burst { on, off }) = self.burst else { return run };
        let (on, off) = (on.0.as_secs_f64(), off.0.as_secs_f64());
        let bursts = (run / (on + off)).floor();
        bursts * on + (run - bursts * (on + off)).min(on)
    }
}

/// Size of an array, if it is described.
pub(crate) fn array_bytes(element: Option<Element>, shape: &[u64]) -> Option<Bytes> {
    let element = element.filter(|_| !shape.is_empty())?;
    shape.iter().try_fold(element.bytes(), |product, n| product.checked_mul(*n)).map(Bytes)
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

    /// Size of the largest possible event.
    pub fn max(&self) -> Bytes {
        match *self {
            Self::Fixed(size) => size,
            Self::Uniform { max, .. } | Self::LogNormal { max, .. } => max,
        }
    }
}

/// Mean of a log-normal variable truncated at `max`: E[min(X, M)] = e^(mu + sigma^2/2) Phi((ln M -
/// mu)/sigma - sigma) + M (1 - Phi((ln M - mu)/sigma)).
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
