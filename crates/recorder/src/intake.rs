//! The intake thread: one loop that owns every connection, every stream and the pool.
//!
//! Each turn takes back what the writers finished, reads from the connections that have data,
//! seals blocks that are due, and sends acknowledgements. A connection without a free block for
//! its event is not read until there is one: TCP holds its sender back, and no other connection
//! is affected.
mod accept;
mod answer;
mod connection;
mod receive;
mod reduction;
mod store;
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
use keepup_stream::wire::Control;
use keepup_sys::pool::Pool;
use keepup_sys::waker::Waker;
use rustix::event::{Timespec, epoll};

use self::connection::{Connection, Phase};
use self::receive::{Pause, STAGING_BYTES};
use self::store::{Absorbed, Store};
pub(crate) use self::volumes::VolumeLink;
use self::volumes::Volumes;
use crate::config::RecorderConfig;
use crate::counters::{Counters, add, raise};
use crate::keeper::Conclusion;
use crate::reduce::worker::ReducerLink;
use crate::report::Ended;
use crate::switches::Switches;
use crate::tap::TapInlet;

const LISTENER: u64 = u64::MAX;
const WAKER: u64 = u64::MAX - 1;
/// Interval between checks of ages and time limits, in nanoseconds.
const TICK_NS: u64 = 20_000_000;
/// Time for clients to read their final message when the recorder ends, in nanoseconds.
const SHUTDOWN_NS: u64 = 1_000_000_000;

/// Result of the intake thread.
pub(crate) struct IntakeReport {
    pub(crate) ledger: Ledger,
    pub(crate) incidents: Incidents,
    pub(crate) ended: Ended,
    pub(crate) elapsed_ns: u64,
    /// Faults of the ledger itself.
    pub(crate) trouble: Vec<String>,
}

/// Parts of an intake thread.
pub(crate) struct IntakeParts {
    pub(crate) config: RecorderConfig,
    pub(crate) recording: String,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) listener: OwnedFd,
    pub(crate) waker: Waker,
    pub(crate) switches: Arc<Switches>,
    pub(crate) pool: Pool,
    pub(crate) links: Vec<VolumeLink>,
    pub(crate) reducers: Vec<ReducerLink>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) tap: Option<TapInlet>,
}

/// State of the intake thread.
pub(crate) struct Intake {
    config: RecorderConfig,
    recording: String,
    clock: Arc<dyn Clock>,
    epoll: OwnedFd,
    listener: OwnedFd,
    waker: Waker,
    switches: Arc<Switches>,
    is_open: bool,
    store: Store,
    connections: Vec<Option<Connection>>,
    connected: usize,
    waiting: VecDeque<usize>,
    waiting_since_ns: Option<u64>,
    waiting_noted_ns: u64,
    staging: Vec<u8>,
    counters: Arc<Counters>,
    next_tick_ns: u64,
    woken_ns: u64,
    allowance_bytes: f64,
    allowance_at_ns: u64,
    ended_any: bool,
    is_short_of_descriptors: bool,
    answers_due: bool,
    first_event_ns: Option<u64>,
    last_durable_ns: u64,
}

