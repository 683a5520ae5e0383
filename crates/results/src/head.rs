//! What all results have in common: kind, identity, command, settings, machine and end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::printable::one_line;

/// Kind of result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Qualification of a machine for a profile.
    Qualify,
    /// Qualification of a fleet for a profile.
    QualifyFleet,
    /// Disk test.
    Disk,
    /// Network test.
    Net,
    /// Register test.
    Register,
    /// Trace replay.
    Replay,
    /// Recording trials.
    Record,
    /// Bit-error test.
    Soak,
    /// Campaign.
    Campaign,
    /// Comparison of results.
    Compare,
    /// Prediction of the capacity model.
    Predict,
}

/// Common fields of all results.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Head<'a> {
    /// Kind of result.
    pub kind: Kind,
    /// Identity; empty in versions without it.
    pub id: &'a str,
    /// Version of keepup that measured.
    pub tool_version: &'a str,
    /// Start of the measurement, RFC 3339, UTC.
    pub created: &'a str,
    /// Command that repeats it.
    pub command: &'a str,
    /// Name of the test or profile.
    pub workload: &'a str,
    /// Settings.
    pub plan: &'a serde_json::Value,
    /// Environment record.
    pub environment: &'a serde_json::Value,
    /// Error that ended it early, if any.
    pub failure: Option<&'a str>,
    /// Whether the user stopped it.
    pub interrupted: bool,
}

/// Name of a machine from its environment record: label and host name, as far as it has them.
#[must_use]
pub fn machine_name(environment: &serde_json::Value) -> Option<String> {
    let read = |key: &str| environment.get(key)?.as_str().map(one_line).filter(|text| !text.is_empty());
    match (read("label"), read("host")) {
        (Some(label), Some(host)) => Some(format!("{label} ({host})")),
        (label, host) => label.or(host),
    }
}

/// A result with common fields.
pub trait Headed {
    /// Common fields.
    fn head(&self) -> Head<'_>;
}

#[cfg(test)]
#[path = "head_tests.rs"]
mod tests;
