//! The environment record: everything about the machine that a measured rate may hang on.
//!
//! Invariants: collecting never fails, what cannot be read says why; [`Environment::fingerprint`] covers what
//! lasts and nothing that changes from minute to minute; a record differs from itself in nothing.

mod compare;
mod machine;
mod network;
mod volume;

pub use compare::{Difference, differences};
pub use machine::{Cpu, Kernel, Machine, MemorySettings};
pub use network::{Interface, Network};
pub use volume::{Disk, Volume, VolumeFree};

use std::fmt::Display;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::MeasureError;
use crate::memory::Memory;
use crate::pressure::Pressure;
use crate::text;

/// One item of the record: what was read, or why it was not.
/// In JSON `{"value": …}` or `{"not_readable": "…"}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading<T> {
    /// What was read.
    Value(T),
    /// Why nothing was read.
    NotReadable(String),
}

impl<T> Reading<T> {
    /// What was read, if anything.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::NotReadable(_) => None,
        }
    }

    /// The same of a part of the value or of something made from it.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Self::Value(value) => Reading::Value(convert(value)),
            Self::NotReadable(why) => Reading::NotReadable(why),
        }
    }

    /// What `convert` makes of the value, or why it can make nothing of it.
    pub(crate) fn and_then<U>(self, convert: impl FnOnce(T) -> Result<U, String>) -> Reading<U> {
        match self {
            Self::Value(value) => convert(value).map_or_else(Reading::NotReadable, Reading::Value),
            Self::NotReadable(why) => Reading::NotReadable(why),
        }
    }

    /// A value, or the reason why there is none.
    fn or_because(value: Option<T>, why: impl Display) -> Self {
        value.map_or_else(|| Self::NotReadable(why.to_string()), Self::Value)
    }
}

impl<T> From<Result<T, MeasureError>> for Reading<T> {
    fn from(result: Result<T, MeasureError>) -> Self {
        match result {
            Ok(value) => Self::Value(value),
            // The hint of an error is for one who can act on it; a record only says what was.
            Err(why) => Self::NotReadable(why.to_string().lines().next().unwrap_or_default().to_owned()),
        }
    }
}

/// The record of a machine at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    /// The box itself.
    pub machine: Machine,
    /// Its processors.
    pub cpu: Cpu,
    /// Its main memory.
    pub memory: MemorySettings,
    /// The operating system.
    pub kernel: Kernel,
    /// The volumes asked for, in the order given.
    pub volumes: Vec<Volume>,
    /// The network.
    pub network: Network,
    /// The tool that measures.
    pub tool: Tool,
    /// What changes from minute to minute.
    pub moment: Moment,
}

/// The tool that measures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Version of keepup.
    pub version: String,
    /// Whether it was built with debug checks, which makes it slower.
    pub debug_build: bool,
}

/// What changes from minute to minute; not in the fingerprint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moment {
    /// Tasks running or waiting, averaged over 1, 5 and 15 minutes.
    pub load_average: Reading<[f64; 3]>,
    /// Pressure stall information.
    pub pressure: Pressure,
    /// Main memory that can be had without swapping, in bytes.
    pub available_bytes: Reading<u64>,
    /// File data not yet on its way to a disk, in bytes.
    pub dirty_bytes: Reading<u64>,
    /// Huge pages free.
    pub huge_pages_free: Reading<u64>,
}

impl Environment {
    /// Reads all there is to know about this machine and the volumes. `root` is `/` in earnest.
    pub fn collect(volumes: &[PathBuf], root: &Path) -> Self {
        Self {
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

/// A file's text with each run of white space made one blank.
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

/// The choice that is in force, which the kernel puts into brackets: `always [madvise] never`.
/// A text without brackets is the choice itself.
pub(crate) fn chosen(root: &Path, relative: impl AsRef<Path>) -> Reading<String> {
    words(root, relative).map(|text| {
        let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        bracketed.map_or_else(|| text.clone(), |(choice, _)| choice.to_owned())
    })
}

#[cfg(test)]
#[path = "environment_tests.rs"]
mod tests;
