//! Verdict of a qualification, FIT, FIT WITH LIMITS, NOT FIT or INCONCLUSIVE, with reasons. Pure.
use keepup_results::format::rate;
use keepup_results::{LoadResult, LoadUnit, Verdict};

use crate::room::Room;
use crate::search::{End, Outcome};
use crate::wear::Wear;

/// Inputs of the verdict.
#[derive(Clone, Debug)]
pub struct Basis<'a> {
    /// Required rate, bytes per second.
    pub required: f64,
    /// Wanted headroom.
    pub headroom_wanted: f64,
    /// Share of the CPUs that must stay free.
    pub cpu_free_wanted: f64,
    /// Share of all CPUs used by recording at the required rate, if measured.
    pub cpu_share_at_required: Option<f64>,
    /// Rate of the path while it throttled a source that sent as fast as it could, bytes per
    /// second; none if it did not throttle the source.
    pub saturated: Option<f64>,
    /// Outcome of the search.
    pub outcome: &'a Outcome,
    /// Failed volume or damage found by verification.
    pub fault: Option<&'a str>,
    /// Results of the background loads while the rate was proven.
    pub loads: &'a [LoadResult],
    /// Name and error of a load that ended early.
    pub load_failure: Option<&'a str>,
    /// Space for one run.
    pub room: Room,
    /// Wear of the volumes.
    pub wear: &'a Wear,
}

/// The required rate exceeds the saturated one beyond doubt above this ratio: one short trial on a
/// disturbed machine errs by less.
const FAR_ABOVE: f64 = 1.5;

/// Verdict with reasons.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Reasons, most important first.
    pub reasons: Vec<String>,
    /// The generator was the limit: use another machine as source.
    pub generator_limited: bool,
}

impl Judgement {
    /// Adds a reason that allows at most FIT WITH LIMITS.
    fn limit(&mut self, reason: String) {
        if self.verdict == Verdict::Fit {
            self.verdict = Verdict::FitWithLimits;
        }
        self.reasons.push(reason);
    }
}

/// Derives the verdict.
pub fn judge(basis: &Basis<'_>) -> Judgement {
    let mut judgement = judge_rate(basis);
    judge_room(&basis.room, &mut judgement);
    basis.wear.limits().into_iter().for_each(|limit| judgement.limit(limit));
    judgement.reasons.extend(basis.loads.iter().filter(|load| load.fell_short).map(short));
    judgement
}

/// Lowers the verdict if the volumes do not hold one run.
fn judge_room(room: &Room, judgement: &mut Judgement) {
    let Some(shortage) = room.shortage() else { return };
    if room.is_required {
        (judgement.verdict, judgement.generator_limited) = (Verdict::NotFit, false);
        judgement.reasons.insert(0, shortage);
    } else {
        judgement.limit(shortage);
    }
}

/// Reason for a load that missed its rate.
fn short(load: &LoadResult) -> String {
    let amount = |value: f64| match load.unit {
        LoadUnit::BytesPerSecond => format!("{:.1} MB/s", value / 1e6),
        LoadUnit::Cores => format!("{value:.2} cores"),
    };
    format!(
        "background load `{}` reached only {} of {}; the verdict holds for that load",
        load.spec,
        load.achieved.map_or_else(|| "an unknown rate".to_owned(), amount),
        amount(load.asked)
    )
}

