//! Verdict of a qualification, FIT, FIT WITH LIMITS, NOT FIT or INCONCLUSIVE, with reasons, and what else
//! follows from the search alone. Pure.
use std::time::Duration;

use keepup_results::format::{rate, rates, seconds};
use keepup_results::{FailedRate, LoadResult, LoadUnit, Soak, Verdict};

use crate::judge::first_failed;
use crate::run_space::RunSpace;
use crate::search::{End, Outcome, Phase, Slower};
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
    /// Rate that the source offered without a schedule, bytes per second; none if unknown.
    pub offered_unthrottled: Option<f64>,
    /// Outcome of the search.
    pub outcome: &'a Outcome,
    /// Failed volume or damage found by verification.
    pub fault: Option<&'a str>,
    /// Results of the background loads while the rate was proven.
    pub loads: &'a [LoadResult],
    /// Name and error of a load that ended early.
    pub load_failure: Option<&'a str>,
    /// Space for one run.
    pub run_space: RunSpace,
    /// Wear of the volumes.
    pub wear: &'a Wear,
}

/// The required rate exceeds the saturated one beyond doubt above this ratio: one short trial on a
/// disturbed machine errs by less.
const FAR_ABOVE: f64 = 1.5;
/// Least share of the rate that a source on schedule offers, as for the judge of a trial.
const ON_SCHEDULE: f64 = 0.98;

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
    if let Some(reason) = out_of_bytes(basis) {
        judgement.reasons.insert(0, reason);
    }
    judge_run_space(&basis.run_space, &mut judgement);
    basis.wear.limits().into_iter().for_each(|limit| judgement.limit(limit));
    judgement.reasons.extend(basis.loads.iter().filter(|load| load.fell_short).map(short));
    judgement
}

/// Sentence on a search that ended at the limit of bytes, unless something else ended it.
fn out_of_bytes(basis: &Basis<'_>) -> Option<String> {
    let has_ended = basis.fault.is_none() && basis.load_failure.is_none();
    // The reason for the end says it already.
    let is_said = basis.outcome.end == End::ByteLimit && basis.outcome.qualified_rate.is_none();
    let is_limit = basis.outcome.is_out_of_bytes && has_ended && basis.outcome.end != End::Interrupted;
    (is_limit && !is_said).then(|| "the search ended at the limit of bytes written (--max-write)".to_owned())
}

