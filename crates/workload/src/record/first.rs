//! Times at which the first events of a trial were received and durable, by polling the recorder's
//! counters.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use keepup_measure::clock::Clock;
use keepup_measure::cpu::thread_cpu_ns;
use keepup_recorder::counters::Counters;

use crate::WorkloadError;
use crate::error::system;

/// Polling interval, ns. A late poll is late for time and bytes alike.
const LOOK_NS: u64 = 1_000_000;

/// Result of the polling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct First {
    /// Number of events to wait for.
    pub events: u64,
    /// First poll with this many received events.
    pub received: Option<Moment>,
    /// First poll with this many durable events.
    pub durable: Option<Moment>,
    /// CPU time of the polling thread, ns.
    pub cpu_ns: u64,
}

/// State at one poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Time since the start of the trial, ns.
    pub t_ns: u64,
    /// Number of events.
    pub events: u64,
    /// Payload of the events, bytes.
    pub bytes: u64,
}

/// The polling thread.
pub(super) struct Watch {
    thread: JoinHandle<First>,
    is_over: Arc<AtomicBool>,
}

impl Watch {
    /// Polls `counters` until `events` are durable; the trial started at `begin_ns`.
    pub(super) fn start(
        events: u64,
        counters: Arc<Counters>,
        clock: Arc<dyn Clock>,
        begin_ns: u64,
    ) -> Result<Self, WorkloadError> {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let look = move || {
            let mut first = First { events, ..First::default() };
            loop {
                // Checked before polling, so that the last poll is after the end.
                let is_last = over.load(Ordering::Acquire);
                let now_ns = clock.now_ns();
                first.look(&counters, now_ns.saturating_sub(begin_ns));
                if is_last || first.durable.is_some() {
                    first.cpu_ns = thread_cpu_ns();
                    return first;
                }
                clock.sleep_until_ns(now_ns + LOOK_NS);
            }
        };
        let thread = std::thread::Builder::new()
            .name("ku-first".into())
            .spawn(look)
            .map_err(system("start the thread that times the first events"))?;
        Ok(Self { thread, is_over })
    }

    /// Result so far.
    pub(super) fn end(self) -> Result<First, WorkloadError> {
        self.is_over.store(true, Ordering::Release);
        self.thread.join().map_err(|_| WorkloadError::Thread { name: "ku-first" })
    }
}

impl First {
    fn look(&mut self, counters: &Counters, t_ns: u64) {
        let enough =
            |events: u64, bytes: u64| (events >= self.events).then_some(Moment { t_ns, events, bytes });
        if self.received.is_none() {
            self.received = enough(counters.received_events(), counters.received_bytes());
        }
        if self.durable.is_none() {
            self.durable = enough(counters.durable_events(), counters.durable_payload_bytes());
        }
    }
}

#[cfg(test)]
#[path = "first_tests.rs"]
mod tests;
