//! Pressure stall information: how long tasks waited for processor, memory or disks
//! (Documentation/accounting/psi).
//!
//! A kernel without it, or one booted without `psi=1`, has none: that is no error but an absent value.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::text;

/// The pressure on each resource now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pressure {
    /// Waiting for a core.
    pub cpu: Option<ResourcePressure>,
    /// Waiting for memory to be reclaimed or read back.
    pub memory: Option<ResourcePressure>,
    /// Waiting for disks.
    pub io: Option<ResourcePressure>,
}

/// The pressure on one resource.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourcePressure {
    /// At least one task waited.
    pub some: Stall,
    /// All tasks that were not idle waited; absent for the processor on kernels before 5.13.
    pub full: Option<Stall>,
}

/// How much time was lost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// Share of the last 10 s, in per cent.
    pub avg10_percent: f64,
    /// Share of the last 60 s, in per cent.
    pub avg60_percent: f64,
    /// Share of the last 300 s, in per cent.
    pub avg300_percent: f64,
    /// Time lost since boot, in us.
    pub total_us: u64,
}

impl Pressure {
    /// The pressure now; what the kernel does not tell is absent. `root` is `/` in earnest.
    pub fn read(root: &Path) -> Self {
        let read = |resource| {
            let text = text::read(root, Path::new("proc/pressure").join(resource)).ok()?;
            parse_pressure(&text)
        };
        Self { cpu: read("cpu"), memory: read("memory"), io: read("io") }
    }
}

impl Stall {
    /// Share of the `elapsed_ns` since `earlier` that was lost, in per cent; 0 when no time has passed.
    pub fn percent_since(&self, earlier: &Self, elapsed_ns: u64) -> f64 {
        if elapsed_ns == 0 {
            return 0.0;
        }
        let lost_us = self.total_us.saturating_sub(earlier.total_us);
        100.0 * lost_us as f64 * 1e3 / elapsed_ns as f64
    }
}

/// One file of /proc/pressure; `None` when it has no `some` line.
pub fn parse_pressure(text: &str) -> Option<ResourcePressure> {
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
