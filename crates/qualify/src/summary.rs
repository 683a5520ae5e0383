//! Puts the result together: what was found, said in the terms of the schema.
use std::collections::BTreeMap;
use std::time::Duration;

use keepup_results::{
    Ceilings, Count, CpuCost, Engine, IoEngine, Kind, KneeInterval, LedgerSummary, LoadResult, ResultSummary,
    SCHEMA_VERSION, Soak, StorageCost, ThreadCpu, rfc3339,
};
use keepup_stream::ledger::Count as LedgerCount;

use crate::bottleneck::{Evidence, bottleneck};
use crate::search::{End, Outcome, Phase};
use crate::session::{Summing, Tried};
use crate::verdict::{Basis, judge};

const YEAR_S: f64 = 365.25 * 86_400.0;

/// What a run found out.
pub(crate) struct Findings {
    ceilings: Ceilings,
    pub(crate) saturated: Tried,
    pub(crate) relieved: Option<Tried>,
    /// How busy every stage was in the trials that failed by the machine's own fault, with their rates.
    failing: Vec<(f64, Evidence)>,
    /// The last soak that held, else the last that ran.
    soak: Option<(f64, Tried)>,
    soaked_bytes: u64,
    pub(crate) outcome: Outcome,
    pub(crate) soak_asked: Duration,
    pub(crate) fault: Option<String>,
    /// Which load ended before its time, and why.
    pub(crate) load_failure: Option<String>,
    pub(crate) notes: Vec<String>,
    max_rate: f64,
}

impl Findings {
    pub(crate) fn new(ceilings: Ceilings, saturated: Tried, max_rate: f64) -> Self {
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

    /// Keeps of a trial what the summary needs.
    pub(crate) fn take(&mut self, phase: Phase, rate: f64, tried: Tried) {
        let failed = crate::judge::first_failed(&tried.outcome).is_some();
        if phase == Phase::Soak {
            if let Some(report) = tried.measured.verify.as_ref().filter(|report| !report.is_intact()) {
                let what = report.faults.first().map_or("", |f| f.what.as_str());
                self.fault.get_or_insert(format!("{} faults on reading back: {what}", report.fault_count));
            }
            self.soaked_bytes += if failed { 0 } else { tried.measured.record.ledger.total().durable.bytes };
            if let Some((rate, earlier)) = self.soak.replace((rate, tried)) {
                self.blame(rate, &earlier);
            }
        } else {
            self.blame(rate, &tried);
        }
    }

    /// Keeps what a failed trial shows.
    fn blame(&mut self, rate: f64, tried: &Tried) {
        let failed = crate::judge::first_failed(&tried.outcome).is_some();
        if failed && !tried.outcome.generator_limited {
            self.failing.push((rate, tried.evidence()));
        }
    }

    /// What shows the limit: failed trials, the one nearest above the knee first, then the one without a
    /// schedule.
    fn evidence(&self) -> Vec<Evidence> {
        let mut failing: Vec<&(f64, Evidence)> = self.failing.iter().collect();
        failing.sort_by(|a, b| a.0.total_cmp(&b.0));
        let last_soak = self.soak.iter().filter(|(_, soak)| {
            crate::judge::first_failed(&soak.outcome).is_some() && !soak.outcome.generator_limited
        });
        let soaks = last_soak.map(|(_, soak)| soak.evidence());
        soaks.chain(failing.into_iter().map(|(_, e)| e.clone())).chain([self.saturated.evidence()]).collect()
    }

    /// The run that ledger and CPU are taken from.
    pub(crate) fn shown(&self) -> &Tried {
        self.soak.as_ref().map_or(&self.saturated, |(_, tried)| tried)
    }
}

/// The summary, and whether the generator is what kept it from an answer.
pub(crate) fn summarise(parts: Summing<'_>) -> (ResultSummary, bool) {
    let (settings, findings) = (parts.settings, parts.findings);
    let required = settings.required();
    let shown = findings.shown();
    let cpu = cpu(shown);
    let cores = shown.measured.cores.len().max(1) as f64;
    let load_cores: f64 = shown.loads.iter().filter_map(LoadResult::cores).sum();
    let outcome = &findings.outcome;
    let judgement = judge(&Basis {
        required,
        headroom_wanted: settings.profile.headroom,
        cpu_free_wanted: settings.profile.cpu_free.fraction(),
        // What the loads take is not free either.
        cpu_share_at_required: cpu.seconds_per_gb.map(|s| (s * required / 1e9 + load_cores) / cores),
        outcome,
        fault: findings.fault.as_deref(),
        loads: &shown.loads,
        load_failure: findings.load_failure.as_deref(),
    });
    let evidence = findings.evidence();
    let relieved = findings.relieved.as_ref().map(Tried::evidence);
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
        ledger: ledger(shown),
        cpu,
        storage: storage(&parts, required),
        engine: engine(shown),
        limits: limits(&parts),
        interrupted: outcome.end == End::Interrupted && findings.fault.is_none(),
        result_directory: parts.directory.display().to_string(),
        loads: parts.loads,
        trials: parts.trials,
    };
    (summary, judgement.generator_limited)
}

fn memory_bytes(parts: &Summing<'_>) -> Option<u64> {
    parts.environment.memory.total_bytes.value().copied()
}

fn soak(parts: &Summing<'_>) -> Option<Soak> {
    let record = parts.findings.outcome.soak.filter(|soak| soak.passes > 0)?;
    Some(Soak {
        seconds: record.seconds / f64::from(record.passes),
        bytes: parts.findings.soaked_bytes,
        passes: record.passes,
        upper_bound_loss_per_second: parts.findings.outcome.upper_bound_loss_per_s.unwrap_or(f64::INFINITY),
        memory_bytes: memory_bytes(parts),
    })
}