fn judge_rate(basis: &Basis<'_>) -> Judgement {
    let end = &basis.outcome.end;
    let answer = |verdict, reasons| Judgement { verdict, reasons, generator_limited: false };
    if let Some(fault) = basis.fault {
        return answer(Verdict::NotFit, vec![fault.to_owned()]);
    }
    if let Some(why) = basis.load_failure {
        return answer(Verdict::Inconclusive, vec![why.to_owned()]);
    }
    if *end == End::Interrupted {
        return answer(Verdict::Inconclusive, vec!["the run was interrupted".into()]);
    }
    let is_proven = basis.outcome.qualified_rate.is_some_and(|rate| rate >= basis.required);
    if let Some(rate) = basis.saturated.filter(|rate| !is_proven && FAR_ABOVE * rate < basis.required) {
        return answer(Verdict::NotFit, vec![saturated(rate, basis.required)]);
    }
    let Some(qualified) = basis.outcome.qualified_rate else { return nothing_held(basis) };
    let headroom = qualified / basis.required;
    let mut reasons = vec![format!(
        "{} sustained for the whole soak without loss: {headroom:.2}x the required {} ({:.2}x wanted)",
        rate(qualified),
        rate(basis.required),
        basis.headroom_wanted
    )];
    if headroom < 1.0 {
        let limit = generator_limit(basis.outcome);
        if machine_failed(basis.outcome, qualified, limit) {
            return answer(Verdict::NotFit, reasons);
        }
        reasons.push(limit.map_or_else(|| "no higher rate was tried".into(), generator));
        return Judgement { verdict: Verdict::Inconclusive, reasons, generator_limited: limit.is_some() };
    }
    let mut limited = headroom < basis.headroom_wanted;
    if limited {
        reasons.push("the headroom is smaller than wanted".into());
    }
    let free = basis.cpu_share_at_required.map(|share| 1.0 - share);
    if let Some(free) = free.filter(|&free| free < basis.cpu_free_wanted) {
        limited = true;
        reasons.push(format!(
            "only {:.0} % of the CPUs stay free at the required rate ({:.0} % wanted)",
            free * 100.0,
            basis.cpu_free_wanted * 100.0
        ));
    }
    if let End::GeneratorLimited { rate } = end {
        reasons.push(generator(*rate));
    }
    answer(if limited { Verdict::FitWithLimits } else { Verdict::Fit }, reasons)
}

/// Whether a trial above the qualified rate failed because of the machine, at a rate that the
/// generator can sustain: a generator that falls behind sends bursts, which prove nothing.
fn machine_failed(outcome: &Outcome, qualified: f64, limit: Option<f64>) -> bool {
    outcome.trials.iter().any(|trial| {
        let own = trial.failed.is_some() && !trial.outcome.generator_limited;
        own && trial.rate > qualified && limit.is_none_or(|limit| trial.rate < limit)
    })
}

/// Lowest rate that the generator could not offer, if any. A pause at a rate below one that passed is no
/// limit.
fn generator_limit(outcome: &Outcome) -> Option<f64> {
    let passed = outcome.trials.iter().filter(|trial| trial.failed.is_none()).map(|trial| trial.rate);
    let offered = passed.fold(0.0, f64::max);
    let limited = outcome.trials.iter().filter(|trial| trial.outcome.generator_limited);
    let seen = limited.map(|trial| trial.rate).filter(|&rate| rate > offered);
    let end = match outcome.end {
        End::GeneratorLimited { rate } => Some(rate),
        _ => None,
    };
    seen.chain(end).min_by(f64::total_cmp)
}

fn saturated(reached: f64, required: f64) -> String {
    format!(
        "the path carried {} from a source that sent as fast as it could; {} required",
        rate(reached),
        rate(required)
    )
}

fn generator(limit: f64) -> String {
    let limit = rate(limit);
    format!("the source may not keep its schedule at {limit} or more, so the machine's limit was not found")
}

fn nothing_held(basis: &Basis<'_>) -> Judgement {
    let answer =
        |verdict, reason: String| Judgement { verdict, reasons: vec![reason], generator_limited: false };
    match &basis.outcome.end {
        End::GeneratorLimited { rate } => {
            Judgement { generator_limited: true, ..answer(Verdict::Inconclusive, generator(*rate)) }
        }
        End::StallsExceedBuffer { longest_stall, buffer, buffer_needed_bytes } => answer(
            Verdict::NotFit,
            format!(
                "the buffer is too small for the stalls seen: the longest took {:.0} ms, \
                 the buffer bridges {:.0} ms; \
                 {:.0} MB of buffer would do",
                longest_stall.as_secs_f64() * 1e3,
                buffer.as_secs_f64() * 1e3,
                buffer_needed_bytes / 1e6
            ),
        ),
        End::MinRateFails => answer(Verdict::NotFit, "events were lost even at the lowest rate tried".into()),
        End::SoakFails => answer(Verdict::NotFit, "no rate passed the whole soak".into()),
        End::Converged | End::MaxRateHolds | End::TimeCap | End::Interrupted => {
            answer(Verdict::Inconclusive, "the time limit was reached before a soak".into())
        }
    }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
