//! Run control: its states, what may be asked of it in each, and what it answers.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::summary::Count;

/// Most entries of a run's metadata.
pub const METADATA_KEYS_MAX: usize = 64;
/// Longest key of a run's metadata, in bytes.
pub const METADATA_KEY_BYTES_MAX: usize = 64;
/// Longest key plus value of an entry of a run's metadata, in bytes.
pub const METADATA_BYTES_MAX: usize = 1024;

/// Where run control stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Nothing is set.
    #[default]
    Idle,
    /// The next run's settings are known and were found possible.
    Configured,
    /// Memory is taken, directories are made, sources may connect; they are heard from the start on.
    Armed,
    /// What sources send is recorded.
    Recording,
    /// Nothing more is read; what was received becomes durable, segments are sealed.
    Draining,
    /// The recording is complete on its volumes.
    Sealed,
    /// Something failed; what was recorded until then is on the volumes.
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

    /// What may be asked for in this state.
    ///
    /// `stop` in `Armed` gives back what was taken and goes to `Configured`; `arm` in `Sealed` is a run with
    /// the same settings and the next run number; `reset` goes to `Idle`, from `Armed` too.
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

    /// Where a command leads that is carried out without a failure; nothing when it may not be asked for.
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

    /// Its name, as it is written.
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

/// What can be asked of run control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunCommand {
    /// Take these settings for the next run.
    Configure,
    /// Take memory, make directories, let sources connect.
    Arm,
    /// Record what they send.
    Start,
    /// End the run: everything received becomes durable and is sealed.
    Stop,
    /// Forget settings and errors.
    Reset,
}

impl RunCommand {
    /// All commands, in the order of a run.
    pub const ALL: [Self; 5] = [Self::Configure, Self::Arm, Self::Start, Self::Stop, Self::Reset];

    /// Its name, as it is written.
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

/// When a run ends by itself: at the first of these that is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StopAfter {
    /// So many events received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// So many bytes of payload received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// So long after the start, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// What a run is to be; whatever is left out is as the recorder was started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunSettings {
    /// Run number; left out: one more than the highest on the volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// Name of the recording's directory on each volume; left out: made of time and identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the recording carries along, as sample or operator; at most [`METADATA_KEYS_MAX`] entries.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// Built-in profile to take block, segment, placement and largest event from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Volumes to record to, of those that the recorder was started with; left out: all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<String>,
    /// When it ends by itself; else when every source has said end, or on command.
    pub stop: StopAfter,
}

/// A command as it is given.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOrder {
    /// What is asked for.
    pub command: RunCommand,
    /// The settings, with [`RunCommand::Configure`].
    pub settings: Option<RunSettings>,
    /// The revision that the commander saw last; the command is refused when it is another one by now.
    pub revision: Option<u64>,
}

/// Why a command was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRefusal {
    /// What kind of reason it is.
    pub kind: RefusalKind,
    /// Why, for people, with a hint where one is known.
    pub why: String,
}

/// A kind of reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// Not in this state.
    State,
    /// Somebody else was quicker: the revision is not the one expected.
    Revision,
    /// The settings cannot be.
    Settings,
    /// It was tried and failed; the state is [`RunState::Error`] now, or as it was.
    Failed,
    /// This recorder was started without run control.
    Uncontrolled,
}

impl RunRefusal {
    /// A refusal of this kind.
    pub fn new(kind: RefusalKind, why: impl Into<String>) -> Self {
        Self { kind, why: why.into() }
    }
}

impl fmt::Display for RunRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

/// A volume that runs may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunVolume {
    /// Its directory, as the recorder was given it.
    pub path: String,
    /// Bytes that may still be written there, as of before the run while one is under way; null when it
    /// cannot be told.
    pub free_bytes: Option<u64>,
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunOutcome {
    /// Run number.
    pub run: Option<u64>,
    /// Name of the recording.
    pub name: String,
    /// Why it ended.
    pub ended: String,
    /// Received whole and in order.
    pub received: Count,
    /// On stable storage.
    pub durable: Count,
    /// Events missing, by cause.
    pub missing: BTreeMap<String, u64>,
    /// From the first event to the last one durable, in seconds.
    pub seconds: f64,
    /// What went wrong on the way, the first of it.
    pub incidents: Vec<String>,
    /// The recording's directories.
    pub directories: Vec<String>,
    /// The file that shows it as one, when there is one.
    pub master: Option<String>,
    /// Whether everything received is durable and nothing is missing.
    pub whole: bool,
}

/// What run control says of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunStatus {
    /// Where it stands.
    pub state: RunState,
    /// Rises with every change of what stands here but the room on the volumes.
    pub revision: u64,
    /// When the state was entered, ns since the Unix epoch.
    pub since_unix_ns: u64,
    /// Whether it takes commands at all; else only `stop`.
    pub controlled: bool,
    /// What may be asked for now.
    pub commands: Vec<RunCommand>,
    /// Run number, once it is known.
    pub run: Option<u64>,
    /// Name of the recording, once it is known.
    pub name: Option<String>,
    /// The settings of this run, or of the next.
    pub settings: RunSettings,
    /// Where sources connect, while they can.
    pub listen: Option<String>,
    /// The recording's directories, while there are any.
    pub directories: Vec<String>,
    /// What runs may use.
    pub volumes: Vec<RunVolume>,
    /// Why the state is [`RunState::Error`], with a hint where one is known.
    pub error: Option<String>,
    /// How the last run ended.
    pub last: Option<RunOutcome>,
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
