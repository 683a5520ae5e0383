//! Simulated data path: fluids from source to volume in steps of 1 ms, with the occupancy of every stage.
//!
//! The same seed gives the same path. Every stage varies by 5 % within a trial and by 5 % between trials.

use std::time::Duration;

use fastrand::Rng;
use keepup_qualify::bottleneck::{Evidence, ReducerEvidence, VolumeEvidence};
use keepup_qualify::counter::Change;
use keepup_results::CounterRate;

const STEP_S: f64 = 1e-3;
/// Interval at which the speed of every stage is redrawn, steps.
const JITTER_STEPS: usize = 100;
/// Maximum relative deviation of a stage's speed, within a trial and between trials.
const JITTER: f64 = 0.05;
/// Socket buffers of sender and receiver, bytes.
const SOCKET_BYTES: f64 = 4e6;
/// Blocks that may be in flight on the volume, bytes.
const QUEUE_BYTES: f64 = 8e6;
/// Time at the start in which a drain has no data yet, seconds.
const DRAIN_START_S: f64 = 1.0;
/// Share of the CPU time that busy cores leave to the recorder.
const LEFT_BY_BUSY_CORES: f64 = 0.6;
/// Backlog at the end, in seconds of the rate, above which it counts as growing.
const GROWING_S: f64 = 0.05;

/// Speeds in bytes/s; sizes in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chain {
    pub(crate) source: f64,
    pub(crate) link: f64,
    pub(crate) intake: f64,
    /// Share of the CPU time that the recorder's threads get.
    pub(crate) cpu: f64,
    pub(crate) reduce: Option<f64>,
    pub(crate) volume: f64,
    /// Mean time between stalls of the volume and their length, seconds.
    pub(crate) stalls: Option<(f64, f64)>,
    /// Rate of the drain that is wanted, and that it reaches.
    pub(crate) drain: Option<(f64, f64)>,
    pub(crate) pool: f64,
    /// The detector's buffer.
    pub(crate) buffer: f64,
}

/// A path without a bottleneck below 3 GB/s.
pub(crate) const WIDE: Chain = Chain {
    source: 8e9,
    link: 6e9,
    intake: 5e9,
    cpu: 1.0,
    reduce: None,
    volume: 3e9,
    stalls: None,
    drain: None,
    pool: 512e6,
    buffer: 64e6,
};

/// Outcome of one trial.
pub(crate) struct Trial {
    pub(crate) evidence: Evidence,
    pub(crate) rate: CounterRate,
}

/// Amounts of one trial.
#[derive(Default)]
struct Flow {
    at_source: f64,
    socket: f64,
    unreduced: f64,
    queued: f64,
    written: f64,
    drained: f64,
    /// Drained in the time in which the drain is not judged.
    drained_before: f64,
    lost: f64,
    // Sums over the steps of the share of each.
    blocked: f64,
    intake: f64,
    reduce: f64,
    volume: f64,
    full: f64,
    pool_empty: f64,
}

impl Chain {
    /// The path with the change of a counter-trial.
    pub(crate) fn changed(mut self, change: Change, is_changed: bool) -> Self {
        match (change, is_changed) {
            (Change::Discard, true) => (self.volume, self.stalls, self.drain) = (f64::INFINITY, None, None),
            (Change::NoReduction, _) => {
                (self.volume, self.stalls, self.drain) = (f64::INFINITY, None, None);
                self.reduce = self.reduce.filter(|_| !is_changed);
            }
            (Change::LargerPool(bytes), true) => self.pool = bytes as f64,
            (Change::NoDrain, true) => self.drain = None,
            (Change::AnyCpu, true) => self.cpu = 1.0,
            (Change::BusyCores(_), true) => self.cpu *= LEFT_BY_BUSY_CORES,
            (Change::NetworkAlone, true) => {
                self = Self { link: self.link, ..Self::unlimited() };
            }
            (Change::SourceAlone, true) => self = Self { source: self.source, ..Self::unlimited() },
            _ => {}
        }
        self
    }

    fn unlimited() -> Self {
        let speed = 1e11;
        Self { source: speed, link: speed, intake: speed, volume: speed, ..WIDE }
    }

    /// Every stage faster or slower by the same random factor each.
    fn varied(mut self, rng: &mut Rng) -> Self {
        let mut vary = |speed: f64| speed * (1.0 + JITTER * (2.0 * rng.f64() - 1.0));
        self.source = vary(self.source);
        self.link = vary(self.link);
        self.intake = vary(self.intake);
        self.volume = vary(self.volume);
        self.reduce = self.reduce.map(&mut vary);
        self.drain = self.drain.map(|(wanted, reached)| (wanted, vary(reached)));
        self
    }

