//! Lane: one connection of the source and its thread, which waits for due events, sends them and
//! counts.
//!
//! Invariants: the schedule continues while the socket is full (events become due, fill the
//! buffer, are lost), and the live counters show it; the thread sleeps when there is nothing to
//! send; after the start it does not allocate, except when the buffer's list of ranges grows.

use std::io::IoSlice;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use hdrhistogram::Histogram;

use keepup_measure::sum::Sums;

use super::clock::{Clock, thread_cpu_ns};
use super::event::Event;
use super::fill::{BATCH_SLICES_MAX, Fill};
use super::frontend::{FrontEnd, Totals};
use super::link::Link;
use super::{FleetReport, SourceCounters, StreamReport};
use crate::client::{ClientError, Sent};
use crate::wire::ByeStream;

/// Time to send what is in the buffer at the end of the schedule, ns; then the rest counts as
/// lost.
const GRACE_NS: u64 = 5_000_000_000;
/// Additional time for a partly sent event, ns: without its rest the connection cannot end in
/// order.
const HALF_SENT_NS: u64 = 25_000_000_000;
/// Timeout for the bye: the recorder flushes everything before it.
const BYE_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest sleep without checking `stop` and the recorder's answers, ns.
pub(super) const REST_NS_MAX: u64 = 50_000_000;
/// Interval for reading the recorder's answers and the thread's CPU time while sending, ns.
pub(super) const HOUSEKEEPING_NS: u64 = 10_000_000;

/// State shared by the lanes of a source.
#[derive(Clone, Copy)]
pub(super) struct Shared<'a> {
    /// Set by the owner of the source.
    pub(super) stop: &'a AtomicBool,
    /// Set when another connection broke.
    pub(super) abort: &'a AtomicBool,
    pub(super) live: &'a SourceCounters,
    /// Longest delay of due events so that they share a system call, ns.
    pub(super) coalesce_ns: u64,
}

/// One connection, ready to start.
pub(super) struct Lane<'a> {
    shared: Shared<'a>,
    link: Box<dyn Link>,
    fill: Fill,
    pace: Pace<'a>,
    lateness_ns: Histogram<u64>,
    idle_ns: u64,
}

/// Report of one connection.
pub(super) struct LaneReport {
    pub(super) streams: Vec<StreamReport>,
    pub(super) bye: Vec<ByeStream>,
    pub(super) durable_events: u64,
    pub(super) lateness_ns: Histogram<u64>,
    pub(super) longest_blocked_ns: u64,
    pub(super) blocked_ns: u64,
    pub(super) idle_ns: u64,
    pub(super) cpu_ns: u64,
    pub(super) ended_ns: u64,
    pub(super) max_backlog_bytes: u64,
    /// Of a source of a fleet.
    pub(super) fleet: Option<FleetReport>,
    pub(super) error: Option<ClientError>,
}

