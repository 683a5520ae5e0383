//! Environment record: everything about the machine that may affect a measured rate.
//!
//! Invariants: collecting never fails, unreadable items carry the reason;
//! [`Environment::fingerprint`] covers lasting items only; a record has no difference to itself.

mod compare;
mod link;
mod machine;
mod name;
mod network;
mod volume;

pub use compare::{Difference, differences};
pub use link::Link;
pub(crate) use link::{nearest, upwards};
pub use machine::{Cpu, Kernel, Machine, MemorySettings};
pub use name::{Naming, set_naming};
pub use network::{Interface, Network};
pub use volume::{Disk, Volume, VolumeFree};

use std::fmt::Display;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::MeasureError;
use crate::memory::Memory;
use crate::pressure::Pressure;
use crate::text;

/// One item of the record, or the reason why it is not readable. In JSON `{"value": …}` or
/// `{"not_readable": "…"}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading<T> {
    /// Value.
    Value(T),
    /// Reason.
    NotReadable(String),
}

impl<T> Reading<T> {
    /// The value, if readable.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::NotReadable(_) => None,
        }
    }

    /// Converts the value.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Self::Value(value) => Reading::Value(convert(value)),
            Self::NotReadable(why) => Reading::NotReadable(why),
        }
    }

    /// Converts the value, which may fail with a reason.
    pub(crate) fn and_then<U>(self, convert: impl FnOnce(T) -> Result<U, String>) -> Reading<U> {
        match self {
            Self::Value(value) => convert(value).map_or_else(Reading::NotReadable, Reading::Value),
            Self::NotReadable(why) => Reading::NotReadable(why),
        }
    }

    /// A value, or the reason for its absence.
    fn or_because(value: Option<T>, why: impl Display) -> Self {
        value.map_or_else(|| Self::NotReadable(why.to_string()), Self::Value)
    }
}

impl<T> From<Result<T, MeasureError>> for Reading<T> {
    fn from(result: Result<T, MeasureError>) -> Self {
        match result {
            Ok(value) => Self::Value(value),
            Err(why) => Self::NotReadable(why.to_string()),
        }
    }
}

/// Record of a machine at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    /// Host name, unless it was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Label from the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Hardware.
    pub machine: Machine,
    /// CPUs.
    pub cpu: Cpu,
    /// Main memory.
    pub memory: MemorySettings,
    /// Operating system.
    pub kernel: Kernel,
    /// The requested volumes, in the given order.
    pub volumes: Vec<Volume>,
    /// Network.
    pub network: Network,
    /// Version of keepup.
    pub tool: Tool,
    /// Short-term state.
    pub moment: Moment,
}

/// The measuring tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Version of keepup.
    pub version: String,
    /// Whether it was built with debug checks, which makes it slower.
    pub debug_build: bool,
}

/// Short-term state; not part of the fingerprint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moment {
    /// Mean number of runnable tasks over 1, 5 and 15 minutes.
    pub load_average: Reading<[f64; 3]>,
    /// Pressure stall information.
    pub pressure: Pressure,
    /// Memory available without swapping, bytes.
    pub available_bytes: Reading<u64>,
    /// Dirty file data, bytes.
    pub dirty_bytes: Reading<u64>,
    /// Free huge pages.
    pub huge_pages_free: Reading<u64>,
}

impl Environment {
    /// Collects the record of this machine and the volumes. `root` is `/` outside tests.
    pub fn collect(volumes: &[PathBuf], root: &Path) -> Self {
        let naming = Naming::current();
        Self {
            host: naming.host(root),
            label: naming.label,
            machine: Machine::collect(root),
            cpu: Cpu::collect(root),
            memory: MemorySettings::collect(root),
            kernel: Kernel::collect(root),
            volumes: volumes.iter().map(|path| Volume::collect(root, path)).collect(),
            network: Network::collect(root),
            tool: Tool { version: env!("CARGO_PKG_VERSION").to_owned(), debug_build: cfg!(debug_assertions) },
            moment: Moment::collect(root),
        }
    }
}

impl Moment {
    fn collect(root: &Path) -> Self {
        let memory = memory(root);
        Self {
            load_average: load_average(root).into(),
            pressure: Pressure::read(root),
            available_bytes: memory.clone().map(|memory| memory.available_bytes),
            dirty_bytes: memory.clone().map(|memory| memory.dirty_bytes),
            huge_pages_free: memory.map(|memory| memory.huge_pages_free),
        }
    }
}

fn load_average(root: &Path) -> Result<[f64; 3], MeasureError> {
    let file = "proc/loadavg";
    let numbers = text::read(root, file)?;
    let finite = |field: &str| field.parse().ok().filter(|number: &f64| number.is_finite());
    let mut numbers = numbers.split_ascii_whitespace().map_while(finite);
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(one), Some(five), Some(fifteen)) => Ok([one, five, fifteen]),
        _ => Err(text::malformed(root, file, "it does not begin with three numbers")),
    }
}

fn memory(root: &Path) -> Reading<Memory> {
    Memory::read(root).into()
}

/// Text of a file with runs of white space collapsed.
fn words(root: &Path, relative: impl AsRef<Path>) -> Reading<String> {
    let text = text::read_trimmed(root, relative);
    text.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")).into()
}

pub(crate) fn number(root: &Path, relative: impl AsRef<Path>) -> Reading<u64> {
    text::read_number(root, relative).into()
}

pub(crate) fn flag(root: &Path, relative: impl AsRef<Path>) -> Reading<bool> {
    text::read_flag(root, relative).into()
}

/// The selected choice, which the kernel marks by brackets: `always [madvise] never`. A text
/// without brackets is the choice itself.
pub(crate) fn chosen(root: &Path, relative: impl AsRef<Path>) -> Reading<String> {
    words(root, relative).map(|text| {
        let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        bracketed.map_or_else(|| text.clone(), |(choice, _)| choice.to_owned())
    })
}

#[cfg(test)]
#[path = "environment_tests.rs"]
mod tests;
