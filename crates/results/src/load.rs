//! What a background load did beside what was measured: asked, achieved, and what it cost.
//!
//! A load of bytes is in bytes per second, one of processors in cores. `None` means "not measured" and is
//! written as null.
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A load that achieved less than this share of what was asked fell short.
const ENOUGH: f64 = 0.99;
/// What a load's reports cannot tell apart, in seconds of its work.
const BLUR_SECONDS: f64 = 0.05;
/// Width of a step of the series, seconds, and how many there are at most; a longer time has wider ones.
const STEP_SECONDS: f64 = 0.1;
const STEPS_MAX: f64 = 600.0;

/// One load over a stretch of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadResult {
    /// The load as `--load` takes it.
    pub spec: String,
    /// What it keeps busy.
    pub kind: LoadKind,
    /// What its rates count.
    pub unit: LoadUnit,
    /// Rate asked for.
    pub asked: f64,
    /// Rate achieved; null when nothing is known of this time.
    pub achieved: Option<f64>,
    /// Length of the time that is known of, seconds.
    pub seconds: f64,
    /// CPU of the load's own process in that time, its kernel workers included, seconds.
    pub cpu_seconds: Option<f64>,
    /// Width of a step of `series`, seconds.
    pub step_seconds: f64,
    /// Rate achieved in each step, in order.
    pub series: Vec<f64>,
    /// Whether it achieved less than 99 % of what was asked, by more than 50 ms of its work: its reports
    /// come ten times a second, so that less cannot be told in a short time.
    pub fell_short: bool,
    /// What ended it before its time, if anything did.
    pub failure: Option<String>,
    /// What the reader should know of how it was done.
    pub notes: Vec<String>,
}

/// What a load keeps busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadKind {
    /// The network.
    Net,
    /// A disk.
    Disk,
    /// Main memory.
    Memory,
    /// Processors.
    Cpu,
}

/// What the rates of a load count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadUnit {
    /// Bytes each second.
    BytesPerSecond,
    /// Seconds on processors each second.
    Cores,
}

/// One load of a whole session, and of the run that the verdict rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionLoad {
    /// From the first ceiling to the end of the last trial.
    pub session: LoadResult,
    /// During the run that ledger and CPU are of: the soak, or the last trial without one.
    pub shown: LoadResult,
}

/// What a load did until a moment: its own cumulative account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoadReading {
    /// The moment, ns on the monotonic clock.
    pub t_ns: u64,
    /// Bytes moved, or ns on processors, since it began.
    pub amount: u64,
    /// CPU of its process since it began, ns.
    pub cpu_ns: u64,
}

impl LoadResult {
    /// What `readings`, in the order of time, say of the time from `begin_ns` to `end_ns`; between two of
    /// them the load is taken to have been even.
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

    /// Share of what was asked that was achieved.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        self.achieved.map(|achieved| achieved / self.asked)
    }

    /// Processors that it kept busy by itself.
    #[must_use]
    pub fn cores(&self) -> Option<f64> {
        self.cpu_seconds.filter(|_| self.seconds > 0.0).map(|seconds| seconds / self.seconds)
    }
}

/// What the readings say of a moment, on a straight line between the two next to it.
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
