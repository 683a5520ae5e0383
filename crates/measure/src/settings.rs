//! Host settings that affect losses: network, CPUs, memory, volumes.
//!
//! Invariants: read-only; unreadable settings carry the reason and are never 0; no judgement.

mod limits;
mod memory;
mod network;
mod processors;
mod route;
mod volume;

pub use limits::{Limit, Limits, Process};
pub use memory::Memory;
pub(crate) use network::parse_interrupts;
pub use network::{Interface, Interrupt, Sockets, cores_near_cards, interface_names};
pub use processors::{CoreList, IdleState, Node, Processors};
pub use route::{route_v4, route_v6};
pub use volume::{Md, Queue, Volume};

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::environment::Reading;
use crate::error::MeasureError;
use crate::text;

/// Settings of this host, except those of its interfaces.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Settings {
    /// Socket and receive limits.
    pub sockets: Sockets,
    /// CPU settings and topology.
    pub processors: Processors,
    /// Memory settings.
    pub memory: Memory,
    /// Limits of this process.
    pub process: Process,
    /// The requested volumes, in the given order.
    pub volumes: Vec<Volume>,
}

impl Settings {
    /// Reads all settings. `root` is `/` outside tests.
    pub fn collect(root: &Path, volumes: &[PathBuf]) -> Self {
        Self {
            sockets: Sockets::collect(root),
            processors: Processors::collect(root),
            memory: Memory::collect(root),
            process: Process::collect(root),
            volumes: volumes.iter().map(|path| Volume::collect(root, path)).collect(),
        }
    }
}

/// Trimmed text of a file, possibly empty.
fn line(root: &Path, relative: impl AsRef<Path>) -> Reading<String> {
    text::read(root, relative).map(|text| text.trim().to_owned()).into()
}

/// A file parsed by `parse`.
fn parsed<T>(
    root: &Path,
    relative: impl AsRef<Path>,
    why: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Reading<T> {
    let relative = relative.as_ref();
    let read = text::read(root, relative);
    let made: Result<T, MeasureError> =
        read.and_then(|text| parse(&text).ok_or_else(|| text::malformed(root, relative, why)));
    made.into()
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
