//! Counter-trials: the stage nominated as the bottleneck is changed, and the rate must follow.
use keepup_measure::stats::median;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Test of a nominated stage: trials with and without one change, in turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CounterTrial {
    /// Nominated stage, in words.
    pub stage: String,
    /// What was changed, for example "blocks discarded instead of written".
    pub change: String,
    /// Effect that the stage predicts.
    pub expected: ExpectedEffect,
    /// Trials in pairs, in order.
    pub pairs: Vec<CounterPair>,
    /// Whether the effect was as expected in every pair: the stage limits the rate.
    pub confirmed: bool,
    /// Why no trial was run, if none was.
    pub not_run: Option<String>,
}

/// Effect of a change on the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedEffect {
    /// The rate rises.
    Rises,
    /// The rate falls.
    Falls,
    /// The rate hardly changes, because what was changed does not limit it.
    Stays,
    /// A rate that failed holds.
    Holds,
}

/// One trial without and one with the change.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CounterPair {
    /// Without the change.
    pub unchanged: CounterRate,
    /// With the change.
    pub changed: CounterRate,
}

/// Outcome of one trial of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CounterRate {
    /// Rate that came through.
    pub bytes_per_second: f64,
    /// Whether nothing was lost and the drain kept up.
    pub held: bool,
}

impl CounterTrial {
    /// Rate with the change as a multiple of that without, one per pair; not a number where nothing came
    /// through.
    pub fn ratios(&self) -> Vec<f64> {
        let ratio = |pair: &CounterPair| pair.changed.bytes_per_second / pair.unchanged.bytes_per_second;
        self.pairs.iter().map(ratio).collect()
    }

    /// Median rates without and with the change, bytes per second; none without a pair.
    pub fn medians(&self) -> Option<(f64, f64)> {
        let middle = |of: fn(&CounterPair) -> f64| median(&self.pairs.iter().map(of).collect::<Vec<_>>());
        middle(|pair| pair.unchanged.bytes_per_second).zip(middle(|pair| pair.changed.bytes_per_second))
    }

    /// How many trials without and with the change held.
    pub fn held(&self) -> (usize, usize) {
        let count = |of: fn(&CounterPair) -> bool| self.pairs.iter().filter(|pair| of(pair)).count();
        (count(|pair| pair.unchanged.held), count(|pair| pair.changed.held))
    }
}
