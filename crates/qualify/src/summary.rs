//! Assembles the result of a qualification.
use std::path::Path;
use std::time::Duration;

use keepup_measure::environment::Environment;
use keepup_measure::sum::Sums;
use keepup_plan::{EventSize, Profile, Transport};
use keepup_results::format::{bytes, rate, time};
use keepup_results::{
    Bottleneck, Ceilings, Kind, KneeInterval, LoadResult, ResultSummary, SCHEMA_VERSION, SessionLoad,
    SourceHost, SteadyState, StorageCost, TrialResult, rfc3339,
};
use keepup_stream::source::{DectrisVersion, Protocol};
use keepup_workload::preflight::{Checked, usable_bytes_each};
use keepup_workload::wear::VolumeDisks;

use crate::bottleneck::{Evidence, Nominee, Stage, next, nominees, unresolved};
use crate::counter::{Counters, Setup};
use crate::judge::drain_rate;
use crate::run_space::{self, RunSpace};
use crate::search::{End, Outcome, Phase};
use crate::settings::Settings;
use crate::trial_run::TrialRun;
use crate::verdict::{
    Basis, became_slower, failed_above, judge, longest_run, soak, unbridged_above, untried,
};
use crate::wear::{Usage, Wear};

/// Share of the CPU time taken by a hypervisor that is worth a sentence.
const STEAL_PERCENT: f64 = 1.0;
const YEAR_S: f64 = 365.25 * 86_400.0;
/// Content of the simulated events.
const CONTENT: &str = "events had random, incompressible content: a disk that compresses or deduplicates may \
                       be faster with real data";
const CONTENT_OF_IMAGES: &str = "images had random photon counts and were compressed: a disk that compresses \
                                 or deduplicates may be faster or slower with real data";
/// Space that trials write to.
const SEGMENTS: &str = "segments were new files, preallocated where the file system can, not overwritten; \
                        their space may have been written before: first writes to thin storage may be slower";

