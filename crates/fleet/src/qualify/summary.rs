//! Assembles the result of a qualification of a fleet. Pure.
use std::collections::{BTreeMap, BTreeSet};

use keepup_qualify::bottleneck::Evidence;
use keepup_qualify::run_space::RunSpace;
use keepup_qualify::search::{End, Outcome, Phase};
use keepup_qualify::verdict::{Basis, Judgement, became_slower, failed_above, judge as verdict};
use keepup_qualify::verdict::{longest_run, soak, untried};
use keepup_qualify::wear::Wear;
use keepup_results::{
    Begun, ControlTraffic, FleetQualifySummary, FleetTrialResult, KneeInterval, LostHost, QualifiedHost,
    TestSummary as _, Verdict,
};

use super::bottleneck::{Case, bottleneck};
use super::combine::{Part, lowest, sum};
use super::found::{Found, QualifySettings, Tried, usable_bytes};
use crate::file::FleetFile;
use crate::message::{HostId, Role};
use crate::trial::{Pair, pairs};

/// Largest share of control traffic in the payload without a warning.
const CONTROL_SHARE_MAX: f64 = 0.001;
/// Names that are listed in a limit.
const NAMES_MAX: usize = 16;

/// Inputs of the result.
pub(super) struct Inputs<'a> {
    pub(super) file: &'a FleetFile,
    pub(super) settings: &'a QualifySettings,
    pub(super) begun: &'a Begun,
    pub(super) found: Found,
    /// Recorders of the search.
    pub(super) pairs: Vec<Pair>,
    /// Knees of recorders alone, by name.
    pub(super) alone: BTreeMap<String, KneeInterval>,
    /// It was stopped while recorders were tested alone.
    pub(super) stopped_alone: bool,
    pub(super) lost: Vec<LostHost>,
    /// Trials that were repeated with success, one reason each.
    pub(super) repeated: Vec<String>,
    pub(super) done: Vec<FleetTrialResult>,
    pub(super) bytes_written: u64,
    pub(super) control: ControlTraffic,
}

/// The result before the first trial, with the limits that do not depend on it.
#[must_use]
pub fn begun(file: &FleetFile, settings: &QualifySettings, begun: &Begun) -> FleetQualifySummary {
    let profile = &settings.profile;
    // A fleet on which no trial is possible is refused before.
    let pairs = pairs(file, profile.streams, &BTreeSet::new()).unwrap_or_default();
    FleetQualifySummary {
        limits: limits(settings, Vec::new(), untested(file, settings, &pairs, &[])),
        fleet: file.name.clone(),
        streams: profile.streams,
        required_bytes_per_second: profile.required_bytes_per_second(),
        required_run_seconds: Some(profile.duration.0.as_secs_f64()),
        headroom_wanted: profile.headroom,
        ..FleetQualifySummary::begun(begun)
    }
}

/// The result.
pub(super) fn summarise(inputs: Inputs<'_>) -> FleetQualifySummary {
    let found = &inputs.found;
    let outcome = &found.outcome;
    let start = begun(inputs.file, inputs.settings, inputs.begun);
    let failed = failed_trial(found);
    let cases = cases(found, failed.map(|(index, _)| index), &inputs.alone);
    let limit = bottleneck(failed.map(|(_, rate)| rate), &cases);
    let judgement = judgement(&inputs, start.required_bytes_per_second);
    let soaked = found.tried.iter().zip(&outcome.trials).filter(|(_, record)| {
        record.phase == Phase::Soak && record.failed.is_none() && Some(record.rate) == outcome.qualified_rate
    });
    let soaked_parts = soaked.flat_map(|(tried, _)| &tried.parts);
    let soaked_bytes =
        soaked_parts.map(|part| part.outcome.run.ledger.durable.bytes).fold(0, u64::saturating_add);
    FleetQualifySummary {
        verdict: judgement.verdict,
        verdict_reasons: judgement.reasons,
        knee: outcome.knee.map(|knee| KneeInterval {
            lower_bytes_per_second: knee.lower,
            upper_bytes_per_second: knee.upper,
        }),
        qualified_bytes_per_second: outcome.qualified_rate,
        failed_above: failed_above(outcome),
        soak: soak(outcome, soaked_bytes, None),
        hosts: hosts(&inputs, &cases),
        bottleneck: limit,
        limits: limits(
            inputs.settings,
            found_limits(&inputs),
            untested(inputs.file, inputs.settings, &inputs.pairs, &inputs.lost),
        ),
        interrupted: is_interrupted(&inputs),
        generator_limited: judgement.generator_limited,
        lost: inputs.lost,
        trials: inputs.done,
        control: inputs.control,
        bytes_written: inputs.bytes_written,
        ..start
    }
}