    /// Runs one trial at `rate`, or unthrottled.
    pub(crate) fn run(&self, rate: Option<f64>, duration: Duration, rng: &mut Rng) -> Trial {
        let steps = (duration.as_secs_f64() / STEP_S).round() as usize;
        let (today, mut now, mut flow) = (self.varied(rng), *self, Flow::default());
        let (mut to_stall_s, mut stalled_s) = (self.next_stall(rng), 0.0);
        for step in 0..steps {
            if step % JITTER_STEPS == 0 {
                now = today.varied(rng);
            }
            to_stall_s -= STEP_S;
            if to_stall_s <= 0.0 {
                stalled_s = self.stalls.map_or(0.0, |(_, length_s)| length_s);
                to_stall_s = stalled_s + self.next_stall(rng);
            }
            stalled_s -= STEP_S;
            flow.step(&now, rate, stalled_s > 0.0);
            if step as f64 * STEP_S <= DRAIN_START_S {
                flow.drained_before = flow.drained;
            }
        }
        self.trial(rate, steps, &flow)
    }

    fn next_stall(&self, rng: &mut Rng) -> f64 {
        self.stalls.map_or(f64::INFINITY, |(every_s, _)| every_s * (0.5 + rng.f64()))
    }

    fn trial(&self, asked: Option<f64>, steps: usize, flow: &Flow) -> Trial {
        let seconds = steps as f64 * STEP_S;
        let share = |sum: f64| sum / steps as f64;
        let left = flow.socket + flow.unreduced + flow.queued;
        // What is left is written after the end, and that time counts.
        let durable = flow.written + left;
        let rate = durable / (seconds + left / self.volume);
        let owed = self.drain.map_or(0.0, |(wanted, _)| wanted * (seconds - DRAIN_START_S));
        let drain_behind =
            (flow.drained - flow.drained_before < 0.9 * owed).then(|| "the drain fell behind".to_owned());
        let backlog = flow.at_source + left;
        let is_growing = asked.is_some_and(|asked| backlog > GROWING_S * asked);
        let starved = 1.0 - self.cpu;
        let evidence = Evidence {
            rate: durable / seconds,
            durable_rate: rate,
            asked,
            lost: flow.lost > 0.0,
            source_blocked: share(flow.blocked),
            intakes: 1,
            intake_busy: share(flow.intake),
            intake_starved: share(flow.intake) * starved,
            intake_cpu: share(flow.intake) * self.cpu,
            pool_empty: share(flow.pool_empty),
            reducers: self.reduce.iter().map(|_| reducer(share(flow.reduce), self.cpu)).collect(),
            volumes: vec![VolumeEvidence {
                path: "/data".into(),
                full: share(flow.full),
                writer_starved: share(flow.volume) * starved,
                ..VolumeEvidence::default()
            }],
            failed: flow.lost > 0.0 || is_growing || drain_behind.is_some(),
            drain_behind: drain_behind.clone(),
        };
        let held = flow.lost == 0.0 && drain_behind.is_none();
        Trial { evidence, rate: CounterRate { bytes_per_second: rate, held } }
    }
}

fn reducer(busy: f64, cpu: f64) -> ReducerEvidence {
    ReducerEvidence { busy, cpu: busy * cpu, starved: busy * (1.0 - cpu) }
}

impl Flow {
    fn step(&mut self, now: &Chain, rate: Option<f64>, is_stalled: bool) {
        let waiting = match rate {
            Some(rate) => {
                self.at_source += rate * STEP_S;
                self.at_source
            }
            None => f64::INFINITY,
        };
        let offered = (now.source * STEP_S).min(waiting);
        let sent = offered.min(now.link * STEP_S).min(SOCKET_BYTES - self.socket);
        self.blocked += (offered - sent) / (now.source * STEP_S);
        self.socket += sent;
        if rate.is_some() {
            let excess = (self.at_source - sent - now.buffer).max(0.0);
            self.at_source -= sent + excess;
            self.lost += excess;
        }
        let intake = now.intake * now.cpu * STEP_S;
        let free = (now.pool - self.unreduced - self.queued).max(0.0);
        let taken = self.socket.min(intake).min(free);
        self.intake += taken / intake;
        self.pool_empty += f64::from(u8::from(free < self.socket.min(intake)));
        self.socket -= taken;
        self.unreduced += taken;
        let reduced = now.reduce.map_or(self.unreduced, |speed| {
            let most = speed * now.cpu * STEP_S;
            self.reduce += self.unreduced.min(most) / most;
            self.unreduced.min(most)
        });
        self.unreduced -= reduced;
        self.queued += reduced;
        let most = if is_stalled { 0.0 } else { now.volume * STEP_S };
        let written = self.queued.min(most);
        self.volume += f64::from(u8::from(self.queued > 0.0));
        self.queued -= written;
        self.written += written;
        self.full += f64::from(u8::from(self.queued >= QUEUE_BYTES));
        if let Some((wanted, reached)) = now.drain {
            self.drained += (wanted.min(reached) * STEP_S).min(self.written - self.drained);
        }
    }
}
