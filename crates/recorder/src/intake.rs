//! An intake thread: one loop that owns its connections, their streams and its part of the pool.
//!
//! Each turn takes back what the writers finished, reads from the connections that have data,
//! seals blocks that are due, and sends acknowledgements. A connection without a free block for
//! its event is not read until there is one: TCP holds its sender back, and no other connection
//! is affected.
mod accept;
mod answer;
mod awaited;
mod connection;
mod detector;
mod detector_items;
mod detectors;
mod finish;
mod gate;
mod hello;
mod mail;
mod receive;
mod reduction;
mod rotation;
mod shards;
mod store;
mod strangers;
mod stream;
mod unflushed;
mod volumes;
mod watermark;

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use keepup_error::Cause;
use keepup_measure::clock::Clock;
use keepup_recording::account::Incidents;
use keepup_stream::ledger::Ledger;
use keepup_stream::rejected::RejectReason;
use keepup_stream::wire::{Control, End};
use keepup_sys::pool::Pool;
use keepup_sys::waker::Waker;
use rustix::event::{Timespec, epoll};

use self::connection::{Connection, Phase};
use self::detector::Detector;
use self::hello::{Leaving, Parked};
pub(crate) use self::mail::{Inbox, Post};
use self::receive::{Pause, STAGING_BYTES, TURN_BYTES, TurnEnd};
use self::rotation::Rotation;
pub(crate) use self::shards::{Membership, Shards};
use self::store::{Absorbed, Store};
pub(crate) use self::volumes::VolumeLink;
use self::volumes::Volumes;
use crate::config::RecorderConfig;
use crate::counters::{Counters, IntakeCounters, add, raise};
use crate::packet_socket::SourceInput;
use crate::reduce::worker::ReducerLink;
use crate::report::Ended;
use crate::switches::Switches;
use crate::tap::TapInlet;
use crate::threads::catch_panic;

const LISTENER: u64 = u64::MAX;
const WAKER: u64 = u64::MAX - 1;
const NOBODY: epoll::EventData = epoll::EventData::new_u64(u64::MAX - 2);
/// Interval between checks of ages and time limits, in nanoseconds.
const TICK_NS: u64 = 20_000_000;
/// Most connections served in one turn; fewer when each of them has much.
const EVENTS_MAX: usize = 256;
/// Time for clients to read their final message when the recorder ends, in nanoseconds.
const SHUTDOWN_NS: u64 = 1_000_000_000;

/// Result of an intake thread.
pub(crate) struct IntakeReport {
    pub(crate) ledger: Ledger,
    pub(crate) incidents: Incidents,
    pub(crate) first_event_ns: Option<u64>,
    pub(crate) last_durable_ns: u64,
}

/// Parts of an intake thread.
pub(crate) struct IntakeParts {
    /// Its index.
    pub(crate) index: usize,
    pub(crate) shards: Arc<Shards>,
    pub(crate) membership: Membership,
    pub(crate) post: Post,
    pub(crate) inbox: Inbox,
    pub(crate) config: RecorderConfig,
    pub(crate) recording: String,
    pub(crate) clock: Arc<dyn Clock>,
    /// Socket that accepts connections; at the first intake.
    pub(crate) listener: Option<OwnedFd>,
    /// What each source is received from; at the first intake.
    pub(crate) inputs: Vec<SourceInput>,
    /// Sockets of documents; at the first intake.
    pub(crate) documents: Vec<OwnedFd>,
    pub(crate) waker: Waker,
    pub(crate) switches: Arc<Switches>,
    pub(crate) pool: Pool,
    pub(crate) links: Vec<VolumeLink>,
    pub(crate) reducers: Vec<ReducerLink>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) tap: Option<TapInlet>,
}

impl IntakeParts {
    /// Runs an intake until the recording ends.
    ///
    /// # Errors
    /// It cannot wait for connections.
    pub(crate) fn run(self) -> Result<IntakeReport, Cause> {
        match Intake::new(self) {
            Ok(intake) => Ok(intake.run()),
            Err(e) => Err(format!("cannot wait for connections: {}", std::io::Error::from(e)).into()),
        }
    }
}

impl IntakeReport {
    /// Ledger, incidents and elapsed time, in nanoseconds, of all intakes together.
    pub(crate) fn merge(reports: Vec<Self>) -> (Ledger, Incidents, u64) {
        let first_ns = reports.iter().filter_map(|report| report.first_event_ns).min();
        let last_ns = reports.iter().map(|report| report.last_durable_ns).max().unwrap_or(0);
        let (mut ledger, mut incidents) = (Ledger::default(), Incidents::default());
        for report in reports {
            ledger.streams.extend(report.ledger.streams);
            incidents.append(report.incidents);
        }
        (ledger, incidents, first_ns.map_or(0, |first_ns| last_ns.saturating_sub(first_ns)))
    }
}

