//! Simulated machine: a fluid queue with jitter, stalls and a bounded buffer, in steps of 10 ms.
//!
//! The same seed gives the same machine. Stalls and pauses of the generator come at random (Poisson).

use std::time::Duration;

use fastrand::Rng;
use keepup_qualify::run_time::{CUT_OFF, TRIAL_OVERHEAD_S};
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
/// Events that a generator loses in a pause.
const PAUSE_EVENTS: u64 = 51;

/// Kind of machine. Of a range, each machine draws one value, log-uniform.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MachineKind {
    pub(crate) name: &'static str,
    /// Buffer in seconds of the capacity.
    pub(crate) buffer_s: f64,
    /// Mean time between stalls, and their longest; each takes half of that or more.
    pub(crate) stalls: Option<[(f64, f64); 2]>,
    /// Share of the capacity lost, and the time that it takes, seconds.
    pub(crate) drift: Option<(f64, f64)>,
    /// Cache of the disk in seconds of the capacity, in which writes are faster by half; empty again after a
    /// pause.
    pub(crate) cache_s: Option<(f64, f64)>,
    /// Mean time between pauses of the generator.
    pub(crate) pause_every_s: Option<(f64, f64)>,
}

impl MachineKind {
    /// Machine without disturbances.
    pub(crate) const fn quiet(name: &'static str, buffer_s: f64) -> Self {
        Self { name, buffer_s, stalls: None, drift: None, cache_s: None, pause_every_s: None }
    }
}

/// Disturbance that comes at random.
#[derive(Clone, Copy)]
struct Disturbance {
    mean_s: f64,
    longest_s: f64,
    /// Time to the start of the next one, negative while it lasts.
    to_next_s: f64,
    length_s: f64,
}

impl Disturbance {
    fn new(mean_s: f64, longest_s: f64, rng: &mut Rng) -> Self {
        let mut new = Self { mean_s, longest_s, to_next_s: 0.0, length_s: 0.0 };
        new.draw(rng);
        new
    }

    fn draw(&mut self, rng: &mut Rng) {
        self.to_next_s = -self.mean_s * (1.0 - rng.f64()).ln();
        self.length_s = self.longest_s * (0.5 + 0.5 * rng.f64());
    }

    /// Disturbed share of the next step.
    fn step(&mut self, rng: &mut Rng) -> f64 {
        self.to_next_s -= STEP_S;
        let disturbed_s = (-self.to_next_s).min(STEP_S).min(self.length_s + STEP_S + self.to_next_s);
        if self.to_next_s < -self.length_s {
            self.draw(rng);
        }
        (disturbed_s / STEP_S).clamp(0.0, 1.0)
    }
}

/// One machine with its random state. Time continues from trial to trial; the queue is empty in between.
pub(crate) struct Machine {
    kind: MachineKind,
    rng: Rng,
    stalls: Option<Disturbance>,
    pauses: Option<Disturbance>,
    cache_bytes: f64,
    /// Bytes in the cache.
    cached: f64,
    time_s: f64,
}

fn log_uniform((low, high): (f64, f64), rng: &mut Rng) -> f64 {
    low * (high / low).powf(rng.f64())
}

impl Machine {
    pub(crate) fn new(kind: MachineKind, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let stalls = kind.stalls.map(|[every, longest]| {
            let (mean_s, longest_s) = (log_uniform(every, &mut rng), log_uniform(longest, &mut rng));
            Disturbance::new(mean_s, longest_s, &mut rng)
        });
        let pauses = kind.pause_every_s.map(|every| {
            let mean_s = log_uniform(every, &mut rng);
            Disturbance::new(mean_s, STEP_S, &mut rng)
        });
        let cache_bytes = kind.cache_s.map_or(0.0, |cache| CAPACITY * log_uniform(cache, &mut rng));
        Self { kind, rng, stalls, pauses, cache_bytes, cached: 0.0, time_s: 0.0 }
    }

