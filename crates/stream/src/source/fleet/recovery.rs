//! How the streams of a connection group come to a recorder again, and how they end.
use keepup_peer::Endpoint;

use super::errands::Done;
use super::kept::{ConnectionId, Position};
use super::lane::{FleetLane, Parts};
use super::outlet::Outlet;
use super::places::Attempt;
use crate::client::{Client, ClientError};
use crate::wire::{Continued, End, Located, Welcome};

/// Time without progress of a connection or an attempt after which recorders are asked whether its streams
/// have moved, ns. Recorders acknowledge about every 500 ms.
const STALL_NS: u64 = 700_000_000;
/// Time without progress after which a connection is opened again, even to the same recorder, ns.
const STALE_NS: u64 = 5_000_000_000;
/// Interval at which patience is checked, ns.
const CHECK_NS: u64 = 100_000_000;
/// Most addresses that are kept from answers.
const KNOWN_MAX: usize = 1024;

impl FleetLane<'_> {
    /// Handles errands that are done.
    pub(super) fn take_errands(&mut self, now_ns: u64) {
        while let Some(done) = self.errands.next() {
            match done {
                Done::Located(Ok(located)) => self.follow(&located, now_ns),
                Done::Located(Err(error)) => {
                    self.last_error = Some(error);
                    self.parts.places.unanswered(now_ns);
                }
                Done::Connected(attempt, result) => {
                    let attached = (*result).and_then(|opened| self.attach(&attempt, opened, now_ns));
                    if let Err(error) = attached {
                        self.last_error = Some(error);
                        self.parts.places.failed(&attempt, now_ns);
                    }
                }
                Done::Ended(slots, Ok(_)) => self.parts.places.ended(&slots, now_ns),
                Done::Ended(slots, Err(error)) => {
                    self.last_error = Some(error);
                    self.parts.places.lost(&slots, now_ns);
                }
            }
        }
    }

    /// Serves a new connection, unless its streams have gone elsewhere meanwhile.
    fn attach(
        &mut self,
        attempt: &Attempt,
        (client, welcome): (Client, Welcome),
        now_ns: u64,
    ) -> Result<(), ClientError> {
        let Parts { identity, places, kept, pace, outlets, .. } = &mut self.parts;
        identity.check(&welcome)?;
        if !places.accept(attempt, now_ns) {
            return Ok(());
        }
        let (number, address) = (self.next_number, attempt.address);
        let outlet = Outlet::new(number, address, attempt.slots.clone(), client, now_ns);
        let positions: Vec<(usize, Position)> = outlet.positions().collect();
        pace.front.release(kept.attach(number, address, &positions, now_ns)?);
        places.connected(&attempt.slots, number, address, now_ns);
        outlets.push(outlet);
        self.next_number += 1;
        Ok(())
    }

    /// Leaves connections whose streams have moved, and opens others.
    fn follow(&mut self, located: &Located, now_ns: u64) {
        if self.known.len() < KNOWN_MAX {
            self.known.extend(located.streams.iter().map(|stream| stream.address));
        }
        let changes = self.parts.places.located(located, now_ns);
        for number in changes.leave {
            let index = self.parts.outlets.iter().position(|outlet| outlet.number == number);
            index.into_iter().for_each(|index| drop(self.drop_outlet(index, now_ns)));
        }
        if changes.open.is_empty()
            && let Some(&stream) = self.parts.places.missing().first()
        {
            self.last_error = Some(ClientError::Unassigned { stream });
        }
        for attempt in changes.open {
            let mut hello = self.parts.identity.hello(&attempt.slots);
            let streams = hello.streams.iter().zip(&attempt.slots);
            hello.continued = streams
                .map(|(info, &slot)| Continued {
                    id: info.id,
                    next_sequence: self.parts.kept.durable_next(slot),
                })
                .collect();
            if self.errands.connect(attempt.clone(), hello).is_err() {
                self.parts.places.failed(&attempt, now_ns);
            }
        }
    }

    /// A connection has failed.
    pub(super) fn lose_outlet(&mut self, index: usize, error: ClientError, now_ns: u64) {
        self.last_error = Some(error);
        let outlet = self.drop_outlet(index, now_ns);
        self.parts.places.lost(&outlet.slots, now_ns);
    }

    /// Asks for the recorders of streams without one, and of streams without progress.
    pub(super) fn seek(&mut self, now_ns: u64) {
        let waited_ns = |outlet: &Outlet| now_ns.saturating_sub(outlet.progress_ns);
        let stale = self.parts.outlets.iter().position(|outlet| waited_ns(outlet) > STALE_NS);
        if let Some(index) = stale {
            let waited = std::time::Duration::from_nanos(STALE_NS);
            let error = self.parts.outlets[index].client.timed_out("send to", waited);
            self.lose_outlet(index, error, now_ns);
        }
        let stalled = self.parts.outlets.iter().filter(|outlet| waited_ns(outlet) > STALL_NS);
        let stalled: Vec<ConnectionId> = stalled.map(|outlet| outlet.number).collect();
        let Some(streams) = self.parts.places.ask(now_ns, &stalled, STALL_NS) else { return };
        let recorders = self.candidates(&stalled);
        if self.errands.ask(recorders, self.parts.identity.question(streams)).is_err() {
            self.parts.places.unanswered(now_ns);
        }
    }

    /// Recorders to ask, in order: first those that answer, and each time another one first.
    fn candidates(&mut self, stalled: &[ConnectionId]) -> Vec<Endpoint> {
        self.questions += 1;
        let outlets = self.parts.outlets.iter();
        let healthy = outlets.filter(|outlet| !stalled.contains(&outlet.number));
        let mut first: Vec<Endpoint> = healthy.map(|outlet| Endpoint::from(outlet.address)).collect();
        let mut others = self.parts.fleet.recorders.clone();
        others.extend(self.known.iter().map(|address| Endpoint::from(*address)));
        for list in [&mut first, &mut others] {
            let turn = self.questions % list.len().max(1);
            list.rotate_left(turn);
        }
        let mut seen = Vec::new();
        for candidate in first.into_iter().chain(others) {
            if !seen.iter().any(|other: &Endpoint| other.address() == candidate.address()) {
                seen.push(candidate);
            }
        }
        seen
    }

    /// # Errors
    /// A stream has had no recorder, or no acknowledgement, for too long.
    pub(super) fn check_patience(&mut self, now_ns: u64) -> Result<(), ClientError> {
        if now_ns < self.next_check_ns {
            return Ok(());
        }
        self.next_check_ns = now_ns + CHECK_NS;
        let Parts { places, kept, fleet, .. } = &self.parts;
        let waited = fleet.patience;
        let stream = places.given_up(now_ns, waited).or_else(|| kept.overdue(now_ns, waited));
        let Some(stream) = stream else { return Ok(()) };
        let last = Box::new(self.last_error.take().unwrap_or(ClientError::Unassigned { stream }));
        Err(ClientError::NoRecorder { stream, waited, last })
    }

    /// Ends all connections, once everything is acknowledged.
    pub(super) fn end_all(&mut self, now_ns: u64) {
        for index in (0..self.parts.outlets.len()).rev() {
            if self.parts.outlets[index].has_bytes() {
                continue;
            }
            let Parts { outlets, pace, kept, .. } = &mut self.parts;
            let ends = outlets[index].slots.iter().map(|&slot| {
                let next_sequence = pace.front.streams()[slot].next_sequence;
                let tail_bytes = pace.front.payload_bytes(slot, kept.next_sequence(slot)..next_sequence);
                kept.end(slot, next_sequence, tail_bytes)
            });
            let end = End { streams: ends.collect() };
            let outlet = self.drop_outlet(index, now_ns);
            if self.errands.end(outlet.client, outlet.slots.clone(), end).is_err() {
                self.parts.places.lost(&outlet.slots, now_ns);
            }
        }
    }
}
