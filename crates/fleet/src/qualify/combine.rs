//! One outcome of the outcomes of all recorders. Pure.
use std::time::Duration;

use keepup_measure::sum::Sums;
use keepup_qualify::judge;
use keepup_qualify::search::TrialOutcome;

use crate::trial::Outcome;

/// A recorder's part of a trial.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// Name of the recorder.
    pub(super) host: String,
    /// Its source.
    pub(super) source: String,
    /// Its share of the streams, 0 to 1.
    pub(super) share: f64,
    /// What it reported.
    pub(super) outcome: Outcome,
}

impl Part {
    /// Why the part failed, unless its source was too slow.
    pub(super) fn failed(&self) -> Option<String> {
        judge::first_failed(&self.outcome.judged).filter(|_| !self.outcome.judged.generator_limited)
    }

    /// Rate of all recorders together at which this one would have this `rate`, bytes per second.
    pub(super) fn of_all(&self, rate: f64) -> f64 {
        rate / self.share
    }
}

/// The lowest `rate` of the parts, as a rate of all recorders together: shares are fixed, so the slowest
/// recorder limits all. Bytes per second.
pub(super) fn lowest<'a>(parts: impl IntoIterator<Item = &'a Part>, rate: impl Fn(&Outcome) -> f64) -> f64 {
    parts.into_iter().map(|part| part.of_all(rate(&part.outcome))).fold(f64::INFINITY, f64::min)
}

/// Sum of the `rate` of the parts: what all recorders together have reached, bytes per second.
pub(super) fn sum(parts: &[Part], rate: impl Fn(&Outcome) -> f64) -> f64 {
    parts.iter().map(|part| rate(&part.outcome)).float_sum()
}

/// Outcome of the trial, for the search. It is the machines' failure if one recorder failed by itself; if
/// sources alone were too slow, it proves nothing. `elapsed_s` counts against the budget of the search.
pub(super) fn combine(parts: &[Part], elapsed_s: f64) -> TrialOutcome {
    let own = parts.iter().any(|part| part.failed().is_some());
    let generator_limited = !own && parts.iter().any(|part| part.outcome.judged.generator_limited);
    // Of a source that was too slow, only what it offered counts.
    let judged = || parts.iter().map(|part| &part.outcome.judged);
    let counted = || judged().filter(|judged| !own || !judged.generator_limited);
    let least = |of: fn(&TrialOutcome) -> f64| judged().map(of).fold(f64::INFINITY, f64::min);
    let failed = parts.iter().find_map(|part| {
        let condition = part.outcome.judged.failed.as_ref().filter(|_| part.failed().is_some())?;
        Some(format!("{}: {condition}", part.host))
    });
    let worst = judged().filter_map(|judged| Some((judged.longest_stall?, judged.buffer?)));
    let worst = worst.max_by(|a, b| unbridged(a).total_cmp(&unbridged(b)));
    let longest = judged().filter_map(|judged| judged.longest_stall).max();
    TrialOutcome {
        duration_s: least(|judged| judged.duration_s),
        clean_s: least(|judged| judged.clean_s),
        elapsed_s,
        bytes: judged().map(|judged| judged.bytes).float_sum(),
        offered_events: judged().map(|judged| judged.offered_events).fold(0, u64::saturating_add),
        lost_events: counted().map(|judged| judged.lost_events).fold(0, u64::saturating_add),
        backlog_growing: counted().any(|judged| judged.backlog_growing),
        longest_stall: worst.map(|(stall, _)| stall).or(longest),
        buffer: worst.map(|(_, buffer)| buffer),
        achieved_rate: lowest(parts, |outcome| outcome.judged.achieved_rate),
        offered_rate: lowest(parts, |outcome| outcome.judged.offered_rate),
        failed,
        generator_limited,
    }
}

/// The stall as a share of what the buffer bridges.
fn unbridged((stall, buffer): &(Duration, Duration)) -> f64 {
    stall.as_secs_f64() / buffer.as_secs_f64().max(1e-9)
}

#[cfg(test)]
#[path = "combine_tests.rs"]
mod tests;
