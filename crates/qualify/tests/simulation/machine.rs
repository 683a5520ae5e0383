//! Simulated machine: a fluid queue with jitter, stalls and a bounded buffer, in steps of 10 ms.
//!
//! The same seed gives the same machine. Stalls last 0.2 to 0.4 s and come at random (Poisson).

use std::time::Duration;

use fastrand::Rng;
use keepup_qualify::search::{TrialOutcome, backlog_grows};

/// Undisturbed write rate, bytes/s.
pub(crate) const CAPACITY: f64 = 1e9;
/// Size of an event, bytes.
const EVENT: f64 = 1e5;
const STEP_S: f64 = 0.01;
/// Interval at which the service rate is redrawn, seconds.
const JITTER_EVERY_S: f64 = 0.1;
/// Maximum relative deviation of the service rate.
const JITTER: f64 = 0.05;

/// MachineKind of machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MachineKind {
    pub(crate) name: &'static str,
    /// Buffer in seconds of the capacity.
    pub(crate) buffer_s: f64,
    /// Mean time between stalls; none for a quiet machine.
    pub(crate) stall_every_s: Option<f64>,
}

/// One machine with its random state. Time continues from trial to trial; the queue is empty in
/// between.
pub(crate) struct Machine {
    kind: MachineKind,
    rng: Rng,
    /// Time to the start of the next stall, negative during a stall.
    to_stall_s: f64,
    stall_s: f64,
}

impl Machine {
    pub(crate) fn new(kind: MachineKind, seed: u64) -> Self {
        let mut machine = Self { kind, rng: Rng::with_seed(seed), to_stall_s: f64::INFINITY, stall_s: 0.0 };
        machine.draw_stall();
        machine
    }

    fn draw_stall(&mut self) {
        if let Some(mean_s) = self.kind.stall_every_s {
            self.to_stall_s = -mean_s * (1.0 - self.rng.f64()).ln();
            self.stall_s = 0.2 + 0.2 * self.rng.f64();
        }
    }

    /// Stalled share of the next step.
    fn stalled_share(&mut self) -> f64 {
        self.to_stall_s -= STEP_S;
        let stalled_s = (-self.to_stall_s).min(STEP_S).min(self.stall_s + STEP_S + self.to_stall_s);
        if self.to_stall_s < -self.stall_s {
            self.draw_stall();
        }
        (stalled_s / STEP_S).clamp(0.0, 1.0)
    }

    /// Runs one trial.
    pub(crate) fn run(&mut self, rate: f64, duration: Duration) -> TrialOutcome {
        let duration_s = duration.as_secs_f64();
        let steps = (duration_s / STEP_S).round() as usize;
        let jitter_steps = (JITTER_EVERY_S / STEP_S).round() as usize;
        let sample_steps = (steps / 100).max(1);
        let (mut backlog, mut lost, mut served_sum, mut service) = (0.0f64, 0.0, 0.0, CAPACITY);
        let (mut stall_s, mut longest_s) = (0.0, 0.0f64);
        let mut samples = vec![(0.0, 0.0)];
        for step in 0..steps {
            if step % jitter_steps == 0 {
                service = CAPACITY * (1.0 + JITTER * (2.0 * self.rng.f64() - 1.0));
            }
            let stalled = self.stalled_share();
            stall_s = if stalled > 0.0 { stall_s + stalled * STEP_S } else { 0.0 };
            longest_s = longest_s.max(stall_s);
            backlog += rate * STEP_S;
            let served = backlog.min(service * STEP_S * (1.0 - stalled));
            backlog -= served;
            served_sum += served;
            let excess = (backlog - self.kind.buffer_s * CAPACITY).max(0.0);
            backlog -= excess;
            lost += excess;
            if (step + 1) % sample_steps == 0 {
                samples.push(((step + 1) as f64 * STEP_S, backlog));
            }
        }
        TrialOutcome {
            duration_s,
            elapsed_s: duration_s,
            offered_events: (rate * duration_s / EVENT) as u64,
            lost_events: (lost / EVENT).ceil() as u64,
            backlog_growing: backlog_grows(&samples, rate),
            longest_stall: Some(Duration::from_secs_f64(longest_s)),
            buffer: Some(Duration::from_secs_f64(self.kind.buffer_s * CAPACITY / rate)),
            achieved_rate: served_sum / duration_s,
            offered_rate: rate,
            failed: None,
            generator_limited: false,
        }
    }
}
