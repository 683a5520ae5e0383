//! What goes into the search (one trial's outcome) and what comes out (the record of all of them).

use std::fmt;
use std::time::Duration;

/// What one trial or soak saw at the rate it was asked to run.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialOutcome {
    /// Time for which load was offered, seconds; shorter than asked if the trial was cut off.
    pub duration_s: f64,
    /// Time it cost, set-up and drain included, seconds; counts against the budget.
    pub elapsed_s: f64,
    /// Events that were due in that time, sent or not.
    pub offered_events: u64,
    /// Events lost at the source or after it.
    pub lost_events: u64,
    /// Verdict of [`backlog_grows`](super::backlog_grows).
    pub backlog_growing: bool,
    /// Longest time in which nothing came through, if it was measured.
    pub longest_stall: Option<Duration>,
    /// Longest stall that the buffers survive at this rate, if they are bounded and known.
    pub buffer: Option<Duration>,
    /// What came through, bytes/s.
    pub achieved_rate: f64,
    /// What the generator really offered, bytes/s; below the rate asked for if it was too slow.
    pub offered_rate: f64,
    /// Any other condition that failed (late drain, corrupt data); makes the trial bad for every goal.
    pub failed: Option<String>,
    /// The generator did not keep its schedule: the outcome says nothing about the machine.
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

    /// Lost events, and a stall that the buffer could not bridge.
    pub(super) fn stall_exceeds_buffer(&self) -> bool {
        let too_long = self.longest_stall.zip(self.buffer).is_some_and(|(stall, buffer)| stall > buffer);
        too_long && self.lost_events > 0 && !self.generator_limited
    }

    /// First condition that failed, in the order in which they are judged.
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

/// Why a trial was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The rate that answers the question asked, tried first.
    Target,
    /// Coarse, short trials that find where the knee lies.
    Narrow,
    /// Full-length trials that decide the knee.
    Knee,
    /// Long run without tolerance.
    Soak,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Target => "target",
            Self::Narrow => "narrow",
            Self::Knee => "knee",
            Self::Soak => "soak",
        })
    }
}

/// First condition that a trial did not meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailedCondition {
    /// The generator did not keep its schedule; the trial counts neither for nor against the machine.
    Generator,
    /// Events were lost, or none was due.
    Loss,
    /// The backlog grew.
    Backlog,
    /// Another condition, in the words of the trial.
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

/// One trial or soak as it was asked for and as it went.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialRecord {
    /// Why it was run.
    pub phase: Phase,
    /// Rate asked for, bytes/s.
    pub rate: f64,
    /// Length asked for.
    pub duration: Duration,
    /// First condition that failed; none if all held without loss.
    pub failed: Option<FailedCondition>,
    /// What it saw.
    pub outcome: TrialOutcome,
}

/// Where a knee lies, bytes/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Highest rate found good below every bad one.
    pub lower: f64,
    /// Lowest rate found bad; none if no rate was.
    pub upper: Option<f64>,
}

/// The soaks that held, or how many did not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SoakRecord {
    /// Rate of the last soak, bytes/s.
    pub rate: f64,
    /// Soaks in a row that held at that rate.
    pub passes: u32,
    /// Their time, seconds.
    pub seconds: f64,
    /// Soaks run in all.
    pub attempts: u32,
}

/// Why the search ended where it did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum End {
    /// The knee is known to the width asked for.
    Converged,
    /// The highest rate of the plan holds: the machine's limit was not found.
    MaxRateHolds,
    /// The lowest rate of the plan does not hold.
    MinRateFails,
    /// The budget was spent; the knee, if there is one, is wider than asked for.
    TimeCap,
    /// There is a knee, but no soak held, down to the last attempt or the lowest rate.
    SoakFails,
    /// Stalls are longer than the buffer bridges, so events are lost at rates far below capacity.
    StallsExceedBuffer {
        /// Longest stall in a trial that lost events to it.
        longest_stall: Duration,
        /// What the buffer bridged in that trial.
        buffer: Duration,
        /// Buffer that just holds the longest stall at that trial's rate, with no allowance for stalls
        /// in quick succession, bytes.
        buffer_needed_bytes: f64,
    },
    /// The generator could not offer this rate, so the machine's limit was not found.
    GeneratorLimited {
        /// Lowest rate that it failed to offer, bytes/s.
        rate: f64,
    },
    /// Stopped before it was finished.
    Interrupted,
}

/// Result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Highest rate with no loss and no growing backlog, as far as it was found.
    pub knee: Option<Interval>,
    /// The same with the loss that the second goal allows.
    pub second_knee: Option<Interval>,
    /// Rate that held for all soaks asked for, bytes/s.
    pub qualified_rate: Option<f64>,
    /// The soaks, if there were any.
    pub soak: Option<SoakRecord>,
    /// Why it ended.
    pub end: End,
    /// Every trial and soak, in the order in which they ran.
    pub trials: Vec<TrialRecord>,
    /// Loss that the soaks cannot exclude at 95 % confidence, events/s: 3/T after T lossless seconds
    /// (rule of three); none if no soak held.
    pub upper_bound_loss_per_s: Option<f64>,
}
