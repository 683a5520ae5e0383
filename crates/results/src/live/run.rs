//! Run control: states, commands and answers.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use keepup_error::{Cause, Diagnostic, ErrorClass};
use serde::{Deserialize, Serialize};

use crate::summary::Count;

/// Maximum number of entries in a run's metadata.
pub const METADATA_KEYS_MAX: usize = 64;
/// Maximum length of a metadata key, bytes.
pub const METADATA_KEY_BYTES_MAX: usize = 64;
/// Maximum length of a metadata key plus value, bytes.
pub const METADATA_BYTES_MAX: usize = 1024;

/// State of run control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// No settings.
    #[default]
    Idle,
    /// Settings of the next run are known and valid.
    Configured,
    /// Memory is allocated, directories exist, sources may connect; their data is read from the
    /// start on.
    Armed,
    /// Data is recorded.
    Recording,
    /// Reading has stopped; received data becomes durable, segments are sealed.
    Draining,
    /// The recording is complete on its volumes.
    Sealed,
    /// An error occurred; data recorded before is on the volumes.
    Error,
}

impl RunState {
    /// All states, in the order of a run.
    pub const ALL: [Self; 7] = [
        Self::Idle,
        Self::Configured,
        Self::Armed,
        Self::Recording,
        Self::Draining,
        Self::Sealed,
        Self::Error,
    ];

    /// Commands allowed in this state.
    ///
    /// `stop` in `Armed` releases the resources and returns to `Configured`; `arm` in `Sealed`
    /// starts a run with the same settings and the next run number; `reset` leads to `Idle`, from
    /// `Armed` too.
    pub fn commands(self) -> &'static [RunCommand] {
        use RunCommand::{Arm, Configure, Reset, Start, Stop};
        match self {
            Self::Idle => &[Configure],
            Self::Configured => &[Configure, Arm, Reset],
            Self::Armed => &[Start, Stop, Reset],
            Self::Recording => &[Stop],
            Self::Draining => &[],
            Self::Sealed => &[Configure, Arm, Reset],
            Self::Error => &[Configure, Reset],
        }
    }

    /// State after a successful command; none if the command is not allowed.
    pub fn after(self, command: RunCommand) -> Option<Self> {
        self.commands().contains(&command).then_some(match command {
            RunCommand::Configure => Self::Configured,
            RunCommand::Arm => Self::Armed,
            RunCommand::Start => Self::Recording,
            RunCommand::Stop if self == Self::Armed => Self::Configured,
            RunCommand::Stop => Self::Draining,
            RunCommand::Reset => Self::Idle,
        })
    }

    /// Name in JSON and output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Configured => "configured",
            Self::Armed => "armed",
            Self::Recording => "recording",
            Self::Draining => "draining",
            Self::Sealed => "sealed",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A command of run control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunCommand {
    /// Set the settings of the next run.
    Configure,
    /// Allocate memory, create directories, accept sources.
    Arm,
    /// Start recording.
    Start,
    /// End the run: received data becomes durable and is sealed.
    Stop,
    /// Discard settings and errors.
    Reset,
}

impl RunCommand {
    /// All commands, in the order of a run.
    pub const ALL: [Self; 5] = [Self::Configure, Self::Arm, Self::Start, Self::Stop, Self::Reset];

    /// Name in JSON and output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Configure => "configure",
            Self::Arm => "arm",
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Reset => "reset",
        }
    }
}

impl fmt::Display for RunCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Automatic end of a run: the first limit that is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StopAfter {
    /// Number of received events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// Bytes of received payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Time since the start, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// Settings of a run; missing ones default to the recorder's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunSettings {
    /// Run number; default: one more than the highest on the volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// Name of the recording's directory on each volume; default: derived from time and identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Metadata of the recording, such as sample or operator; at most [`METADATA_KEYS_MAX`]
    /// entries.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// Built-in profile for block, segment, placement and largest event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Volumes to use, a subset of the recorder's; default: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<String>,
    /// Automatic end; otherwise the run ends when every source has ended, or on command.
    pub stop: StopAfter,
}

/// A command with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOrder {
    /// Command.
    pub command: RunCommand,
    /// Settings, for [`RunCommand::Configure`].
    pub settings: Option<RunSettings>,
    /// Last revision known to the sender; the command is refused if the revision has changed.
    pub revision: Option<u64>,
}

/// Refusal of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRefusal {
    /// Kind of refusal.
    pub kind: RefusalKind,
    /// Reason and what helps where that is known.
    pub why: Cause,
}

/// Kind of refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// Not allowed in this state.
    State,
    /// The revision has changed since.
    Revision,
    /// Invalid settings.
    Settings,
    /// The command failed; the state is [`RunState::Error`] or unchanged.
    Failed,
    /// The recorder was started without run control.
    Uncontrolled,
}

impl RunRefusal {
    /// A refusal of this kind.
    pub fn new(kind: RefusalKind, why: impl Into<Cause>) -> Self {
        Self { kind, why: why.into() }
    }
}

impl fmt::Display for RunRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.why, f)
    }
}

impl std::error::Error for RunRefusal {}

impl Diagnostic for RunRefusal {
    fn class(&self) -> ErrorClass {
        match self.kind {
            RefusalKind::State
            | RefusalKind::Revision
            | RefusalKind::Settings
            | RefusalKind::Failed
            | RefusalKind::Uncontrolled => ErrorClass::Environment,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        self.why.hint()
    }
}

/// A volume available to runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunVolume {
    /// Directory as given to the recorder.
    pub path: String,
    /// Free space in bytes, for an active run as of before it; null if unknown.
    pub free_bytes: Option<u64>,
}

/// Result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunOutcome {
    /// Run number.
    pub run: Option<u64>,
    /// Name of the recording.
    pub name: String,
    /// Reason for the end.
    pub ended: String,
    /// Received completely and in order.
    pub received: Count,
    /// Durable.
    pub durable: Count,
    /// Missing events, by cause.
    pub missing: BTreeMap<String, u64>,
    /// Time from the first event to the last durable one, seconds.
    pub seconds: f64,
    /// First error, if any.
    pub incidents: Vec<String>,
    /// The recording's directories.
    pub directories: Vec<String>,
    /// Virtual file over all parts, if any.
    pub master: Option<String>,
    /// Whether everything received is durable and nothing is missing.
    pub whole: bool,
}

/// Status of run control.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunStatus {
    /// State.
    pub state: RunState,
    /// Incremented with every change of this status except free space.
    pub revision: u64,
    /// Time of the last state change, ns since the Unix epoch.
    pub since_unix_ns: u64,
    /// Whether it accepts commands other than `stop`.
    pub controlled: bool,
    /// Commands allowed now.
    pub commands: Vec<RunCommand>,
    /// Run number, if known.
    pub run: Option<u64>,
    /// Name of the recording, if known.
    pub name: Option<String>,
    /// Settings of this run, or of the next.
    pub settings: RunSettings,
    /// Listening address while sources can connect.
    pub listen: Option<String>,
    /// Directories of the recording, if any.
    pub directories: Vec<String>,
    /// Volumes available to runs.
    pub volumes: Vec<RunVolume>,
    /// Cause of [`RunState::Error`], with a hint if known.
    pub error: Option<String>,
    /// Result of the last run.
    pub last: Option<RunOutcome>,
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
