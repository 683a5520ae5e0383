//! The fleet file: which hosts there are, what each does, and how its agent is started.
mod check;
mod launcher;
mod names;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use keepup_error::{Cause, Diagnostic};
use keepup_plan::units::Span;
use serde::Deserialize;

pub use self::launcher::Template;
use crate::error::FleetError;
use crate::message::{HostId, Role};
use crate::timing::Timing;

/// Longest fleet file, bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Default time in which an agent must join.
const JOIN_TIME: Duration = Duration::from_secs(30);
/// Default number of agents that are started at a time.
const PARALLEL: usize = 32;
/// Hint for a file without a launcher.
const LAUNCHER_HINT: &str = "[launcher] with preset = \"ssh\", or \"local\" for agents on this machine";
/// Hint for a file that does not exist.
const ABSENT_HINT: &str = "FILE is a TOML file that you write, with name, listen, [launcher], and [[host]] \
                           for each host. docs/book/fleet.md has an example";
/// Default program of the agents.
const PROGRAM: &str = "keepup";

/// Contents of a fleet file. [`FleetFile::parse`] returns only valid ones.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetFile {
    /// Name.
    pub name: String,
    /// Address on which the controller listens for agents.
    pub listen: SocketAddr,
    /// Whether the connections between the controller and its agents use TLS.
    pub tls: bool,
    /// Intervals, leases and deadlines.
    pub timing: Timing,
    /// Time in which an agent must join.
    pub join_time: Duration,
    /// Number of agents that are started at a time.
    pub parallel: usize,
    /// The hosts; a host number is an index into this list.
    pub hosts: Vec<HostEntry>,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostEntry {
    /// Name: unique in the fleet.
    pub name: String,
    /// What it does.
    pub role: Role,
    /// Directories that keepup may use there.
    pub volumes: Vec<PathBuf>,
    /// Address in the data network.
    pub data: Option<IpAddr>,
    /// Command that starts its agent.
    pub command: Vec<String>,
}

impl FleetFile {
    /// Reads a fleet file.
    ///
    /// # Errors
    /// A file that cannot be read, is too long or invalid.
    pub fn read(path: &Path) -> Result<Self, FleetError> {
        let at = |cause: Cause| FleetError::File(cause.map(|what| format!("{}: {what}", path.display())));
        let failed = |error: std::io::Error| {
            let cause = Cause::new(error.to_string());
            let is_absent = error.kind() == std::io::ErrorKind::NotFound;
            at(if is_absent { cause.with_hint(ABSENT_HINT) } else { cause })
        };
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(failed)?;
        let length =
            std::io::Read::read_to_string(&mut std::io::Read::take(file, FILE_BYTES_MAX + 1), &mut text);
        if length.map_err(failed)? as u64 > FILE_BYTES_MAX {
            return Err(at(Cause::new(format!("it is longer than {FILE_BYTES_MAX} bytes"))));
        }
        Self::parse(&text).map_err(|error| match error {
            FleetError::File(cause) => at(cause),
            other => other,
        })
    }

    /// Parses and checks the text of a fleet file.
    ///
    /// # Errors
    /// What is invalid, with the name of the key or host.
    pub fn parse(text: &str) -> Result<Self, FleetError> {
        let form: Form = toml::from_str(text).map_err(|error| {
            let cause = Cause::new(error.to_string().trim_end());
            let is_launcher = error.message().contains("missing field `launcher`");
            FleetError::File(if is_launcher { cause.with_hint(LAUNCHER_HINT) } else { cause })
        })?;
        check::checked(form).map_err(FleetError::File)
    }

    /// Number of a host.
    #[must_use]
    pub fn host(&self, name: &str) -> Option<HostId> {
        HostId::try_from(self.hosts.iter().position(|host| host.name == name)?).ok()
    }

    /// The file with the first `count` recorders, all sources and drain hosts only, and the names of the
    /// other recorders.
    ///
    /// # Errors
    /// It has fewer recorders, or `count` is 0.
    pub fn first_recorders(mut self, count: u32) -> Result<(Self, Vec<String>), FleetError> {
        let recorders = self.hosts.iter().filter(|host| host.role == Role::Recorder).count();
        let count = count as usize;
        if count == 0 || count > recorders {
            let why = format!("{count} recorders were requested, fleet {} has {recorders}", self.name);
            let hint = format!("--recorders N, at most {recorders}");
            return Err(FleetError::Trial(Cause::new(why).with_hint(hint)));
        }
        let mut left_out = Vec::new();
        let mut used = 0;
        self.hosts.retain(|host| match host.role {
            Role::Source | Role::Drain => true,
            Role::Spare => false,
            Role::Recorder => {
                used += 1;
                if used > count {
                    left_out.push(host.name.clone());
                }
                used <= count
            }
        });
        Ok((self, left_out))
    }

    /// Roles of the hosts in their order.
    #[must_use]
    pub fn roles(&self) -> Vec<Role> {
        self.hosts.iter().map(|host| host.role).collect()
    }
}

impl FromStr for FleetFile {
    type Err = FleetError;

    fn from_str(text: &str) -> Result<Self, FleetError> {
        Self::parse(text)
    }
}

/// Contents of the file before validation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    name: String,
    listen: String,
    tls: Option<bool>,
    #[serde(default)]
    timing: TimingForm,
    launcher: LauncherForm,
    #[serde(default)]
    host: Vec<HostForm>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct TimingForm {
    #[serde(default)]
    base: Base,
    heartbeat: Option<Span>,
    lease: Option<Span>,
    prepare: Option<Span>,
    start_delay: Option<Span>,
    finish: Option<Span>,
    orphan: Option<Span>,
}

/// Timing whose values apply by default.
#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Base {
    #[default]
    Recording,
    Trial,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LauncherForm {
    preset: Option<launcher::Preset>,
    command: Option<launcher::Words>,
    program: Option<String>,
    parallel: Option<usize>,
    join_time: Option<Span>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HostForm {
    name: String,
    address: Option<String>,
    role: Role,
    #[serde(default)]
    volumes: Vec<PathBuf>,
    data: Option<IpAddr>,
    launcher: Option<launcher::Words>,
}

/// Text and hint of an error with its subject.
fn about(what: &str, error: &dyn Diagnostic) -> Cause {
    Cause::of(error).map(|why| format!("{what}: {why}"))
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
