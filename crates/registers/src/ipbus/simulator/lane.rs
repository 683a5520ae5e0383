//! One direction of a bad network: drops, repeats and delays some of what passes.
use std::net::SocketAddr;

use super::HELD_MAX;
use super::faults::{Faults, Nth};

/// Who takes what has passed.
pub(super) type Deliver<'a> = dyn FnMut(SocketAddr, &[u8]) + 'a;

/// What happened on a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LaneCounters {
    pub(super) dropped: u64,
    pub(super) duplicated: u64,
    pub(super) reordered: u64,
}

/// One direction.
pub(super) struct Lane {
    drop: Nth,
    duplicate: Nth,
    reorder: Nth,
    /// What waits for the next to overtake it, and until when.
    held: Option<(u64, SocketAddr, Vec<u8>)>,
    counters: LaneCounters,
}

impl Lane {
    pub(super) fn new(faults: &Faults, drop: u32, random: &mut fastrand::Rng) -> Self {
        Self {
            drop: Nth::new(drop, random),
            duplicate: Nth::new(faults.duplicate, random),
            reorder: Nth::new(faults.reorder, random),
            held: None,
            counters: LaneCounters::default(),
        }
    }

    pub(super) fn counters(&self) -> LaneCounters {
        self.counters
    }

    /// Takes a datagram, and delivers what comes out at the other end now.
    pub(super) fn pass(&mut self, peer: SocketAddr, datagram: &[u8], now_ns: u64, deliver: &mut Deliver<'_>) {
        if self.drop.is_now() {
            self.counters.dropped += 1;
            return;
        }
        let is_overtaken = self.reorder.is_now();
        if is_overtaken && self.held.is_none() {
            self.held = Some((now_ns + HELD_MAX.as_nanos() as u64, peer, datagram.to_vec()));
            return;
        }
        deliver(peer, datagram);
        if self.duplicate.is_now() {
            self.counters.duplicated += 1;
            deliver(peer, datagram);
        }
        if let Some((_, peer, datagram)) = self.held.take() {
            self.counters.reordered += 1;
            deliver(peer, &datagram);
        }
    }

    /// When what is held back is delivered although nothing has overtaken it.
    pub(super) fn due_ns(&self) -> Option<u64> {
        self.held.as_ref().map(|(due_ns, ..)| *due_ns)
    }

    /// Delivers what has been held back for long enough.
    pub(super) fn release(&mut self, now_ns: u64, deliver: &mut Deliver<'_>) {
        if self.due_ns().is_some_and(|due_ns| due_ns <= now_ns)
            && let Some((_, peer, datagram)) = self.held.take()
        {
            deliver(peer, &datagram);
        }
    }
}

#[cfg(test)]
#[path = "lane_tests.rs"]
mod tests;
