//! The settings of a host that decide whether a stream is lost: network, processors, memory, volumes.
//!
//! Invariants: reads and changes nothing; what cannot be read says why and is never 0; nothing is judged.

mod limits;
mod memory;
mod network;
mod processors;
mod route;
mod volume;

pub use limits::{Limit, Limits, Process, parse_limits};
pub use memory::{Memory, parse_swaps};
pub use network::{Interface, Interrupt, Link, Sockets, interface_names, parse_interrupts};
pub use processors::{CoreList, IdleState, Node, Processors};
pub use route::{route_v4, route_v6};
pub use volume::{Md, Queue, Volume};

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::environment::Reading;
use crate::error::MeasureError;
use crate::text;

/// Settings of this host, without those of its interfaces.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Settings {
    /// Limits on sockets and on the receive work.
    pub sockets: Sockets,
    /// How the processors run and how they are spread.
    pub processors: Processors,
    /// How memory is handed out.
    pub memory: Memory,
    /// What this process may take.
    pub process: Process,
    /// The volumes asked for, in the order given.
    pub volumes: Vec<Volume>,
}

impl Settings {
    /// Reads them all. `root` is `/` in earnest.
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

/// The text of a file without the white space around it; it may be empty.
fn line(root: &Path, relative: impl AsRef<Path>) -> Reading<String> {
    text::read(root, relative).map(|text| text.trim().to_owned()).into()
}

/// What `parse` makes of a file.
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

/// The file called `name` of the nearest device at or above `device` that has one: a disk's and a virtual
/// card's node and link are those of the slot that they are in.
fn upwards(root: &Path, device: &Path, name: &str) -> Reading<String> {
    let start = root.join(device);
    let place = match std::fs::canonicalize(&start) {
        Ok(place) => place,
        Err(why) => return Reading::from(Err(MeasureError::Read { path: start, why })),
    };
    let devices =
        std::fs::canonicalize(root.join("sys/devices")).unwrap_or_else(|_| root.join("sys/devices"));
    let above = place.ancestors().take_while(|path| path.starts_with(&devices) && **path != devices);
    for directory in above {
        if let Ok(text) = text::read_trimmed(directory, name) {
            return Reading::Value(text);
        }
    }
    Reading::NotReadable(format!("no device at or above {} has {name}", start.display()))
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
