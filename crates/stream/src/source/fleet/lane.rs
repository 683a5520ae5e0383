//! Loop of a connection group: takes due events and serves all connections.
//!
//! Invariants: nothing here waits for a single recorder; the schedule continues whatever the recorders do.
use std::collections::BTreeSet;
use std::net::SocketAddr;

use hdrhistogram::Histogram;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::super::FleetReport;
use super::super::clock::Clock;
use super::super::lane::{HOUSEKEEPING_NS, LaneReport, Pace, REST_NS_MAX, Shared};
use super::Fleet;
use super::errands::Errands;
use super::identity::Identity;
use super::kept::{Kept, Outgoing};
use super::outlet::{Builder, Outlet};
use super::payload::Payload;
use super::places::Places;
use crate::client::{ClientError, Waits};

/// Longest wait while an errand is running or a stream has no recorder, ns.
const BUSY_NS: u64 = 2_000_000;
/// Bytes that a closed loop takes before the connections get their turn.
const CLOSED_LOOP_BYTES: u64 = 1 << 20;

/// A connection group, ready to start.
pub(in super::super) struct FleetLane<'a> {
    pub(super) parts: Parts<'a>,
    pub(super) errands: Errands,
    /// Number of the next connection.
    pub(super) next_number: u64,
    /// Recorders that answers have named.
    pub(super) known: BTreeSet<SocketAddr>,
    /// Number of questions.
    pub(super) questions: usize,
    pub(super) last_error: Option<ClientError>,
    /// When patience is checked next, ns.
    pub(super) next_check_ns: u64,
    /// When all answers are read next, ns.
    housekeeping_ns: u64,
    idle_ns: u64,
    /// When the schedule was not over or an event was sent, ns.
    ended_ns: u64,
    /// Waits of connections that are closed.
    waits: Waits,
}

/// What a connection group starts with.
pub(super) struct Parts<'a> {
    pub(super) shared: Shared<'a>,
    pub(super) fleet: &'a Fleet,
    pub(super) identity: Identity,
    pub(super) pace: Pace<'a>,
    pub(super) kept: Kept,
    pub(super) places: Places,
    pub(super) payload: Payload,
    pub(super) outlets: Vec<Outlet>,
    pub(super) lateness_ns: Histogram<u64>,
}

impl<'a> FleetLane<'a> {
    pub(super) fn new(parts: Parts<'a>) -> Self {
        Self {
            next_number: parts.outlets.len() as u64,
            known: parts.outlets.iter().map(|outlet| outlet.address).collect(),
            parts,
            errands: Errands::new(),
            questions: 0,
            last_error: None,
            next_check_ns: 0,
            housekeeping_ns: 0,
            idle_ns: 0,
            ended_ns: 0,
            waits: Waits::default(),
        }
    }

    /// Sends the whole schedule, and waits until everything is acknowledged and every recorder has sent its
    /// final counts.
    pub(in super::super) fn run(mut self, clock: &Clock) -> LaneReport {
        let sent = self.send_all(clock);
        let now_ns = clock.now_ns();
        while !self.parts.outlets.is_empty() {
            self.drop_outlet(0, now_ns);
        }
        let Parts { mut pace, mut kept, places, lateness_ns, .. } = self.parts;
        let front = &mut pace.front;
        kept.give_up(|event, was_sent| {
            front.release(event.occupied_bytes());
            if !was_sent {
                front.count_lost(event);
            }
        });
        front.discard();
        let blocked_ns = self.waits.total_ns;
        let cpu_ns = pace.publish_last(now_ns, blocked_ns);
        let fleet = FleetReport {
            acknowledged: kept.acknowledged,
            lost_at_recorders: kept.lost_at_recorders,
            sent_again: kept.sent_again,
            moved_streams: kept.moves,
            longest_without_recorder_ns: places.longest_without_ns(now_ns),
        };
        LaneReport {
            streams: pace.front.streams().to_vec(),
            bye: Vec::new(),
            durable_events: fleet.durable_events(),
            lateness_ns,
            longest_blocked_ns: self.waits.longest_ns,
            blocked_ns,
            idle_ns: self.idle_ns,
            cpu_ns,
            ended_ns: self.ended_ns,
            max_backlog_bytes: pace.front.max_backlog_bytes(),
            fleet: Some(fleet),
            error: sent.err(),
        }
    }

    fn send_all(&mut self, clock: &Clock) -> Result<(), ClientError> {
        clock.sleep_until(0);
        let mut batch_ns = 0;
        while !self.parts.places.is_over() {
            let now_ns = clock.now_ns();
            self.parts.pace.tick(now_ns);
            let has_taken = self.take_due(now_ns);
            if has_taken {
                batch_ns = now_ns;
            }
            self.take_errands(now_ns);
            self.serve(now_ns, clock);
            self.seek(now_ns);
            self.check_patience(now_ns)?;
            let change_ns = self.parts.pace.front.next_change_ns(now_ns);
            if change_ns.is_some() || has_taken {
                self.ended_ns = now_ns;
            }
            if change_ns.is_none() && !has_taken && self.parts.kept.is_empty() {
                self.end_all(now_ns);
            }
            let blocked_ns = self.blocked_ns(now_ns);
            self.parts.pace.publish(now_ns, blocked_ns);
            self.wait(change_ns, has_taken, batch_ns, clock);
        }
        Ok(())
    }