/// Findings of a run.
pub(crate) struct Findings {
    ceilings: Ceilings,
    pub(crate) saturated: TrialRun,
    /// The counter-trials.
    pub(crate) counters: Option<Counters>,
    /// The fastest trial whose blocks were discarded.
    relieved: Option<TrialRun>,
    /// Evidence of the trials that failed because of the machine, with their rates.
    failing: Vec<(f64, Evidence)>,
    /// The soak that held at the highest rate, else the last one run.
    soak: Option<(f64, TrialRun)>,
    /// Durable bytes of the soaks at that rate that held.
    soaked_bytes: u64,
    pub(crate) outcome: Outcome,
    /// The rounds until the rate was steady, if they were run.
    pub(crate) steady: Option<SteadyState>,
    /// Whether soaks are shorter than planned, which is a note.
    pub(crate) is_soak_short: bool,
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
            slower: None,
            is_out_of_bytes: false,
            end: End::Interrupted,
            trials: Vec::new(),
        };
        Self {
            ceilings,
            saturated,
            counters: None,
            relieved: None,
            failing: Vec::new(),
            soak: None,
            soaked_bytes: 0,
            outcome,
            steady: None,
            is_soak_short: false,
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
            self.take_soak(rate, tried, failed);
        } else {
            self.add_evidence(rate, &tried);
        }
    }

    /// After the machine has become slower: the soaks that held prove nothing any more.
    pub(crate) fn outdate_soaks(&mut self) {
        self.soaked_bytes = 0;
    }

    /// Keeps the soaks that held at the highest rate, else the last one.
    fn take_soak(&mut self, rate: f64, tried: TrialRun, failed: bool) {
        if failed && self.soaked_bytes > 0 {
            return self.add_evidence(rate, &tried);
        }
        let is_same = self.soak.as_ref().is_some_and(|(earlier, _)| *earlier == rate);
        let bytes = if failed { 0 } else { tried.measured.record.ledger.total().durable.bytes };
        self.soaked_bytes = if is_same { self.soaked_bytes + bytes } else { bytes };
        if let Some((rate, earlier)) = self.soak.replace((rate, tried)) {
            self.add_evidence(rate, &earlier);
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

    /// Stages to test.
    pub(crate) fn nominees(&self) -> Vec<Nominee> {
        nominees(&self.evidence())
    }

    /// Keeps the fastest trial whose blocks were discarded: others were disturbed.
    pub(crate) fn take_relieved(&mut self, tried: TrialRun) {
        let rate = tried.outcome.achieved_rate;
        if self.relieved.as_ref().is_none_or(|earlier| earlier.outcome.achieved_rate < rate) {
            self.relieved = Some(tried);
        }
    }

    /// The bottleneck, and the limit after it.
    fn bottleneck(&self) -> Bottleneck {
        let evidence = self.evidence();
        let untested = || Counters::new(nominees(&evidence), Setup::default(), 1, Duration::ZERO);
        let counters = self.counters.clone().unwrap_or_else(untested);
        let (stage, mut found) = counters.bottleneck(&unresolved(&evidence));
        let relieved = self.relieved.as_ref().map(TrialRun::evidence);
        let held = highest_held(&self.outcome);
        found.next = next(&stage, &self.ceilings, relieved.as_ref(), held);
        found
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

/// Inputs of the summary.
pub(crate) struct SummaryInputs<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) environment: &'a Environment,
    pub(crate) findings: &'a Findings,
    pub(crate) trials: Vec<TrialResult>,
    pub(crate) loads: Vec<SessionLoad>,
    pub(crate) bytes_written: u64,
    pub(crate) id: String,
    pub(crate) created_unix_ns: u64,
    pub(crate) plan: serde_json::Value,
    pub(crate) directory: &'a Path,
    pub(crate) volumes: &'a [Checked],
    pub(crate) disks: &'a [VolumeDisks],
}

/// The summary, and whether the generator prevented an answer.
pub(crate) fn summarise(parts: SummaryInputs<'_>) -> (ResultSummary, bool) {
    let (settings, findings) = (parts.settings, parts.findings);
    let required = settings.required();
    let shown = findings.shown();
    let cpu = shown.measured.cpu();
    let cores = shown.measured.cores.len().max(1) as f64;
    let load_cores: f64 = shown.loads.iter().filter_map(LoadResult::cores).float_sum();
    let outcome = &findings.outcome;
    let bottleneck = findings.bottleneck();
    let run_space = run_space(&parts, required);
    let wear = wear(&parts, &run_space);
    let judgement = judge(&Basis {
        required,
        headroom_wanted: settings.profile.headroom,
        cpu_free_wanted: settings.profile.cpu_free.fraction(),
        // CPU time of the loads counts as used.
        cpu_share_at_required: cpu.seconds_per_gb.map(|s| (s * required / 1e9 + load_cores) / cores),
        saturated: findings.path_rate().filter(|_| !is_source_the_limit(&bottleneck)),
        offered_unthrottled: Some(findings.saturated.outcome.offered_rate),
        outcome,
        fault: findings.fault.as_deref(),
        loads: &shown.loads,
        load_failure: findings.load_failure.as_deref(),
        run_space,
        wear: &wear,
    });
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
        failed_above: failed_above(outcome),
        soak: soak(outcome, findings.soaked_bytes, memory_bytes(&parts)),
        steady: findings.steady.clone(),
        bottleneck: Some(bottleneck),
        source_host: source_host(&parts),
        ceilings: findings.ceilings.clone(),
        ledger: shown.measured.ledger(),
        cpu,
        storage: storage(&parts, &run_space, wear),
        engine: shown.measured.engine(),
        limits: limits(&parts, &run_space),
        interrupted: outcome.end == End::Interrupted && findings.fault.is_none(),
        result_directory: parts.directory.display().to_string(),
        loads: parts.loads,
        trials: parts.trials,
    };
    (summary, judgement.generator_limited)
}

