//! Account of packets that are not recorded, for the recorder.
use std::collections::BTreeMap;
use std::net::SocketAddr;

use keepup_stream::rejected::{RejectReason, RejectUnit, Rejection};

use super::admission::Flow;

/// Most senders of which it is not decided whether they are foreign.
const UNDECIDED_MAX: usize = 64;
/// How long a sender may take to be admitted after its first packet that is not recorded, ns. After that, it
/// is foreign.
const DECISION_NS: u64 = 1_000_000_000;
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

/// Packets of a sender that may be admitted later.
#[derive(Debug, Default)]
struct Undecided {
    /// Time of the first tick after the first of them, monotonic ns.
    since_ns: Option<u64>,
    packets: BTreeMap<RejectReason, (u64, String)>,
}

/// Packets that are not recorded, and those that arrived twice.
#[derive(Debug, Default)]
pub(super) struct Tally {
    rejected: BTreeMap<Subject, (u64, String)>,
    undecided: BTreeMap<Flow, Undecided>,
    /// Time of the last tick, monotonic ns.
    now_ns: u64,
    /// Packets and heaps that are copies of recorded ones.
    pub(super) duplicates: u64,
    pub(super) duplicate_heaps: u64,
}

impl Undecided {
    fn is_over(&self, now_ns: u64) -> bool {
        self.since_ns.is_some_and(|since_ns| now_ns.saturating_sub(since_ns) >= DECISION_NS)
    }
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

    /// Enters a packet of a sender that is not admitted, and may be later.
    pub(super) fn reject_undecided(
        &mut self,
        flow: Flow,
        reason: RejectReason,
        detail: impl FnOnce() -> String,
    ) {
        if self.undecided.len() >= UNDECIDED_MAX && !self.undecided.contains_key(&flow) {
            let (sender, unit) = (flow.sender, RejectUnit::Packet);
            return self.reject(Subject { sender, reason, unit, is_foreign: true }, 1, detail);
        }
        let packets = &mut self.undecided.entry(flow).or_default().packets;
        let (counted, _) = packets.entry(reason).or_insert_with(|| (0, detail()));
        *counted = counted.saturating_add(1);
    }

    /// Takes the time.
    pub(super) fn tick(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        self.undecided.values_mut().for_each(|undecided| {
            undecided.since_ns.get_or_insert(now_ns);
        });
    }

    /// Whether a sender has become foreign.
    pub(super) fn has_due(&self) -> bool {
        self.undecided.values().any(|undecided| undecided.is_over(self.now_ns))
    }

    /// Decides which senders are foreign: those that were not admitted in time, or at the end.
    pub(super) fn decide(&mut self, is_admitted: impl Fn(&Flow) -> bool, is_end: bool) {
        if self.undecided.is_empty() {
            return;
        }
        for (flow, undecided) in std::mem::take(&mut self.undecided) {
            let is_foreign = !is_admitted(&flow);
            if is_foreign && !is_end && !undecided.is_over(self.now_ns) {
                self.undecided.insert(flow, undecided);
                continue;
            }
            for (reason, (count, detail)) in undecided.packets {
                let (sender, unit) = (flow.sender, RejectUnit::Packet);
                self.reject(Subject { sender, reason, unit, is_foreign }, count, || detail);
            }
        }
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
