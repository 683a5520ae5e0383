//! Goals and limits of a rate search.

use std::borrow::Cow;
use std::time::Duration;

use keepup_error::{Diagnostic, ErrorClass};

/// Settings of one search. Rates are bytes per second.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchPlan {
    /// Lowest rate worth testing, bytes/s.
    pub min_rate: f64,
    /// Highest rate worth testing, bytes/s: what the generator or the fastest component alone can do.
    pub max_rate: f64,
    /// Target rate (required rate times headroom), bytes/s: tried first unless it is above
    /// `max_rate`; the soak stops there before stepping below it.
    pub target_rate: Option<f64>,
    /// Length of the trials that decide the knee.
    pub trial: Duration,
    /// Number of full trials per load: the duration sum S of MLRsearch, divided by `trial`.
    pub sum_trials: u32,
    /// Length of the first, coarse trials; at most `trial`.
    pub initial_trial: Duration,
    /// Number of coarser rounds before the last one; the width doubles with each.
    pub preceding_targets: u32,
    /// Relative width of the knee interval: (upper - lower) / upper.
    pub width: f64,
    /// Share of the trial time at one load that may be bad without making the load bad (E of MLRsearch).
    pub exceed_ratio: f64,
    /// Loss ratio of an optional second goal; the distance of its knee from the lossless one is a
    /// measure of noise.
    pub second_loss_ratio: Option<f64>,
    /// Time limit of the search before the soak, including set-up and drain of the trials. A trial
    /// starts only if it fits; its set-up and drain may exceed the limit.
    pub budget: Duration,
    /// Payload that the trials before the first soak may write, bytes; a trial starts only if it fits.
    pub search_bytes: f64,
    /// Payload that all trials and soaks may write, bytes.
    pub bytes: f64,
    /// Payload that one trial or soak may write, bytes: the free space.
    pub trial_bytes: f64,
    /// Length of one soak; shorter if the bytes do not suffice.
    pub soak: Duration,
    /// Least share of `soak` to which the bytes may shorten a soak above the target. If they do not suffice
    /// for it, the target is soaked instead.
    pub soak_share_min: f64,
    /// First soak rate as a share of the knee. The knee tolerates stalls bridged by the buffer; the
    /// soak must also catch up after them.
    pub soak_start: f64,
    /// Reduction of the rate after the first failed soak, as a share of the rate; doubles with each.
    pub soak_step: f64,
    /// Number of consecutive soaks that must pass.
    pub soak_passes: u32,
    /// Maximum number of soaks, passed or failed; when all failed, one more goes to the target rate.
    pub soak_attempts_max: u32,
    /// Number of soaks after which a rate that held is not refined any further, unless the next rate that
    /// failed is far above it.
    pub soak_refine_max: u32,
}

impl SearchPlan {
    /// The thorough search: trials of 5 s, 1 % wide, a soak of 2 minutes. On a quiet machine it
    /// takes roughly 60 s plus the soak.
    pub fn standard(min_rate: f64, max_rate: f64) -> Self {
        Self {
            min_rate,
            max_rate,
            target_rate: None,
            trial: Duration::from_secs(5),
            sum_trials: 6,
            initial_trial: Duration::from_secs(1),
            preceding_targets: 2,
            width: 0.01,
            exceed_ratio: 0.5,
            second_loss_ratio: Some(1e-4),
            budget: Duration::from_secs(120),
            search_bytes: f64::INFINITY,
            bytes: f64::INFINITY,
            trial_bytes: f64::INFINITY,
            soak: Duration::from_secs(120),
            soak_share_min: 0.5,
            soak_start: 0.96,
            soak_step: 0.05,
            soak_passes: 1,
            soak_attempts_max: 8,
            soak_refine_max: 4,
        }
    }

    /// The quick search: trials of 1.5 s, 3 % wide, a soak of 10 s.
    pub fn quick(min_rate: f64, max_rate: f64) -> Self {
        Self {
            trial: Duration::from_millis(1500),
            preceding_targets: 1,
            width: 0.03,
            second_loss_ratio: None,
            budget: Duration::from_secs(30),
            soak: Duration::from_secs(10),
            soak_attempts_max: 4,
            ..Self::standard(min_rate, max_rate)
        }
    }

    /// The search of `qualify`: trials of 4 s, 1 % wide, within 60 s, soaks of 30 s.
    pub fn qualification(min_rate: f64, max_rate: f64) -> Self {
        Self {
            trial: Duration::from_secs(4),
            sum_trials: 4,
            second_loss_ratio: None,
            budget: Duration::from_secs(60),
            soak: Duration::from_secs(30),
            soak_attempts_max: 5,
            soak_refine_max: 3,
            ..Self::standard(min_rate, max_rate)
        }
    }

