//! Ends a trial early once the source has lost events: what it decides is known, and time and wear are saved.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Sample;

/// Stops the source a set time after its first loss, or when the whole run is stopped.
pub(super) struct CutOff {
    after: Duration,
    run_stop: Arc<AtomicBool>,
    source_stop: Arc<AtomicBool>,
    /// First sample with a loss, seconds.
    lost_at_s: Option<f64>,
}

impl CutOff {
    pub(super) fn new(after: Duration, run_stop: Arc<AtomicBool>) -> Self {
        Self { after, run_stop, source_stop: Arc::default(), lost_at_s: None }
    }

    /// The flag that ends the source.
    pub(super) fn source_stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.source_stop)
    }

    /// Considers the next sample.
    pub(super) fn observe(&mut self, sample: &Sample) {
        if self.lost_at_s.is_none() && sample.lost_bytes > 0 {
            self.lost_at_s = Some(sample.t_s);
        }
        let is_over = self.lost_at_s.is_some_and(|at_s| sample.t_s >= at_s + self.after.as_secs_f64());
        if is_over || self.run_stop.load(Ordering::Acquire) {
            self.source_stop.store(true, Ordering::Release);
        }
    }
}

#[cfg(test)]
#[path = "cut_off_tests.rs"]
mod tests;
