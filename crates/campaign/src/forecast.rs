//! What a command would write, hold and take, as it says itself with `--dry-run --json`.
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What one run of a command may cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forecast {
    /// Bytes it writes at most, on all volumes.
    pub bytes_written: u64,
    /// The same by volume: what wears each.
    pub volume_bytes_written: BTreeMap<String, u64>,
    /// Most space it holds at a time on each volume, bytes.
    pub space_bytes: BTreeMap<String, u64>,
    /// How long it takes, about; null where that cannot be told.
    pub seconds: Option<f64>,
    /// The same for people.
    pub text: String,
}

impl Forecast {
    /// What is written to each volume, and the sum of it.
    #[must_use]
    pub fn of_volumes(written: BTreeMap<String, u64>, space_bytes: BTreeMap<String, u64>) -> Self {
        let bytes_written = written.values().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        Self { bytes_written, volume_bytes_written: written, space_bytes, ..Self::default() }
    }

    /// Takes another in that runs after this one: what is written adds up, space is given back between.
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

/// The forecast of every cell, by its command.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Forecasts {
    by_command: BTreeMap<Vec<String>, Forecast>,
}

impl Forecasts {
    /// What a command said.
    pub fn insert(&mut self, arguments: &[String], forecast: Forecast) {
        self.by_command.insert(arguments.to_vec(), forecast);
    }

    /// What a command would cost.
    #[must_use]
    pub fn of(&self, arguments: &[String]) -> Option<&Forecast> {
        self.by_command.get(arguments)
    }
}

#[cfg(test)]
#[path = "forecast_tests.rs"]
mod tests;
