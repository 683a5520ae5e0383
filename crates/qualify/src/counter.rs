//! Counter-trials: a nominated stage is changed, and the rate must follow. Events in, actions out; pure.
//!
//! Occupancy nominates stages, but a full queue may be the consequence of another stage. Trials without and
//! with one change, in turns, decide: the first nominee whose change has the expected effect in every pair is
//! the bottleneck. One that cannot be tested stays named, not confirmed, if its figures pass the rule of its
//! stage. The machine drifts, so only trials side by side are compared.
//!
//! Invariant: at most `nominees x pairs x 2` steps.
use std::time::Duration;

use keepup_measure::stats::median;
use keepup_recorder::{RecorderConfig, Target};
use keepup_results::format::bytes;
use keepup_results::{Bottleneck, CounterPair, CounterRate, CounterTrial, ExpectedEffect};

use crate::bottleneck::{Nominee, Stage};

/// The pool is enlarged by this factor.
const POOL_FACTOR: usize = 4;
/// One core of so many is kept busy.
const CORES_PER_BUSY: usize = 4;
/// Least length of a trial at a fixed rate: a drain needs a second before it can be judged.
const HOLDS_MIN: Duration = Duration::from_secs(3);

/// Least ratio of every pair and of their median for a rate that rises. Of two trials of the same path whose
/// rates vary by 5 % the ratio exceeds the first in 24 of 100 pairs.
const RISES: (f64, f64) = (1.05, 1.10);
/// Highest ratios of a rate that falls.
const FALLS: (f64, f64) = (1.0, 0.95);
/// Highest ratios of a rate that stays: the path has its own cost beside the stage's.
const STAYS: (f64, f64) = (1.5, 1.25);

/// Change of the path that tests a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Blocks are discarded instead of written.
    Discard,
    /// Blocks are discarded and not reduced; without the change they are discarded only.
    NoReduction,
    /// A larger pool, bytes.
    LargerPool(usize),
    /// No drain.
    NoDrain,
    /// The recorder's threads may run on any CPU.
    AnyCpu,
    /// Cores are kept busy.
    BusyCores(usize),
    /// The network alone.
    NetworkAlone,
    /// The source alone.
    SourceAlone,
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Discard => f.write_str("blocks discarded instead of written"),
            Self::NoReduction => f.write_str("blocks not reduced, discarded in both"),
            Self::LargerPool(size) => write!(f, "a pool of {}", bytes(*size as u64)),
            Self::NoDrain => f.write_str("no drain"),
            Self::AnyCpu => f.write_str("the recorder's threads on any CPU"),
            Self::BusyCores(1) => f.write_str("one core kept busy"),
            Self::BusyCores(cores) => write!(f, "{cores} cores kept busy"),
            Self::NetworkAlone => f.write_str("the network alone"),
            Self::SourceAlone => f.write_str("the source alone"),
        }
    }
}

impl Change {
    /// Changes the recorder of a trial; `is_changed` is false for the other trial of a pair.
    pub fn apply(self, is_changed: bool, recorder: &mut RecorderConfig) {
        match (self, is_changed) {
            (Self::Discard, true) => recorder.target = Target::Null,
            (Self::NoReduction, _) => {
                recorder.target = Target::Null;
                if is_changed {
                    recorder.reductions.clear();
                }
            }
            (Self::LargerPool(size), true) => recorder.pool_bytes = size,
            (Self::AnyCpu, true) => {
                recorder.cpus.clear();
                recorder.intake_cpus.clear();
                recorder.writer_cpus.clear();
            }
            _ => {}
        }
    }
}

/// What can be changed on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Setup {
    /// The recorder's threads are pinned.
    pub is_pinned: bool,
    /// CPUs of this machine.
    pub cores: usize,
    /// Size of the pool, bytes.
    pub pool_bytes: usize,
    /// Free memory, bytes.
    pub available_bytes: u64,
}

