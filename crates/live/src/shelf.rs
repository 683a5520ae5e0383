//! Results and recordings that lie on disks, to be looked at: what there is of each, and the shelf they stand
//! on, which is handed in.
//!
//! Invariants: an entry is asked for by its id as the list tells it, never by a path; nothing is written and
//! nothing removed.
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::EventCopy;

/// Takes memory for a payload of so many bytes before it is copied; whether there is enough.
pub type Admit<'a> = &'a mut dyn FnMut(u64) -> bool;

/// Where stored results and recordings are looked up. Its calls may take their time and are made on threads
/// of their own, two at a time at most.
pub trait Shelf: Send + Sync {
    /// What there is, the newest first.
    ///
    /// # Errors
    /// Why nothing can be told. What concerns one entry alone is told in the list.
    fn list(&self) -> Result<Listing, String>;

    /// The report of a result as one HTML file; nothing when no result has this id.
    ///
    /// # Errors
    /// Why it cannot be drawn.
    fn page(&self, id: &str) -> Result<Option<String>, String>;

    /// Two results beside each other as one HTML file, the first as the baseline; nothing when one of them is
    /// not there.
    ///
    /// # Errors
    /// Why they cannot be compared.
    fn compare(&self, baseline: &str, other: &str) -> Result<Option<String>, String>;

    /// What a recording has, as JSON for programs; nothing when no recording has this id.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn recording(&self, id: &str) -> Result<Option<serde_json::Value>, String>;

    /// The first event of a recording's stream whose sequence number is `from` or higher; nothing when no
    /// recording has this id. Its payload is copied only if `admit` lets so many bytes in.
    ///
    /// # Errors
    /// When there is no such event, it cannot be read, or it was not let in.
    fn event(&self, id: &str, stream: u32, from: u64, admit: Admit<'_>) -> Result<Option<EventCopy>, String>;
}

/// What there is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// Results.
    pub results: Entries<ResultEntry>,
    /// Recordings.
    pub recordings: Entries<RecordingEntry>,
}

/// Entries of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entries<T> {
    /// Those that can be read, the newest first.
    pub entries: Vec<T>,
    /// Those that cannot.
    pub unreadable: Vec<Unreadable>,
    /// What was left out because there is too much, in words.
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
    /// Why not.
    pub why: String,
}

/// How an answer is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// It neither praises nor warns.
    Plain,
    /// As it should be.
    Good,
    /// With reserve.
    Doubtful,
    /// Not as it should be.
    Bad,
}

/// A stored result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultEntry {
    /// By which it is asked for: letters, digits and `-`.
    pub id: String,
    /// What was done, as `qualify` or `disk`.
    pub kind: String,
    /// Name of the test, or of the profile.
    pub workload: String,
    /// Start of the measurement, RFC 3339, UTC.
    pub created: String,
    /// The verdict, or the answer in some words.
    pub answer: String,
    /// How that is to be taken.
    pub tone: Tone,
    /// Whether the user stopped it.
    pub interrupted: bool,
    /// What cut it short, if anything did.
    pub failure: Option<String>,
    /// The machine that was measured, as far as it says.
    pub machine: Option<String>,
    /// Version of keepup that measured.
    pub tool_version: String,
    /// Its directory.
    pub directory: String,
}

/// How far a recording has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordingState {
    /// All of it is sealed.
    Sealed,
    /// A recorder is at work on it.
    BeingWritten,
    /// It was cut off, and not recovered since.
    NeedsRecovery,
}

/// A recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordingEntry {
    /// By which it is asked for.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Number of the run, where runs are counted.
    pub run: Option<u64>,
    /// What it carries along, as sample or operator.
    pub metadata: BTreeMap<String, String>,
    /// When it was created, RFC 3339, UTC.
    pub created: String,
    /// How far it has got.
    pub state: RecordingState,
    /// Why it ended, where it did not end as asked.
    pub ended: Option<String>,
    /// Its directories, volume by volume.
    pub directories: Vec<String>,
    /// Volumes that were not found.
    pub missing_volumes: Vec<String>,
    /// Streams declared.
    pub streams: u64,
    /// Durable events, all streams together; known when it has ended.
    pub events: Option<u64>,
    /// Durable bytes on the volumes, with all that is not payload.
    pub bytes: u64,
    /// Events that are missing.
    pub missing_events: u64,
}