/// State of an intake thread.
pub(crate) struct Intake {
    index: usize,
    shards: Arc<Shards>,
    membership: Membership,
    post: Post,
    inbox: Inbox,
    config: RecorderConfig,
    recording: String,
    clock: Arc<dyn Clock>,
    epoll: OwnedFd,
    listener: Option<OwnedFd>,
    inputs: Vec<SourceInput>,
    documents: Vec<OwnedFd>,
    waker: Waker,
    switches: Arc<Switches>,
    is_open: bool,
    /// Since when no events may be accepted, if so.
    closed_since_ns: Option<u64>,
    store: Store,
    connections: Vec<Option<Connection>>,
    /// Detectors without a connection.
    detectors: Vec<Detector>,
    /// Connections that wait for streams of other intakes.
    parked: Vec<Parked>,
    next_ticket: u64,
    /// Streams that other intakes wait for.
    leaving: Vec<Leaving>,
    waiting: VecDeque<usize>,
    waiting_since_ns: Option<u64>,
    waiting_noted_ns: u64,
    staging: Vec<u8>,
    /// Bytes read in this turn.
    turn_bytes: usize,
    /// Connections that were reported as readable and served in this turn.
    served: usize,
    /// Whether others were reported and not served.
    is_cut: bool,
    /// Whether a connection that waits for memory was not served because the turn was over.
    has_waiting_left: bool,
    /// Where the next look for idle connections begins.
    idle_from: usize,
    counters: Arc<Counters>,
    next_tick_ns: u64,
    woken_ns: u64,
    allowance_bytes: f64,
    allowance_at_ns: u64,
    is_short_of_descriptors: bool,
    /// Since when the recording would be over without the clients that it waits for.
    awaiting_since_ns: Option<u64>,
    answers_due: bool,
    /// Connections and streams that an answer acknowledges; empty between answers.
    due: Vec<(usize, usize)>,
    /// Whether there may be blocks that are due because of their age.
    has_aged: bool,
    first_event_ns: Option<u64>,
    last_durable_ns: u64,
}

