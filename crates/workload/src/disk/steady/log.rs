//! What a run of hours leaves behind: samples, files, changes and rounds, in memory that does not grow.
use std::collections::VecDeque;
use std::time::Duration;

use keepup_measure::stats::{Change, ChangeDetector, STEADY_ROUNDS, steady_window};
use keepup_results::{
    SteadyChange, SteadyConditions, SteadyFile, SteadyFinding, SteadyLap, SteadyRounds, SteadySample,
};

use super::causes::Sides;
use super::thinned::Thinned;

/// Samples and files that a result has, at most: a sample each second for an hour.
const SAMPLES_MAX: usize = 3600;
/// Changes that a result has, at most; later ones are told and counted.
const CHANGES_MAX: usize = 1000;
/// Seconds that are remembered one by one, to look back at what went on: more than a doubt of the detector
/// lasts, and the level before it.
const RECENT: usize = 256;
/// Seconds before a change that stand for the level before.
const BEFORE: usize = 30;
/// A shorter sample, at the end of a lap, says nothing of the level. Seconds.
const SAMPLE_SECONDS_MIN: f64 = 0.5;

/// The log.
pub(super) struct Log {
    begin_ns: u64,
    last_ns: u64,
    last_bytes: u64,
    samples: Thinned<SteadySample>,
    files: Thinned<SteadyFile>,
    detector: ChangeDetector,
    /// Samples that the detector has seen.
    seen: u64,
    /// The latest of them.
    recent: VecDeque<SteadySample>,
    changes: Vec<SteadyChange>,
    changes_left_out: u64,
    round: Duration,
    rounds: Rounds,
    laps: Vec<SteadyLap>,
}

/// Rounds of the lap that goes on.
#[derive(Default)]
struct Rounds {
    /// Begin of the round: nanoseconds on the clock, and bytes written until then.
    begin: Option<(u64, u64)>,
    /// Rates of the last ones, bytes per second.
    rates: VecDeque<f64>,
    count: u64,
    reached: Option<SteadyRounds>,
    last: Option<SteadyRounds>,
    overwrites: bool,
}

impl Log {
    /// Begins now, at `begin_ns`, with rounds of this length.
    pub(super) fn new(begin_ns: u64, round: Duration) -> Self {
        Self {
            begin_ns,
            last_ns: begin_ns,
            last_bytes: 0,
            samples: Thinned::new(SAMPLES_MAX),
            files: Thinned::new(SAMPLES_MAX),
            detector: ChangeDetector::default(),
            seen: 0,
            recent: VecDeque::new(),
            changes: Vec::new(),
            changes_left_out: 0,
            round,
            rounds: Rounds { begin: Some((begin_ns, 0)), ..Rounds::default() },
            laps: Vec::new(),
        }
    }

    fn seconds(&self, now_ns: u64) -> f64 {
        now_ns.saturating_sub(self.begin_ns) as f64 / 1e9
    }

    /// A sample: `bytes` had been written by `now_ns`. The change of level that it completes, if it does.
    pub(super) fn tick(
        &mut self,
        now_ns: u64,
        bytes: u64,
        overwrites: bool,
        conditions: SteadyConditions,
    ) -> Option<SteadyChange> {
        let seconds = now_ns.saturating_sub(self.last_ns) as f64 / 1e9;
        if seconds <= 0.0 {
            return None;
        }
        let written = bytes.saturating_sub(self.last_bytes);
        (self.last_ns, self.last_bytes) = (now_ns, bytes);
        let rate = written as f64 / seconds;
        let sample = SteadySample {
            at_seconds: self.seconds(now_ns),
            at_bytes: bytes,
            seconds,
            bytes: written,
            lowest_bytes_per_second: rate,
            overwrites,
            conditions,
        };
        self.samples.push(sample);
        self.rounds.overwrites |= overwrites;
        if seconds < SAMPLE_SECONDS_MIN {
            return None;
        }
        self.round(now_ns, bytes);
        self.recent.push_back(sample);
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        self.seen += 1;
        let change = self.detector.push(rate)?;
        let change = self.told(change);
        match self.changes.len() {
            CHANGES_MAX => self.changes_left_out += 1,
            _ => self.changes.push(change.clone()),
        }
        Some(change)
    }

    /// What a change is in time and bytes, and what may have caused it.
    fn told(&mut self, change: Change) -> SteadyChange {
        let first = self.seen - self.recent.len() as u64;
        let samples = self.recent.make_contiguous();
        let (before, after) = samples.split_at(samples.len().min(change.at.saturating_sub(first) as usize));
        let sides = Sides {
            before: &before[before.len().saturating_sub(BEFORE)..],
            after,
            rate_before: change.before,
            is_drop: change.after < change.before,
        };
        let (at_seconds, at_bytes) = before.last().map_or((0.0, 0), |last| (last.at_seconds, last.at_bytes));
        SteadyChange {
            at_seconds,
            at_bytes,
            noticed_seconds: after.last().map_or(at_seconds, |last| last.at_seconds),
            before_bytes_per_second: change.before,
            after_bytes_per_second: change.after,
            causes: sides.causes(),
        }
    }

    /// Ends a round that is long enough.
    fn round(&mut self, now_ns: u64, bytes: u64) {
        let (begin_ns, begin_bytes) = *self.rounds.begin.get_or_insert((now_ns, bytes));
        let passed_ns = now_ns.saturating_sub(begin_ns);
        // A round begins and ends with a sample; one that is a hair short would else last a second more.
        if passed_ns as f64 / 1e9 + SAMPLE_SECONDS_MIN < self.round.as_secs_f64() || passed_ns == 0 {
            return;
        }
        let at_seconds = self.seconds(now_ns);
        let rounds = &mut self.rounds;
        rounds.begin = Some((now_ns, bytes));
        rounds.count += 1;
        rounds.rates.push_back((bytes - begin_bytes) as f64 * 1e9 / passed_ns as f64);
        if rounds.rates.len() > STEADY_ROUNDS {
            rounds.rates.pop_front();
        }
        let Some(window) = steady_window(rounds.rates.make_contiguous()) else { return };
        let told = SteadyRounds {
            at_seconds,
            at_bytes: bytes,
            bytes_per_second: window.average,
            range_share: window.range_share,
            drift_share: window.drift_share,
        };
        rounds.last = Some(told);
        if window.is_steady() {
            rounds.reached.get_or_insert(told);
        }
    }

    /// A file was left behind.
    pub(super) fn file(&mut self, file: SteadyFile) {
        self.files.push(file);
    }

    /// The latest sample that was long enough to say something.
    pub(super) fn latest(&self) -> Option<&SteadySample> {
        self.recent.back()
    }

    /// The lap ends; rounds begin anew, with the next sample.
    pub(super) fn end_lap(&mut self) {
        let rounds = std::mem::take(&mut self.rounds);
        self.rounds.begin = Some((self.last_ns, self.last_bytes));
        let Rounds { count, reached, last, overwrites, .. } = rounds;
        self.laps.push(SteadyLap { overwrites, rounds: count, reached, last });
    }

    /// All of it; `cut_short` says why there is not more.
    pub(super) fn finding(&self, cut_short: Option<String>) -> SteadyFinding {
        SteadyFinding {
            samples: self.samples.items(),
            files: self.files.items(),
            changes: self.changes.clone(),
            changes_left_out: self.changes_left_out,
            round_seconds: self.round.as_secs_f64(),
            laps: self.laps.clone(),
            cut_short,
        }
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
