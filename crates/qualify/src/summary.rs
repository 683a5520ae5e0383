//! Assembles the result of a qualification.
use std::time::Duration;

use keepup_results::{
    Ceilings, Kind, KneeInterval, LoadResult, ResultSummary, SCHEMA_VERSION, Soak, StorageCost, rfc3339,
};

use crate::bottleneck::{Evidence, bottleneck};
use crate::search::{End, Outcome, Phase};
use crate::session::{SummaryInputs, TrialRun};
use crate::verdict::{Basis, judge};

const YEAR_S: f64 = 365.25 * 86_400.0;

/// Findings of a run.
pub(crate) struct Findings {
    ceilings: Ceilings,
    pub(crate) saturated: TrialRun,
    pub(crate) relieved: Option<TrialRun>,
    /// Evidence of the trials that failed because of the machine, with their rates.
    failing: Vec<(f64, Evidence)>,
    /// The last passed soak, else the last one run.
    soak: Option<(f64, TrialRun)>,
    soaked_bytes: u64,
    pub(crate) outcome: Outcome,
    pub(crate) soak_asked: Duration,
    pub(crate) fault: Option<String>,
    /// Name and error of a load that ended early.
    pub(crate) load_failure: Option<String>,
    pub(crate) notes: Vec<String>,
    max_rate: f64,
}

impl Findings {
    pub(crate) fn new(ceilings: Ceilings, saturated: TrialRun, max_rate: f64) -> Self {
        let outcome = Outcome {
            knee: None,
            second_knee: None,
            qualified_rate: None,
            soak: None,
            end: End::Interrupted,
            trials: Vec::new(),
            upper_bound_loss_per_s: None,
        };
        Self {
            ceilings,
            saturated,
            relieved: None,
            failing: Vec::new(),
            soak: None,
            soaked_bytes: 0,
            outcome,
            soak_asked: Duration::ZERO,
            fault: None,
            load_failure: None,
            notes: Vec::new(),
            max_rate,
        }
    }

    /// Keeps what the summary needs of a trial.
    pub(crate) fn take(&mut self, phase: Phase, rate: f64, tried: TrialRun) {
        let failed = crate::judge::first_failed(&tried.outcome).is_some();
        if phase == Phase::Soak {
            if let Some(report) = tried.measured.verify.as_ref().filter(|report| !report.is_intact()) {
                let what = report.faults.first().map_or("", |f| f.what.as_str());
                self.fault
                    .get_or_insert(format!("{} faults found by verification: {what}", report.fault_count));
            }
            self.soaked_bytes += if failed { 0 } else { tried.measured.record.ledger.total().durable.bytes };
            if let Some((rate, earlier)) = self.soak.replace((rate, tried)) {
                self.add_evidence(rate, &earlier);
            }
        } else {
            self.add_evidence(rate, &tried);
        }
    }

    /// Keeps the evidence of a failed trial.
    fn add_evidence(&mut self, rate: f64, tried: &TrialRun) {
        let failed = crate::judge::first_failed(&tried.outcome).is_some();
        if failed && !tried.outcome.generator_limited {
            self.failing.push((rate, tried.evidence()));
        }
    }

    /// Evidence of the limit: failed trials, nearest above the knee first, then the unthrottled
    /// one.
    fn evidence(&self) -> Vec<Evidence> {
        let mut failing: Vec<&(f64, Evidence)> = self.failing.iter().collect();
        failing.sort_by(|a, b| a.0.total_cmp(&b.0));
        let last_soak = self.soak.iter().filter(|(_, soak)| {
            crate::judge::first_failed(&soak.outcome).is_some() && !soak.outcome.generator_limited
        });
        let soaks = last_soak.map(|(_, soak)| soak.evidence());
        soaks.chain(failing.into_iter().map(|(_, e)| e.clone())).chain([self.saturated.evidence()]).collect()
    }

    /// Rate of the saturated trial, if the path throttled the source; bytes/s.
    fn path_rate(&self) -> Option<f64> {
        let TrialRun { measured, outcome, .. } = &self.saturated;
        crate::judge::is_throttled(measured).then_some(outcome.achieved_rate)
    }

    /// The trial reported in ledger and CPU figures.
    pub(crate) fn shown(&self) -> &TrialRun {
        self.soak.as_ref().map_or(&self.saturated, |(_, tried)| tried)
    }
}