/// A test of one stage.
#[derive(Clone, Debug, PartialEq)]
struct Counter {
    nominee: Nominee,
    change: Change,
    /// Why the stage cannot be tested.
    not_run: Option<String>,
    expected: ExpectedEffect,
    rate: Option<f64>,
    pairs: Vec<CounterPair>,
}

/// Next action.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Run a trial and record its outcome.
    Trial {
        /// Rate to offer, bytes per second; none: unthrottled.
        rate: Option<f64>,
        /// The change.
        change: Change,
        /// Whether it applies to this trial.
        is_changed: bool,
        /// Duration.
        duration: Duration,
    },
    /// None: the nominees are tested.
    Done,
}

/// Tests of the nominees.
#[derive(Clone, Debug)]
pub struct Counters {
    /// The current one last.
    tested: Vec<Counter>,
    /// Nominees that were not tested, the next last.
    left: Vec<Nominee>,
    setup: Setup,
    pairs: usize,
    duration: Duration,
    /// Outcome of the first trial of the current pair.
    unchanged: Option<CounterRate>,
}

impl Counters {
    /// Tests `nominees` in order with `pairs` pairs of trials of `duration` each.
    pub fn new(mut nominees: Vec<Nominee>, setup: Setup, pairs: usize, duration: Duration) -> Self {
        nominees.reverse();
        let mut counters =
            Self { tested: Vec::new(), left: nominees, setup, pairs, duration, unchanged: None };
        counters.advance();
        counters
    }

    /// Next action; unchanged until an outcome is recorded.
    pub fn next(&self) -> Step {
        let is_open = |counter: &&Counter| counter.not_run.is_none() && counter.pairs.len() < self.pairs;
        let Some(counter) = self.tested.last().filter(is_open) else { return Step::Done };
        let duration = match counter.expected {
            ExpectedEffect::Holds => self.duration.max(HOLDS_MIN),
            _ => self.duration,
        };
        let (rate, change) = (counter.rate, counter.change);
        Step::Trial { rate, change, is_changed: self.unchanged.is_some(), duration }
    }

    /// Records the outcome of the trial of [`next`](Self::next).
    pub fn record(&mut self, outcome: CounterRate) {
        let Some(unchanged) = self.unchanged.take() else {
            self.unchanged = Some(outcome);
            return;
        };
        if let Some(counter) = self.tested.last_mut() {
            counter.pairs.push(CounterPair { unchanged, changed: outcome });
        }
        self.advance();
    }

    /// Gives up the current test: its trials cannot run because of `cause`.
    pub fn give_up(&mut self, cause: String) {
        if let Some(counter) = self.tested.last_mut() {
            counter.not_run = Some(cause);
        }
    }

    /// Goes on to the next nominee when the current one is refuted.
    fn advance(&mut self) {
        while self.tested.last().is_none_or(|counter| counter.is_refuted(self.pairs)) {
            let Some(nominee) = self.left.pop() else { return };
            self.tested.push(Counter::new(nominee, &self.setup));
        }
    }

    /// The bottleneck. `unresolved`: candidates, if no nominee is named.
    pub fn bottleneck(&self, unresolved: &str) -> (Stage, Bottleneck) {
        let confirmed = self.tested.iter().find(|counter| counter.is_confirmed(self.pairs));
        let untested = self.tested.iter().find(|counter| counter.stays_named(self.pairs));
        let (stage, evidence) = match confirmed.or(untested) {
            Some(counter) => (counter.nominee.stage.clone(), counter.nominee.evidence.clone()),
            None => (Stage::Unresolved, unresolved.to_owned()),
        };
        let counter_trials = self.tested.iter().map(|counter| counter.result(self.pairs)).collect();
        (stage.clone(), Bottleneck { stage: stage.to_string(), evidence, next: None, counter_trials })
    }
}

