//! Data that arrived and is not recorded: what, from where, how much, and why.
//!
//! Whatever arrives is recorded, is a verified duplicate, is missing with a
//! [`LossCause`](crate::ledger::LossCause), or stands here. An event with a sequence number that is known is
//! missing; data that have no place in a stream are rejected. Memory for the account is bounded.
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Most rows of an account; data of further sources are counted in [`Rejections::OTHERS`].
pub const ROWS_MAX: usize = 256;
/// Longest source and detail of a row, bytes.
pub const TEXT_BYTES_MAX: usize = 240;

/// Why data are not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RejectReason {
    /// They violate the protocol or the format.
    Malformed,
    /// They end before they are whole.
    Incomplete,
    /// Their size, type or shape is not that of their stream.
    Contradictory,
    /// The same identity as an event before them, with other content.
    Conflicting,
    /// They arrived after the events that follow them were recorded.
    Late,
    /// A format or a compression that this version does not record.
    Unsupported,
    /// Their source is not admitted: more sources than the limit, or excluded by a setting.
    NotAdmitted,
    /// They belong to no series: its start was not received, or it has ended.
    OutsideSeries,
    /// A file that cannot be read.
    Unreadable,
}

impl RejectReason {
    /// All reasons.
    pub const ALL: [RejectReason; 9] = [
        RejectReason::Malformed,
        RejectReason::Incomplete,
        RejectReason::Contradictory,
        RejectReason::Conflicting,
        RejectReason::Late,
        RejectReason::Unsupported,
        RejectReason::NotAdmitted,
        RejectReason::OutsideSeries,
        RejectReason::Unreadable,
    ];

    /// Its name in JSON, metrics and journals.
    pub fn name(self) -> &'static str {
        match self {
            RejectReason::Malformed => "malformed",
            RejectReason::Incomplete => "incomplete",
            RejectReason::Contradictory => "contradictory",
            RejectReason::Conflicting => "conflicting",
            RejectReason::Late => "late",
            RejectReason::Unsupported => "unsupported",
            RejectReason::NotAdmitted => "not_admitted",
            RejectReason::OutsideSeries => "outside_series",
            RejectReason::Unreadable => "unreadable",
        }
    }
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RejectReason::Malformed => "malformed",
            RejectReason::Incomplete => "incomplete",
            RejectReason::Contradictory => "contradicts its stream",
            RejectReason::Conflicting => "same identity, other content",
            RejectReason::Late => "arrived too late",
            RejectReason::Unsupported => "not supported",
            RejectReason::NotAdmitted => "source not admitted",
            RejectReason::OutsideSeries => "outside a series",
            RejectReason::Unreadable => "not readable",
        })
    }
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RejectUnit {
    /// Packets of a network.
    Packet,
    /// Heaps of SPEAD.
    Heap,
    /// Messages of a protocol.
    Message,
    /// Images.
    Image,
    /// Events.
    Event,
    /// Files.
    File,
}

impl fmt::Display for RejectUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RejectUnit::Packet => "packet",
            RejectUnit::Heap => "heap",
            RejectUnit::Message => "message",
            RejectUnit::Image => "image",
            RejectUnit::Event => "event",
            RejectUnit::File => "file",
        })
    }
}

/// Data rejected at one time, as a decoder states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// Who sent them, if more is known than the source's own address; such as `10.0.0.7:4000`.
    pub sender: Option<String>,
    /// Why.
    pub reason: RejectReason,
    /// What is counted.
    pub unit: RejectUnit,
    /// How many.
    pub count: u64,
    /// Whether the sender was never admitted and not asked for: a port scan, another program's packets. Such
    /// data make a recording incomplete only if nothing else was recorded.
    pub is_foreign: bool,
    /// The reason in full, without the sender.
    pub detail: String,
}