    /// The same machine later: rested, with other random numbers.
    pub(crate) fn later(mut self, seed: u64) -> Self {
        self.rng = Rng::with_seed(seed);
        for disturbance in self.stalls.iter_mut().chain(&mut self.pauses) {
            disturbance.draw(&mut self.rng);
        }
        (self.cached, self.time_s) = (0.0, f64::INFINITY);
        self
    }

    /// Mean service rate now, bytes/s.
    fn service(&self) -> f64 {
        let lost = self.kind.drift.map_or(0.0, |(share, time_s)| share * (self.time_s / time_s).min(1.0));
        let drifted = CAPACITY * (1.0 - lost);
        if self.cached < self.cache_bytes { 1.5 * drifted } else { drifted }
    }

    /// Runs one trial.
    pub(crate) fn run(&mut self, rate: f64, duration: Duration) -> TrialOutcome {
        self.run_until(rate, duration, Duration::MAX)
    }

    /// Runs one soak, which is cut off some time after its first loss.
    pub(crate) fn soak(&mut self, rate: f64, duration: Duration) -> TrialOutcome {
        self.run_until(rate, duration, CUT_OFF)
    }

    fn run_until(&mut self, rate: f64, duration: Duration, cut_off: Duration) -> TrialOutcome {
        let steps = (duration.as_secs_f64() / STEP_S).round() as usize;
        let mut left = (cut_off.as_secs_f64() / STEP_S).round() as usize;
        let mut duration_s = duration.as_secs_f64();
        let jitter_steps = (JITTER_EVERY_S / STEP_S).round() as usize;
        let sample_steps = (steps / 100).max(1);
        let (mut backlog, mut lost, mut served_sum, mut jitter) = (0.0f64, 0.0, 0.0, 1.0);
        let (mut stall_s, mut longest_s, mut clean_s, mut pauses) = (0.0, 0.0f64, duration_s, 0u64);
        let mut samples = vec![(0.0, 0.0)];
        for step in 0..steps {
            if step % jitter_steps == 0 {
                jitter = 1.0 + JITTER * (2.0 * self.rng.f64() - 1.0);
            }
            let stalled = self.stalls.as_mut().map_or(0.0, |stalls| stalls.step(&mut self.rng));
            stall_s = if stalled > 0.0 { stall_s + stalled * STEP_S } else { 0.0 };
            longest_s = longest_s.max(stall_s);
            let paused = self.pauses.as_mut().map_or(0.0, |pauses| pauses.step(&mut self.rng));
            pauses += u64::from(paused > 0.0);
            backlog += rate * STEP_S;
            let served = backlog.min(jitter * self.service() * STEP_S * (1.0 - stalled));
            self.cached += served;
            self.time_s += STEP_S;
            backlog -= served;
            served_sum += served;
            let excess = (backlog - self.kind.buffer_s * CAPACITY).max(0.0);
            backlog -= excess;
            if excess > 0.0 && lost == 0.0 {
                clean_s = step as f64 * STEP_S;
            }
            lost += excess;
            if (step + 1) % sample_steps == 0 {
                samples.push(((step + 1) as f64 * STEP_S, backlog));
            }
            if lost > 0.0 || pauses > 0 {
                left -= 1;
            }
            if left == 0 {
                duration_s = (step + 1) as f64 * STEP_S;
                break;
            }
        }
        TrialOutcome {
            duration_s,
            clean_s: clean_s.min(duration_s),
            elapsed_s: duration_s + TRIAL_OVERHEAD_S,
            bytes: served_sum,
            offered_events: (rate * duration_s / EVENT) as u64,
            lost_events: (lost / EVENT).ceil() as u64 + PAUSE_EVENTS * pauses,
            backlog_growing: backlog_grows(&samples, rate),
            longest_stall: Some(Duration::from_secs_f64(longest_s)),
            buffer: Some(Duration::from_secs_f64(self.kind.buffer_s * CAPACITY / rate)),
            achieved_rate: served_sum / duration_s,
            offered_rate: rate,
            failed: None,
            generator_limited: pauses > 0 && lost == 0.0,
        }
    }
}