    /// Takes events that are due; `true` if there were any. In a closed loop, as many as have space.
    fn take_due(&mut self, now_ns: u64) -> bool {
        let Parts { pace, kept, .. } = &mut self.parts;
        let front = &mut pace.front;
        let is_closed_loop = front.is_closed_loop();
        let mut taken_bytes = 0;
        while let Some(event) = front.peek(now_ns) {
            if is_closed_loop && (taken_bytes >= CLOSED_LOOP_BYTES || !front.has_space(&event)) {
                break;
            }
            let gap_bytes = front.payload_bytes(event.slot, kept.next_sequence(event.slot)..event.sequence);
            front.keep(&event);
            kept.push(&event, gap_bytes, now_ns);
            taken_bytes += event.occupied_bytes();
        }
        taken_bytes > 0
    }

    /// Reads the answers of all connections and sends what they take.
    fn serve(&mut self, now_ns: u64, clock: &Clock) {
        let reads_all = now_ns >= self.housekeeping_ns;
        if reads_all {
            self.housekeeping_ns = now_ns + HOUSEKEEPING_NS;
        }
        for index in (0..self.parts.outlets.len()).rev() {
            if let Err(error) = self.serve_outlet(index, reads_all, now_ns, clock) {
                self.lose_outlet(index, error, now_ns);
            }
        }
    }

    fn serve_outlet(
        &mut self,
        index: usize,
        reads_all: bool,
        now_ns: u64,
        clock: &Clock,
    ) -> Result<(), ClientError> {
        let Parts { outlets, pace, kept, payload, lateness_ns, .. } = &mut self.parts;
        let (outlet, front) = (&mut outlets[index], &mut pace.front);
        if std::mem::take(&mut outlet.is_readable) || reads_all {
            outlet.client.poll_acks()?;
            front.release(outlet.acknowledge(kept, now_ns));
        }
        let ended_ns = &mut self.ended_ns;
        let mut on_sent = |outgoing: &Outgoing| {
            *ended_ns = now_ns;
            if outgoing.is_again {
                return;
            }
            front.count_sent(&outgoing.event);
            if !front.is_closed_loop() {
                lateness_ns.saturating_record(now_ns.saturating_sub(outgoing.event.due_ns));
            }
        };
        outlet.pump(now_ns, &mut Builder { kept, payload, clock }, &mut on_sent)
    }

    /// Closes a connection, after the acknowledgements that have arrived. Its streams keep their places.
    pub(super) fn drop_outlet(&mut self, index: usize, now_ns: u64) -> Outlet {
        let Parts { outlets, pace, kept, .. } = &mut self.parts;
        let mut outlet = outlets.swap_remove(index);
        pace.front.release(outlet.acknowledge(kept, now_ns));
        kept.detach(outlet.number, &outlet.slots);
        self.waits.total_ns = self.waits.total_ns.saturating_add(outlet.blocked_ns(now_ns));
        self.waits.longest_ns = self.waits.longest_ns.max(outlet.longest_blocked_ns(now_ns));
        outlet
    }

    /// Time spent waiting for space in sockets, ns.
    fn blocked_ns(&self, now_ns: u64) -> u64 {
        let current = self.parts.outlets.iter().map(|outlet| outlet.blocked_ns(now_ns));
        current.fold(self.waits.total_ns, u64::saturating_add)
    }

    /// Waits until a recorder answers or takes bytes, an event is due, or it is time to look around.
    fn wait(&mut self, change_ns: Option<u64>, has_taken: bool, batch_ns: u64, clock: &Clock) {
        let is_settled = self.parts.places.is_settled() && !self.errands.is_running();
        let Parts { outlets, kept, pace, shared, .. } = &mut self.parts;
        let is_closed_loop = pace.front.is_closed_loop();
        let can_send =
            |outlet: &Outlet| !outlet.is_blocked() && (outlet.has_bytes() || kept.has_unsent(outlet.number));
        if (is_closed_loop && has_taken) || outlets.iter().any(can_send) {
            return;
        }
        let now_ns = clock.now_ns();
        let mut until_ns = now_ns + if is_settled { REST_NS_MAX } else { BUSY_NS };
        if let Some(change_ns) = change_ns.filter(|_| !is_closed_loop) {
            until_ns = until_ns.min(change_ns.max(batch_ns.saturating_add(shared.coalesce_ns)));
        }
        let flags = |outlet: &Outlet| match outlet.is_blocked() {
            true => PollFlags::IN | PollFlags::OUT,
            false => PollFlags::IN,
        };
        let mut ready: Vec<PollFd<'_>> =
            outlets.iter().map(|outlet| PollFd::new(outlet, flags(outlet))).collect();
        let nanoseconds = until_ns.saturating_sub(now_ns).min(REST_NS_MAX);
        let timeout = Timespec { tv_sec: 0, tv_nsec: nanoseconds as i64 };
        // An interrupted wait is a short one; errors of a socket show when it is used.
        let _ = poll(&mut ready, Some(&timeout));
        let is_readable: Vec<bool> =
            ready.iter().map(|fd| !fd.revents().difference(PollFlags::OUT).is_empty()).collect();
        for (outlet, is_readable) in outlets.iter_mut().zip(is_readable) {
            outlet.is_readable |= is_readable;
        }
        if !outlets.iter().any(Outlet::is_blocked) {
            self.idle_ns += clock.now_ns().saturating_sub(now_ns);
        }
    }
}
