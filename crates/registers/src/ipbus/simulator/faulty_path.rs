//! One direction of a simulated faulty network: drops, duplicates and reorders datagrams.
use std::net::SocketAddr;

use super::HELD_MAX;
use super::faults::{EveryNth, Faults};

/// Receiver of the datagrams that have passed.
pub(super) type Deliver<'a> = dyn FnMut(SocketAddr, &[u8]) + 'a;

/// Counters of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PathCounters {
    pub(super) dropped: u64,
    pub(super) duplicated: u64,
    pub(super) reordered: u64,
}

/// One direction of a faulty network.
pub(super) struct FaultyPath {
    drop: EveryNth,
    duplicate: EveryNth,
    reorder: EveryNth,
    /// Datagram that the next one should overtake, with its latest delivery time.
    held: Option<(u64, SocketAddr, Vec<u8>)>,
    counters: PathCounters,
}

impl FaultyPath {
    pub(super) fn new(faults: &Faults, drop: u32, random: &mut fastrand::Rng) -> Self {
        Self {
            drop: EveryNth::new(drop, random),
            duplicate: EveryNth::new(faults.duplicate, random),
            reorder: EveryNth::new(faults.reorder, random),
            held: None,
            counters: PathCounters::default(),
        }
    }

    pub(super) fn counters(&self) -> PathCounters {
        self.counters
    }

    /// Passes a datagram, and delivers all datagrams that arrive now.
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

    /// Latest delivery time of the held-back datagram.
    pub(super) fn due_ns(&self) -> Option<u64> {
        self.held.as_ref().map(|(due_ns, ..)| *due_ns)
    }

    /// Delivers the held-back datagram if its time has come.
    pub(super) fn release(&mut self, now_ns: u64, deliver: &mut Deliver<'_>) {
        if self.due_ns().is_some_and(|due_ns| due_ns <= now_ns)
            && let Some((_, peer, datagram)) = self.held.take()
        {
            deliver(peer, &datagram);
        }
    }
}

#[cfg(test)]
#[path = "faulty_path_tests.rs"]
mod tests;
