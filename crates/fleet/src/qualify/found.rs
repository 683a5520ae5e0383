//! What a qualification of a fleet is asked for, and what its search finds.
use std::time::Duration;

use crate::FleetError;
use keepup_plan::Profile;
use keepup_qualify::run_time::{Lengths, RunTime, TRIAL_OVERHEAD_S};
use keepup_qualify::search::{End, Outcome, SearchPlan, TrialOutcome};
use keepup_qualify::search_request::SearchRequest;
use keepup_results::{ControlTraffic, FleetTrialResult};

use super::combine::Part;

/// What is qualified, and how.
#[derive(Clone, Debug)]
pub struct QualifySettings {
    /// The detector, with all streams.
    pub profile: Profile,
    /// Short search.
    pub quick: bool,
    /// Soak time, if not the default.
    pub soak: Option<Duration>,
    /// Limit of bytes written, over all volumes and trials.
    pub write_bytes_max: u64,
    /// Drop sealed blocks instead of writing them.
    pub to_null: bool,
    /// Measure each recorder alone, too.
    pub each: bool,
    /// Names of the recorders of the fleet file that take no part.
    pub left_out: Vec<String>,
}

impl QualifySettings {
    /// What the search depends on; `soak` is the soak time, if not the default.
    pub(super) fn request<'a>(&self, profile: &'a Profile, soak: Option<Duration>) -> SearchRequest<'a> {
        SearchRequest { profile, quick: self.quick, soak, counter_s: 0.0 }
    }

    /// Checks that the limit of bytes permits an answer.
    ///
    /// # Errors
    /// The limit does not hold the soak at the target and a search.
    pub fn check_write_limit(&self) -> Result<(), FleetError> {
        if self.to_null {
            return Ok(());
        }
        Ok(self.request(&self.profile, self.soak).check_write_limit(self.write_bytes_max)?)
    }

    /// Limit of bytes without one from the user.
    #[must_use]
    pub fn write_bytes_default(&self) -> u64 {
        self.request(&self.profile, self.soak).write_bytes_default()
    }

    /// Expected time on so many recorders, seconds, before anything is known about them.
    #[must_use]
    pub fn seconds(&self, recorders: usize) -> f64 {
        let request = self.request(&self.profile, self.soak);
        let plan = SearchPlan { soak: request.soak_planned(), ..request.unbounded(1.0, 1.0) };
        let lengths = Lengths::new(self.quick);
        let unthrottled_s = lengths.saturated.as_secs_f64() + TRIAL_OVERHEAD_S;
        // A fleet measures no ceilings and runs no counter-trials.
        let omitted_s = lengths.before_search_s(0, None) - unthrottled_s + lengths.counter_s();
        let together_s = RunTime::new(&plan, &lengths, 0, false).seconds - omitted_s;
        // The search on a recorder alone has no soak.
        let alone_s = unthrottled_s + plan.budget.as_secs_f64();
        let alone = if self.each && recorders > 1 { recorders } else { 0 };
        together_s + alone as f64 * alone_s
    }
}

/// Progress of a qualification.
#[derive(Clone, Copy, Debug)]
pub enum QualifyEvent<'a> {
    /// A step, as a line of text.
    Line(&'a str),
    /// A trial ended.
    Trial {
        /// Its result.
        trial: &'a FleetTrialResult,
        /// Payload stored by all trials so far, bytes.
        bytes_written: u64,
        /// Control traffic of all trials so far.
        control: ControlTraffic,
    },
}

/// A trial of which every recorder has a result.
#[derive(Clone, Debug)]
pub(super) struct Tried {
    pub(super) parts: Vec<Part>,
    pub(super) outcome: TrialOutcome,
}

/// Results of a search.
pub(super) struct Found {
    pub(super) saturated: Option<Tried>,
    pub(super) outcome: Outcome,
    /// The trials of `outcome`, in the same order.
    pub(super) tried: Vec<Tried>,
    /// Broken recording or damaged data, with the host.
    pub(super) fault: Option<String>,
    /// Highest rate of the search, bytes per second.
    pub(super) max_rate: f64,
    /// Why there was no search.
    pub(super) unsearched: Option<String>,
}

impl Found {
    /// Nothing was found.
    pub(super) fn nothing() -> Self {
        let end = End::Interrupted;
        let outcome = Outcome {
            knee: None,
            second_knee: None,
            qualified_rate: None,
            soak: None,
            slower: None,
            is_out_of_bytes: false,
            end,
            trials: Vec::new(),
        };
        Self { saturated: None, outcome, tried: Vec::new(), fault: None, max_rate: 0.0, unsearched: None }
    }
}

/// Payload of all recorders together that the fullest of them can take, bytes.
pub(super) fn usable_bytes(parts: &[Part]) -> f64 {
    let each = parts.iter().filter_map(|part| Some(part.of_all(part.outcome.usable_bytes?)));
    each.fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
#[path = "found_tests.rs"]
mod tests;
