//! Report of a verification.

use std::collections::BTreeMap;
use std::path::PathBuf;

use keepup_measure::sum::Sums;
use keepup_stream::ledger::Count;
use keepup_stream::rejected::{Rejected, makes_incomplete};
use serde::{Deserialize, Serialize};

use super::sample::damaged_share_max;
use crate::id::Id;

/// Most faults that a report lists; `fault_count` counts all.
pub const FAULTS_MAX: usize = 1000;

/// Result of [`verify`](crate::verify::verify).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyReport {
    /// Name of the recording.
    pub name: String,
    /// Its identity.
    pub recording: Id,
    /// How the run ended.
    pub ending: Ending,
    /// Segments that were read.
    pub segments: u64,
    /// Segments that were not, because a sample was asked for. If there are any, completeness was not
    /// checked.
    pub unread_segments: u64,
    /// Of the segments that were read, those with a fault.
    pub faulty_segments: u64,
    /// Intact blocks read.
    pub blocks: u64,
    /// Of these, blocks that are also on another volume and count there.
    pub duplicate_blocks: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Results of each stream, by id.
    pub streams: BTreeMap<u32, StreamReport>,
    /// Data that arrived and were not recorded, according to the journals.
    #[serde(default)]
    pub rejected: Vec<Rejected>,
    /// Files that cannot be checked, because an earlier version wrote no checksum for them.
    #[serde(default)]
    pub unchecked: Vec<PathBuf>,
    /// The first [`FAULTS_MAX`] faults.
    pub faults: Vec<Fault>,
    /// All faults.
    pub fault_count: u64,
}

/// How a run ended, according to its journals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Ending {
    /// As requested, with everything received durable.
    Clean,
    /// In order, but not with everything durable.
    Unclean {
        /// Reason in the first such journal.
        reason: String,
    },
    /// A volume has no end record: the run was interrupted or is in progress
    /// ([`is_being_made`](crate::reader::Recording::is_being_made)).
    NotEnded {
        /// Segments that were open.
        stops: Vec<Stop>,
    },
}

/// End of an open segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// The segment's file.
    pub file: PathBuf,
    /// Everything below this offset is durable and was checked, bytes.
    pub durable_bytes: u64,
}

/// Results of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamReport {
    /// Its name.
    pub name: String,
    /// Events in blocks with an intact header.
    pub recorded: Count,
    /// Events removed by the retention limit.
    pub removed: Count,
    /// Of the recorded events, those in damaged blocks.
    pub damaged_events: u64,
    /// Missing events that the journal lists.
    pub lost_events: u64,
    /// Events above the durable end of an interrupted volume, with later ones durable on another
    /// volume: lost or present is unknown before recovery.
    pub unsettled_events: u64,
}

/// A fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// A segment or a journal.
    pub file: PathBuf,
    /// Offset in the file, bytes.
    pub offset: u64,
    /// The stream concerned, when known.
    pub stream: Option<u32>,
    /// Sequence number of the (first) event concerned, when known.
    pub event: Option<u64>,
    /// Description.
    pub what: String,
}

impl VerifyReport {
    /// Whether everything listed in the journals is present and undamaged. Losses may still be
    /// listed: see [`lost_events`](Self::lost_events).
    pub fn is_intact(&self) -> bool {
        self.fault_count == 0
    }

    /// Whether the run ended cleanly, nothing is damaged or missing, and nothing that arrived was rejected.
    pub fn is_complete(&self) -> bool {
        self.is_intact()
            && self.ending == Ending::Clean
            && self.lost_events() == 0
            && !makes_incomplete(&self.rejected, self.recorded_events())
    }

    /// Events of all streams, also those that the retention limit removed.
    fn recorded_events(&self) -> u64 {
        let ever = |stream: &StreamReport| stream.recorded.events.saturating_add(stream.removed.events);
        self.streams.values().map(ever).fold(0, u64::saturating_add)
    }

    /// Upper bound of the share of damaged segments with 95 % confidence, of a sample without a damaged one
    /// ([`damaged_share_max`]).
    pub fn damaged_share_max(&self) -> Option<f64> {
        let is_sample = self.unread_segments > 0 && self.segments > 0;
        (is_sample && self.faulty_segments == 0).then(|| damaged_share_max(self.segments))
    }

    /// Missing events of all streams that a journal lists.
    pub fn lost_events(&self) -> u64 {
        self.streams.values().map(|stream| stream.lost_events).saturating_sum()
    }

    /// Adds faults to the list up to its limit, and to the count.
    pub(super) fn take_faults(&mut self, faults: Faults) {
        self.fault_count += faults.count;
        let space = FAULTS_MAX.saturating_sub(self.faults.len());
        self.faults.extend(faults.list.into_iter().take(space));
    }
}

/// Bounded list of faults.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
