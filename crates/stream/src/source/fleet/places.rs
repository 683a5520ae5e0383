//! Where each stream of a connection group is, and when to ask for its recorder. Pure.
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use super::kept::ConnectionId;
use crate::wire::Located;

/// Shortest and longest pause between two questions, ns.
const PAUSE_NS: (u64, u64) = (50_000_000, 500_000_000);

/// Place of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It has no recorder.
    None,
    /// A connection to this recorder is being opened.
    Connecting { attempt: u64, address: SocketAddr, begun_ns: u64 },
    /// On a connection.
    Connected { connection: ConnectionId, address: SocketAddr },
    /// The recorder has all its events and its final counts.
    Ended,
}

/// Connection to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) number: u64,
    pub(super) address: SocketAddr,
    pub(super) slots: Vec<usize>,
}

/// What follows from an answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Connections with streams that have another recorder.
    pub(super) leave: Vec<ConnectionId>,
    /// Connections to be opened.
    pub(super) open: Vec<Attempt>,
}

/// Places of the streams.
#[derive(Debug)]
pub(super) struct Places {
    ids: Vec<u32>,
    places: Vec<Place>,
    /// Since when each stream has no connection, ns.
    without_since_ns: Vec<Option<u64>>,
    longest_without_ns: u64,
    attempts: u64,
    ended: usize,
    connected: usize,
    epoch: u64,
    is_asking: bool,
    pause_ns: u64,
    next_ask_ns: u64,
}

impl Places {
    /// Streams with these ids, in order of their slots.
    pub(super) fn new(ids: Vec<u32>) -> Self {
        let count = ids.len();
        Self {
            ids,
            places: vec![Place::None; count],
            without_since_ns: vec![None; count],
            longest_without_ns: 0,
            attempts: 0,
            ended: 0,
            connected: 0,
            epoch: 0,
            is_asking: false,
            pause_ns: PAUSE_NS.0,
            next_ask_ns: 0,
        }
    }

    /// Whether every stream has ended.
    pub(super) fn is_over(&self) -> bool {
        self.ended == self.places.len()
    }

    /// Whether every stream is on a connection or has ended.
    pub(super) fn is_settled(&self) -> bool {
        self.connected + self.ended == self.places.len()
    }

    /// Ids of the streams without a recorder.
    pub(super) fn missing(&self) -> Vec<u32> {
        let missing = self.ids.iter().zip(&self.places).filter(|(_, place)| **place == Place::None);
        missing.map(|(id, _)| *id).collect()
    }

    /// Longest time for which a stream had no connection, ns.
    pub(super) fn longest_without_ns(&self, now_ns: u64) -> u64 {
        let since_ns = self.without_since_ns.iter().flatten().min();
        self.longest_without_ns.max(since_ns.map_or(0, |since_ns| now_ns.saturating_sub(*since_ns)))
    }

    /// First stream that has had no connection for `patience`.
    pub(super) fn given_up(&self, now_ns: u64, patience: Duration) -> Option<u32> {
        let is_over = |since_ns: &Option<u64>| {
            since_ns.is_some_and(|since_ns| u128::from(now_ns.saturating_sub(since_ns)) > patience.as_nanos())
        };
        if self.is_settled() {
            return None;
        }
        self.without_since_ns.iter().position(is_over).map(|slot| self.ids[slot])
    }

    fn set(&mut self, slot: usize, place: Place, now_ns: u64) {
        let (is_connected, is_ended) = (matches!(place, Place::Connected { .. }), place == Place::Ended);
        let old = std::mem::replace(&mut self.places[slot], place);
        self.connected -= usize::from(matches!(old, Place::Connected { .. }));
        self.connected += usize::from(is_connected);
        self.ended += usize::from(is_ended);
        if !is_connected && !is_ended {
            self.without_since_ns[slot].get_or_insert(now_ns);
        } else if let Some(since_ns) = self.without_since_ns[slot].take() {
            self.longest_without_ns = self.longest_without_ns.max(now_ns.saturating_sub(since_ns));
        }
    }

    /// A connection has broken: asks again at once if nothing else is without a connection.
    pub(super) fn lost(&mut self, slots: &[usize], now_ns: u64) {
        if self.is_settled() {
            (self.pause_ns, self.next_ask_ns) = (PAUSE_NS.0, now_ns);
        }
        slots.iter().for_each(|&slot| self.set(slot, Place::None, now_ns));
    }

    /// A connection was opened.
    pub(super) fn connected(
        &mut self,
        slots: &[usize],
        connection: ConnectionId,
        address: SocketAddr,
        now_ns: u64,
    ) {
        slots.iter().for_each(|&slot| self.set(slot, Place::Connected { connection, address }, now_ns));
    }

