//! Input of the search (outcome of a trial) and its result (record of all trials).

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Outcome of a trial or soak.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialOutcome {
    /// Time for which load was offered, seconds; shorter than requested if the trial was cut off.
    pub duration_s: f64,
    /// Part of that up to the first loss, seconds; 0 if unknown.
    pub clean_s: f64,
    /// Time it cost, set-up and drain included, seconds; counts against the budget.
    pub elapsed_s: f64,
    /// Payload that it wrote, bytes; counts against the bytes of the plan.
    pub bytes: f64,
    /// Events due in that time, sent or not.
    pub offered_events: u64,
    /// Events lost at the source or after it.
    pub lost_events: u64,
    /// Verdict of [`backlog_grows`](super::backlog_grows).
    pub backlog_growing: bool,
    /// Longest time in which nothing came through, if it was measured.
    pub longest_stall: Option<Duration>,
    /// Longest stall that the buffers survive at this rate, if they are bounded and known.
    pub buffer: Option<Duration>,
    /// Throughput, bytes/s.
    pub achieved_rate: f64,
    /// Rate offered by the generator, bytes/s; below the requested rate if it was too slow.
    pub offered_rate: f64,
    /// Any other condition that failed (late drain, corrupt data); makes the trial bad for every goal.
    pub failed: Option<String>,
    /// The generator did not keep its schedule, so the outcome is no evidence about the machine.
    pub generator_limited: bool,
}

impl TrialOutcome {
    /// Share of the offered events that was lost, 0 to 1; 1 if no event was due, which proves nothing.
    pub fn loss_ratio(&self) -> f64 {
        if self.offered_events == 0 {
            return 1.0;
        }
        (self.lost_events as f64 / self.offered_events as f64).min(1.0)
    }

    /// Throughput outside of the longest stall, which is no change of speed; bytes/s.
    pub(super) fn rate_outside_stall(&self) -> f64 {
        let stall_s = self.longest_stall.map_or(0.0, |stall| stall.as_secs_f64());
        let moving_s = self.duration_s - stall_s;
        if moving_s > 0.0 { self.achieved_rate * self.duration_s / moving_s } else { f64::INFINITY }
    }

    /// Whether events were lost and a stall exceeded the buffer.
    pub(super) fn stall_exceeds_buffer(&self) -> bool {
        let too_long = self.longest_stall.zip(self.buffer).is_some_and(|(stall, buffer)| stall > buffer);
        too_long && self.lost_events > 0 && !self.generator_limited
    }

    /// First condition that failed, in the order of judging.
    pub(super) fn first_failed(&self) -> Option<FailedCondition> {
        if self.generator_limited {
            Some(FailedCondition::Generator)
        } else if self.loss_ratio() > 0.0 {
            Some(FailedCondition::Loss)
        } else if self.backlog_growing {
            Some(FailedCondition::Backlog)
        } else {
            self.failed.clone().map(FailedCondition::Other)
        }
    }
}

/// Purpose of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The target rate, tried first.
    Target,
    /// Coarse, short trials that locate the knee.
    Narrow,
    /// Full-length trials that decide the knee.
    Knee,
    /// Long run without tolerance.
    Soak,
    /// The knee once more after the soaks, to see whether the machine has become slower.
    Recheck,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Target => "target",
            Self::Narrow => "narrow",
            Self::Knee => "knee",
            Self::Soak => "soak",
            Self::Recheck => "recheck",
        })
    }
}

/// First condition that a trial did not meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailedCondition {
    /// The generator did not keep its schedule; the trial is no evidence about the machine.
    Generator,
    /// Events were lost, or none was due.
    Loss,
    /// The backlog grew.
    Backlog,
    /// Another condition, described by the trial.
    Other(String),
}

impl fmt::Display for FailedCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Generator => f.write_str("generator too slow"),
            Self::Loss => f.write_str("events lost"),
            Self::Backlog => f.write_str("backlog grows"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

/// One trial or soak: request and outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialRecord {
    /// Purpose.
    pub phase: Phase,
    /// Requested rate, bytes/s.
    pub rate: f64,
    /// Requested length.
    pub duration: Duration,
    /// First condition that failed; none if all held without loss.
    pub failed: Option<FailedCondition>,
    /// Outcome.
    pub outcome: TrialOutcome,
}

/// Interval of a knee, bytes/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Highest rate found good below every bad one.
    pub lower: f64,
    /// Lowest rate found bad; none if no rate was.
    pub upper: Option<f64>,
}