impl Intake {
    pub(crate) fn new(parts: IntakeParts) -> Result<Self, rustix::io::Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, parts.waker.as_fd(), epoll::EventData::new_u64(WAKER), epoll::EventFlags::IN)?;
        let placement = parts.config.placement.build();
        let volumes = Volumes::new(
            parts.links,
            placement,
            Arc::clone(&parts.counters),
            Arc::clone(&parts.clock),
            parts.config.slow_after,
        );
        let mut store =
            Store::new(&parts.config, parts.pool, volumes, parts.reducers, Arc::clone(&parts.counters));
        parts.tap.into_iter().for_each(|inlet| store.tap(inlet));
        let now_ns = parts.clock.now_ns();
        Ok(Self {
            config: parts.config,
            recording: parts.recording,
            clock: parts.clock,
            epoll,
            listener: parts.listener,
            waker: parts.waker,
            switches: parts.switches,
            is_open: false,
            store,
            connections: Vec::new(),
            connected: 0,
            waiting: VecDeque::new(),
            waiting_since_ns: None,
            waiting_noted_ns: now_ns,
            staging: vec![0; STAGING_BYTES],
            counters: parts.counters,
            next_tick_ns: now_ns + TICK_NS,
            woken_ns: now_ns,
            allowance_bytes: 0.0,
            allowance_at_ns: now_ns,
            ended_any: false,
            is_short_of_descriptors: false,
            answers_due: false,
            first_event_ns: None,
            last_durable_ns: now_ns,
        })
    }

    /// Runs until every source has ended, a stop is requested, or no volume works any more.
    pub(crate) fn run(mut self) -> IntakeReport {
        let mut events = Vec::with_capacity(256);
        let ended = loop {
            let turn = self.turn(&mut events);
            if let Some(ended) = turn {
                break ended;
            }
        };
        self.finish(ended)
    }

    fn turn(&mut self, events: &mut Vec<epoll::Event>) -> Option<Ended> {
        self.wait(events);
        let mut now_ns = self.clock.now_ns();
        self.take_back(now_ns);
        if let Some(why) = self.store.failed.take() {
            return Some(Ended::VolumesFailed(why));
        }
        if self.switches.is_stopped() {
            return Some(Ended::Stopped);
        }
        if !self.is_open && self.switches.is_open() {
            self.start_accepting();
        }
        let may_read = self.may_read(now_ns);
        for event in events.iter() {
            match event.data.u64() {
                LISTENER => self.accept(now_ns),
                WAKER => self.waker.clear(),
                index => self.serve_ready(index as usize, event.flags, may_read, now_ns),
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
            self.store.seal_aged(now_ns, self.config.seal_after.as_nanos() as u64);
            self.expire(now_ns);
        }
        if std::mem::take(&mut self.answers_due) {
            self.answer();
        }
        let over = self.ended_any && self.connected == 0 && !self.config.stay;
        over.then_some(Ended::EndOfRun)
    }

    fn wait(&mut self, events: &mut Vec<epoll::Event>) {
        let before_ns = self.clock.now_ns();
        raise(&self.counters.intake.turn_ns_max, before_ns.saturating_sub(self.woken_ns));
        let mut timeout_ns = self.next_tick_ns.saturating_sub(before_ns).clamp(1_000_000, TICK_NS);
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
        events.clear();
        // An interrupted wait returns no events.
        let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), Some(&timeout));
        self.woken_ns = self.clock.now_ns();
        add(&self.counters.intake.idle_ns, self.woken_ns.saturating_sub(before_ns));
    }

    /// Handles the writers' reports, then serves connections that wait for memory.
    fn take_back(&mut self, now_ns: u64) {
        let Absorbed { freed, durable } = self.store.absorb();
        if durable {
            self.last_durable_ns = now_ns;
            self.answers_due = true;
        }
        if freed {
            self.serve_waiting(now_ns);
        }
        self.note_waiting(now_ns);
    }

    /// Serves connections that wait for memory, first come, first served. While the first one
    /// gets none, the others wait too; otherwise a large event would never find enough contiguous
    /// memory.
    fn serve_waiting(&mut self, now_ns: u64) {
        for _ in 0..self.waiting.len() {
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
            add(&self.counters.intake.pool_wait_ns, now_ns.saturating_sub(self.waiting_noted_ns));
            raise(&self.counters.intake.pool_wait_ns_max, now_ns.saturating_sub(since_ns));
        }
        self.waiting_noted_ns = now_ns;
        self.waiting_since_ns = (!self.waiting.is_empty()).then(|| self.waiting_since_ns.unwrap_or(now_ns));
    }

    /// Whether the rate limit of a deliberately slow sink allows more reads now.
    fn may_read(&mut self, now_ns: u64) -> bool {
        let Some(rate) = self.config.rate_max else { return true };
        let elapsed_s = now_ns.saturating_sub(self.allowance_at_ns) as f64 / 1e9;
        self.allowance_at_ns = now_ns;
        self.allowance_bytes = (self.allowance_bytes + rate * elapsed_s).min(rate * 0.1 + 1.0);
        if self.allowance_bytes <= 0.0 {
            self.clock.sleep_until_ns(now_ns + 2_000_000);
        }
        self.allowance_bytes > 0.0
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
        for index in 0..self.connections.len() {
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
        if connection.is_closing() {
            return self.discard(index, connection);
        }
        let was_waiting = std::mem::take(&mut connection.waiting);
        loop {
            let (bytes, pause) =
                receive::receive(&mut connection, &mut self.store, &mut self.staging, now_ns);
            self.allowance_bytes -= bytes as f64;
            if bytes > 0 {
                (connection.busy, connection.quiet) = (true, false);
                connection.heard_ns = now_ns;
            }
            if bytes > 0 && !connection.session.expects_hello() {
                self.first_event_ns.get_or_insert(now_ns);
            }
            match pause {
                Pause::Message(message) => match self.handle(index, &mut connection, *message, now_ns) {
                    Ok(()) if connection.phase == Phase::Open => {}
                    Ok(()) => break,
                    Err(why) => return self.refuse(index, connection, &why),
                },
                Pause::Drained | Pause::Turn => break,
                Pause::NoMemory | Pause::Journal => {
                    connection.waiting = true;
                    self.waiting.push_back(index);
                    break;
                }
                Pause::Closed => return self.closed(index, connection),
                Pause::Broken(why) => return self.refuse(index, connection, &why),
            }
        }
        if connection.waiting != was_waiting || connection.phase != Phase::Open {
            self.watch(index, &mut connection);
        }
        connection.await_enough();
        self.connections[index] = Some(connection);
    }

    fn handle(
        &mut self,
        index: usize,
        connection: &mut Connection,
        message: Control,
        now_ns: u64,
    ) -> Result<(), Cause> {
        match message {
            Control::Hello(hello) => {
                let replaced = self.replaceable(&hello, now_ns);
                connection.slots = self.store.adopt(&hello.streams, index, &replaced)?;
                connection.resume = hello.resume;
                replaced.into_iter().for_each(|old| self.replace(old, &connection.peer));
                // Only the first drain's recording gives this one its name.
                hello.recording.into_iter().for_each(|sent| drop(self.counters.sent.set(sent)));
                self.welcome(connection);
                Ok(())
            }
            Control::End(end) => {
                let mut accounts = Vec::with_capacity(end.streams.len());
                for last in &end.streams {
                    let place = connection.session.streams().iter().position(|s| s.id == last.id);
                    let found = place.and_then(|at| connection.slots.get(at).zip(connection.before.get(at)));
                    let Some((&slot, before)) = found else {
                        let what =
                            format!("the end message counts stream {}, which was not declared", last.id);
                        return Err(what.into());
                    };
                    self.check_counts(slot, before, last)?;
                    accounts.push((slot, last));
                }
                accounts.into_iter().for_each(|(slot, last)| self.store.conclude(slot, last));
                for &slot in &connection.slots {
                    self.store.seal(slot);
                }
                self.store.flush();
                connection.phase = Phase::Ending;
                self.answers_due = true;
                Ok(())
            }
        }
    }

    /// Stops reading, makes everything durable, ends the writers and sends clients their final
    /// message.
    fn finish(mut self, ended: Ended) -> IntakeReport {
        self.switches.end();
        for slot in 0..self.store.streams.len() {
            self.store.seal(slot);
        }
        self.store.flush();
        while !self.store.is_settled() && !self.store.is_over() && self.store.dead_writers == 0 {
            self.wait_for_reports();
        }
        if self.store.dead_writers > 0 {
            // The losses of a dead writer are complete once the others have ended.
            self.store.volumes.close();
            while !self.store.volumes.is_closed() {
                self.wait_for_reports();
            }
            self.store.lose_unsettled();
        }
        let conclusion = Conclusion {
            clean: !matches!(ended, Ended::VolumesFailed(_)),
            reason: match &ended {
                Ended::EndOfRun => "end of run".into(),
                Ended::Stopped => "stopped".into(),
                Ended::VolumesFailed(why) => why.clone(),
            },
            streams: self.store.ends(),
        };
        self.store.volumes.conclude(&conclusion);
        self.store.reductions.close();
        self.store.volumes.close();
        while !self.store.volumes.is_closed() {
            self.wait_for_reports();
        }
        self.notify_clients(&ended);
        let elapsed_ns = self.first_event_ns.map_or(0, |first| self.last_durable_ns.saturating_sub(first));
        for stream in self.store.streams.iter_mut().filter(|stream| stream.owner.is_some()) {
            stream.ledger.unfinished += 1;
        }
        let ledger = self.store.ledger();
        let trouble = ledger.balance().err().map(|e| format!("the account does not add up: {e}"));
        IntakeReport {
            ledger,
            incidents: self.store.incidents,
            ended,
            elapsed_ns,
            trouble: trouble.into_iter().collect(),
        }
    }

    fn wait_for_reports(&mut self) {
        self.store.volumes.nudge();
        let now_ns = self.clock.now_ns();
        if self.store.absorb().durable {
            self.last_durable_ns = self.clock.now_ns();
        }
        self.clock.sleep_until_ns(now_ns + 500_000);
    }

    /// Sends connected clients the result; waits a little for those that read.
    fn notify_clients(&mut self, ended: &Ended) {
        let deadline_ns = self.clock.now_ns() + SHUTDOWN_NS;
        for index in 0..self.connections.len() {
            let Some(mut connection) = self.connections[index].take() else { continue };
            if let Some((slot, sequence)) = connection.event_under_way() {
                let stream = self.store.streams[slot].info.id;
                self.store.incidents.push(format!(
                    "{}: the recorder ended while event {sequence} of stream {stream} was arriving",
                    connection.peer
                ));
            }
            self.send_final_message(&mut connection, ended);
            while !connection.is_flushed() && self.clock.now_ns() < deadline_ns {
                if connection.flush().is_err() {
                    break;
                }
                self.clock.sleep_until_ns(self.clock.now_ns() + 1_000_000);
            }
        }
    }
}