/// The summary, and whether the generator prevented an answer.
pub(crate) fn summarise(parts: SummaryInputs<'_>) -> (ResultSummary, bool) {
    let (settings, findings) = (parts.settings, parts.findings);
    let required = settings.required();
    let shown = findings.shown();
    let cpu = shown.measured.cpu();
    let cores = shown.measured.cores.len().max(1) as f64;
    let load_cores: f64 = shown.loads.iter().filter_map(LoadResult::cores).sum();
    let outcome = &findings.outcome;
    let judgement = judge(&Basis {
        required,
        headroom_wanted: settings.profile.headroom,
        cpu_free_wanted: settings.profile.cpu_free.fraction(),
        // CPU time of the loads counts as used.
        cpu_share_at_required: cpu.seconds_per_gb.map(|s| (s * required / 1e9 + load_cores) / cores),
        saturated: findings.path_rate(),
        outcome,
        fault: findings.fault.as_deref(),
        loads: &shown.loads,
        load_failure: findings.load_failure.as_deref(),
    });
    let evidence = findings.evidence();
    let relieved = findings.relieved.as_ref().map(TrialRun::evidence);
    let qualified = outcome.qualified_rate;
    let summary = ResultSummary {
        schema_version: SCHEMA_VERSION,
        tool_version: settings.tool_version.clone(),
        id: parts.id.clone(),
        created: rfc3339(parts.created_unix_ns),
        command: settings.command.clone(),
        kind: Kind::Qualify,
        verdict: judgement.verdict,
        verdict_reasons: judgement.reasons,
        profile: settings.profile.name.clone(),
        plan: parts.plan.clone(),
        environment: serde_json::to_value(parts.environment).unwrap_or_default(),
        environment_hash: parts.environment.fingerprint(),
        required_bytes_per_second: required,
        required_run_seconds: Some(settings.profile.duration.0.as_secs_f64()),
        headroom_wanted: settings.profile.headroom,
        knee_bytes_per_second: outcome.knee.map(|knee| knee.lower),
        knee_interval: outcome.knee.map(|knee| KneeInterval {
            lower_bytes_per_second: knee.lower,
            upper_bytes_per_second: knee.upper,
        }),
        qualified_bytes_per_second: qualified,
        headroom: qualified.map(|rate| rate / required),
        soak: soak(&parts),
        bottleneck: Some(bottleneck(&evidence, &findings.ceilings, relieved.as_ref())),
        ceilings: findings.ceilings.clone(),
        ledger: shown.measured.ledger(),
        cpu,
        storage: storage(&parts, required),
        engine: shown.measured.engine(),
        limits: limits(&parts),
        interrupted: outcome.end == End::Interrupted && findings.fault.is_none(),
        result_directory: parts.directory.display().to_string(),
        loads: parts.loads,
        trials: parts.trials,
    };
    (summary, judgement.generator_limited)
}

fn memory_bytes(parts: &SummaryInputs<'_>) -> Option<u64> {
    parts.environment.memory.total_bytes.value().copied()
}

fn soak(parts: &SummaryInputs<'_>) -> Option<Soak> {
    let record = parts.findings.outcome.soak.filter(|soak| soak.passes > 0)?;
    Some(Soak {
        seconds: record.seconds / f64::from(record.passes),
        bytes: parts.findings.soaked_bytes,
        passes: record.passes,
        upper_bound_loss_per_second: parts.findings.outcome.upper_bound_loss_per_s.unwrap_or(f64::INFINITY),
        memory_bytes: memory_bytes(parts),
    })
}

fn storage(parts: &SummaryInputs<'_>, required: f64) -> StorageCost {
    StorageCost {
        bytes_written: parts.bytes_written,
        hours_of_storage_left_at_required: Some(parts.usable_bytes as f64 / required / 3600.0),
        bytes_per_year: Some((required * YEAR_S) as u64),
    }
}

/// Limits of validity, one sentence each.
fn limits(parts: &SummaryInputs<'_>) -> Vec<String> {
    let (settings, findings) = (parts.settings, parts.findings);
    let mut limits = vec![
        "source and recorder shared this machine and talked over loopback: \
         no network card, cable or switch was tested"
            .to_owned(),
    ];
    if settings.profile.transport != keepup_plan::Transport::Tcp {
        limits.push("the detector's own transport was not used: events were sent over TCP".into());
    }
    let soaked = findings.soak.as_ref().map_or(0.0, |(_, s)| s.measured.source.elapsed_ns as f64 / 1e9);
    limits.push(format!(
        "the longest lossless run was {soaked:.0} s; the profile runs for {}",
        settings.profile.duration
    ));
    if !settings.loads.specs.is_empty() {
        limits.push("background loads ran during all measurements, including the ceilings".into());
    }
    if memory_bytes(parts).is_some_and(|memory| findings.soaked_bytes < memory) {
        limits.push(
            "less was written in the soak than the machine has memory; writes were direct, \
             a controller's cache was not excluded"
                .into(),
        );
    }
    if findings.outcome.knee.is_some_and(|knee| knee.upper.is_none()) {
        limits.push(format!(
            "no rate above {:.0} MB/s was tried, so the limit may be higher",
            findings.max_rate / 1e6
        ));
    }
    if settings.quick {
        limits.push("quick search: short trials; stalls rarer than one per soak were not observed".into());
    }
    for note in parts.findings.shown().measured.record.volumes.iter().filter_map(|v| v.note.as_ref()) {
        limits.push(note.lines().next().unwrap_or_default().to_owned());
    }
    limits.extend(parts.volumes.iter().flat_map(|v| v.warnings.clone()));
    limits.extend(findings.notes.iter().cloned());
    limits
}