/// Number and rate of the trial that failed at the lowest rate, because of the machines or of the sources.
fn failed_trial(found: &Found) -> Option<(usize, f64)> {
    let outcome = &found.outcome;
    let above = |rate: f64| outcome.qualified_rate.is_none_or(|qualified| rate > qualified);
    let failed = |own: bool| {
        let all = outcome.trials.iter().enumerate();
        let failed = all.filter(|(_, record)| record.failed.is_some() && above(record.rate));
        let failed = failed.filter(|(_, record)| record.outcome.generator_limited != own);
        failed.map(|(index, record)| (index, record.rate)).min_by(|a, b| a.1.total_cmp(&b.1))
    };
    failed(true).or_else(|| failed(false))
}

/// The recorders in trial `failed`, or in the unthrottled one.
fn cases(found: &Found, failed: Option<usize>, alone: &BTreeMap<String, KneeInterval>) -> Vec<Case> {
    let shown = failed.and_then(|index| found.tried.get(index)).or(found.saturated.as_ref());
    let asked = failed.and_then(|index| found.outcome.trials.get(index)).map(|record| record.rate);
    let Some(shown) = shown else { return Vec::new() };
    let case = |part: &Part| Case {
        host: part.host.clone(),
        source: part.source.clone(),
        rate: asked.map_or(part.outcome.judged.achieved_rate, |asked| asked * part.share),
        of_all: part.of_all(part.outcome.judged.achieved_rate),
        failed: part.failed(),
        source_short: part.outcome.judged.generator_limited,
        evidence: evidence(found, &part.host),
        alone: alone.get(&part.host).map(|knee| knee.lower_bytes_per_second),
    };
    shown.parts.iter().map(case).collect()
}

/// Evidence of a recorder: of trials that it failed, the lowest rate first, then of the unthrottled trial.
fn evidence(found: &Found, host: &str) -> Vec<Evidence> {
    let of = |tried: &Tried| tried.parts.iter().find(|part| part.host == host).cloned();
    let parts = found.tried.iter().zip(&found.outcome.trials);
    let failed = parts.filter_map(|(tried, record)| {
        let part = of(tried).filter(|part| part.failed().is_some())?;
        Some((record.rate, part.outcome.evidence))
    });
    let mut failed: Vec<(f64, Evidence)> = failed.collect();
    failed.sort_by(|a, b| a.0.total_cmp(&b.0));
    let unthrottled = found.saturated.as_ref().and_then(of).map(|part| part.outcome.evidence);
    failed.into_iter().map(|(_, evidence)| evidence).chain(unthrottled).collect()
}

fn is_interrupted(inputs: &Inputs<'_>) -> bool {
    let found = &inputs.found;
    let is_cut_off = found.outcome.end == End::Interrupted && found.fault.is_none();
    inputs.stopped_alone || is_cut_off && found.unsearched.is_none()
}

/// The trial whose space and CPU time count: the last soak, else the unthrottled trial.
fn shown(found: &Found) -> &[Part] {
    let mut trials = found.tried.iter().zip(&found.outcome.trials);
    let soak = trials.rfind(|(_, record)| record.phase == Phase::Soak).map(|(tried, _)| tried);
    soak.or(found.saturated.as_ref()).map_or(&[], |tried| &tried.parts)
}

fn judgement(inputs: &Inputs<'_>, required: f64) -> Judgement {
    let (profile, found) = (&inputs.settings.profile, &inputs.found);
    let cpu = shown(found).iter().filter_map(|part| {
        let cpu = &part.outcome.run.cpu;
        let cores = cpu.per_core_percent.len().max(1) as f64;
        Some(cpu.seconds_per_gb? * required * part.share / 1e9 / cores)
    });
    let mut judgement = verdict(&Basis {
        required,
        headroom_wanted: profile.headroom,
        cpu_free_wanted: profile.cpu_free.fraction(),
        cpu_share_at_required: cpu.reduce(f64::max),
        saturated: found.saturated.as_ref().and_then(|tried| reached(&tried.parts)),
        offered_unthrottled: found.saturated.as_ref().map(|tried| tried.outcome.offered_rate),
        outcome: &found.outcome,
        fault: found.fault.as_deref(),
        loads: &[],
        load_failure: None,
        run_space: run_space(inputs, required),
        wear: &Wear::default(),
    });
    if inputs.settings.to_null {
        limit(&mut judgement, "blocks were dropped instead of written: no volume was tested".to_owned());
    }
    judge_lost(inputs, &mut judgement);
    inputs.repeated.iter().for_each(|why| limit(&mut judgement, why.clone()));
    judgement
}

