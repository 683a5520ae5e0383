//! Log of a long run: samples, files, changes and rounds in constant memory.
use std::collections::VecDeque;
use std::time::Duration;

use keepup_measure::stats::{Change, ChangeDetector, STEADY_ROUNDS, steady_window};
use keepup_results::{
    SteadyChange, SteadyConditions, SteadyFile, SteadyFinding, SteadyLap, SteadyRounds, SteadySample,
};

use super::causes::Sides;
use super::thinned::Thinned;

/// Maximum number of samples and files in a result: one sample per second for an hour.
const SAMPLES_MAX: usize = 3600;
/// Maximum number of changes in a result; later ones are reported and counted.
const CHANGES_MAX: usize = 1000;
/// Seconds of full-resolution history: longer than the detector's decision time plus the level
/// before it.
const RECENT: usize = 256;
/// Seconds before a change that represent the previous level.
const BEFORE: usize = 30;
/// Minimum length of a sample at the end of a pass, seconds.
const SAMPLE_SECONDS_MIN: f64 = 0.5;

/// Log of a run.
pub(super) struct Log {
    begin_ns: u64,
    last_ns: u64,
    last_bytes: u64,
    samples: Thinned<SteadySample>,
    files: Thinned<SteadyFile>,
    detector: ChangeDetector,
    /// Number of samples seen by the detector.
    seen: u64,
    /// The most recent samples.
    recent: VecDeque<SteadySample>,
    changes: Vec<SteadyChange>,
    changes_left_out: u64,
    round: Duration,
    rounds: Rounds,
    laps: Vec<SteadyLap>,
}

/// Rounds of the current pass.
#[derive(Default)]
struct Rounds {
    /// Start of the round: ns on the clock and bytes written.
    begin: Option<(u64, u64)>,
    /// Rates of recent rounds, bytes per second.
    rates: VecDeque<f64>,
    count: u64,
    reached: Option<SteadyRounds>,
    last: Option<SteadyRounds>,
    overwrites: bool,
}

impl Log {
    /// A log that starts at `begin_ns`, with rounds of this length.
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

    /// Adds a sample: `bytes` written by `now_ns`. Returns the change of level that it completes,
    /// if any.
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
        let change = self.describe_change(change);
        match self.changes.len() {
            CHANGES_MAX => self.changes_left_out += 1,
            _ => self.changes.push(change.clone()),
        }
        Some(change)
    }

    /// Time, position and possible causes of a change.
    fn describe_change(&mut self, change: Change) -> SteadyChange {
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
        // Rounds are aligned to samples; without tolerance a slightly short round would last one
        // second longer.
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
        let state = SteadyRounds {
            at_seconds,
            at_bytes: bytes,
            bytes_per_second: window.average,
            range_share: window.range_share,
            drift_share: window.drift_share,
        };
        rounds.last = Some(state);
        if window.is_steady() {
            rounds.reached.get_or_insert(state);
        }
    }

    /// Adds a completed file.
    pub(super) fn file(&mut self, file: SteadyFile) {
        self.files.push(file);
    }

    /// The latest sufficiently long sample.
    pub(super) fn latest(&self) -> Option<&SteadySample> {
        self.recent.back()
    }

    /// Ends the pass; rounds restart with the next sample.
    pub(super) fn end_lap(&mut self) {
        let rounds = std::mem::take(&mut self.rounds);
        self.rounds.begin = Some((self.last_ns, self.last_bytes));
        let Rounds { count, reached, last, overwrites, .. } = rounds;
        self.laps.push(SteadyLap { overwrites, rounds: count, reached, last });
    }

    /// Complete finding; `cut_short` is the reason of an early end.
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