    /// The search of `qualify --quick`: trials of 1.5 s, 3 % wide, within 12 s, soaks of 15 s.
    pub fn quick_qualification(min_rate: f64, max_rate: f64) -> Self {
        Self {
            budget: Duration::from_secs(12),
            soak: Duration::from_secs(15),
            soak_attempts_max: 3,
            soak_refine_max: 1,
            ..Self::quick(min_rate, max_rate)
        }
    }

    /// Checks that the settings are consistent.
    ///
    /// # Errors
    /// The first invalid setting, with its valid range.
    pub fn validate(&self) -> Result<(), PlanError> {
        check(positive(self.min_rate), "min_rate", self.min_rate, "above 0")?;
        check(positive(self.max_rate), "max_rate", self.max_rate, "above 0")?;
        if self.min_rate > self.max_rate {
            return Err(PlanError::NoRange { min: self.min_rate, max: self.max_rate });
        }
        if let Some(target) = self.target_rate {
            check(positive(target), "target_rate", target, "above 0")?;
        }
        let (initial, trial) = (self.initial_trial.as_secs_f64(), self.trial.as_secs_f64());
        // A trial must have a cost, or the budget would not bound the number of trials.
        check(initial >= 0.001, "initial_trial", initial, "at least 0.001 s")?;
        check(trial >= initial, "trial", trial, "at least as long as initial_trial")?;
        let sum_trials = f64::from(self.sum_trials);
        check((1..=1000).contains(&self.sum_trials), "sum_trials", sum_trials, "1 to 1000")?;
        let preceding = f64::from(self.preceding_targets);
        check(self.preceding_targets <= 8, "preceding_targets", preceding, "0 to 8")?;
        check((0.0001..=0.5).contains(&self.width), "width", self.width, "0.0001 to 0.5")?;
        check((0.0..1.0).contains(&self.exceed_ratio), "exceed_ratio", self.exceed_ratio, "0 to below 1")?;
        if let Some(ratio) = self.second_loss_ratio {
            check((0.0..1.0).contains(&ratio), "second_loss_ratio", ratio, "0 to below 1")?;
        }
        let budget = self.budget.as_secs_f64();
        check(self.budget >= self.trial, "budget", budget, "at least as long as trial")?;
        for (setting, bytes) in
            [("search_bytes", self.search_bytes), ("bytes", self.bytes), ("trial_bytes", self.trial_bytes)]
        {
            check(bytes > 0.0, setting, bytes, "above 0")?;
        }
        check(!self.soak.is_zero(), "soak", 0.0, "longer than 0 s")?;
        let share = self.soak_share_min;
        check((0.0..=1.0).contains(&share), "soak_share_min", share, "0 to 1")?;
        let start = self.soak_start;
        check(start > 0.0 && start <= 1.0, "soak_start", start, "above 0, at most 1")?;
        check(self.soak_step > 0.0 && self.soak_step < 1.0, "soak_step", self.soak_step, "between 0 and 1")?;
        let passes = f64::from(self.soak_passes);
        check(self.soak_passes >= 1, "soak_passes", passes, "at least 1")?;
        let attempts = f64::from(self.soak_attempts_max);
        check(
            self.soak_attempts_max >= self.soak_passes,
            "soak_attempts_max",
            attempts,
            "at least soak_passes",
        )
    }
}

fn positive(rate: f64) -> bool {
    rate.is_finite() && rate > 0.0
}

fn check(holds: bool, setting: &'static str, value: f64, allowed: &'static str) -> Result<(), PlanError> {
    if holds { Ok(()) } else { Err(PlanError::Setting { setting, value, allowed }) }
}

/// Error of a search plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// One setting is out of its range.
    #[error("cannot plan the rate search: {setting} is {value}, it must be {allowed}")]
    Setting {
        /// Name of the setting.
        setting: &'static str,
        /// Its value; seconds for durations.
        value: f64,
        /// Valid range.
        allowed: &'static str,
    },
    /// The lowest rate is above the highest.
    #[error("cannot plan the rate search: the lowest rate, {min} B/s, is above the highest, {max} B/s")]
    NoRange {
        /// Lowest rate, bytes/s.
        min: f64,
        /// Highest rate, bytes/s.
        max: f64,
    },
}

impl Diagnostic for PlanError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Setting { .. } | Self::NoRange { .. } => ErrorClass::Usage,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Setting { setting, allowed, .. } => {
                Some(format!("set {setting} to a value {allowed}").into())
            }
            Self::NoRange { .. } => {
                Some("lower min_rate, or raise max_rate if the generator can do more".into())
            }
        }
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