/// Lowers the verdict if the volumes do not hold one run.
fn judge_run_space(run_space: &RunSpace, judgement: &mut Judgement) {
    let Some(shortage) = run_space.shortage() else { return };
    if run_space.is_required {
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
    let [held, required] = rates([qualified, basis.required]);
    let mut reasons = vec![format!(
        "{held} sustained for the whole soak without loss: {headroom:.2}x the required {required} \
         ({:.2}x wanted)",
        basis.headroom_wanted
    )];
    let machine_failed = machine_failed(basis.outcome, qualified, generator_limit(basis));
    if headroom < 1.0 {
        if machine_failed {
            return answer(Verdict::NotFit, reasons);
        }
        let (reason, generator_limited) = not_found(basis, qualified);
        reasons.push(reason);
        return Judgement { verdict: Verdict::Inconclusive, reasons, generator_limited };
    }
    // The product, not the quotient: the search soaks at this product, which may round up.
    let mut limited = qualified < basis.required * basis.headroom_wanted;
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
    if let Some(stall) = basis.outcome.unbridged_stall(basis.required) {
        limited = true;
        reasons.push(unbridged(stall, "required"));
    }
    if let Some(failed) = failed_above(basis.outcome).filter(|failed| failed.is_far_above(qualified)) {
        let [held, failed] = rates([qualified, failed.bytes_per_second]);
        reasons.push(format!("rates between {held} and {failed} are not resolved"));
    }
    if matches!(end, End::GeneratorLimited { .. }) && !machine_failed {
        reasons.push(not_found(basis, qualified).0);
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

/// Lowest rate that the generator could not offer, if any. A pause at or below a rate that it offered is no
/// limit.
fn generator_limit(basis: &Basis<'_>) -> Option<f64> {
    let offered = offered(basis);
    let end = match basis.outcome.end {
        End::GeneratorLimited { rate } => Some(rate),
        _ => None,
    };
    missed(basis.outcome).chain(end).filter(|&rate| rate > offered).min_by(f64::total_cmp)
}

/// Rates at which the source missed its schedule, bytes per second.
fn missed(outcome: &Outcome) -> impl Iterator<Item = f64> {
    outcome.trials.iter().filter(|trial| trial.outcome.generator_limited).map(|trial| trial.rate)
}

/// Highest rate that the source offered, on schedule or without one, bytes per second. A trial that failed
/// because of the machine counts too.
fn offered(basis: &Basis<'_>) -> f64 {
    let trials = basis.outcome.trials.iter().filter(|trial| !trial.outcome.generator_limited);
    let rates = trials.map(|trial| {
        let is_on_schedule = trial.failed.is_none() || trial.outcome.offered_rate >= ON_SCHEDULE * trial.rate;
        if is_on_schedule { trial.rate } else { trial.outcome.offered_rate }
    });
    rates.chain(basis.offered_unthrottled).fold(0.0, f64::max)
}

/// What the source missed above `held` bytes per second, with the `consequence`; none if it missed no
/// schedule there.
fn source_reason(basis: &Basis<'_>, held: f64, consequence: &str) -> Option<String> {
    if let Some(limit) = generator_limit(basis) {
        let limit = rate(limit);
        return Some(format!("the source may not keep its schedule at {limit} or more, so {consequence}"));
    }
    let offered = offered(basis);
    if let Some(missed) = missed(basis.outcome).filter(|&rate| rate > held).min_by(f64::total_cmp) {
        let [missed, offered] = rates([missed, offered]);
        return Some(format!(
            "the source missed its schedule at {missed}, although it offered {offered} in another trial, so \
             {consequence}"
        ));
    }
    let is_bound = matches!(basis.outcome.end, End::GeneratorLimited { .. });
    is_bound.then(|| format!("the source offered at most {}, so {consequence}", rate(offered)))
}

/// Why the machine's limit above `qualified` was not found, and whether because of the source.
fn not_found(basis: &Basis<'_>, qualified: f64) -> (String, bool) {
    match source_reason(basis, qualified, "the machine's limit was not found") {
        Some(reason) => (reason, true),
        None => ("no higher rate failed because of the machine, so its limit was not found".into(), false),
    }
}

/// End of a search whose highest rate was bound by `alone`, what the source reaches alone: the source limits
/// it, at what it reached alone or `unthrottled`, without a schedule. Rates in bytes per second.
pub fn bounded_end(end: End, alone: f64, unthrottled: f64) -> End {
    match end {
        End::MaxRateHolds => End::GeneratorLimited { rate: alone.max(unthrottled) },
        other => other,
    }
}

fn saturated(reached: f64, required: f64) -> String {
    let [reached, required] = rates([reached, required]);
    format!("the path carried {reached} from a source that sent as fast as it could; {required} required")
}

fn nothing_held(basis: &Basis<'_>) -> Judgement {
    let answer =
        |verdict, reason: String| Judgement { verdict, reasons: vec![reason], generator_limited: false };
    match &basis.outcome.end {
        End::GeneratorLimited { .. } => {
            let reason = source_reason(basis, 0.0, "no rate was proven");
            let reason = reason.unwrap_or_else(|| "the source did not keep its schedule".to_owned());
            Judgement { generator_limited: true, ..answer(Verdict::Inconclusive, reason) }
        }
        End::StallsExceedBuffer { longest_stall, buffer, buffer_needed_bytes } => {
            stalls_exceed_buffer(basis, [*longest_stall, *buffer], *buffer_needed_bytes)
        }
        End::MinRateFails => {
            let lowest = basis.outcome.lowest_failed().map(|trial| format!(", {}", rate(trial.rate)));
            let lowest = lowest.unwrap_or_default();
            answer(Verdict::NotFit, format!("trials failed even at the lowest rate tried{lowest}"))
        }
        End::SoakFails => soak_fails(basis),
        End::SlowsDown => slows_down(basis),
        End::ByteLimit => {
            let reason = "the limit of bytes written (--max-write) was reached before a rate held a soak";
            answer(Verdict::Inconclusive, reason.into())
        }
        _ if basis.outcome.is_out_of_bytes => {
            answer(Verdict::Inconclusive, "no rate held a soak before that".into())
        }
        End::Converged | End::MaxRateHolds | End::TimeCap | End::Interrupted => {
            answer(Verdict::Inconclusive, "the time limit was reached before a soak".into())
        }
    }
}

/// Answer of a machine whose stalls exceed the buffer: a stall that it does not bridge at the required rate
/// answers the question, and so does a soak that failed at the target, whatever the reason.
fn stalls_exceed_buffer(
    basis: &Basis<'_>,
    [longest_stall, buffer]: [Duration; 2],
    buffer_needed_bytes: f64,
) -> Judgement {
    let [stall_s, buffer_s] = [longest_stall, buffer].map(|time| time.as_secs_f64());
    let failed_rate = buffer_needed_bytes / stall_s;
    let bridged_s = buffer_s * failed_rate / basis.required;
    let mut reason = format!(
        "the buffer is too small for the stalls seen: one took {:.0} ms, the buffer bridges {:.0} ms at that \
         rate; {:.0} MB of buffer would do",
        stall_s * 1e3,
        buffer_s * 1e3,
        buffer_needed_bytes / 1e6
    );
    if bridged_s < stall_s {
        return Judgement { verdict: Verdict::NotFit, reasons: vec![reason], generator_limited: false };
    }
    reason.push_str(&format!("; {:.0} ms at the required rate", bridged_s * 1e3));
    match soak_fails(basis) {
        Judgement { verdict: Verdict::NotFit, reasons, .. } => Judgement {
            verdict: Verdict::NotFit,
            reasons: reasons.into_iter().chain([reason]).collect(),
            generator_limited: false,
        },
        _ => Judgement { verdict: Verdict::Inconclusive, reasons: vec![reason], generator_limited: false },
    }
}

/// The verdict without a rate that held: a failure above the required rate leaves the question open.
fn not_fit_if(failed_at_required: bool) -> Verdict {
    if failed_at_required { Verdict::NotFit } else { Verdict::Inconclusive }
}

/// Answer of a machine on which every soak failed. A failure at the target, the required rate times the
/// headroom, answers the question; failures above it leave it open.
fn soak_fails(basis: &Basis<'_>) -> Judgement {
    let soaks = basis.outcome.trials.iter().filter(|trial| trial.phase == Phase::Soak);
    let own = soaks.filter(|soak| !soak.outcome.generator_limited).map(|soak| soak.rate);
    let lowest = own.reduce(f64::min).unwrap_or(f64::INFINITY);
    let [tried, required] = rates([lowest, basis.required]);
    let reason = match lowest <= basis.required {
        true => "no rate passed the whole soak".to_owned(),
        false => format!("no rate passed the whole soak; the lowest tried was {tried}, {required} required"),
    };
    // The target is a product of rounded figures.
    let verdict = not_fit_if(lowest <= basis.required * basis.headroom_wanted * (1.0 + 1e-9));
    Judgement { verdict, reasons: vec![reason], generator_limited: false }
}

/// Answer of a machine that became slower whenever a rate had held.
fn slows_down(basis: &Basis<'_>) -> Judgement {
    let slower = basis.outcome.slower;
    let carried = slower.map(slowed).unwrap_or_default();
    let reason = format!("the machine kept slowing down, so no rate was proven: {carried}");
    let verdict = not_fit_if(slower.is_some_and(|slower| slower.to < basis.required));
    Judgement { verdict, reasons: vec![reason], generator_limited: false }
}

/// Rates before and after a soak that held.
fn slowed(slower: Slower) -> String {
    let [from, to] = rates([slower.from, slower.to]);
    format!("the path carried {from} before the soaks and {to} after them")
}

/// The lowest rate above the qualified one that the machine did not sustain.
pub fn failed_above(outcome: &Outcome) -> Option<FailedRate> {
    outcome.lowest_failed().map(|trial| FailedRate {
        bytes_per_second: trial.rate,
        seconds: trial.outcome.duration_s,
        lost_events: trial.outcome.lost_events,
        condition: first_failed(&trial.outcome).unwrap_or_default(),
    })
}

/// The soaks that held, which made `bytes` durable, on a machine with so much memory.
pub fn soak(outcome: &Outcome, bytes: u64, memory_bytes: Option<u64>) -> Option<Soak> {
    let record = outcome.soak?;
    Some(Soak {
        seconds: record.seconds / f64::from(record.passes),
        bytes,
        passes: record.passes,
        failed: record.failed,
        exposed_seconds: Some(record.exposed_s),
        upper_bound_loss_per_second: record.incidents_per_s_max(),
        memory_bytes,
    })
}

/// Sentence on the longest run without loss beside the detector's runs of `run_seconds`.
pub fn longest_run(outcome: &Outcome, run_seconds: f64) -> String {
    let lossless = outcome.trials.iter().filter(|trial| trial.outcome.lost_events == 0);
    let longest = lossless.map(|trial| trial.outcome.duration_s).reduce(f64::max);
    let run = seconds(run_seconds);
    match longest {
        Some(longest) => {
            format!("the longest run without loss took {}; the profile runs for {run}", seconds(longest))
        }
        None => format!("no run at a set rate was without loss; the profile runs for {run}"),
    }
}

/// Sentence on a stall, and what the buffer bridges at the `which` rate.
fn unbridged((stall, bridged): (Duration, Duration), which: &str) -> String {
    let [stall, bridged] = [stall, bridged].map(|time| seconds(time.as_secs_f64()));
    format!(
        "a trial had a stall of {stall}; at the {which} rate the buffer bridges {bridged}, so another such \
         stall may lose events"
    )
}

/// Sentence on a stall that the buffer bridges at the required rate, but not at the qualified one.
pub fn unbridged_above(outcome: &Outcome, required: f64) -> Option<String> {
    let qualified = outcome.qualified_rate.filter(|_| outcome.unbridged_stall(required).is_none())?;
    outcome.unbridged_stall(qualified).map(|stall| unbridged(stall, "qualified"))
}

/// Sentence on a machine that became slower and then held a lower rate.
pub fn became_slower(outcome: &Outcome) -> Option<String> {
    let slower = outcome.slower.filter(|_| outcome.qualified_rate.is_some())?;
    Some(format!("the machine became slower during the test: {}", slowed(slower)))
}

/// Sentence on rates above `max_rate`, the highest of the plan in bytes per second, if the limit may be
/// there.
pub fn untried(outcome: &Outcome, max_rate: f64) -> Option<String> {
    // A rate that passed more often than it failed bounds no knee, but nothing higher needs to be tried.
    let may_be_higher = outcome.knee.is_some_and(|knee| knee.upper.is_none());
    let has_failed = outcome.lowest_failed().is_some();
    (may_be_higher && !has_failed)
        .then(|| format!("no rate above {} was tried, so the limit may be higher", rate(max_rate)))
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
