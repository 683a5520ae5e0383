//! Account of packets that are not recorded, for the recorder.
use std::collections::BTreeMap;
use std::net::SocketAddr;

use keepup_stream::rejected::{RejectReason, RejectUnit, Rejection};

/// Most entries between two calls of [`Tally::take`].
const ENTRIES_MAX: usize = 64;

/// Which packets: of whom, and why they are not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Subject {
    pub(super) sender: Option<SocketAddr>,
    pub(super) reason: RejectReason,
    pub(super) unit: RejectUnit,
    /// Whether the sender is neither admitted nor named.
    pub(super) is_foreign: bool,
}

/// Packets that are not recorded, and those that arrived twice.
#[derive(Debug, Default)]
pub(super) struct Tally {
    rejected: BTreeMap<Subject, (u64, String)>,
    /// Packets and heaps that are copies of recorded ones.
    pub(super) duplicates: u64,
    pub(super) duplicate_heaps: u64,
}

impl Tally {
    /// Enters packets or heaps; `detail` of the first ones of a subject is kept.
    pub(super) fn reject(&mut self, subject: Subject, count: u64, detail: impl FnOnce() -> String) {
        let mut subject = subject;
        if subject.is_foreign {
            // Ports of a scan are not senders of their own.
            subject.sender = subject.sender.map(|sender| SocketAddr::new(sender.ip(), 0));
        }
        if self.rejected.len() >= ENTRIES_MAX && !self.rejected.contains_key(&subject) {
            subject.sender = None;
        }
        let (counted, _) = self.rejected.entry(subject).or_insert_with(|| (0, detail()));
        *counted = counted.saturating_add(count);
    }

    /// What was entered since the last call.
    pub(super) fn take(&mut self) -> Vec<Rejection> {
        let rejected = std::mem::take(&mut self.rejected).into_iter();
        let rejection = |(subject, (count, detail)): (Subject, (u64, String))| Rejection {
            sender: subject.sender.map(|sender| match subject.is_foreign {
                true => sender.ip().to_string(),
                false => sender.to_string(),
            }),
            reason: subject.reason,
            unit: subject.unit,
            count,
            is_foreign: subject.is_foreign,
            detail,
        };
        rejected.filter(|(_, (count, _))| *count > 0).map(rejection).collect()
    }
}
