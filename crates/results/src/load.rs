//! Background loads of a measurement: requested and achieved rate, and cost.
//!
//! Rates are bytes per second, or cores for CPU loads. `None` means "not measured" and is written
//! as null.
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Minimum achieved share of the requested rate.
const ENOUGH: f64 = 0.99;
/// Resolution of a load's reports, seconds of its work.
const BLUR_SECONDS: f64 = 0.05;
/// Minimum step width of the series, seconds, and maximum number of steps; longer times use wider
/// steps.
const STEP_SECONDS: f64 = 0.1;
const STEPS_MAX: f64 = 600.0;

/// Result of one load over a time window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadResult {
    /// Specification, as in `--load`.
    pub spec: String,
    /// Loaded resource.
    pub kind: LoadKind,
    /// Unit of its rates.
    pub unit: LoadUnit,
    /// Requested rate.
    pub asked: f64,
    /// Achieved rate; null if unknown.
    pub achieved: Option<f64>,
    /// Length of the known window, seconds.
    pub seconds: f64,
    /// CPU time of the load's process including kernel workers, seconds.
    pub cpu_seconds: Option<f64>,
    /// Step width of `series`, seconds.
    pub step_seconds: f64,
    /// Achieved rate of each step, in order.
    pub series: Vec<f64>,
    /// Whether it achieved less than 99 % of the requested work and missed it by more than 50 ms of
    /// its work, the resolution of its reports (ten per second).
    pub fell_short: bool,
    /// Error that ended it early, if any.
    pub failure: Option<String>,
    /// Notes on how it was done.
    pub notes: Vec<String>,
}

/// Loaded resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadKind {
    /// The network.
    Net,
    /// A disk.
    Disk,
    /// Main memory.
    Memory,
    /// CPUs.
    Cpu,
}

/// Unit of a load's rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadUnit {
    /// Bytes per second.
    BytesPerSecond,
    /// CPU seconds per second.
    Cores,
}

/// One load over the whole session, and over the run that decides the verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionLoad {
    /// From the first ceiling to the end of the last trial.
    pub session: LoadResult,
    /// During the run of ledger and CPU figures: the soak, or the last trial without one.
    pub shown: LoadResult,
}

/// Cumulative progress of a load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoadReading {
    /// Time, ns on the monotonic clock.
    pub t_ns: u64,
    /// Bytes, or CPU time in ns, since the start.
    pub amount: u64,
    /// CPU time of its process since the start, ns.
    pub cpu_ns: u64,
}

impl LoadResult {
    /// Result of the window from `begin_ns` to `end_ns` from `readings` in time order, with linear
    /// interpolation.
    pub fn of(
        spec: String,
        kind: LoadKind,
        asked: f64,
        readings: &[LoadReading],
        (begin_ns, end_ns): (u64, u64),
    ) -> Self {
        let unit = if kind == LoadKind::Cpu { LoadUnit::Cores } else { LoadUnit::BytesPerSecond };
        let known = |readings: &[LoadReading]| Some((readings.first()?.t_ns, readings.last()?.t_ns));
        let (from_ns, to_ns) = known(readings)
            .map(|(first, last)| (begin_ns.max(first), end_ns.min(last)))
            .filter(|(from, to)| from < to)
            .unwrap_or_default();
        let seconds = (to_ns - from_ns) as f64 / 1e9;
        let mut result = Self {
            spec,
            kind,
            unit,
            asked,
            achieved: None,
            seconds,
            cpu_seconds: None,
            step_seconds: STEP_SECONDS.max(seconds / STEPS_MAX),
            series: Vec::new(),
            fell_short: true,
            failure: None,
            notes: Vec::new(),
        };
        if seconds > 0.0 {
            let scale = if unit == LoadUnit::Cores { 1e9 } else { 1.0 };
            let done = |ns| at(readings, ns, |reading| reading.amount) / scale;
            let amount = done(to_ns) - done(from_ns);
            result.achieved = Some(amount / seconds);
            result.cpu_seconds = Some(
                (at(readings, to_ns, |r| r.cpu_ns) - at(readings, from_ns, |r| r.cpu_ns)).max(0.0) / 1e9,
            );
            let missing = asked * seconds - amount;
            result.fell_short = missing > asked * (seconds * (1.0 - ENOUGH)).max(BLUR_SECONDS);
            let step_ns = result.step_seconds * 1e9;
            let steps = (seconds / result.step_seconds + 1e-6).floor() as u32;
            let edge = |n: u32| done(from_ns + (step_ns * f64::from(n)) as u64);
            result.series = (0..steps).map(|n| (edge(n + 1) - edge(n)) / result.step_seconds).collect();
        }
        result
    }

    /// Achieved share of the requested rate.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        self.achieved.map(|achieved| achieved / self.asked)
    }

    /// CPU usage of the load itself, cores.
    #[must_use]
    pub fn cores(&self) -> Option<f64> {
        self.cpu_seconds.filter(|_| self.seconds > 0.0).map(|seconds| seconds / self.seconds)
    }
}

/// Linear interpolation of the readings at one time.
fn at(readings: &[LoadReading], t_ns: u64, of: fn(&LoadReading) -> u64) -> f64 {
    let after = readings.partition_point(|reading| reading.t_ns < t_ns);
    let before = readings.get(after.wrapping_sub(1));
    match (before, readings.get(after)) {
        (Some(before), Some(after)) => {
            let part = (t_ns - before.t_ns) as f64 / (after.t_ns - before.t_ns) as f64;
            of(before) as f64 + (of(after) as f64 - of(before) as f64) * part
        }
        (Some(only), None) | (None, Some(only)) => of(only) as f64,
        (None, None) => 0.0,
    }
}

impl fmt::Display for LoadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Net => "net",
            Self::Disk => "disk",
            Self::Memory => "memory",
            Self::Cpu => "cpu",
        })
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
