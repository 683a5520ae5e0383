//! Result of `keepup doctor`: harmful host settings for a stream, with reasons and remedies.
//!
//! `None` means "not read" or "not applicable" and is written as null. Sizes are bytes, MB = 10^6
//! bytes.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the layout; incremented when an older reader could misread a newer file.
pub const DOCTOR_SCHEMA_VERSION: u32 = 1;

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DoctorSummary {
    /// Layout version.
    pub schema_version: u32,
    /// Version of keepup.
    pub tool_version: String,
    /// Time, RFC 3339, UTC.
    pub created: String,
    /// Command line.
    pub command: String,
    /// Requirements that the host was judged for.
    pub needs: DoctorNeeds,
    /// Judged interfaces.
    pub interfaces: Vec<String>,
    /// Judged volumes.
    pub volumes: Vec<String>,
    /// Number of findings by severity.
    pub counts: DoctorCounts,
    /// Findings, worst first.
    pub findings: Vec<DoctorFinding>,
    /// Notes on how the host was judged.
    pub notes: Vec<String>,
    /// All readings, including those without a rule.
    pub readings: serde_json::Value,
}

/// Requirements of a stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DoctorNeeds {
    /// Profile name; `None` without a profile.
    pub profile: Option<String>,
    /// Mean bytes per second including pauses.
    pub bytes_per_second: f64,
    /// Bytes per second within bursts.
    pub bytes_per_second_peak: f64,
    /// Mean size of an event.
    pub event_bytes: f64,
    /// Transport of the detector.
    pub transport: String,
    /// Number of connections or datagram sources.
    pub connections: u32,
    /// Bytes of one run; `None` without a profile.
    pub run_bytes: Option<u64>,
    /// Longest receiver stall that buffers should bridge.
    pub stall_ns: u64,
}

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DoctorSeverity {
    /// Data will be lost, the rate cannot be reached, or durability is not guaranteed.
    Harmful,
    /// Possible cost.
    WorthALook,
    /// It could not be judged.
    NotJudged,
    /// Fine.
    Fine,
}

/// Finding about one setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DoctorFinding {
    /// Severity.
    pub severity: DoctorSeverity,
    /// Name of the setting, as in its command, with its device.
    pub setting: String,
    /// Current value; `None` if unreadable.
    pub value: Option<String>,
    /// Recommended value; `None` if not judged.
    pub wanted: Option<String>,
    /// Explanation with figures, or the reason for not judging.
    pub why: String,
    /// Source of the rule.
    pub source: String,
    /// Command that changes it until the next boot; `None` if no change is needed or no command
    /// exists.
    pub command: Option<String>,
}

/// Number of findings by severity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DoctorCounts {
    /// Harmful.
    pub harmful: u64,
    /// Worth a look.
    pub worth_a_look: u64,
    /// Not judged.
    pub not_judged: u64,
    /// Fine.
    pub fine: u64,
}

impl DoctorCounts {
    /// Counts these findings.
    #[must_use]
    pub fn of<'a>(findings: impl IntoIterator<Item = &'a DoctorFinding>) -> Self {
        let mut counts = Self::default();
        for finding in findings {
            *match finding.severity {
                DoctorSeverity::Harmful => &mut counts.harmful,
                DoctorSeverity::WorthALook => &mut counts.worth_a_look,
                DoctorSeverity::NotJudged => &mut counts.not_judged,
                DoctorSeverity::Fine => &mut counts.fine,
            } += 1;
        }
        counts
    }
}