impl<'a> Lane<'a> {
    pub(super) fn new(
        shared: Shared<'a>,
        link: Box<dyn Link>,
        front: FrontEnd,
        fill: Fill,
        lateness_ns: Histogram<u64>,
    ) -> Lane<'a> {
        let pace = Pace::new(shared, front);
        Lane { shared, link, fill, pace, lateness_ns, idle_ns: 0 }
    }

    /// Sends the whole schedule and end, and waits for the bye.
    pub(super) fn run(mut self, clock: &Clock) -> LaneReport {
        let sent = self.send_all(clock);
        if sent.is_err() {
            self.pace.front.discard();
        }
        let ended_ns = clock.now_ns();
        let Lane { link, mut pace, lateness_ns, idle_ns, .. } = self;
        let (blocked_ns, longest_blocked_ns) = link.blocked_ns();
        let streams = pace.front.streams().to_vec();
        let mut durable_events = link.durable_events(&streams);
        let bye = sent.and_then(|()| link.finish(&streams, BYE_TIMEOUT));
        let cpu_ns = pace.publish_last(ended_ns, blocked_ns);
        let (bye, error) = match bye {
            Ok(bye) => {
                durable_events = bye.streams.iter().map(|s| s.durable_events).saturating_sum();
                (bye.streams, None)
            }
            Err(error) => (Vec::new(), Some(error)),
        };
        LaneReport {
            streams,
            bye,
            durable_events,
            lateness_ns,
            longest_blocked_ns,
            blocked_ns,
            idle_ns,
            cpu_ns,
            ended_ns,
            max_backlog_bytes: pace.front.max_backlog_bytes(),
            fleet: None,
            error,
        }
    }

    fn send_all(&mut self, clock: &Clock) -> Result<(), ClientError> {
        clock.sleep_until(0);
        let (mut batch_ns, mut housekeeping_ns) = (0, 0);
        loop {
            let now_ns = clock.now_ns();
            self.pace.tick(now_ns);
            if self.pace.is_closed_for(now_ns, GRACE_NS) {
                self.pace.front.discard();
            }
            if now_ns >= housekeeping_ns {
                housekeeping_ns = now_ns + HOUSEKEEPING_NS;
                self.link.poll()?;
                self.pace.publish(now_ns, self.link.blocked_ns().0);
            }
            if self.pace.front.peek(now_ns).is_some() {
                batch_ns = now_ns;
                self.send_batch(now_ns, clock)?;
                continue;
            }
            self.pace.publish(now_ns, self.link.blocked_ns().0);
            let Some(change_ns) = self.pace.front.next_change_ns(now_ns) else {
                return Ok(());
            };
            let wake_ns = change_ns.max(batch_ns.saturating_add(self.shared.coalesce_ns));
            clock.sleep_until(wake_ns.min(now_ns + REST_NS_MAX));
            self.idle_ns += clock.now_ns() - now_ns;
        }
    }

    /// Sends the next event and those behind it that fit one system call.
    fn send_batch(&mut self, now_ns: u64, clock: &Clock) -> Result<(), ClientError> {
        let Some(mut credit) = self.pace.credit(self.link.as_mut(), clock)? else {
            self.pace.front.discard();
            return Ok(());
        };
        // A closed loop may have been stopped while the recorder took nothing: then no event is due.
        let Some(first) = self.pace.front.peek(now_ns) else { return Ok(()) };
        if self.fill.is_large(&first) {
            return self.send_large(&first, now_ns, clock);
        }
        let Lane { link, fill, pace, .. } = &mut *self;
        fill.begin(first.bytes);
        let mut next = Some(first);
        while let Some(event) = next.filter(|event| credit > 0 && fill.fits(event.bytes)) {
            pace.front.take(event);
            fill.add(&event, clock.unix_ns(event.due_ns), link.as_ref());
            credit -= 1;
            next = pace.front.peek(now_ns);
        }
        link.spend(pace.front.in_flight().len() as u64);
        self.enter_lateness(clock.now_ns());
        let Lane { link, fill, pace, .. } = self;
        let mut slices = [IoSlice::new(&[]); BATCH_SLICES_MAX];
        let count = fill.slices(&mut slices);
        pace.send(link.as_mut(), clock, &mut slices[..count])?;
        pace.front.confirm();
        Ok(())
    }

    /// Sends a large event, piece by piece.
    fn send_large(&mut self, event: &Event, now_ns: u64, clock: &Clock) -> Result<(), ClientError> {
        self.pace.front.take(*event);
        self.link.spend(1);
        self.enter_lateness(now_ns);
        let Lane { link, fill, pace, .. } = self;
        let (header, mut from) = fill.begin_large(event, clock.unix_ns(event.due_ns), link.as_ref());
        pace.send(link.as_mut(), clock, &mut [IoSlice::new(&header)])?;
        while from < event.bytes {
            let piece = fill.piece(event, from);
            from += piece.len() as u64;
            pace.send(link.as_mut(), clock, &mut [IoSlice::new(piece)])?;
        }
        let mut trailer = Vec::new();
        link.put_trailer(event, clock.unix_ns(event.due_ns), &mut trailer);
        pace.send(link.as_mut(), clock, &mut [IoSlice::new(&trailer)])?;
        pace.front.confirm();
        Ok(())
    }

    fn enter_lateness(&mut self, begin_ns: u64) {
        if self.pace.front.is_closed_loop() {
            return;
        }
        for event in self.pace.front.in_flight() {
            self.lateness_ns.saturating_record(begin_ns.saturating_sub(event.due_ns));
        }
    }
}

/// Called while the recorder blocks; `Break` gives up.
type OnBlocked<'a> = dyn FnMut() -> ControlFlow<()> + 'a;

/// Schedule of a lane, which continues while the socket is full.
pub(super) struct Pace<'a> {
    shared: Shared<'a>,
    pub(super) front: FrontEnd,
    /// End of the schedule, ns.
    closed_ns: Option<u64>,
    published: Published,
}

impl<'a> Pace<'a> {
    pub(super) fn new(shared: Shared<'a>, front: FrontEnd) -> Self {
        Pace { shared, front, closed_ns: None, published: Published::default() }
    }