/// Whether the source is the bottleneck: what it sends without a schedule says nothing about the path.
fn is_source_the_limit(bottleneck: &Bottleneck) -> bool {
    bottleneck.is_confirmed() && bottleneck.stage == Stage::Source.to_string()
}

fn memory_bytes(parts: &SummaryInputs<'_>) -> Option<u64> {
    parts.environment.memory.total_bytes.value().copied()
}

/// Highest rate that held, in a soak or in trials, bytes per second.
fn highest_held(outcome: &Outcome) -> Option<f64> {
    let knee = outcome.knee.map(|knee| knee.lower);
    outcome.qualified_rate.into_iter().chain(knee).reduce(f64::max)
}

/// Space for one run at the required rate. Files grow as in the trial shown, where events may be reduced and
/// have headers and an index.
fn run_space(parts: &SummaryInputs<'_>, required: f64) -> RunSpace {
    let (profile, measured) = (&parts.settings.profile, &parts.findings.shown().measured);
    let of = |bytes: u64| measured.file_bytes as f64 / bytes as f64;
    let (received, stored) =
        (measured.record.ledger.total().received.bytes, measured.record.ledger.stored().bytes);
    // Without data nothing is known about the files.
    let is_known = measured.file_bytes > 0 && received > 0 && stored > 0;
    let (written, drained) = if is_known { (of(received), of(stored)) } else { (1.0, 1.0) };
    let recorder = parts.settings.recorder(String::new());
    let nominal = profile.drain.map_or(0.0, |rate| rate.bytes_per_second());
    let credited = run_space::credited_drain(nominal, drain_rate(&measured.samples));
    RunSpace {
        usable_bytes: run_space::usable_bytes(
            recorder.placement,
            profile.streams,
            parts.volumes.len(),
            usable_bytes_each(parts.volumes),
        ),
        written: required * written,
        drained: credited * drained,
        run_seconds: profile.duration.0.as_secs_f64(),
        is_required: profile.whole_run,
    }
}

/// Wear of the volumes if the detector's runs follow one another.
fn wear(parts: &SummaryInputs<'_>, run_space: &RunSpace) -> Wear {
    let profile = &parts.settings.profile;
    let placement = parts.settings.recorder(String::new()).placement;
    let spread = run_space::spread(placement, profile.streams, parts.volumes.len());
    let lifetime = profile.lifetime.map_or(0.0, |lifetime| lifetime.0.as_secs_f64());
    let usage = Usage {
        written_each: run_space.written / spread,
        run_seconds: run_space.run_seconds,
        required_seconds: lifetime.max(run_space.run_seconds),
    };
    Wear::of(parts.disks, &parts.settings.endurance, &usage)
}

fn storage(parts: &SummaryInputs<'_>, run_space: &RunSpace, wear: Wear) -> StorageCost {
    StorageCost {
        bytes_written: parts.bytes_written,
        hours_of_storage_left_at_required: run_space.full_after().map(|after| after / 3600.0),
        run_bytes: Some(run_space.run_bytes() as u64),
        usable_bytes: Some(run_space.usable_bytes as u64),
        bytes_per_year: Some((run_space.written * YEAR_S) as u64),
        disks: wear.disks,
        endurance: wear.endurance,
    }
}

/// Caches that may have helped, by how the soak wrote.
fn caches(parts: &SummaryInputs<'_>) -> Option<String> {
    let volumes = &parts.findings.shown().measured.record.volumes;
    if volumes.iter().any(|volume| volume.access == "buffered") {
        return Some("data was written through the page cache, not directly to the disks".into());
    }
    let is_steady = parts.findings.steady.as_ref().is_some_and(|steady| steady.reached);
    let memory = memory_bytes(parts).filter(|_| !is_steady);
    memory.filter(|memory| parts.findings.soaked_bytes < *memory).map(|_| {
        "less was written in the soak than the machine has memory; writes were direct, \
         a controller's cache was not excluded"
            .into()
    })
}

