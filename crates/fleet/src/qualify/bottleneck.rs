//! Which host limits the rate of a fleet, and which of its stages. Pure.
use keepup_qualify::bottleneck::{Evidence, Stage, nominees, unresolved};
use keepup_results::format::{rate, rates};
use keepup_results::{Bottleneck, FleetBottleneck};

/// A rate up to this share of a recorder's own knee is clearly below it. Two searches over the same path
/// differ by up to 10 %, to which soaks narrow them.
const BELOW_OWN: f64 = 0.9;

/// A recorder in the first trial that failed, or in the unthrottled one if none did.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// Name of the recorder.
    pub(super) host: String,
    /// Its source.
    pub(super) source: String,
    /// Its rate, bytes per second: requested, or reached without a schedule.
    pub(super) rate: f64,
    /// What came through, as a rate of all recorders together, bytes per second.
    pub(super) of_all: f64,
    /// Why its part failed, unless its source was too slow.
    pub(super) failed: Option<String>,
    /// Its source was too slow.
    pub(super) source_short: bool,
    /// Its evidence: of trials in which its part failed, the lowest rate first, then of the unthrottled one.
    pub(super) evidence: Vec<Evidence>,
    /// Its own knee, measured alone, bytes per second.
    pub(super) alone: Option<f64>,
}

impl Case {
    /// Whether its rate is clearly below its own knee.
    fn is_below_own(&self) -> bool {
        self.alone.is_some_and(|alone| self.rate <= BELOW_OWN * alone)
    }

    /// Whether the limiting stage is the way from its source, and not a part of its host alone.
    fn waits_for_its_path(&self) -> bool {
        is_path(&self.stage().0)
    }

    fn waits_for_its_drain(&self) -> bool {
        self.stage().0 == Stage::Drain.to_string()
    }

    /// The limiting stage, and the figures for it.
    pub(super) fn stage(&self) -> (String, String) {
        match nominees(&self.evidence).into_iter().next() {
            Some(nominee) => (nominee.stage.to_string(), nominee.evidence),
            None => (Bottleneck::NOT_RESOLVED.to_owned(), unresolved(&self.evidence)),
        }
    }
}

/// The bottleneck of recorders that failed together at `failed_rate`, or did not fail; bytes per second.
pub(super) fn bottleneck(failed_rate: Option<f64>, cases: &[Case]) -> Option<FleetBottleneck> {
    let slowest = cases.iter().min_by(|a, b| a.of_all.total_cmp(&b.of_all))?;
    let Some(failed_rate) = failed_rate else {
        let (stage, figures) = slowest.stage();
        return Some(FleetBottleneck {
            stage: format!("host {}, {stage}", slowest.host),
            hosts: vec![slowest.host.clone()],
            evidence: format!("no rate failed; without a schedule it was the slowest: {figures}"),
        });
    };
    let failed: Vec<&Case> = cases.iter().filter(|case| case.failed.is_some()).collect();
    if failed.is_empty() {
        return Some(sources(failed_rate, cases));
    }
    // A shared link is not always shared evenly, so one of them may fail first. A drain host may be shared,
    // too, but is named.
    let all_failed = failed.len() == cases.len() && failed.iter().all(|case| !case.waits_for_its_drain());
    let is_shared = all_failed || failed.iter().all(|case| case.waits_for_its_path());
    if is_shared && failed.iter().all(|case| case.is_below_own()) {
        let own = failed.iter().map(|case| {
            let [at, alone] = rates([case.rate, case.alone.unwrap_or_default()]);
            format!("{} {at} of {alone} alone", case.host)
        });
        let at = rate(failed_rate);
        return Some(FleetBottleneck {
            stage: FleetBottleneck::SHARED.to_owned(),
            hosts: Vec::new(),
            evidence: format!(
                "every recorder that failed, at {at} of all, was below its own knee: {}",
                own.collect::<Vec<_>>().join(", ")
            ),
        });
    }
    let at_own = failed.iter().copied().filter(|case| !case.is_below_own()).collect::<Vec<_>>();
    Some(recorders(failed_rate, cases.len(), if at_own.is_empty() { failed } else { at_own }))
}

/// Sources that did not keep their schedule.
fn sources(failed_rate: f64, cases: &[Case]) -> FleetBottleneck {
    let mut short: Vec<&str> =
        cases.iter().filter(|case| case.source_short).map(|case| case.source.as_str()).collect();
    short.sort_unstable();
    short.dedup();
    let at = rate(failed_rate);
    FleetBottleneck {
        stage: format!("source {}", short.join(", ")),
        hosts: Vec::new(),
        evidence: format!("the schedule was not kept at {at}, and no recorder failed by itself"),
    }
}

/// Whether a stage is the network or the source.
fn is_path(stage: &str) -> bool {
    [Stage::Network, Stage::Source].iter().any(|path| path.to_string() == stage)
}

/// Recorders that failed by themselves, of `count` in all.
fn recorders(failed_rate: f64, count: usize, mut failed: Vec<&Case>) -> FleetBottleneck {
    failed.sort_by(|a, b| a.of_all.total_cmp(&b.of_all));
    let stages: Vec<(String, String)> = failed.iter().map(|case| case.stage()).collect();
    let is_same = stages.windows(2).all(|pair| pair[0].0 == pair[1].0);
    let is_shared = is_same && failed.len() > 1;
    let names: Vec<String> = failed.iter().map(|case| case.host.clone()).collect();
    let (stage, figures) = stages.into_iter().next().unwrap_or_default();
    let hosts = if is_shared { names } else { names.into_iter().take(1).collect() };
    let which = if hosts.len() > 1 { "hosts" } else { "host" };
    let condition = failed[0].failed.as_deref().unwrap_or_default();
    let at = rate(failed_rate);
    let mut evidence = format!("at {at} of all recorders, {condition} on {}: {figures}", failed[0].host);
    if is_shared && hosts.len() == count && is_path(&stage) && failed.iter().any(|case| case.alone.is_none())
    {
        evidence.push_str("; use --each to distinguish the links of the recorders from switch and sources");
    }
    FleetBottleneck { stage: format!("{which} {}, {stage}", hosts.join(" and ")), hosts, evidence }
}

#[cfg(test)]
#[path = "bottleneck_tests.rs"]
mod tests;
