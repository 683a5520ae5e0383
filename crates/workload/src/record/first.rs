//! When the first events of a trial had been received, and when so many were durable: the counters of the
//! recorder, looked at until both are known.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use keepup_measure::clock::Clock;
use keepup_measure::cpu::thread_cpu_ns;
use keepup_recorder::counters::Counters;

use crate::WorkloadError;
use crate::ceiling::system;

/// Pause between two looks, in nanoseconds. A look that comes late is late for time and bytes alike.
const LOOK_NS: u64 = 1_000_000;

/// What the looks saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct First {
    /// So many events were waited for.
    pub events: u64,
    /// The first look that saw so many received.
    pub received: Option<Moment>,
    /// The first look that saw so many durable.
    pub durable: Option<Moment>,
    /// CPU of the looking, in nanoseconds.
    pub cpu_ns: u64,
}

/// A look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// When, in nanoseconds since the trial began.
    pub t_ns: u64,
    /// Events there were.
    pub events: u64,
    /// Their payload, bytes.
    pub bytes: u64,
}

/// A thread that looks.
pub(super) struct Watch {
    thread: JoinHandle<First>,
    is_over: Arc<AtomicBool>,
}

impl Watch {
    /// Looks at `counters` until `events` are durable, for a trial that began at `begin_ns`.
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
                // Asked before the look, so that the last look lies after the end.
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

    /// What was seen until now.
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
            let intake = &counters.intake;
            let received = intake.received_events.load(Ordering::Relaxed);
            self.received = enough(received, intake.received_bytes.load(Ordering::Relaxed));
        }
        if self.durable.is_none() {
            self.durable = enough(counters.durable_events(), counters.durable_payload_bytes());
        }
    }
}

#[cfg(test)]
#[path = "first_tests.rs"]
mod tests;