/// Assumptions about the detector's events.
fn events(profile: &Profile) -> String {
    let size = match profile.event {
        EventSize::Fixed(size) => format!("of {} each", bytes(size.0)),
        EventSize::Uniform { min, max } => {
            format!("of {} to {}, uniformly distributed", bytes(min.0), bytes(max.0))
        }
        EventSize::LogNormal { median, max, .. } => {
            let (median, max) = (bytes(median.0), bytes(max.0));
            format!("of log-normally distributed size (median {median}, at most {max})")
        }
    };
    let spacing = match profile.burst {
        Some(burst) => {
            let [on, off] = [burst.on, burst.off].map(|span| time(span.0.as_secs_f64()));
            format!("in bursts of {on} with pauses of {off}")
        }
        None => "evenly spaced".to_owned(),
    };
    let streams = match profile.streams {
        1 => String::new(),
        streams => format!(", at the same rate on all {streams} streams"),
    };
    format!("the detector was assumed to send events {size}, {spacing}{streams}")
}

/// What a virtual machine hides.
fn virtual_machine(parts: &SummaryInputs<'_>) -> Vec<String> {
    if parts.environment.machine.virtualised.value() != Some(&true) {
        return Vec::new();
    }
    let steal = parts.findings.shown().measured.cpu().steal_percent.filter(|&steal| steal >= STEAL_PERCENT);
    let reused =
        "this is a virtual machine, and trials write to space that earlier ones freed: its storage may be \
                  slower where nothing was written before"
            .to_owned();
    let taken =
        steal.map(|steal| format!("the hypervisor took {steal:.0} % of the CPU time for other machines"));
    [reused].into_iter().chain(taken).collect()
}

/// Share of the soak that was read back, if not all.
fn unread(findings: &Findings) -> Option<String> {
    let report = findings.shown().measured.verify.as_ref().filter(|report| report.unread_segments > 0)?;
    Some(format!(
        "{} of {} segments of the soak were read back and verified, a sample: the time for it is limited",
        report.segments,
        report.segments + report.unread_segments
    ))
}

/// Machine of the source, with the longest time between its reports in the trial shown.
fn source_host(parts: &SummaryInputs<'_>) -> Option<SourceHost> {
    let host = parts.settings.generator.host()?.clone();
    let gap_ns = parts.findings.shown().measured.source_gap_ns_max;
    Some(SourceHost { counters_gap_seconds_max: gap_ns.map(|ns| ns as f64 / 1e9), ..host })
}

/// What lay between source and recorder.
fn path(host: Option<&SourceHost>, is_loopback: bool, protocol: Protocol) -> String {
    let Some(host) = host.filter(|_| !is_loopback) else {
        if protocol == Protocol::Files {
            return "source and recorder shared this machine".to_owned();
        }
        return "source and recorder shared this machine and talked over loopback: \
                no network card, cable or switch was tested"
            .to_owned();
    };
    let cpu = host.cpu.as_ref().map_or_else(String::new, |cpu| format!(" ({cpu})"));
    format!(
        "the source ran on {}{cpu}, reached at {}: its network card sent the events, not the detector's",
        host.host, host.address
    )
}

