//! What every result has in common: quantities measured in some place, each over its repeats. Comparison,
//! campaigns and reports work for every test because they know only these.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::LatencyFigures;

/// One quantity of a result, over all repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Where it was measured: volumes as in "/data/a + /data/b", a server, a register target; empty where
    /// there is only one place.
    pub place: String,
    /// What was done, as the test calls it: "write", "read 64 KiB x 8", "soak".
    pub what: String,
    /// What of it.
    pub quantity: Quantity,
    /// One value for each repeat, in the order in which they were measured, in the quantity's unit.
    pub values: Vec<f64>,
}

/// What a figure says; its unit is the first word of each docstring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// B/s: payload moved.
    BytesPerSecond,
    /// 1/s: requests, files, or messages.
    OperationsPerSecond,
    /// s/GB: CPU of keepup with its kernel workers per 10^9 bytes.
    CpuSecondsPerGb,
    /// cores: CPU of the whole machine.
    CoresBusy,
    /// s: mean time of a request.
    MeanSeconds,
    /// s: the time that 99 of 100 requests stay below.
    P99Seconds,
    /// s: longest time of a request.
    MaxSeconds,
    /// s: what a transfer of registers costs before the first.
    SetUpSeconds,
    /// s: what each register costs.
    SecondsPerRegister,
    /// B: a size that was found, as of a cache.
    Bytes,
    /// 1: events or datagrams lost, bytes damaged.
    Lost,
}

impl Quantity {
    /// Its unit, as written behind a figure.
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

    /// What it is called.
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

    /// Whether more of it is better, less, or neither.
    #[must_use]
    pub fn better(self) -> Better {
        match self {
            Self::BytesPerSecond | Self::OperationsPerSecond => Better::More,
            // What runs beside keepup on purpose is busy too.
            Self::Bytes | Self::CoresBusy => Better::Neither,
            _ => Better::Less,
        }
    }
}

/// Which way a quantity should go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More is better.
    More,
    /// Less is better.
    Less,
    /// It is told, not judged.
    Neither,
}

/// A result that tells its figures.
pub trait Figures {
    /// All of them, in the order of the test.
    fn figures(&self) -> Vec<Figure>;
}

impl Figure {
    /// Whether the other is of the same thing in the same place.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.place, &self.what, self.quantity) == (&other.place, &other.what, other.quantity)
    }

    /// Figures of several runs as those of one: values of the same thing behind each other.
    #[must_use]
    pub fn pooled(figures: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut pooled: Vec<Self> = Vec::new();
        for figure in figures {
            match pooled.iter_mut().find(|known| known.is_same(&figure)) {
                Some(known) => known.values.extend(figure.values),
                None => pooled.push(figure),
            }
        }
        pooled
    }
}

/// Figures under way: values of the same quantity of the same thing come together, in the order in which
/// each first came.
#[derive(Debug, Default)]
pub(crate) struct Collected(Vec<Figure>);

impl Collected {
    /// Adds a value, where there is one.
    pub(crate) fn add(&mut self, place: &str, what: &str, quantity: Quantity, value: Option<f64>) {
        let Some(value) = value.filter(|value| value.is_finite()) else { return };
        let is_same = |figure: &&mut Figure| {
            (figure.place.as_str(), figure.what.as_str(), figure.quantity) == (place, what, quantity)
        };
        match self.0.iter_mut().find(is_same) {
            Some(figure) => figure.values.push(value),
            None => self.0.push(Figure {
                place: place.to_owned(),
                what: what.to_owned(),
                quantity,
                values: vec![value],
            }),
        }
    }

    /// Adds how long requests took.
    pub(crate) fn add_latency(&mut self, place: &str, what: &str, figures: Option<&LatencyFigures>) {
        let seconds = |ns: u64| ns as f64 / 1e9;
        self.add(place, what, Quantity::MeanSeconds, figures.map(|times| times.mean_ns / 1e9));
        self.add(place, what, Quantity::P99Seconds, figures.map(|times| seconds(times.p99_ns)));
        self.add(place, what, Quantity::MaxSeconds, figures.map(|times| seconds(times.max_ns)));
    }

    /// All of them.
    pub(crate) fn done(self) -> Vec<Figure> {
        self.0
    }
}

#[cfg(test)]
#[path = "figure_tests.rs"]
mod tests;