    /// Advances to `now_ns`.
    pub(super) fn tick(&mut self, now_ns: u64) {
        if self.shared.stop.load(Relaxed) || self.shared.abort.load(Relaxed) {
            self.front.close();
        }
        self.front.advance(now_ns);
        if let Some(until_ns) = self.front.closed_since_ns() {
            self.closed_ns.get_or_insert(now_ns.max(until_ns));
        }
    }

    fn is_closed_for(&self, now_ns: u64, ns: u64) -> bool {
        self.closed_ns.is_some_and(|closed_ns| now_ns > closed_ns.saturating_add(ns))
    }

    /// Waits until the recorder takes an event while the schedule continues; returns how many it takes.
    /// `None` if it took none until long after the end of the schedule.
    fn credit(&mut self, link: &mut dyn Link, clock: &Clock) -> Result<Option<u64>, ClientError> {
        let credit = |link: &mut dyn Link, on_blocked: &mut OnBlocked<'_>| link.credit(on_blocked);
        self.while_blocked(link, clock, GRACE_NS, credit)
    }

    /// Sends slices while the schedule continues.
    fn send(
        &mut self,
        link: &mut dyn Link,
        clock: &Clock,
        mut slices: &mut [IoSlice<'_>],
    ) -> Result<(), ClientError> {
        let give_up_ns = GRACE_NS + HALF_SENT_NS;
        let send = |link: &mut dyn Link, on_blocked: &mut OnBlocked<'_>| link.send(&mut slices, on_blocked);
        match self.while_blocked(link, clock, give_up_ns, send)? {
            Sent::All => Ok(()),
            Sent::Stopped => Err(link.timed_out("sending the rest to", Duration::from_nanos(give_up_ns))),
        }
    }

    /// Calls `act` with a function that continues the schedule while the recorder blocks, and that gives up
    /// this long after the end of the schedule.
    fn while_blocked<T>(
        &mut self,
        link: &mut dyn Link,
        clock: &Clock,
        give_up_ns: u64,
        act: impl FnOnce(&mut dyn Link, &mut OnBlocked<'_>) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let (blocked_before_ns, _) = link.blocked_ns();
        let mut blocked_from_ns = None;
        let mut on_blocked = || {
            let now_ns = clock.now_ns();
            self.tick(now_ns);
            let from_ns: u64 = *blocked_from_ns.get_or_insert(now_ns);
            self.publish(now_ns, blocked_before_ns + (now_ns - from_ns));
            match self.is_closed_for(now_ns, give_up_ns) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        act(link, &mut on_blocked)
    }

    /// Adds the last changes to the live counters; returns the CPU time of the thread, ns.
    pub(super) fn publish_last(&mut self, now_ns: u64, blocked_ns: u64) -> u64 {
        self.published.cpu_ns_at = None;
        self.publish(now_ns, blocked_ns);
        self.published.cpu_ns
    }

    /// Adds the changes since the last call to the live counters.
    pub(super) fn publish(&mut self, now_ns: u64, blocked_ns: u64) {
        let live = self.shared.live;
        let (old, new) = (&mut self.published, self.front.totals());
        add(&live.due_events, new.due.events, &mut old.totals.due.events);
        add(&live.due_bytes, new.due.bytes, &mut old.totals.due.bytes);
        add(&live.sent_events, new.sent.events, &mut old.totals.sent.events);
        add(&live.sent_bytes, new.sent.bytes, &mut old.totals.sent.bytes);
        add(&live.lost_events, new.lost.events, &mut old.totals.lost.events);
        add(&live.lost_bytes, new.lost.bytes, &mut old.totals.lost.bytes);
        add(&live.backlog_bytes, self.front.backlog_bytes(), &mut old.backlog_bytes);
        // While the socket is full the wait is an estimate; the exact sum may be a little
        // smaller.
        add(&live.blocked_ns, blocked_ns.max(old.blocked_ns), &mut old.blocked_ns);
        if old.cpu_ns_at.is_none_or(|at_ns| now_ns >= at_ns + HOUSEKEEPING_NS) {
            old.cpu_ns_at = Some(now_ns);
            add(&live.cpu_ns, thread_cpu_ns(), &mut old.cpu_ns);
        }
    }
}

/// Amounts that this lane has added to the live counters.
#[derive(Default)]
struct Published {
    totals: Totals,
    backlog_bytes: u64,
    blocked_ns: u64,
    cpu_ns: u64,
    /// Last reading of the CPU time, ns from the start; `None` forces a reading.
    cpu_ns_at: Option<u64>,
}

/// Adds the difference to a shared counter; wrapping, since a level may fall.
fn add(counter: &AtomicU64, new: u64, old: &mut u64) {
    if new != *old {
        counter.fetch_add(new.wrapping_sub(*old), Relaxed);
        *old = new;
    }
}