/// A row of the account: data of one source that were rejected for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rejected {
    /// Address of the source or sender.
    pub source: String,
    /// Why.
    pub reason: RejectReason,
    /// What is counted.
    pub unit: RejectUnit,
    /// How many.
    pub count: u64,
    /// Whether the sender was never admitted and not asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_foreign: bool,
    /// The reason of the first of them, in full.
    pub detail: String,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rejected { source, reason, unit, count, detail, .. } = self;
        let plural = if *count == 1 { "" } else { "s" };
        write!(f, "{source}: {count} {unit}{plural} not recorded ({reason}): {detail}")
    }
}

type Key = (String, RejectReason, RejectUnit, bool);

/// Account of rejected data of a recording. At most [`ROWS_MAX`] rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rejections {
    rows: BTreeMap<Key, (u64, String)>,
}

impl Rejections {
    /// Source of the rows that count data of sources beyond the limit.
    pub const OTHERS: &'static str = "other sources";

    /// Enters data of `source`. Returns the row if it is new, to be warned of.
    pub fn add(&mut self, source: &str, rejection: &Rejection) -> Option<Rejected> {
        let source = match &rejection.sender {
            Some(sender) => format!("{source} from {sender}"),
            None => source.to_owned(),
        };
        self.merge(&Rejected {
            source,
            reason: rejection.reason,
            unit: rejection.unit,
            count: rejection.count,
            is_foreign: rejection.is_foreign,
            detail: rejection.detail.clone(),
        })
    }

    /// Enters a row of another account. Returns the row of this account if it is new.
    pub fn merge(&mut self, row: &Rejected) -> Option<Rejected> {
        if row.count == 0 {
            return None;
        }
        let mut key = (bounded(&row.source), row.reason, row.unit, row.is_foreign);
        // Kept free: a row of further sources for each reason, unit and kind of sender would be 108.
        if !self.rows.contains_key(&key) && self.rows.len() >= ROWS_MAX {
            key.0 = Self::OTHERS.to_owned();
        }
        if let Some((count, _)) = self.rows.get_mut(&key) {
            *count = count.saturating_add(row.count);
            return None;
        }
        let new = Rejected { source: key.0.clone(), detail: bounded(&row.detail), ..row.clone() };
        self.rows.insert(key, (row.count, new.detail.clone()));
        Some(new)
    }

    /// Takes a row of another copy of this account, which has the larger count if it is newer. Returns the
    /// row of this account if it is new.
    pub fn raise(&mut self, row: &Rejected) -> Option<Rejected> {
        let known = self.rows.get(&(bounded(&row.source), row.reason, row.unit, row.is_foreign));
        let known = known.map_or(0, |(count, _)| *count);
        self.merge(&Rejected { count: row.count.saturating_sub(known), ..row.clone() })
    }

    /// The rows, by source and reason.
    pub fn rows(&self) -> Vec<Rejected> {
        let row = |((source, reason, unit, is_foreign), (count, detail)): (&Key, &(u64, String))| Rejected {
            source: source.clone(),
            reason: *reason,
            unit: *unit,
            count: *count,
            is_foreign: *is_foreign,
            detail: detail.clone(),
        };
        self.rows.iter().map(row).collect()
    }

    /// Whether nothing was rejected.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// Whether `rejected` makes a recording incomplete in which `recorded_events` were recorded: data of
/// strangers alone do not, beside recorded events.
pub fn makes_incomplete(rejected: &[Rejected], recorded_events: u64) -> bool {
    rejected.iter().any(|row| !row.is_foreign || recorded_events == 0)
}

/// `text` without line ends, at most [`TEXT_BYTES_MAX`] bytes.
fn bounded(text: &str) -> String {
    let text = text.replace(|c: char| c.is_control(), " ");
    let end = (0..=text.len().min(TEXT_BYTES_MAX)).rev().find(|&end| text.is_char_boundary(end));
    text[..end.unwrap_or(0)].to_owned()
}

#[cfg(test)]
#[path = "rejected_tests.rs"]
mod tests;
