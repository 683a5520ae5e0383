//! Catalog of stored results and recordings: entry of a result, and the trait that provides them.
//!
//! Invariants: an entry is requested by the id from the list, never by a path; nothing is written
//! or removed.
use keepup_error::Cause;
use keepup_results::{Entries, RecordingEntry};
use serde::{Deserialize, Serialize};

use crate::event::EventCopy;

/// Reserves memory for a payload of this many bytes before it is copied; returns whether it
/// succeeded.
pub type Admit<'a> = &'a mut dyn FnMut(u64) -> bool;

/// Provider of stored results and recordings. Its calls may block and run on separate threads, at
/// most two at a time.
pub trait Catalog: Send + Sync {
    /// All entries, newest first.
    ///
    /// # Errors
    /// The list is not available. Problems with single entries are in the list.
    fn list(&self) -> Result<Listing, Cause>;

    /// Report of a result as one HTML file; `None` for an unknown id.
    ///
    /// # Errors
    /// The report cannot be rendered.
    fn page(&self, id: &str) -> Result<Option<String>, Cause>;

    /// Comparison of two results as one HTML file, the first as the baseline; `None` if one of
    /// them is unknown.
    ///
    /// # Errors
    /// The results cannot be compared.
    fn compare(&self, baseline: &str, other: &str) -> Result<Option<String>, Cause>;

    /// Summary of a recording, as JSON for programs; `None` for an unknown id.
    ///
    /// # Errors
    /// The recording cannot be read.
    fn recording(&self, id: &str) -> Result<Option<serde_json::Value>, Cause>;

    /// First event of a recording's stream with the sequence number `from` or higher; `None` for
    /// an unknown id. The payload is copied only if `admit` accepts its size.
    ///
    /// # Errors
    /// There is no such event, it cannot be read, or `admit` refused it.
    fn event(&self, id: &str, stream: u32, from: u64, admit: Admit<'_>) -> Result<Option<EventCopy>, Cause>;
}

/// List of stored results and recordings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// Results.
    pub results: Entries<ResultEntry>,
    /// Recordings.
    pub recordings: Entries<RecordingEntry>,
}

/// Assessment of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// Neutral.
    Plain,
    /// Good.
    Good,
    /// Good with limits.
    Doubtful,
    /// Bad.
    Bad,
}

/// A stored result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultEntry {
    /// Id for requests: letters, digits and `-`.
    pub id: String,
    /// Kind of test, such as `qualify` or `disk`.
    pub kind: String,
    /// Name of the test or profile.
    pub workload: String,
    /// Start of the measurement, RFC 3339, UTC.
    pub created: String,
    /// The verdict, or a short answer.
    pub answer: String,
    /// Assessment of the answer.
    pub tone: Tone,
    /// Whether the user stopped it.
    pub interrupted: bool,
    /// Failure that ended it early, if any.
    pub failure: Option<String>,
    /// Measured machine, if known.
    pub machine: Option<String>,
    /// Version of keepup that measured it.
    pub tool_version: String,
    /// Its directory.
    pub directory: String,
}