/// Rate of all recorders that they cannot exceed by much, if back-pressure held any of them back in the
/// unthrottled trial. That is the rate of the slowest at equal shares; but recorders that share a switch may
/// have had very unequal parts of what it carries, which is then the sum. The higher one holds in both cases.
fn reached(parts: &[Part]) -> Option<f64> {
    let rate = |outcome: &crate::trial::Outcome| outcome.judged.achieved_rate;
    let lowest = lowest(parts.iter().filter(|part| part.outcome.is_throttled), rate);
    lowest.is_finite().then(|| lowest.max(sum(parts, rate)))
}

/// Adds a reason that allows at most FIT WITH LIMITS.
fn limit(judgement: &mut Judgement, reason: String) {
    if judgement.verdict == Verdict::Fit {
        judgement.verdict = Verdict::FitWithLimits;
    }
    judgement.reasons.push(reason);
}

/// A fleet without one of its hosts answers the question only if the others are enough, or damaged data.
fn judge_lost(inputs: &Inputs<'_>, judgement: &mut Judgement) {
    if inputs.lost.is_empty() {
        return;
    }
    let is_damaged = inputs.found.fault.is_some();
    judgement.verdict = match judgement.verdict {
        Verdict::NotFit if is_damaged => Verdict::NotFit,
        Verdict::Fit | Verdict::FitWithLimits => Verdict::FitWithLimits,
        Verdict::NotFit | Verdict::Inconclusive => Verdict::Inconclusive,
    };
    judgement.generator_limited = false;
    let is_left = inputs.found.unsearched.is_none();
    if let Some(why) = &inputs.found.unsearched {
        judgement.reasons = vec![why.clone()];
    }
    for (index, LostHost { host, trial, why }) in inputs.lost.iter().enumerate() {
        let rest = if is_left { "; the result is that of the other hosts with all streams" } else { "" };
        let place = index + usize::from(is_damaged);
        judgement.reasons.insert(place, format!("{host} was lost in trial {trial}: {why}{rest}"));
    }
}

/// Space for one run: that of the recorder which is full first.
fn run_space(inputs: &Inputs<'_>, required: f64) -> RunSpace {
    let profile = &inputs.settings.profile;
    let parts = shown(&inputs.found);
    let written = parts.iter().filter_map(|part| {
        let received = part.outcome.run.ledger.received.bytes;
        (part.outcome.file_bytes > 0 && received > 0)
            .then(|| part.outcome.file_bytes as f64 / received as f64)
    });
    RunSpace {
        usable_bytes: usable_bytes(parts),
        written: required * written.reduce(f64::max).unwrap_or(1.0),
        drained: 0.0,
        run_seconds: profile.duration.0.as_secs_f64(),
        is_required: profile.whole_run,
    }
}

/// The recorders of the file, also those that were lost.
fn hosts(inputs: &Inputs<'_>, cases: &[Case]) -> Vec<QualifiedHost> {
    let outcome = &inputs.found.outcome;
    let held = outcome.qualified_rate.into_iter().chain(outcome.knee.map(|knee| knee.lower)).reduce(f64::max);
    let host = |pair: &Pair| {
        let name = inputs.file.hosts.get(pair.recorder as usize)?.name.clone();
        let own = || inputs.done.iter().flat_map(|trial| &trial.parts).filter(|part| part.host == name);
        let case = cases.iter().find(|case| case.host == name);
        let share = f64::from(pair.streams) / f64::from(inputs.settings.profile.streams.max(1));
        Some(QualifiedHost {
            source: case.map_or_else(String::new, |case| case.source.clone()),
            streams: pair.streams,
            held_bytes_per_second: held.map(|held| held * share),
            alone: inputs.alone.get(&name).copied(),
            failed: case.and_then(|case| case.failed.clone()),
            stage: case.map(|case| case.stage().0),
            cpu_seconds_per_gb: shown(&inputs.found)
                .iter()
                .find(|part| part.host == name)
                .and_then(|part| part.outcome.run.cpu.seconds_per_gb),
            start_delay_seconds_max: own().filter_map(|part| part.start_delay_seconds).reduce(f64::max),
            clock: own().filter_map(|part| part.clock).next_back(),
            host: name,
        })
    };
    inputs.pairs.iter().filter_map(host).collect()
}

