//! Entries of a catalog of stored results and recordings, as the live page and `keepup serve` list them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Entries of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entries<T> {
    /// Readable entries, newest first.
    pub entries: Vec<T>,
    /// Unreadable entries.
    pub unreadable: Vec<Unreadable>,
    /// Description of omitted entries, if there are too many.
    pub left_out: Option<String>,
}

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), unreadable: Vec::new(), left_out: None }
    }
}

/// An entry that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unreadable {
    /// Its directory.
    pub directory: String,
    /// Cause.
    pub why: String,
}

/// State of completion of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordingState {
    /// All of it is sealed.
    Sealed,
    /// A recorder is writing it.
    BeingWritten,
    /// It was interrupted and has not been recovered.
    NeedsRecovery,
}

/// A recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordingEntry {
    /// Id for requests.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Run number, where runs are numbered.
    pub run: Option<u64>,
    /// Metadata, such as sample or operator.
    pub metadata: BTreeMap<String, String>,
    /// Creation time, RFC 3339, UTC.
    pub created: String,
    /// State of completion.
    pub state: RecordingState,
    /// Reason for the end, if it did not end as requested.
    pub ended: Option<String>,
    /// Its directories, volume by volume.
    pub directories: Vec<String>,
    /// Volumes that were not found.
    pub missing_volumes: Vec<String>,
    /// Number of declared streams.
    pub streams: u64,
    /// Durable events of all streams; `None` before the end.
    pub events: Option<u64>,
    /// Durable bytes on the volumes, payload and overhead.
    pub bytes: u64,
    /// Missing events.
    pub missing_events: u64,
}
