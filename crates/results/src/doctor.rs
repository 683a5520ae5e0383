//! What `keepup doctor` found: which settings of a host are harmful for a stream, why, and what changes them.
//!
//! `None` means "not read" or "there is none" and is written as null. Sizes are bytes, MB = 10^6 bytes.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the layout of a doctor's result; rises whenever a reader of the old one could misread the new
/// one.
pub const DOCTOR_SCHEMA_VERSION: u32 = 1;

/// What one look found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DoctorSummary {
    /// Version of this layout.
    pub schema_version: u32,
    /// Version of keepup that looked.
    pub tool_version: String,
    /// When, RFC 3339, UTC.
    pub created: String,
    /// Exact command.
    pub command: String,
    /// What the host was judged for.
    pub needs: DoctorNeeds,
    /// Interfaces that were judged.
    pub interfaces: Vec<String>,
    /// Volumes that were judged.
    pub volumes: Vec<String>,
    /// How many findings there are of each kind.
    pub counts: DoctorCounts,
    /// Findings, the worst first.
    pub findings: Vec<DoctorFinding>,
    /// What the reader should know of how it was judged.
    pub notes: Vec<String>,
    /// Everything that was read, whether a rule asks for it or not.
    pub readings: serde_json::Value,
}

/// What a stream needs of the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DoctorNeeds {
    /// Name of the profile; `None` when none was given.
    pub profile: Option<String>,
    /// Bytes per second, mean over bursts and silence.
    pub bytes_per_second: f64,
    /// Bytes per second within bursts.
    pub bytes_per_second_peak: f64,
    /// Mean size of an event.
    pub event_bytes: f64,
    /// How the detector hands over its data.
    pub transport: String,
    /// Connections, or sources of datagrams.
    pub connections: u32,
    /// Bytes of one run; `None` without a profile.
    pub run_bytes: Option<u64>,
    /// Longest stall of the receiver that buffers should bridge.
    pub stall_ns: u64,
}

/// How bad a setting is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DoctorSeverity {
    /// Data will be lost, or the rate cannot be held, or what counts as durable is not.
    Harmful,
    /// It costs something, or may.
    WorthALook,
    /// It could not be judged.
    NotJudged,
    /// As it should be.
    Fine,
}

/// One setting, judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DoctorFinding {
    /// How bad it is.
    pub severity: DoctorSeverity,
    /// The setting by the name that its command has, with what it belongs to.
    pub setting: String,
    /// What it is; `None` when it could not be read.
    pub value: Option<String>,
    /// What is wanted; `None` when it was not judged.
    pub wanted: Option<String>,
    /// Why, with the figures; why not, when it was not judged.
    pub why: String,
    /// Where the rule is from.
    pub source: String,
    /// What changes it until the next start of the machine; `None` where nothing is to be changed, or no
    /// command can.
    pub command: Option<String>,
}

/// How many findings there are of each kind.
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
    /// Of these findings.
    #[must_use]
    pub fn of(findings: &[DoctorFinding]) -> Self {
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