impl Counter {
    fn new(nominee: Nominee, setup: &Setup) -> Self {
        let larger = setup.pool_bytes.saturating_mul(POOL_FACTOR);
        let (change, expected) = match &nominee.stage {
            Stage::Volume(_) => (Change::Discard, ExpectedEffect::Rises),
            Stage::Pool => (Change::LargerPool(larger), ExpectedEffect::Holds),
            Stage::Drain => (Change::NoDrain, ExpectedEffect::Holds),
            Stage::Reduction => (Change::NoReduction, ExpectedEffect::Rises),
            Stage::Processor if setup.is_pinned => (Change::AnyCpu, ExpectedEffect::Rises),
            Stage::Processor => {
                (Change::BusyCores((setup.cores / CORES_PER_BUSY).max(1)), ExpectedEffect::Falls)
            }
            Stage::Network => (Change::NetworkAlone, ExpectedEffect::Stays),
            Stage::Source | Stage::Unresolved => (Change::SourceAlone, ExpectedEffect::Stays),
            Stage::Recorder => (Change::Discard, ExpectedEffect::Stays),
        };
        let is_too_large = change == Change::LargerPool(larger) && larger as u64 > setup.available_bytes;
        let not_run = is_too_large.then(|| format!("the free memory does not hold {change}"));
        let rate = nominee.asked.filter(|_| expected == ExpectedEffect::Holds);
        Self { nominee, change, not_run, expected, rate, pairs: Vec::new() }
    }

    fn ratios(&self) -> Vec<f64> {
        let ratio = |pair: &CounterPair| pair.changed.bytes_per_second / pair.unchanged.bytes_per_second;
        self.pairs.iter().map(ratio).collect()
    }

    /// Whether all pairs were run and show the effect.
    fn is_confirmed(&self, pairs: usize) -> bool {
        self.pairs.len() == pairs && pairs > 0 && self.shows_effect()
    }

    fn is_refuted(&self, pairs: usize) -> bool {
        self.pairs.len() == pairs && !self.is_confirmed(pairs)
    }

    /// Whether the stage is named without its test: pairs are missing, but its figures pass the rule and no
    /// pair contradicts it.
    fn stays_named(&self, pairs: usize) -> bool {
        self.pairs.len() < pairs && self.nominee.is_clear() && self.all_agree()
    }

    /// Whether no pair alone excludes the effect.
    fn all_agree(&self) -> bool {
        match self.expected {
            ExpectedEffect::Rises => self.ratios().iter().all(|&ratio| ratio >= RISES.0),
            ExpectedEffect::Falls => self.ratios().iter().all(|&ratio| ratio <= FALLS.0),
            ExpectedEffect::Stays => self.ratios().iter().all(|&ratio| ratio <= STAYS.0),
            ExpectedEffect::Holds => self.pairs.iter().all(|pair| pair.changed.held),
        }
    }

    fn shows_effect(&self) -> bool {
        let Some(middle) = median(&self.ratios()) else { return false };
        let failed = self.pairs.iter().filter(|pair| !pair.unchanged.held).count();
        let is_enough = match self.expected {
            ExpectedEffect::Rises => middle >= RISES.1,
            ExpectedEffect::Falls => middle <= FALLS.1,
            ExpectedEffect::Stays => middle <= STAYS.1,
            ExpectedEffect::Holds => 2 * failed >= self.pairs.len(),
        };
        is_enough && self.all_agree()
    }

    fn result(&self, pairs: usize) -> CounterTrial {
        let unfinished = || (self.pairs.len() < pairs).then(|| "the run ended before".to_owned());
        CounterTrial {
            stage: self.nominee.stage.to_string(),
            change: self.change.to_string(),
            expected: self.expected,
            pairs: self.pairs.clone(),
            confirmed: self.is_confirmed(pairs),
            not_run: self.not_run.clone().or_else(unfinished),
        }
    }
}

#[cfg(test)]
#[path = "counter_tests.rs"]
mod tests;
