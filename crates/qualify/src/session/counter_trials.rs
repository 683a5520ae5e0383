//! Runs the counter-trials of the nominated bottleneck.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use keepup_results::CounterRate;

use super::{Request, Session};
use crate::QualifyError;
use crate::counter::{Change, Counters, Setup, Step};
use crate::search_request::COUNTER_MARGIN;
use crate::summary::Findings;
use crate::trial_run::TrialRun;

impl Session<'_> {
    /// Tests the nominees until one is confirmed, no bytes are left or the run is stopped.
    pub(super) fn test_nominees(&mut self, findings: &mut Findings) -> Result<(), QualifyError> {
        let lengths = self.settings.lengths();
        let recorder = self.settings.recorder(String::new());
        let setup = Setup {
            is_pinned: recorder.is_pinned(),
            cores: findings.saturated.measured.cores.len(),
            pool_bytes: recorder.pool_bytes,
            available_bytes: self.available_bytes,
        };
        let mut counters = Counters::new(findings.nominees(), setup, lengths.counter_pairs, lengths.counter);
        while let Step::Trial { rate, change, is_changed, duration } = counters.next() {
            // A pair is complete or not begun.
            let pair_s = 2.0 * duration.as_secs_f64();
            let saturated = findings.saturated.measured.durable_bytes_per_second();
            let bytes = COUNTER_MARGIN * pair_s * rate.map_or(saturated, |rate| rate.min(saturated));
            if self.is_stopped() || (!is_changed && self.bytes_left() < bytes) {
                break;
            }
            let outcome = match (change, is_changed) {
                (Change::NetworkAlone, true) => self.network_alone(duration).map(alone),
                (Change::SourceAlone, true) => self.source_alone(duration).map(alone),
                _ => self.counter_trial(rate, change, is_changed, duration).map(|tried| {
                    let outcome = outcome(&tried);
                    findings.fault = findings.fault.take().or_else(|| tried.broken());
                    if change == Change::Discard && is_changed {
                        findings.take_relieved(tried);
                    }
                    outcome
                }),
            };
            if self.is_stopped() || findings.fault.is_some() {
                break;
            }
            match outcome {
                Ok(outcome) => counters.record(outcome),
                // The search is over: a change that this machine cannot make takes nothing back.
                Err(error) => counters.give_up(error.to_string()),
            }
        }
        findings.counters = Some(counters);
        Ok(())
    }

    fn counter_trial(
        &mut self,
        rate: Option<f64>,
        change: Change,
        is_changed: bool,
        duration: Duration,
    ) -> Result<TrialRun, QualifyError> {
        let label = if is_changed { change.to_string() } else { "unchanged".to_owned() };
        let change = Some((change, is_changed));
        let _busy = match change {
            Some((Change::BusyCores(cores), true)) => Some(BusyCores::start(cores)),
            _ => None,
        };
        let request = Request { change, ..Request::unverified(label, rate, duration, self.bytes_left()) };
        self.trial(&request)
    }
}

/// What counts of a trial: growing backlogs of short trials do not.
fn outcome(tried: &TrialRun) -> CounterRate {
    CounterRate {
        bytes_per_second: tried.measured.durable_bytes_per_second(),
        held: tried.outcome.lost_events == 0 && tried.outcome.failed.is_none(),
    }
}

fn alone(bytes_per_second: f64) -> CounterRate {
    CounterRate { bytes_per_second, held: true }
}

/// Threads that compute until this is dropped.
struct BusyCores {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BusyCores {
    fn start(cores: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let spin = |stop: Arc<AtomicBool>| {
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let threads = (0..cores).map(|_| spin(Arc::clone(&stop))).collect();
        Self { stop, threads }
    }
}

impl Drop for BusyCores {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // Such a thread cannot fail.
            drop(thread.join());
        }
    }
}