    /// The recorder has sent its final counts.
    pub(super) fn ended(&mut self, slots: &[usize], now_ns: u64) {
        slots.iter().for_each(|&slot| self.set(slot, Place::Ended, now_ns));
    }

    /// Whether all streams still wait for this attempt. If not, those that do are without a recorder again.
    pub(super) fn accept(&mut self, attempt: &Attempt, now_ns: u64) -> bool {
        let waits =
            |place: &Place| matches!(place, Place::Connecting { attempt: own, .. } if *own == attempt.number);
        let waiting: Vec<usize> =
            attempt.slots.iter().copied().filter(|&slot| waits(&self.places[slot])).collect();
        let is_whole = waiting.len() == attempt.slots.len();
        if !is_whole {
            waiting.into_iter().for_each(|slot| self.set(slot, Place::None, now_ns));
        }
        is_whole
    }

    /// An attempt has failed.
    pub(super) fn failed(&mut self, attempt: &Attempt, now_ns: u64) {
        if self.accept(attempt, now_ns) {
            attempt.slots.iter().for_each(|&slot| self.set(slot, Place::None, now_ns));
        }
    }

    /// Ids of the streams to ask for now, if any: those without a recorder, those of the connections
    /// `stalled`, and those of attempts that have taken longer than `slow_ns`.
    pub(super) fn ask(&mut self, now_ns: u64, stalled: &[ConnectionId], slow_ns: u64) -> Option<Vec<u32>> {
        if self.is_asking || now_ns < self.next_ask_ns || (self.is_settled() && stalled.is_empty()) {
            return None;
        }
        let is_sought = |place: &Place| match place {
            Place::None => true,
            Place::Connecting { begun_ns, .. } => now_ns.saturating_sub(*begun_ns) > slow_ns,
            Place::Connected { connection, .. } => stalled.contains(connection),
            Place::Ended => false,
        };
        let sought = self.ids.iter().zip(&self.places).filter(|(_, place)| is_sought(place));
        let sought: Vec<u32> = sought.map(|(id, _)| *id).collect();
        self.is_asking = !sought.is_empty();
        self.is_asking.then_some(sought)
    }

    /// The question got no answer.
    pub(super) fn unanswered(&mut self, now_ns: u64) {
        self.is_asking = false;
        self.next_ask_ns = now_ns + self.pause_ns;
        self.pause_ns = (2 * self.pause_ns).min(PAUSE_NS.1);
    }

    /// Handles an answer. Streams of a connection move if one of them has another recorder.
    pub(super) fn located(&mut self, located: &Located, now_ns: u64) -> Changes {
        self.unanswered(now_ns);
        let mut changes = Changes::default();
        if located.epoch < self.epoch {
            return changes;
        }
        self.epoch = located.epoch;
        let addresses: BTreeMap<u32, SocketAddr> =
            located.streams.iter().map(|stream| (stream.id, stream.address)).collect();
        for (id, place) in self.ids.iter().zip(&self.places) {
            let Some(wanted) = addresses.get(id) else { continue };
            if let Place::Connected { connection, address } = place
                && address != wanted
                && !changes.leave.contains(connection)
            {
                changes.leave.push(*connection);
            }
        }
        let mut groups: BTreeMap<SocketAddr, Vec<usize>> = BTreeMap::new();
        for (slot, (id, place)) in self.ids.iter().zip(&self.places).enumerate() {
            let Some(wanted) = addresses.get(id) else { continue };
            let moves = match place {
                Place::None => true,
                Place::Connecting { address, .. } => address != wanted,
                Place::Connected { connection, .. } => changes.leave.contains(connection),
                Place::Ended => false,
            };
            if moves {
                groups.entry(*wanted).or_default().push(slot);
            }
        }
        let leaves = |place: &Place| match place {
            Place::Connected { connection, .. } => changes.leave.contains(connection),
            Place::None | Place::Connecting { .. } | Place::Ended => false,
        };
        let left: Vec<usize> = (0..self.places.len()).filter(|&slot| leaves(&self.places[slot])).collect();
        left.into_iter().for_each(|slot| self.set(slot, Place::None, now_ns));
        for (address, slots) in groups {
            self.attempts += 1;
            let number = self.attempts;
            for &slot in &slots {
                self.set(slot, Place::Connecting { attempt: number, address, begun_ns: now_ns }, now_ns);
            }
            changes.open.push(Attempt { number, address, slots });
        }
        changes
    }
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
