//! Event loop of a host: connects a link, a [`Host`] and a worker that executes orders.
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use keepup_measure::clock::Clock;

use crate::host::{Done, Host, HostAction};
use crate::link::{AgentLink, FromController, Refusal, Waker};
use crate::message::{Counters, Health, HostId, HostState};
use crate::placement::View;
use crate::timing::Timing;
use crate::wall::AnchoredClock;

/// Executes the part of a host in a run. Methods do not block: threads of the worker do the work and report.
pub trait Worker {
    /// Prepares; then reports [`Done::Prepared`] or [`Done::Failed`].
    fn prepare(&mut self, run: u64, plan: &str, reports: &Reports);

    /// Starts when `until` is zero; the part of the run ends with [`Done::Finished`] or [`Done::Failed`].
    fn start(&mut self, run: u64, until: Duration, reports: &Reports);

    /// Ends the part of the run, `at_once` without what is only copied; then reports [`Done::Finished`] or
    /// [`Done::Failed`]. An end may be followed by an urgent one.
    fn finish(&mut self, run: u64, at_once: bool, reports: &Reports);

    /// Streams may have moved.
    fn moved(&mut self, view: &View);

    /// Events may be accepted until `until_ns` of the clock that the loop was made with; 0: not any more.
    fn leased(&mut self, until_ns: u64);

    /// Counters of the run.
    fn counters(&self) -> Counters;

    /// More figures of a recorder; asked for about once per second.
    fn health(&self) -> Option<Health> {
        None
    }
}

/// Channel from the threads of a worker to the event loop.
#[derive(Clone, Debug)]
pub struct Reports {
    sender: Sender<Done>,
    waker: Waker,
}

impl Reports {
    /// Reports to the controller.
    pub fn send(&self, done: Done) {
        // The loop may have ended.
        drop(self.sender.send(done));
        self.waker.wake();
    }
}

/// Reports that nobody but the test reads.
#[cfg(test)]
pub(crate) fn reports_for_test() -> (Reports, Receiver<Done>) {
    let (sender, done) = mpsc::channel();
    (Reports { sender, waker: Waker::new(|| ()) }, done)
}

/// Stop flag of an agent, set when its standard input is closed.
#[derive(Clone, Debug, Default)]
pub struct StopRequest(Arc<AtomicBool>);

impl StopRequest {
    /// Uses `flag`, which a signal handler may set too; that is seen at the next heartbeat.
    #[must_use]
    pub fn new(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }

    /// Watches `input` until its end, and then wakes the loop.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn watch(&self, mut input: impl Read + Send + 'static, waker: Waker) -> std::io::Result<()> {
        let flag = self.clone();
        let watch = move || {
            // No data is expected. An error counts as the end.
            drop(std::io::copy(&mut input, &mut std::io::sink()));
            flag.0.store(true, Ordering::Relaxed);
            waker.wake();
        };
        std::thread::Builder::new().name("ku-agent-input".into()).spawn(watch).map(drop)
    }

    /// Whether the agent is to end.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Event of a host's link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentEvent {
    /// The connection is closed.
    Disconnected,
    /// A message was dropped.
    Refused(Refusal),
}

/// Event loop of a host.
pub struct AgentLoop<L, C, W> {
    link: L,
    host: Host,
    worker: W,
    clock: AnchoredClock<C>,
    finish_ns: u64,
    reports: Reports,
    done: Receiver<Done>,
    /// Deadline of the worker after standard input was closed, ns.
    end_by_ns: Option<u64>,
}

impl<L: AgentLink, C: Clock, W: Worker> AgentLoop<L, C, W> {
    /// Host `id`; `incarnation` differs for each start.
    pub fn new(id: HostId, incarnation: u64, timing: Timing, link: L, worker: W, clock: C) -> Self {
        let clock = AnchoredClock::new(clock);
        let host = Host::new(id, incarnation, timing, clock.now_ns());
        let (sender, done) = mpsc::channel();
        let reports = Reports { sender, waker: link.waker() };
        Self { link, host, worker, clock, finish_ns: timing.finish_ns, reports, done, end_by_ns: None }
    }

    /// Follows the controller until an order to leave, the orphan timeout, or `closed`. Returns the reason.
    pub fn run(&mut self, closed: &StopRequest, report: &mut dyn FnMut(AgentEvent)) -> String {
        loop {
            if let Some(why) = self.turn(closed, report) {
                return why;
            }
        }
    }

    /// One iteration: timers, reports, one message. Returns the reason when the host ends.
    fn turn(&mut self, closed: &StopRequest, report: &mut dyn FnMut(AgentEvent)) -> Option<String> {
        let mut actions = Vec::new();
        *self.host.counters() = self.worker.counters();
        let now_ns = self.clock.now_ns();
        if self.host.wants_health(now_ns) {
            self.host.set_health(now_ns, self.worker.health());
        }
        self.host.tick(now_ns, &mut actions);
        while let Ok(done) = self.done.try_recv() {
            // The report may be the last one of the run.
            let now_ns = self.clock.now_ns();
            *self.host.counters() = self.worker.counters();
            self.host.set_health(now_ns, self.worker.health());
            self.host.report(now_ns, done, &mut actions);
        }
        let ended = self.apply(actions);
        if ended.is_some() {
            return ended;
        }
        if closed.is_set() && self.end() {
            return Some("it was asked to end".to_owned());
        }
        let wait = Duration::from_nanos(self.host.next_ns().saturating_sub(self.clock.now_ns()));
        let mut actions = Vec::new();
        match self.link.receive(wait)? {
            FromController::Order(order) => self.host.on_order(self.clock.now_ns(), *order, &mut actions),
            FromController::Closed => report(AgentEvent::Disconnected),
            FromController::Refused(why) => report(AgentEvent::Refused(why)),
        }
        let ended = self.apply(actions);
        // After the actions: a recorder that was lost and is back must end its part before it reads again.
        self.worker.leased(self.clock.monotonic_ns(self.host.accepts_until_ns()));
        ended
    }

    fn apply(&mut self, actions: Vec<HostAction>) -> Option<String> {
        let mut ended = None;
        for action in actions {
            match action {
                HostAction::Send(heartbeat) => self.link.send(&heartbeat),
                HostAction::Prepare { run, plan } => self.worker.prepare(run, &plan, &self.reports),
                HostAction::Start { run, at_ns } => {
                    let until = Duration::from_nanos(at_ns.saturating_sub(self.clock.now_ns()));
                    self.worker.start(run, until, &self.reports);
                }
                HostAction::Changed => self.worker.moved(self.host.view()),
                HostAction::Finish { run, at_once } => self.worker.finish(run, at_once, &self.reports),
                HostAction::Exit { why } => ended = Some(why),
            }
        }
        ended
    }

    /// Ends the part of the run, if any. Returns whether it has ended or its deadline has passed.
    fn end(&mut self) -> bool {
        let state = self.host.state();
        let Some(run) = state.run().filter(|_| !state.is_over()) else { return true };
        let is_ending = matches!(state, HostState::Finishing { .. });
        let now_ns = self.clock.now_ns();
        let by_ns = *self.end_by_ns.get_or_insert_with(|| {
            if !is_ending {
                self.reports.send(Done::Ending { run });
            }
            self.worker.finish(run, true, &self.reports);
            now_ns.saturating_add(self.finish_ns)
        });
        now_ns >= by_ns
    }
}

#[cfg(test)]
#[path = "agent_loop_tests.rs"]
mod tests;
