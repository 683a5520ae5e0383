//! What verification found.

use std::collections::BTreeMap;
use std::path::PathBuf;

use keepup_stream::ledger::Count;
use serde::Serialize;

use crate::id::Id;

/// Most faults that a report lists; `fault_count` counts on.
pub const FAULTS_MAX: usize = 1000;

/// Result of [`verify`](crate::verify::verify).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// Name of the recording.
    pub name: String,
    /// Its identity.
    pub recording: Id,
    /// How the run ended.
    pub ending: Ending,
    /// Segments that the journals name.
    pub segments: u64,
    /// Blocks read and found whole.
    pub blocks: u64,
    /// Of these, blocks that another volume has as well, and that count there.
    pub duplicate_blocks: u64,
    /// Bytes read.
    pub bytes: u64,
    /// What was found of each stream, by id.
    pub streams: BTreeMap<u32, StreamReport>,
    /// The first [`FAULTS_MAX`] faults.
    pub faults: Vec<Fault>,
    /// All faults.
    pub fault_count: u64,
}

/// How a run ended, by its journals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Ending {
    /// As asked, with everything received durable.
    Clean,
    /// In order, and not with everything durable.
    Unclean {
        /// What the first such journal gives as the reason.
        reason: String,
    },
    /// A volume has no end record: the run was cut off, or goes on
    /// ([`is_being_made`](crate::reader::Recording::is_being_made) tells).
    NotEnded {
        /// The segments that were open.
        stops: Vec<Stop>,
    },
}

/// Where an open segment stops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stop {
    /// The segment's file.
    pub file: PathBuf,
    /// Everything below this offset is durable and was checked, bytes.
    pub durable_bytes: u64,
}

/// What was found of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamReport {
    /// Its name.
    pub name: String,
    /// Events in blocks with a whole header.
    pub recorded: Count,
    /// Events that were removed because no more was to be kept.
    pub removed: Count,
    /// Of these, events in blocks whose bytes are damaged.
    pub damaged_events: u64,
    /// Events that are not in the recording, and the journal says why.
    pub lost_events: u64,
    /// Events whose place is behind the durable end of a volume that was cut off, while later ones are
    /// durable on another: not known before the recording was recovered.
    pub unsettled_events: u64,
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Where: a segment, or a journal.
    pub file: PathBuf,
    /// Offset in the file, bytes.
    pub offset: u64,
    /// The stream concerned, when known.
    pub stream: Option<u32>,
    /// Sequence number of the event concerned, or of the first, when known.
    pub event: Option<u64>,
    /// What is wrong.
    pub what: String,
}

impl VerifyReport {
    /// True when everything that the journals claim is there and whole. Losses may still have been
    /// journaled: see [`lost_events`](Self::lost_events).
    pub fn is_intact(&self) -> bool {
        self.fault_count == 0
    }

    /// Events of all streams that are not in the recording, with a reason in the journal.
    pub fn lost_events(&self) -> u64 {
        self.streams.values().map(|stream| stream.lost_events).sum()
    }

    /// Adds faults to the list while there is room, and to the count.
    pub(super) fn take_faults(&mut self, faults: Faults) {
        self.fault_count += faults.count;
        let room = FAULTS_MAX.saturating_sub(self.faults.len());
        self.faults.extend(faults.list.into_iter().take(room));
    }
}

/// Faults as they are found, bounded.
#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) list: Vec<Fault>,
    pub(super) count: u64,
}

impl Faults {
    pub(super) fn push(&mut self, fault: Fault) {
        self.count += 1;
        if self.list.len() < FAULTS_MAX {
            self.list.push(fault);
        }
    }
}
