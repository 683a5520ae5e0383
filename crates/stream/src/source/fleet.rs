//! Source of a fleet: several recorders, each of which takes some of the streams.
//!
//! Every event is kept until its recorder has acknowledged it. When a recorder is lost, its streams continue
//! at another one, from the first event without acknowledgement. Invariants: the kept events and those that
//! wait never occupy more than the front-end buffer; a lost recorder does not delay the streams of others; an
//! event is acknowledged once, or counted as lost.
//!
//! Modules: `kept` (events until they are acknowledged), `places` (where streams are, when to ask), `payload`
//! (bytes that are equal each time) and `identity` (what recorders get to know) are pure; `outlet` (a
//! connection), `errands` (what blocks, in threads of its own), `opening` (first connections), `lane` (the
//! loop), `recovery` (from lost recorders, and the end).
mod errands;
mod identity;
mod kept;
mod lane;
mod opening;
mod outlet;
mod payload;
mod places;
mod recovery;

use std::time::Duration;

use keepup_peer::Endpoint;

pub(super) use opening::open;

/// Recorders of a fleet.
#[derive(Debug, Clone)]
pub struct Fleet {
    /// Addresses of recorders; one that can be reached is enough to find the others.
    pub recorders: Vec<Endpoint>,
    /// Longest time without progress of a stream, after which the source gives up.
    pub patience: Duration,
}

#[cfg(test)]
#[path = "fleet_tests.rs"]
mod tests;
