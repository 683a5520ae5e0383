//! Source of a fleet: several recorders, each of which takes some of the streams.
//!
//! Every event is kept until its recorder has acknowledged it. When a recorder is lost, its streams continue
//! at another one, from the first event without acknowledgement. Invariants: the kept events and those that
//! wait never occupy more than the front-end buffer; a lost recorder does not delay the streams of others; an
//! event is acknowledged once, or counted as lost.
//!
//! Modules: `kept` (events until they are acknowledged) and `places` (where streams are, when to ask) are
//! pure; `payload` (bytes that are equal each time), `outlet` (a connection), `errands` (what blocks, in
//! threads of its own), `opening` (first connections),
//! `lane` (the loop), `recovery` (from lost recorders, and the end).
mod errands;
mod kept;
mod lane;
mod opening;
mod outlet;
mod payload;
mod places;
mod recovery;

use std::time::Duration;

use keepup_peer::Endpoint;
use serde::{Deserialize, Serialize};

use crate::ledger::Count;

pub(super) use opening::open;

/// Recorders of a fleet.
#[derive(Debug, Clone)]
pub struct Fleet {
    /// Addresses of recorders; one that can be reached is enough to find the others.
    pub recorders: Vec<Endpoint>,
    /// Longest time without progress of a stream, after which the source gives up.
    pub patience: Duration,
}

/// What a source of a fleet reports in addition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetReport {
    /// Events that a recorder has acknowledged, each counted once.
    pub acknowledged: Count,
    /// Acknowledged events that the recorders have lost, with a failed volume for example.
    pub lost_at_recorders: u64,
    /// Repeated transmissions of events, which `sent` does not count.
    pub sent_again: Count,
    /// Moves of a stream to another recorder.
    pub moved_streams: u64,
    /// Longest time for which a stream had no recorder, ns.
    pub longest_without_recorder_ns: u64,
}

impl FleetReport {
    /// Durable events.
    #[must_use]
    pub fn durable_events(&self) -> u64 {
        self.acknowledged.events.saturating_sub(self.lost_at_recorders)
    }

    /// Durable bytes; `None` if recorders have lost events, because acknowledgements count events only.
    #[must_use]
    pub fn durable_bytes(&self) -> Option<u64> {
        (self.lost_at_recorders == 0).then_some(self.acknowledged.bytes)
    }

    /// Adds the report of another connection.
    pub(super) fn add(&mut self, other: &Self) {
        self.acknowledged += other.acknowledged;
        self.lost_at_recorders = self.lost_at_recorders.saturating_add(other.lost_at_recorders);
        self.sent_again += other.sent_again;
        self.moved_streams += other.moved_streams;
        self.longest_without_recorder_ns =
            self.longest_without_recorder_ns.max(other.longest_without_recorder_ns);
    }
}

#[cfg(test)]
#[path = "fleet_tests.rs"]
mod tests;
