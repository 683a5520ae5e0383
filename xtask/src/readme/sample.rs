//! Requirements for the README sample. Stricter than [`ResultSummary::check`]: a search tolerates a trial
//! that fails by chance, but a sample with one is confusing.

use keepup_measure::sum::Sums;
use keepup_results::{ResultSummary, TrialResult, Verdict};

/// Tolerated relative difference of a figure derived in two ways: sources and clocks start at slightly
/// different times.
const TOLERANCE: f64 = 0.03;
/// Smallest share of the requested rate that is durable within a passed trial. The rest waits for the last
/// flush.
const DURABLE_SHARE_MIN: f64 = 0.8;
/// Largest share of all cores used by other processes and the hypervisor on an idle machine.
const FOREIGN_SHARE_MAX: f64 = 0.1;
const YEAR_S: f64 = 365.25 * 86_400.0;

/// All contradictions, one sentence each.
pub(super) fn contradictions(summary: &ResultSummary) -> Vec<String> {
    let mut found = summary.check();
    found.extend(held_rate(summary));
    found.extend(soak(summary));
    found.extend((1..).zip(&summary.trials).filter_map(|(number, trial)| unlike_asked(number, trial)));
    found.extend(wear(summary));
    found.extend(plainness(summary));
    found
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= TOLERANCE * a.abs().max(b.abs())
}

fn mb(rate: f64) -> String {
    format!("{:.1} MB/s", rate / 1e6)
}

/// Checks that the qualified rate is below all failed rates, and that the knee passed in a trial.
fn held_rate(summary: &ResultSummary) -> Vec<String> {
    let mut found = Vec::new();
    let asked = |passed: bool| {
        let trials = summary.trials.iter().filter(move |trial| trial.passed == passed);
        trials.map(|trial| trial.asked_bytes_per_second).filter(|asked| *asked > 0.0)
    };
    let lowest_failed = asked(false).fold(f64::INFINITY, f64::min);
    let highest_held = asked(true).fold(0.0, f64::max);
    if let Some(held) = summary.qualified_bytes_per_second.filter(|held| *held >= lowest_failed) {
        found.push(format!("{} held, but a trial at {} failed", mb(held), mb(lowest_failed)));
    }
    if let Some(knee) = summary.knee_bytes_per_second.filter(|knee| *knee > highest_held * (1.0 + TOLERANCE))
    {
        found.push(format!("the knee is {}, but no trial above {} held", mb(knee), mb(highest_held)));
    }
    if summary.knee_bytes_per_second < summary.qualified_bytes_per_second {
        found.push("more was held for the whole soak than in any trial".to_owned());
    }
    found
}

/// Checks the rate of the soak, and that a limit mentions a soak shorter than the run of the detector.
fn soak(summary: &ResultSummary) -> Vec<String> {
    let mut found = Vec::new();
    let (Some(soak), Some(held)) = (&summary.soak, summary.qualified_bytes_per_second) else { return found };
    let rate = soak.bytes as f64 / (soak.seconds * f64::from(soak.passes));
    if !near(rate, held) {
        found.push(format!("{} held, but the soak's bytes over its time are {}", mb(held), mb(rate)));
    }
    if !summary.trials.iter().any(|trial| trial.passed && near(trial.asked_bytes_per_second, held)) {
        found.push(format!("{} held, but no trial that passed was asked for it", mb(held)));
    }
    if soak.passes == 1 && !near(summary.ledger.durable.bytes as f64, soak.bytes as f64) {
        found.push("the ledger has other bytes than the soak".to_owned());
    }
    let length = format!("{:.0} s", soak.seconds);
    let shorter = summary.required_run_seconds.is_some_and(|required| soak.seconds < required);
    if shorter && !summary.limits.iter().any(|limit| limit.contains(&length)) {
        found.push(format!("a soak of {length} is shorter than the detector's run, and no limit says so"));
    }
    found
}

/// Checks the durable rate of passed trials, and that durable data was received.
fn unlike_asked(number: usize, trial: &TrialResult) -> Option<String> {
    let (asked, durable) = (trial.asked_bytes_per_second, trial.durable_bytes_per_second);
    if durable > trial.achieved_bytes_per_second * (1.0 + TOLERANCE) {
        return Some(format!("trial {number}: more became durable than was received"));
    }
    (trial.passed && durable < asked * DURABLE_SHARE_MIN)
        .then(|| format!("trial {number} passed at {}, but {} became durable", mb(asked), mb(durable)))
}

fn wear(summary: &ResultSummary) -> Option<String> {
    let expected = summary.required_bytes_per_second * YEAR_S;
    let year = summary.storage.bytes_per_year.filter(|year| !near(*year as f64, expected))?;
    Some(format!("{year} bytes a year are not the required rate times a year"))
}

/// Checks that the run is plain and names its bottleneck.
fn plainness(summary: &ResultSummary) -> Vec<String> {
    let mut found = Vec::new();
    if !summary.loads.is_empty() || summary.interrupted {
        found.push("the sample must be a whole run without background loads".to_owned());
    }
    if summary.verdict == Verdict::Fit && summary.bottleneck.is_none() {
        found.push("the limit was not determined".to_owned());
    }
    found
}

/// Checks that other processes were idle: cores busy beyond recorder, drain and source.
pub(super) fn noise(summary: &ResultSummary) -> Option<String> {
    let cpu = &summary.cpu;
    let cores = cpu.per_core_percent.len() as f64;
    let busy = cpu.per_core_percent.iter().float_sum() / 100.0;
    let stolen = cpu.steal_percent.unwrap_or(0.0) / 100.0 * cores;
    let per_gb = cpu.seconds_per_gb? + cpu.source_seconds_per_gb? + cpu.drain_seconds_per_gb.unwrap_or(0.0);
    let foreign = busy + stolen - per_gb * summary.qualified_bytes_per_second? / 1e9;
    (foreign > FOREIGN_SHARE_MAX * cores)
        .then(|| format!("other processes took {foreign:.1} of {cores} cores: the machine was not quiet"))
}
