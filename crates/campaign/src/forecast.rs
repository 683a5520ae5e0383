//! Expected writes, space and duration of commands, from their `--dry-run --json`.
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cells::Cell;

/// Expected cost of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forecast {
    /// Most bytes written, all volumes.
    pub bytes_written: u64,
    /// Most bytes written by volume.
    pub volume_bytes_written: BTreeMap<String, u64>,
    /// Most space in use at a time on each volume, bytes.
    pub space_bytes: BTreeMap<String, u64>,
    /// Approximate duration, seconds; null if unknown.
    pub seconds: Option<f64>,
    /// Human-readable text.
    pub text: String,
}

impl Forecast {
    /// Creates a forecast of the writes to each volume, with their sum.
    #[must_use]
    pub fn of_volumes(written: BTreeMap<String, u64>, space_bytes: BTreeMap<String, u64>) -> Self {
        let bytes_written = written.values().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        Self { bytes_written, volume_bytes_written: written, space_bytes, ..Self::default() }
    }

    /// The same on `host`: the names of volumes become `HOST:VOLUME`.
    #[must_use]
    pub fn on_host(self, host: &str) -> Self {
        let named = |bytes: BTreeMap<String, u64>| {
            bytes.into_iter().map(|(volume, bytes)| (format!("{host}:{volume}"), bytes)).collect()
        };
        Self {
            volume_bytes_written: named(self.volume_bytes_written),
            space_bytes: named(self.space_bytes),
            ..self
        }
    }

    /// Adds `times` later runs. Writes add up, space is reused.
    pub fn then(&mut self, other: &Self, times: u32) {
        let times_u64 = u64::from(times);
        self.bytes_written = self.bytes_written.saturating_add(other.bytes_written.saturating_mul(times_u64));
        for (volume, bytes) in &other.volume_bytes_written {
            let sum = self.volume_bytes_written.entry(volume.clone()).or_default();
            *sum = sum.saturating_add(bytes.saturating_mul(times_u64));
        }
        for (volume, bytes) in &other.space_bytes {
            let most = self.space_bytes.entry(volume.clone()).or_default();
            *most = (*most).max(*bytes);
        }
        if let Some(seconds) = other.seconds {
            self.seconds = Some(self.seconds.unwrap_or(0.0) + seconds * f64::from(times));
        }
    }
}

/// Forecasts of all cells, by host and command.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Forecasts {
    by_command: BTreeMap<(Option<String>, Vec<String>), Forecast>,
}

impl Forecasts {
    /// Adds the forecast of the command of `cell`.
    pub fn insert(&mut self, cell: &Cell, forecast: Forecast) {
        self.by_command.insert((cell.host.clone(), cell.arguments.clone()), forecast);
    }

    /// Forecast of the command of `cell`.
    #[must_use]
    pub fn of(&self, cell: &Cell) -> Option<&Forecast> {
        self.by_command.get(&(cell.host.clone(), cell.arguments.clone()))
    }
}

#[cfg(test)]
#[path = "forecast_tests.rs"]
mod tests;
