//! Background thread that samples periodically on an absolute schedule.
//!
//! Invariants: the schedule does not drift; missed ticks are skipped, never caught up in a burst;
//! the first sample is taken at the start and the last at the stop, so together they span the run.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle, park_timeout};
use std::time::Duration;

use crate::clock::{Clock, SystemClock};
use crate::error::MeasureError;

/// Minimum period, so that a period of zero does not occupy a core.
const PERIOD_NS_MIN: u64 = 1_000_000;

/// A running sampler; dropping it stops the thread and discards the samples.
#[derive(Debug)]
pub struct Sampler<T> {
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<T>>>,
}

impl<T: Send + 'static> Sampler<T> {
    /// Calls `sample` with the monotonic time in ns, immediately and then every `period` (at least
    /// 1 ms), in a thread named `ku-sampler`. Fails if no thread can be created.
    pub fn start(
        period: Duration,
        mut sample: impl FnMut(u64) -> T + Send + 'static,
    ) -> Result<Self, MeasureError> {
        let period_ns = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX).max(PERIOD_NS_MIN);
        let stopping = Arc::new(AtomicBool::new(false));
        let stop_seen = Arc::clone(&stopping);
        let run = move || {
            let mut samples = Vec::new();
            let mut due_ns = SystemClock.now_ns();
            loop {
                // Checked before the time is read, so that the last sample is after the stop.
                let last = stop_seen.load(Ordering::Acquire);
                samples.push(sample(SystemClock.now_ns()));
                if last {
                    return samples;
                }
                due_ns = next_due_ns(due_ns, SystemClock.now_ns(), period_ns);
                wait_until_ns(due_ns, &stop_seen);
            }
        };
        let thread = Builder::new()
            .name("ku-sampler".into())
            .spawn(run)
            .map_err(|why| MeasureError::Thread { why })?;
        Ok(Self { stopping, thread: Some(thread) })
    }

    /// Takes a last sample and returns all samples, oldest first. A panic of the closure is
    /// propagated.
    pub fn stop(mut self) -> Vec<T> {
        match self.finish() {
            Some(Ok(samples)) => samples,
            Some(Err(panic)) => resume_unwind(panic),
            None => Vec::new(),
        }
    }
}

impl<T> Sampler<T> {
    fn finish(&mut self) -> Option<std::thread::Result<Vec<T>>> {
        let thread = self.thread.take()?;
        self.stopping.store(true, Ordering::Release);
        thread.thread().unpark();
        Some(thread.join())
    }
}

impl<T> Drop for Sampler<T> {
    fn drop(&mut self) {
        // The samples are discarded, and so is a panic of the closure.
        let _ = self.finish();
    }
}

/// The first scheduled time (`due_ns` plus whole periods) after `now_ns`.
fn next_due_ns(due_ns: u64, now_ns: u64, period_ns: u64) -> u64 {
    let periods = now_ns.saturating_sub(due_ns) / period_ns + 1;
    due_ns.saturating_add(periods.saturating_mul(period_ns))
}

/// Waits until the given time or the stop.
fn wait_until_ns(due_ns: u64, stopping: &AtomicBool) {
    while !stopping.load(Ordering::Acquire) {
        let left_ns = due_ns.saturating_sub(SystemClock.now_ns());
        if left_ns == 0 {
            return;
        }
        park_timeout(Duration::from_nanos(left_ns));
    }
}

#[cfg(test)]
#[path = "sampler_tests.rs"]
mod tests;
