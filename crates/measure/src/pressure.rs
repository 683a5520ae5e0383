//! Pressure stall information: time that tasks waited for CPU, memory or disks
//! (Documentation/accounting/psi).
//!
//! Absent, not an error, on kernels without it or booted without `psi=1`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::text;

/// Current pressure on each resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pressure {
    /// Waiting for a core.
    pub cpu: Option<ResourcePressure>,
    /// Waiting for memory reclaim or swap-in.
    pub memory: Option<ResourcePressure>,
    /// Waiting for disks.
    pub io: Option<ResourcePressure>,
}

/// Pressure on one resource.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourcePressure {
    /// At least one task waited.
    pub some: Stall,
    /// All non-idle tasks waited; absent for the CPU on kernels before 5.13.
    pub full: Option<Stall>,
}

/// Stall time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// Share of the last 10 s, percent.
    pub avg10_percent: f64,
    /// Share of the last 60 s, percent.
    pub avg60_percent: f64,
    /// Share of the last 300 s, percent.
    pub avg300_percent: f64,
    /// Total stall time since boot, us.
    pub total_us: u64,
}

impl Pressure {
    /// Current pressure; unsupported values are absent. `root` is `/` outside tests.
    pub fn read(root: &Path) -> Self {
        let read = |resource| {
            let text = text::read(root, Path::new("proc/pressure").join(resource)).ok()?;
            parse_pressure(&text)
        };
        Self { cpu: read("cpu"), memory: read("memory"), io: read("io") }
    }
}

impl Stall {
    /// Share of the `elapsed_ns` since `earlier` that was stalled, percent; 0 when no time has
    /// passed.
    pub fn percent_since(&self, earlier: &Self, elapsed_ns: u64) -> f64 {
        if elapsed_ns == 0 {
            return 0.0;
        }
        let lost_us = self.total_us.saturating_sub(earlier.total_us);
        100.0 * lost_us as f64 * 1e3 / elapsed_ns as f64
    }
}

/// Parses a file of /proc/pressure; `None` without a `some` line.
pub(crate) fn parse_pressure(text: &str) -> Option<ResourcePressure> {
    let line = |kind: &str| text.lines().find_map(|line| parse_stall(line.strip_prefix(kind)?));
    Some(ResourcePressure { some: line("some ")?, full: line("full ") })
}

fn parse_stall(fields: &str) -> Option<Stall> {
    let field = |name: &str| {
        let is_named =
            |field: &str| field.split_once('=').filter(|(key, _)| *key == name).map(|(_, v)| v.to_owned());
        fields.split_ascii_whitespace().find_map(is_named)
    };
    let percent = |name| field(name)?.parse().ok().filter(|percent: &f64| percent.is_finite());
    Some(Stall {
        avg10_percent: percent("avg10")?,
        avg60_percent: percent("avg60")?,
        avg300_percent: percent("avg300")?,
        total_us: field("total")?.parse().ok()?,
    })
}

#[cfg(test)]
#[path = "pressure_tests.rs"]
mod tests;