/// The soaks that held at the qualified rate, and those that failed before.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SoakRecord {
    /// Their rate, bytes/s.
    pub rate: f64,
    /// Soaks in a row that held.
    pub passes: u32,
    /// Their time, seconds.
    pub seconds: f64,
    /// Soaks run in all, without those that the generator spoiled.
    pub attempts: u32,
    /// Soaks that failed, all at higher rates.
    pub failed: u32,
    /// Time of all soaks at this rate or above up to the first loss of each, seconds.
    pub exposed_s: f64,
}

impl SoakRecord {
    /// Upper bound of the incidents per second that the soaks do not exclude at 95 % confidence. An incident
    /// is a loss of one or more events in a row.
    ///
    /// `3 (n + 1) / T` with n failed soaks and T the time of [`exposed_s`](Self::exposed_s). Without a
    /// failure it is the rule of three: no incident in T seconds has the probability exp(-rate T), 0.05 at 3
    /// / T. Repeating soaks until one holds would make that too optimistic. With incidents that come at
    /// random at a rate above 3 / soak time, a soak holds with less than 0.05, and after n failures the
    /// bound is too low only if those ran almost to their end, which is rarer still: the test
    /// `the_bound_holds_in_95_of_100_searches` computes how often.
    pub fn incidents_per_s_max(&self) -> f64 {
        RULE_OF_THREE * f64::from(self.failed + 1) / self.exposed_s
    }
}

/// Incidents that no incident excludes at 95 % confidence: exp(-3) is 0.05.
const RULE_OF_THREE: f64 = 3.0;

/// What came through after a soak that held, and how much less it was than before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slower {
    /// Rate that trials held before, bytes/s.
    pub from: f64,
    /// What came through at last, bytes/s.
    pub to: f64,
}

/// Reason for the end of the search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum End {
    /// The knee is known to the requested width.
    Converged,
    /// The highest rate of the plan holds: the machine's limit was not found.
    MaxRateHolds,
    /// The lowest rate of the plan does not hold.
    MinRateFails,
    /// The budget of time or bytes was spent; the knee, if any, is wider than requested.
    TimeCap,
    /// The bytes were spent before a soak passed.
    ByteLimit,
    /// There is a knee, but no soak passed, down to the last attempt or the lowest rate.
    SoakFails,
    /// Rates held a soak, but the machine became slower afterwards, each time.
    SlowsDown,
    /// Stalls exceed the buffer, so events are lost at rates far below capacity.
    StallsExceedBuffer {
        /// Longest stall in a trial that lost events to it.
        longest_stall: Duration,
        /// Stall that the buffer bridged in that trial.
        buffer: Duration,
        /// Buffer for the longest stall at that trial's rate, without allowance for stalls in quick
        /// succession, bytes.
        buffer_needed_bytes: f64,
    },
    /// The generator could not offer this rate, so the machine's limit was not found.
    GeneratorLimited {
        /// Lowest rate that it failed to offer, bytes/s.
        rate: f64,
    },
    /// Interrupted.
    Interrupted,
}

/// Result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Highest rate with no loss and no growing backlog, as far as found.
    pub knee: Option<Interval>,
    /// The same with the loss allowed by the second goal.
    pub second_knee: Option<Interval>,
    /// Rate that passed all requested soaks, bytes/s.
    pub qualified_rate: Option<f64>,
    /// The soaks that held, if any did.
    pub soak: Option<SoakRecord>,
    /// How much slower the machine became after its first soak that held, if it did.
    pub slower: Option<Slower>,
    /// Whether trials or soaks that would have narrowed the result were left out because of the bytes.
    pub is_out_of_bytes: bool,
    /// Reason for the end.
    pub end: End,
    /// All trials and soaks in order.
    pub trials: Vec<TrialRecord>,
}

impl Outcome {
    /// The longest stall seen that the buffer does not bridge at `rate` bytes/s, and what it bridges there.
    pub fn unbridged_stall(&self, rate: f64) -> Option<(Duration, Duration)> {
        let own = self.trials.iter().filter(|trial| !trial.outcome.generator_limited);
        let stalls = own.filter_map(|trial| {
            let (stall, buffer) = trial.outcome.longest_stall.zip(trial.outcome.buffer)?;
            let bridged = Duration::try_from_secs_f64(buffer.as_secs_f64() * trial.rate / rate).ok()?;
            (stall > bridged).then_some((stall, bridged))
        });
        stalls.max_by_key(|(stall, _)| *stall)
    }

    /// The lowest rate above the qualified one, or of all without one, at which the machine failed.
    pub fn lowest_failed(&self) -> Option<&TrialRecord> {
        let own = |trial: &&TrialRecord| trial.failed.is_some() && !trial.outcome.generator_limited;
        let above = |trial: &&TrialRecord| self.qualified_rate.is_none_or(|rate| trial.rate > rate);
        self.trials.iter().filter(own).filter(above).min_by(|a, b| a.rate.total_cmp(&b.rate))
    }
}
