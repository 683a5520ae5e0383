//! Search plan of a profile, once the speed of what is tested is known. Pure.
use std::time::Duration;

use keepup_error::Cause;
use keepup_plan::Profile;
use keepup_results::format::{bytes, rate, seconds};

use crate::QualifyError;
use crate::search::SearchPlan;

/// Usual limit of bytes written: search, three soaks and counter-trials at 2 GB/s.
const WRITE_BYTES_MAX: u64 = 400_000_000_000;
/// Share of the bytes of search and soaks that is kept for soaks.
const SOAK_SHARE: f64 = 0.5;
/// Largest share of the byte limit that is kept for counter-trials.
const COUNTER_SHARE: f64 = 0.3;
/// Counter-trials without a schedule may be faster than the unthrottled trial by this factor.
pub(crate) const COUNTER_MARGIN: f64 = 1.1;
/// Minimum useful soak, seconds.
const SOAK_SECONDS_MIN: f64 = 2.0;

/// Start of the search relative to the unthrottled rate: a closed loop leaves capacity unused
/// between its turns.
pub const ABOVE_SATURATED: f64 = 2.0;

/// Lowest rate of a search up to `max_rate`, for a detector that needs `required` bytes per second.
pub fn lowest_rate(max_rate: f64, required: f64) -> f64 {
    (max_rate / 20.0).min(required / 4.0)
}

/// Checks a soak time set by the user.
///
/// # Errors
/// A soak that is too short to prove anything.
pub fn check_soak(time: Duration) -> Result<Duration, QualifyError> {
    if time.as_secs_f64() >= SOAK_SECONDS_MIN {
        return Ok(time);
    }
    let what = format!("cannot soak for {} s: at least {SOAK_SECONDS_MIN} s", time.as_secs_f64());
    Err(QualifyError::Settings {
        what: Cause::new(what).with_hint("--soak '30 s', the default without --quick"),
        environment: false,
    })
}

/// What the plan of a search depends on, besides [`Bounds`].
#[derive(Clone, Copy, Debug)]
pub struct SearchRequest<'a> {
    /// The detector.
    pub profile: &'a Profile,
    /// Short search.
    pub quick: bool,
    /// Soak time, if not the default.
    pub soak: Option<Duration>,
    /// Length of the counter-trials that follow the search, seconds.
    pub counter_s: f64,
}

/// Results of the ceilings and the unthrottled trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Lowest rate to try.
    pub min_rate: f64,
    /// Highest rate to try.
    pub max_rate: f64,
    /// Whether the source limits the highest rate.
    pub source_bound: bool,
    /// Maximum throughput of the volumes.
    pub write_rate: f64,
    /// Payload from the source that fits the volumes, bytes.
    pub usable_bytes: f64,
    /// Payload from the source that may still be written, bytes.
    pub bytes_left: f64,
}