/// What of the detector's transport was tested, unless all of it was.
fn transport(protocol: Protocol, profile: &Profile, is_loopback: bool) -> Option<String> {
    let packets = match protocol {
        Protocol::Keepup if profile.transport == Transport::Tcp => return None,
        Protocol::Keepup => {
            return Some("events were sent over TCP, not over the detector's own transport".into());
        }
        Protocol::Udp => "a UDP packet with a counter",
        Protocol::Vdif { .. } => "a VDIF frame in a UDP packet",
        Protocol::Spead => "a SPEAD heap in UDP packets",
        Protocol::Files => {
            return Some(
                "the full-speed trials that find the bottleneck used TCP: files have no flow control".into(),
            );
        }
        Protocol::Dectris(version) => {
            let version = match version {
                DectrisVersion::V1 => "V1",
                DectrisVersion::V2 => "V2",
            };
            let image = format!("each event was an image of DECTRIS Stream {version} over ZeroMQ");
            let compressed = profile.uncompressed().zip(profile.uncompressed_bytes_per_second());
            return Some(match compressed {
                Some((size, before)) => format!(
                    "{image}, of one channel, compressed by bslz4 from {} ({} before compression)",
                    bytes(size.0),
                    rate(before)
                ),
                None => format!(
                    "{image}, uncompressed, of one channel; images that the detector compresses need fewer \
                     bytes per second"
                ),
            });
        }
        Protocol::PvAccess => {
            return Some(
                "each event was an uncompressed NTNDArray over pvAccess, in one message; the IOC's own \
                 processing, segmented messages (of servers older than pvxs) and UDP search were not tested"
                    .to_owned(),
            );
        }
    };
    let path = if is_loopback { "loopback neither lost nor reordered packets; " } else { "" };
    Some(format!(
        "each event was sent as {packets}, without flow control; {path}the full-speed trials that find the \
         bottleneck used TCP"
    ))
}

/// Error of the backlogs with a source on another machine.
fn counters_gap(host: &SourceHost) -> Option<String> {
    host.counters_gap_seconds_max.map(|gap_s| {
        format!(
            "the source reported its counters at least every {}: backlogs are known to within the data of \
             that time and of one delivery",
            time(gap_s)
        )
    })
}

/// Limits of validity, one sentence each.
fn limits(parts: &SummaryInputs<'_>, run_space: &RunSpace) -> Vec<String> {
    let (settings, findings) = (parts.settings, parts.findings);
    let (generator, protocol) = (&settings.generator, settings.protocol);
    let is_loopback = generator.is_loopback();
    let mut limits = vec![path(generator.host(), is_loopback, protocol)];
    limits.extend(source_host(parts).as_ref().and_then(counters_gap));
    limits.extend(generator.file_store().map(|store| store.describe(&settings.volumes)));
    limits.extend(transport(protocol, &settings.profile, is_loopback));
    let is_image = settings.profile.compression.is_some() && matches!(protocol, Protocol::Dectris(_));
    let content = if is_image { CONTENT_OF_IMAGES } else { CONTENT };
    limits.extend([events(&settings.profile), content.to_owned()]);
    limits.push(longest_run(&findings.outcome, settings.profile.duration.0.as_secs_f64()));
    limits.extend(became_slower(&findings.outcome));
    limits.extend(unbridged_above(&findings.outcome, settings.required()));
    if !settings.loads.specs.is_empty() {
        limits.push("background loads ran during all measurements, including the ceilings".into());
    }
    limits.extend(caches(parts));
    if findings.steady.as_ref().is_some_and(|steady| !steady.reached) {
        limits.push(
            "the write rate was not steady before the search: a cache of the disks may not be full".into(),
        );
    }
    limits.extend(findings.shown().measured.read_from.as_ref().map(ToString::to_string));
    limits.extend(unread(findings));
    limits.push(SEGMENTS.to_owned());
    limits.extend(virtual_machine(parts));
    limits.extend(run_space.ring());
    let buffer = settings.profile.buffer.0;
    limits.push(format!(
        "the detector was assumed to buffer {}, {} at the required rate (source.buffer)",
        bytes(buffer),
        time(buffer as f64 / settings.required())
    ));
    limits.extend(untried(&findings.outcome, findings.max_rate));
    if settings.quick {
        limits.push(format!(
            "quick search: stalls rarer than one per soak, and caches larger than the {} written, were not \
             observed",
            bytes(parts.bytes_written)
        ));
    }
    for note in parts.findings.shown().measured.record.volumes.iter().filter_map(|v| v.note.as_ref()) {
        limits.push(note.lines().next().unwrap_or_default().to_owned());
    }
    limits.extend(parts.volumes.iter().flat_map(|v| v.warnings.clone()));
    limits.extend(findings.notes.iter().cloned());
    limits
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