/// Limits of validity that follow from the trials, one sentence each.
fn found_limits(inputs: &Inputs<'_>) -> Vec<String> {
    let outcome: &Outcome = &inputs.found.outcome;
    let run_seconds = inputs.settings.profile.duration.0.as_secs_f64();
    let mut limits = vec![longest_run(outcome, run_seconds)];
    limits.extend(became_slower(outcome));
    limits.extend(inputs.found.saturated.as_ref().and_then(|_| untried(outcome, inputs.found.max_rate)));
    limits
}

/// Limits of validity, one sentence each: those of every fleet, of the trials, of the settings, and hosts
/// that were not tested.
fn limits(settings: &QualifySettings, found: Vec<String>, untested: Vec<String>) -> Vec<String> {
    let mut limits = vec![
        "events had random, incompressible content and were sent in keepup's own protocol over TCP, whatever \
         the transport of the profile"
            .to_owned(),
        "the bottleneck follows from the occupancy of the stages; a fleet runs no counter-trials".to_owned(),
    ];
    limits.extend(found);
    if settings.quick {
        limits.push("quick search: stalls rarer than one per soak were not observed".to_owned());
    }
    limits.extend(untested);
    limits.push(
        "the environment record is that of the controller; `keepup doctor --fleet` checks the hosts".into(),
    );
    limits
}

/// Hosts of the file that took no part, although they were not lost.
fn untested(file: &FleetFile, settings: &QualifySettings, pairs: &[Pair], lost: &[LostHost]) -> Vec<String> {
    let is_lost = |name: &str| lost.iter().any(|lost| lost.host == name);
    let with = |role: Role, used: &dyn Fn(HostId) -> bool| -> Vec<&str> {
        let all = (0..).zip(&file.hosts).filter(|(host, entry)| entry.role == role && !used(*host));
        all.map(|(_, entry)| entry.name.as_str()).filter(|name| !is_lost(name)).collect()
    };
    let sources = with(Role::Source, &|host| pairs.iter().any(|pair| pair.source == host));
    let spares = with(Role::Spare, &|_| false);
    let mut limits = Vec::new();
    if !sources.is_empty() {
        limits.push(format!("not tested, because no recorder used them: sources {}", listed(&sources)));
    }
    if !spares.is_empty() {
        limits.push(format!("not tested, because a trial uses no spares: {}", listed(&spares)));
    }
    let is_drained = settings.profile.drain.is_some() && !settings.to_null;
    let drains = with(Role::Drain, &|_| false);
    let (used, unused) = drains.split_at(if is_drained { drains.len().min(pairs.len()) } else { 0 });
    if settings.profile.drain.is_some() && used.is_empty() {
        let why = if is_drained { "recorders dropped what they drained" } else { "nothing was drained" };
        limits.push(format!("not tested: a drain host, its disks and the network to it, because {why}"));
    }
    let has_none = |name: &str| file.hosts.iter().any(|host| host.name == name && host.volumes.is_empty());
    let dropping: Vec<&str> = used.iter().copied().filter(|name| has_none(name)).collect();
    if !dropping.is_empty() {
        limits.push(format!("drain hosts without volumes dropped the copies: {}", listed(&dropping)));
    }
    if !unused.is_empty() {
        let why = if is_drained { "no recorder used them" } else { "nothing was drained" };
        limits.push(format!("not tested, because {why}: drain hosts {}", listed(unused)));
    }
    let left_out: Vec<&str> = settings.left_out.iter().map(String::as_str).collect();
    if !left_out.is_empty() {
        limits.push(format!("not tested, because of --recorders: {}", listed(&left_out)));
    }
    limits
}

/// The first names, and how many more there are.
fn listed(names: &[&str]) -> String {
    let first = names.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// Warning about control traffic that is more than 0.1 % of the payload.
#[must_use]
pub fn control_warning(control: &ControlTraffic) -> Option<String> {
    let share = control.share().filter(|share| *share > CONTROL_SHARE_MAX)?;
    Some(format!(
        "control traffic is {:.3} % of the payload, more than {} %: it may have disturbed the trials",
        share * 100.0,
        CONTROL_SHARE_MAX * 100.0
    ))
}