impl SearchRequest<'_> {
    /// Search plan before the speed of volumes and source is known.
    pub fn unbounded(&self, min_rate: f64, max_rate: f64) -> SearchPlan {
        match self.quick {
            true => SearchPlan::quick_qualification(min_rate, max_rate),
            false => SearchPlan::qualification(min_rate, max_rate),
        }
    }

    /// Length of soaks that neither bytes nor space shorten.
    pub fn soak_planned(&self) -> Duration {
        self.soak.unwrap_or_else(|| self.unbounded(1.0, 1.0).soak)
    }

    /// Payload of one soak at the target, the required rate times the headroom, bytes.
    fn target_soak_bytes(&self) -> f64 {
        self.target() * self.soak_planned().as_secs_f64()
    }

    /// Bytes written by one soak at the target, as far as known beforehand: what reductions leave is not.
    pub fn reserved_bytes(&self) -> f64 {
        if self.profile.reductions.is_empty() { self.target_soak_bytes() } else { 0.0 }
    }

    /// Lowest limit of bytes that permits an answer: the soak at the target, and as much for the search.
    pub fn write_bytes_min(&self) -> u64 {
        (self.reserved_bytes() / SOAK_SHARE).ceil() as u64
    }

    /// Limit of bytes without one from the user. A detector that needs more than usual gets what a soak of
    /// the default length needs.
    pub fn write_bytes_default(&self) -> u64 {
        WRITE_BYTES_MAX.max(Self { soak: None, ..*self }.write_bytes_min())
    }

    fn target(&self) -> f64 {
        self.profile.required_bytes_per_second() * self.profile.headroom
    }

    /// Checks a limit of bytes before anything is measured: it must hold the soak at the target, which
    /// answers the question, and as much for the search.
    ///
    /// # Errors
    /// The limit is too low; the hint has the lowest useful one.
    pub fn check_write_limit(&self, write_bytes_max: u64) -> Result<(), QualifyError> {
        let needed = self.write_bytes_min();
        if write_bytes_max >= needed {
            return Ok(());
        }
        let what = format!(
            "cannot qualify with a limit of {} written: the soak of {} at the target, {}, writes {}, and the \
             search needs as much",
            bytes(write_bytes_max),
            seconds(self.soak_planned().as_secs_f64()),
            rate(self.target()),
            bytes(self.reserved_bytes() as u64)
        );
        let hint = format!("--max-write '{} MB' or more, or a shorter --soak", needed.div_ceil(1_000_000));
        Err(QualifyError::Settings { what: Cause::new(what).with_hint(hint), environment: true })
    }

    /// The plan. The soak is shortened to fit the limits of bytes and space.
    ///
    /// # Errors
    /// A soak time, or a search, that the limits do not permit.
    pub fn plan(&self, bounds: &Bounds) -> Result<SearchPlan, QualifyError> {
        let mut plan = self.unbounded(bounds.min_rate, bounds.max_rate);
        let target = self.target();
        plan.target_rate = Some(target).filter(|&rate| rate <= bounds.max_rate);
        if let Some(burst) = self.profile.burst {
            // A trial must contain whole bursts to have the correct mean rate.
            let period = burst.on.0 + burst.off.0;
            plan.initial_trial = plan.initial_trial.max(period);
            plan.trial = plan.trial.max(2 * period);
            plan.budget = plan.budget.max(6 * plan.trial);
        }
        let rate = bounds.write_rate.min(bounds.max_rate).max(1.0);
        let counter_bytes = COUNTER_MARGIN * rate * self.counter_s;
        // The soak at the target comes before anything else.
        let reserved = plan.target_rate.map_or(0.0, |_| self.target_soak_bytes()).min(bounds.bytes_left);
        let spare = bounds.bytes_left - reserved;
        plan.bytes = bounds.bytes_left - counter_bytes.min(COUNTER_SHARE * bounds.bytes_left).min(spare);
        plan.search_bytes = ((1.0 - SOAK_SHARE) * plan.bytes).min(plan.bytes - reserved);
        plan.trial_bytes = bounds.usable_bytes;
        let soak_bytes = (plan.bytes - plan.search_bytes).min(plan.trial_bytes);
        // Soaks at higher rates are shortened, or left out.
        let soak_rate = plan.target_rate.unwrap_or(rate);
        let soak_s = soak_bytes / soak_rate;
        match self.soak {
            Some(asked) if asked.as_secs_f64() > soak_s => {
                return Err(QualifyError::Settings {
                    what: Cause::new(format!(
                        "cannot soak for {:.0} s: it may write {:.0} GB and {:.0} GB may be used",
                        asked.as_secs_f64(),
                        soak_rate * asked.as_secs_f64() / 1e9,
                        soak_bytes / 1e9
                    ))
                    .with_hint("a shorter --soak, more space, or a larger --max-write"),
                    environment: true,
                });
            }
            Some(asked) => (plan.soak, plan.soak_share_min) = (asked, 1.0),
            // Bytes and space may come from another host: they can be negative or infinite.
            None => {
                let most = Duration::try_from_secs_f64(soak_s.max(0.0)).unwrap_or(Duration::MAX);
                plan.soak = plan.soak.min(most);
            }
        }
        let first_bytes = plan.initial_trial.as_secs_f64() * bounds.max_rate;
        let trial_bytes = first_bytes.max(plan.trial.as_secs_f64() * rate);
        // Without bytes for the search, the soak at the target still answers the question.
        let is_search_vital = plan.target_rate.is_none() || reserved > soak_bytes;
        let is_too_little =
            trial_bytes > plan.trial_bytes || is_search_vital && trial_bytes > plan.search_bytes;
        plan.search_bytes = plan.search_bytes.max(1.0);
        if plan.soak.as_secs_f64() < SOAK_SECONDS_MIN || is_too_little {
            return Err(QualifyError::Settings {
                what: Cause::new(format!(
                    "cannot search and soak: {:.1} GB may be written, too little at {:.0} MB/s",
                    plan.bytes / 1e9,
                    rate / 1e6
                ))
                .with_hint("a larger --max-write, or more space on the volume"),
                environment: true,
            });
        }
        Ok(plan)
    }
}

#[cfg(test)]
#[path = "search_request_tests.rs"]
mod tests;