impl Intake {
    pub(crate) fn new(parts: IntakeParts) -> Result<Self, rustix::io::Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, parts.waker.as_fd(), epoll::EventData::new_u64(WAKER), epoll::EventFlags::IN)?;
        let (counters, clock) = (&parts.counters, &parts.clock);
        let rotation = (parts.index == 0).then(|| {
            Rotation::new(&parts.links, Arc::clone(counters), Arc::clone(clock), parts.config.slow_after)
        });
        let placement = parts.config.placement.build(parts.index);
        let volumes = Volumes::new(parts.index, parts.links, placement, Arc::clone(counters));
        let mut store = Store::new(
            &parts.config,
            Arc::clone(&parts.shards),
            parts.pool,
            (volumes, rotation),
            parts.reducers,
            Arc::clone(counters),
        );
        parts.tap.into_iter().for_each(|inlet| store.tap(inlet));
        let now_ns = parts.clock.now_ns();
        Ok(Self {
            index: parts.index,
            shards: parts.shards,
            membership: parts.membership,
            post: parts.post,
            inbox: parts.inbox,
            config: parts.config,
            recording: parts.recording,
            clock: parts.clock,
            epoll,
            listener: parts.listener,
            inputs: parts.inputs,
            documents: parts.documents,
            waker: parts.waker,
            switches: parts.switches,
            is_open: false,
            closed_since_ns: None,
            store,
            connections: Vec::new(),
            detectors: Vec::new(),
            parked: Vec::new(),
            next_ticket: 0,
            leaving: Vec::new(),
            waiting: VecDeque::new(),
            waiting_since_ns: None,
            waiting_noted_ns: now_ns,
            staging: vec![0; STAGING_BYTES],
            turn_bytes: 0,
            served: 0,
            is_cut: false,
            has_waiting_left: false,
            idle_from: 0,
            counters: parts.counters,
            next_tick_ns: now_ns + TICK_NS,
            woken_ns: now_ns,
            allowance_bytes: 0.0,
            allowance_at_ns: now_ns,
            is_short_of_descriptors: false,
            awaiting_since_ns: None,
            answers_due: false,
            due: Vec::new(),
            has_aged: false,
            first_event_ns: None,
            last_durable_ns: now_ns,
        })
    }

    /// Runs until every source has ended, a stop is requested, no volume works any more, or a thread panics.
    /// After a panic of its own it makes durable what it has received.
    pub(crate) fn run(mut self) -> IntakeReport {
        let shards = Arc::clone(&self.shards);
        let mut events = Vec::with_capacity(EVENTS_MAX);
        let turned = catch_panic(|| {
            while shards.ended().is_none() {
                self.turn(&mut events);
            }
        });
        if let Err(why) = turned {
            self.switches.fail(&why);
            shards.end(Ended::InternalError(why));
        }
        let ended = shards.ended().unwrap_or(&Ended::Stopped);
        if let Err(why) = catch_panic(|| self.finish(ended)) {
            self.switches.fail(&why);
            self.give_up(ended);
        }
        self.membership.end();
        IntakeReport {
            ledger: catch_panic(|| self.store.ledger()).unwrap_or_default(),
            incidents: self.store.incidents,
            first_event_ns: self.first_event_ns,
            last_durable_ns: self.last_durable_ns,
        }
    }

    fn figures(&self) -> &IntakeCounters {
        &self.counters.intakes[self.index]
    }

    fn turn(&mut self, events: &mut Vec<epoll::Event>) {
        self.wait(events);
        let mut now_ns = self.clock.now_ns();
        self.take_back(now_ns);
        if let Some(why) = self.switches.failure() {
            return self.shards.end(Ended::InternalError(why.to_owned()));
        }
        if let Some(why) = self.store.failed.take() {
            return self.shards.end(Ended::VolumesFailed(why));
        }
        if self.switches.is_stopped() {
            return self.shards.stop();
        }
        self.review_gate(now_ns);
        if !self.is_open && self.switches.is_open() {
            self.start_accepting();
        }
        let may_read = self.may_read(now_ns);
        for event in events.iter() {
            match event.data.u64() {
                LISTENER => self.accept(now_ns),
                WAKER => {
                    self.waker.clear();
                    self.take_mail(now_ns);
                }
                // The kernel reports the others again.
                index => {
                    let is_over = self.turn_bytes >= 2 * TURN_BYTES || self.turn_end().has_come();
                    (self.served, self.is_cut) = (self.served + usize::from(!is_over), is_over);
                    self.serve_ready(index as usize, event.flags, may_read && !is_over, now_ns);
                }
            }
        }
        now_ns = self.clock.now_ns();
        if now_ns >= self.next_tick_ns {
            self.next_tick_ns = now_ns + TICK_NS;
            self.answers_due = true;
            self.store.volumes.nudge();
            self.store.review(now_ns);
            self.serve_waiting(now_ns);
            self.serve_idle(may_read, now_ns);
            self.has_aged = true;
            self.expire(now_ns);
            self.connect_detectors(now_ns);
            self.tick_detectors(now_ns);
        }
        if self.has_aged {
            self.has_aged = self.store.seal_aged(now_ns, self.config.seal_after.as_nanos() as u64);
        }
        if std::mem::take(&mut self.answers_due) {
            self.answer();
        }
        if !self.leaving.is_empty() {
            self.send_leaving(now_ns);
        }
        // The first intake has just accepted every waiting connection.
        if self.index == 0 && !self.config.stay {
            self.end_if_over(now_ns);
        }
    }

    fn wait(&mut self, events: &mut Vec<epoll::Event>) {
        let before_ns = self.clock.now_ns();
        raise(&self.figures().turn_ns_max, before_ns.saturating_sub(self.woken_ns));
        let mut timeout_ns = self.next_tick_ns.saturating_sub(before_ns).clamp(1_000_000, TICK_NS);
        if self.has_aged || self.has_waiting_left {
            timeout_ns = 0;
        }
        // Reports of the writers can wait for the next turn, unless a connection waits for
        // memory.
        let hurry = !self.waiting.is_empty();
        self.waker.want_nudge(hurry);
        if hurry {
            self.store.volumes.nudge();
            if !self.store.is_silent() {
                timeout_ns = 0;
            }
        }
        let timeout = Timespec { tv_sec: 0, tv_nsec: timeout_ns as i64 };
        // Those that are ready take turns: the kernel reports the ones first that it has not reported.
        // No more are asked for than a turn can serve: the others would never come first.
        let (bytes, served) = (std::mem::take(&mut self.turn_bytes), std::mem::take(&mut self.served).max(1));
        let ready_max = match std::mem::take(&mut self.is_cut) {
            true => served,
            false => (2 * TURN_BYTES / (bytes / served).max(1)).clamp(2, EVENTS_MAX),
        };
        events.resize(ready_max, epoll::Event { flags: epoll::EventFlags::empty(), data: NOBODY });
        // An interrupted wait returns no events.
        let ready = epoll::wait(&self.epoll, &mut events[..], Some(&timeout)).unwrap_or(0);
        events.truncate(ready);
        self.woken_ns = self.clock.now_ns();
        add(&self.figures().idle_ns, self.woken_ns.saturating_sub(before_ns));
    }

    /// Handles the writers' reports, then serves connections that wait for memory.
    fn take_back(&mut self, now_ns: u64) {
        let Absorbed { freed, durable } = self.store.absorb();
        if durable {
            self.last_durable_ns = now_ns;
            self.answers_due = true;
        }
        if freed || self.has_waiting_left {
            self.serve_waiting(now_ns);
        }
        self.note_waiting(now_ns);
    }

    /// Serves connections that wait for memory, first come, first served. While the first one
    /// gets none, the others wait too; otherwise a large event would never find enough contiguous
    /// memory.
    fn serve_waiting(&mut self, now_ns: u64) {
        self.has_waiting_left = false;
        for served in 0..self.waiting.len() {
            if served > 0 && self.turn_end().has_come() {
                self.has_waiting_left = true;
                break;
            }
            let Some(index) = self.waiting.pop_front() else { break };
            let event = self.blocked_event(index);
            self.store.reserved_for = event.map(|(slot, _)| slot);
            self.serve(index, now_ns);
            if event.is_some() && self.blocked_event(index) == event {
                self.waiting.pop_back();
                self.waiting.push_front(index);
                break;
            }
        }
        let first = self.waiting.front().and_then(|&index| self.blocked_event(index));
        self.store.reserved_for = first.map(|(slot, _)| slot);
    }

    /// Stream slot and sequence number of the event that a connection waits to receive.
    fn blocked_event(&self, index: usize) -> Option<(usize, u64)> {
        let connection = self.connections.get(index)?.as_ref().filter(|connection| connection.waiting)?;
        connection.event_under_way()
    }

    fn note_waiting(&mut self, now_ns: u64) {
        if let Some(since_ns) = self.waiting_since_ns {
            add(&self.figures().pool_wait_ns, now_ns.saturating_sub(self.waiting_noted_ns));
            raise(&self.figures().pool_wait_ns_max, now_ns.saturating_sub(since_ns));
        }
        self.waiting_noted_ns = now_ns;
        let is_short = !self.waiting.is_empty() && self.closed_since_ns.is_none();
        self.waiting_since_ns = is_short.then(|| self.waiting_since_ns.unwrap_or(now_ns));
    }

    /// Whether the rate limit of a deliberately slow sink allows more reads now.
    fn may_read(&mut self, now_ns: u64) -> bool {
        let Some(rate) = self.config.rate_max else { return true };
        let rate = rate / self.shards.count() as f64;
        let elapsed_s = now_ns.saturating_sub(self.allowance_at_ns) as f64 / 1e9;
        self.allowance_at_ns = now_ns;
        self.allowance_bytes = (self.allowance_bytes + rate * elapsed_s).min(rate * 0.1 + 1.0);
        if self.allowance_bytes <= 0.0 {
            self.clock.sleep_until_ns(now_ns + 2_000_000);
        }
        self.allowance_bytes > 0.0
    }

    /// When this turn's time for connections is over.
    fn turn_end(&self) -> TurnEnd<'_> {
        TurnEnd::of(&*self.clock, self.woken_ns)
    }

    fn serve_ready(&mut self, index: usize, flags: epoll::EventFlags, may_read: bool, now_ns: u64) {
        if flags.contains(epoll::EventFlags::OUT) {
            self.flush(index);
        }
        let readable = epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        let waiting = matches!(self.connections.get(index), Some(Some(c)) if c.waiting);
        if may_read && !waiting && flags.intersects(readable) {
            self.serve(index, now_ns);
        }
    }

    /// Serves connections without a readiness event since the last tick: the bytes that arrived
    /// may be fewer than the low-water mark.
    fn serve_idle(&mut self, may_read: bool, now_ns: u64) {
        if self.closed_since_ns.is_some() {
            return;
        }
        let (count, begin_bytes) = (self.connections.len(), self.turn_bytes);
        let from = std::mem::take(&mut self.idle_from);
        for index in (from..count).chain(0..from.min(count)) {
            if self.turn_bytes - begin_bytes >= TURN_BYTES || self.turn_end().has_come() {
                // The others come first next time.
                self.idle_from = index;
                return;
            }
            let Some(Some(connection)) = self.connections.get_mut(index) else { continue };
            let idle = !std::mem::take(&mut connection.busy) && !connection.quiet && !connection.waiting;
            if !idle || !may_read {
                continue;
            }
            self.serve(index, now_ns);
            if let Some(Some(connection)) = self.connections.get_mut(index) {
                connection.quiet = !connection.busy;
                connection.await_enough();
            }
        }
    }

    /// Serves a connection for one turn.
    fn serve(&mut self, index: usize, now_ns: u64) {
        let Some(Some(mut connection)) = self.connections.get_mut(index).map(Option::take) else { return };
        if connection.sends_no_more {
            self.connections[index] = Some(connection);
            return;
        }
        if connection.is_closing() {
            return self.discard(index, connection);
        }
        if connection.ticket.is_some() {
            // It waits for streams of other intakes, and took the place of one that waited for memory.
            self.connections[index] = Some(connection);
            return;
        }
        if !self.may_accept() {
            return self.hold(index, connection);
        }
        let was_waiting = std::mem::take(&mut connection.waiting);
        let end = TurnEnd::of(&*self.clock, self.woken_ns);
        let (bytes, pause) = match connection.detector {
            Some(_) => {
                let times_ns = (now_ns, self.clock.unix_ns());
                detectors::receive(&mut connection, &mut self.store, times_ns, end)
            }
            None => receive::receive(&mut connection, &mut self.store, &mut self.staging, now_ns, end),
        };
        self.turn_bytes += bytes;
        if let Some(detector) = &connection.detector {
            detector.publish(&self.counters);
        }
        self.allowance_bytes -= bytes as f64;
        if bytes > 0 {
            (connection.busy, connection.quiet) = (true, false);
            connection.heard_ns = now_ns;
            if !connection.expects_streams() {
                self.first_event_ns.get_or_insert(now_ns);
            }
        }
        match pause {
            Pause::Message(message) => {
                let taken = match *message {
                    Control::Hello(hello) => {
                        if let Err(why) = self.check_assignment(&hello) {
                            return self.refuse(index, connection, &why);
                        }
                        if was_waiting {
                            self.watch(index, &mut connection);
                        }
                        return self.settle_in(index, connection, hello, 0, now_ns);
                    }
                    Control::Locate(question) => self.locate(index, &mut connection, &question),
                    Control::Missing(_) => Ok(()),
                    Control::End(end) => self.take_end(&mut connection, &end),
                };
                if let Err(why) = taken {
                    return self.reject(index, connection, RejectReason::Contradictory, &why);
                }
            }
            Pause::EndOfSeries { events, streams } => {
                self.take_end_of_series(&mut connection, events, streams);
            }
            Pause::Drained | Pause::Turn => {}
            Pause::NoMemory | Pause::Journal => {
                connection.waiting = true;
                self.waiting.push_back(index);
            }
            Pause::Closed => return self.closed(index, connection),
            Pause::Broken(why) => return self.refuse(index, connection, &why),
            Pause::Rejected(reason, why) => return self.reject(index, connection, reason, &why),
        }
        if connection.waiting != was_waiting || connection.phase != Phase::Open {
            self.watch(index, &mut connection);
        }
        connection.await_enough();
        self.connections[index] = Some(connection);
        self.bound_strangers(index);
    }

    /// Checks a client's final counts, and makes its events durable.
    fn take_end(&mut self, connection: &mut Connection, end: &End) -> Result<(), Cause> {
        let mut accounts = Vec::with_capacity(end.streams.len());
        for last in &end.streams {
            let is_last = |slot: &usize| self.store.streams[*slot].info.id == last.id;
            let place = connection.slots.iter().position(is_last);
            let found = place.and_then(|at| connection.slots.get(at).zip(connection.before.get(at)));
            let Some((&slot, before)) = found else {
                let what = format!("the end message counts stream {}, which was not declared", last.id);
                return Err(what.into());
            };
            self.check_counts(slot, before, last)?;
            accounts.push((slot, last));
        }
        accounts.into_iter().for_each(|(slot, last)| self.store.conclude(slot, last));
        self.end_streams(connection);
        Ok(())
    }

    /// Makes the events of a client that has ended durable.
    fn end_streams(&mut self, connection: &mut Connection) {
        for &slot in &connection.slots {
            self.store.seal(slot);
        }
        self.store.flush();
        connection.phase = Phase::Ending;
        self.answers_due = true;
    }
}