fn count(count: LedgerCount) -> Count {
    Count { events: count.events, bytes: count.bytes }
}

fn ledger(shown: &Tried) -> LedgerSummary {
    let measured = &shown.measured;
    let total = measured.record.ledger.total();
    let (due, sent) = (measured.source.total(|s| s.due), measured.source.total(|s| s.sent));
    let lost = due - total.durable;
    let lost_at_source = measured.source.total(|s| s.lost);
    let after = lost - lost_at_source;
    let mut lost_by_cause = BTreeMap::new();
    if lost_at_source.events > 0 {
        lost_by_cause.insert("lost at source".to_owned(), count(lost_at_source));
    }
    if after.events > 0 {
        let causes: Vec<String> =
            total.gap_events.keys().filter(|c| c.is_after_receipt()).map(|c| c.to_string()).collect();
        let cause = if causes.is_empty() { "not received".to_owned() } else { causes.join(", ") };
        lost_by_cause.insert(cause, count(after));
    }
    let verified = measured.verify.as_ref().map(|report| {
        let streams = report.streams.values();
        let recorded = streams.clone().fold(LedgerCount::default(), |sum, s| sum + s.recorded);
        let damaged: u64 = streams.map(|s| s.damaged_events).sum();
        Count { events: recorded.events - damaged.min(recorded.events), bytes: recorded.bytes }
    });
    LedgerSummary {
        sent: count(sent),
        lost_at_source: count(lost_at_source),
        received: count(total.received),
        written: count(total.written),
        durable: count(total.durable),
        verified,
        drained: measured.drain.as_ref().map(|drain| count(drain.durable)),
        lost: count(lost),
        lost_by_cause,
    }
}

fn cpu(shown: &Tried) -> CpuCost {
    let measured = &shown.measured;
    let (record, seconds) = (&measured.record, |ns: u64| ns as f64 / 1e9);
    let received = record.ledger.total().received.bytes as f64 / 1e9;
    let sent = measured.source.total(|s| s.sent).bytes as f64 / 1e9;
    let threads = std::iter::once(&record.intake_cpu).chain(record.volumes.iter().map(|v| &v.cpu));
    let cores = &measured.cores;
    let mean = |of: fn(&keepup_measure::cpu::CoreUsage) -> f64| {
        (!cores.is_empty()).then(|| cores.iter().map(of).sum::<f64>() / cores.len() as f64)
    };
    CpuCost {
        seconds_per_gb: (received > 0.0).then(|| seconds(measured.recorder_cpu_ns) / received),
        drain_seconds_per_gb: (measured.drain_cpu_ns.filter(|_| received > 0.0))
            .map(|ns| seconds(ns) / received),
        source_seconds_per_gb: (sent > 0.0).then(|| seconds(measured.source_cpu_ns) / sent),
        per_core_percent: cores.iter().map(|core| core.busy_percent).collect(),
        softirq_percent: mean(|core| core.softirq_percent),
        steal_percent: mean(|core| core.steal_percent),
        recorder_threads: threads
            .map(|thread| ThreadCpu {
                name: thread.name.clone(),
                seconds: seconds(thread.cpu_ns),
                run_delay_seconds: thread.run_delay_ns.map(seconds),
            })
            .collect(),
    }
}

fn storage(parts: &Summing<'_>, required: f64) -> StorageCost {
    StorageCost {
        bytes_written: parts.bytes_written,
        hours_of_storage_left_at_required: Some(parts.usable_bytes as f64 / required / 3600.0),
        bytes_per_year: Some((required * YEAR_S) as u64),
    }
}

fn engine(shown: &Tried) -> Engine {
    let volume = shown.measured.record.volumes.first();
    let io = if volume.is_some_and(|v| v.engine == "pwrite") { IoEngine::Pwrite } else { IoEngine::IoUring };
    let access = volume.map_or("", |v| v.access.as_str());
    let buffers = volume.map_or("", |v| v.buffers.as_str());
    Engine { io, buffers: format!("{buffers}, {access}") }
}

/// What this run did not show, one sentence each.
fn limits(parts: &Summing<'_>) -> Vec<String> {
    let (settings, findings) = (parts.settings, parts.findings);
    let mut limits = vec![
        "source and recorder shared this machine and talked over loopback: \
         no network card, cable or switch was tested"
            .to_owned(),
    ];
    if settings.profile.transport != keepup_plan::Transport::Tcp {
        limits.push("the detector's own transport was not used: its events came over TCP".into());
    }
    let soaked = findings.soak.as_ref().map_or(0.0, |(_, s)| s.measured.source.elapsed_ns as f64 / 1e9);
    limits.push(format!(
        "the longest run without loss took {soaked:.0} s; the profile runs for {}",
        settings.profile.duration
    ));
    if !settings.loads.specs.is_empty() {
        limits.push("loads ran beside all that was measured, beside each component alone too".into());
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
            "nothing above {:.0} MB/s was tried, so the limit may lie higher",
            findings.max_rate / 1e6
        ));
    }
    if settings.quick {
        limits.push(
            "a quick look: short trials, and stalls that come less than once in the soak were not seen"
                .into(),
        );
    }
    for note in parts.findings.shown().measured.record.volumes.iter().filter_map(|v| v.note.as_ref()) {
        limits.push(note.lines().next().unwrap_or_default().to_owned());
    }
    limits.extend(parts.volumes.iter().flat_map(|v| v.warnings.clone()));
    limits.extend(findings.notes.iter().cloned());
    limits
}
