//! Search plan of a profile, once the speed of what is tested is known. Pure.
use std::time::Duration;

use keepup_error::Cause;
use keepup_plan::Profile;

use crate::QualifyError;
use crate::search::SearchPlan;

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
    pub fn target_soak_bytes(&self) -> f64 {
        self.target() * self.soak_planned().as_secs_f64()
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
        let (soak, needed) = (self.target_soak_bytes(), self.target_soak_bytes() / SOAK_SHARE);
        if write_bytes_max as f64 >= needed {
            return Ok(());
        }
        let [limit, soak, rate] = [write_bytes_max as f64 / 1e9, soak / 1e9, self.target() / 1e6];
        let seconds = self.soak_planned().as_secs_f64();
        let what = format!(
            "cannot qualify with --max-write {limit:.1} GB: the soak of {seconds:.0} s at the target, \
             {rate:.0} MB/s, writes {soak:.1} GB, and the search needs as much"
        );
        let hint =
            format!("--max-write '{:.1} GB' or more, or a shorter --soak", (needed / 1e8).ceil() / 10.0);
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
        let soak_s = soak_bytes / rate;
        match self.soak {
            Some(asked) if asked.as_secs_f64() > soak_s => {
                return Err(QualifyError::Settings {
                    what: Cause::new(format!(
                        "cannot soak for {:.0} s: it may write {:.0} GB and {:.0} GB may be used",
                        asked.as_secs_f64(),
                        rate * asked.as_secs_f64() / 1e9,
                        soak_bytes / 1e9
                    ))
                    .with_hint("a shorter --soak, more space, or a larger --max-write"),
                    environment: true,
                });
            }
            Some(asked) => plan.soak = asked,
            // Bytes and space may come from another host: they can be negative or infinite.
            None => {
                let most = Duration::try_from_secs_f64(soak_s.max(0.0)).unwrap_or(Duration::MAX);
                plan.soak = plan.soak.min(most);
            }
        }
        let first_bytes = plan.initial_trial.as_secs_f64() * bounds.max_rate;
        let trial_bytes = first_bytes.max(plan.trial.as_secs_f64() * rate);
        let is_too_little = trial_bytes > plan.search_bytes.min(plan.trial_bytes);
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
