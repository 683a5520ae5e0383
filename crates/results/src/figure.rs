//! Figures: quantities measured in some place over all repeats, the common form of all results for
//! comparisons, campaigns and reports.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::LatencyFigures;

/// Least time of a measurement that is evidence, seconds. A shorter one catches the first write-back, the
/// first flush or a filled cache, but not what follows.
pub const EVIDENCE_SECONDS_MIN: f64 = 1.0;

/// One quantity of a result over all repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Place of the measurement: volumes as in "/data/a + /data/b", a server, a register target;
    /// empty if there is only one.
    pub place: String,
    /// Operation, as named by the test: "write", "read 64 KiB x 8", "soak".
    pub what: String,
    /// Quantity.
    pub quantity: Quantity,
    /// One value per repeat in the order of measurement, in the quantity's unit.
    pub values: Vec<f64>,
    /// Whether a value was measured for less than 1 s. Such a figure is shown, but is no evidence: it has no
    /// rank, and no verdict or badge rests on it. Results of earlier versions say nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_too_short: bool,
}

/// Quantity of a figure; its unit is the first word of each docstring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// B/s: payload throughput.
    BytesPerSecond,
    /// 1/s: requests, files or messages.
    OperationsPerSecond,
    /// s/GB: CPU time of keepup with its kernel workers per 10^9 bytes.
    CpuSecondsPerGb,
    /// cores: CPU usage of the whole machine.
    CoresBusy,
    /// s: mean latency.
    MeanSeconds,
    /// s: 99th percentile of latency.
    P99Seconds,
    /// s: maximum latency.
    MaxSeconds,
    /// s: set-up time of a register transfer.
    SetUpSeconds,
    /// s: time per register.
    SecondsPerRegister,
    /// B: a measured size, as of a cache.
    Bytes,
    /// 1: events or datagrams lost, bytes damaged.
    Lost,
}

impl Quantity {
    /// Unit, as written behind a figure.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::BytesPerSecond => "B/s",
            Self::OperationsPerSecond => "/s",
            Self::CpuSecondsPerGb => "s/GB",
            Self::CoresBusy => "cores",
            Self::MeanSeconds
            | Self::P99Seconds
            | Self::MaxSeconds
            | Self::SetUpSeconds
            | Self::SecondsPerRegister => "s",
            Self::Bytes => "B",
            Self::Lost => "",
        }
    }

    /// Name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BytesPerSecond => "rate",
            Self::OperationsPerSecond => "operations",
            Self::CpuSecondsPerGb => "CPU per GB",
            Self::CoresBusy => "cores busy",
            Self::MeanSeconds => "mean time",
            Self::P99Seconds => "p99",
            Self::MaxSeconds => "longest",
            Self::SetUpSeconds => "set-up",
            Self::SecondsPerRegister => "per register",
            Self::Bytes => "size",
            Self::Lost => "lost",
        }
    }

    /// Whether higher is better, lower is better, or neither.
    #[must_use]
    pub fn better(self) -> Better {
        match self {
            Self::BytesPerSecond | Self::OperationsPerSecond => Better::More,
            // Includes the background loads.
            Self::Bytes | Self::CoresBusy => Better::Neither,
            _ => Better::Less,
        }
    }
}

/// Preferred direction of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Higher is better.
    More,
    /// Lower is better.
    Less,
    /// Not judged.
    Neither,
}

/// A result with figures.
pub trait Figures {
    /// All figures, in the order of the test.
    fn figures(&self) -> Vec<Figure>;
}

impl Figure {
    /// Whether the other figure has the same place, operation and quantity.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.place, &self.what, self.quantity) == (&other.place, &other.what, other.quantity)
    }

    /// Merges the figures of several runs, appending the values of the same figure.
    #[must_use]
    pub fn pooled(figures: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut pooled: Vec<Self> = Vec::new();
        for figure in figures {
            match pooled.iter_mut().find(|known| known.is_same(&figure)) {
                Some(known) => {
                    known.values.extend(figure.values);
                    known.is_too_short |= figure.is_too_short;
                }
                None => pooled.push(figure),
            }
        }
        pooled
    }
}

/// Collector of figures: values of the same figure are appended, in order of first appearance.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    figures: Vec<Figure>,
    /// Whether the measurement that the next values are from was too short.
    is_too_short: bool,
}

impl Collected {
    /// Sets the time of the measurement that the next values are from; `None` if they have none.
    pub(crate) fn measured_for(&mut self, seconds: Option<f64>) {
        self.is_too_short = seconds.is_some_and(|seconds| seconds < EVIDENCE_SECONDS_MIN);
    }

    /// Adds a value, if present.
    pub(crate) fn add(&mut self, place: &str, what: &str, quantity: Quantity, value: Option<f64>) {
        let Some(value) = value.filter(|value| value.is_finite()) else { return };
        let is_same = |figure: &&mut Figure| {
            (figure.place.as_str(), figure.what.as_str(), figure.quantity) == (place, what, quantity)
        };
        match self.figures.iter_mut().find(is_same) {
            Some(figure) => {
                figure.values.push(value);
                figure.is_too_short |= self.is_too_short;
            }
            None => self.figures.push(Figure {
                place: place.to_owned(),
                what: what.to_owned(),
                quantity,
                values: vec![value],
                is_too_short: self.is_too_short,
            }),
        }
    }

    /// Adds latency figures.
    pub(crate) fn add_latency(&mut self, place: &str, what: &str, figures: Option<&LatencyFigures>) {
        let seconds = |ns: u64| ns as f64 / 1e9;
        self.add(place, what, Quantity::MeanSeconds, figures.map(|times| times.mean_ns / 1e9));
        self.add(place, what, Quantity::P99Seconds, figures.map(|times| seconds(times.p99_ns)));
        self.add(place, what, Quantity::MaxSeconds, figures.map(|times| seconds(times.max_ns)));
    }

    /// All figures.
    pub(crate) fn done(self) -> Vec<Figure> {
        self.figures
    }
}

#[cfg(test)]
#[path = "figure_tests.rs"]
mod tests;
