//! One qualification run: ceilings, search, proof, soak, verification.
//!
//! Decisions are made by pure functions elsewhere; this module runs the trials, logs every event,
//! and keeps partial results when interrupted.
mod ceilings;
mod counter_trials;
mod steady;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use keepup_error::Cause;
use keepup_measure::clock::Clock;
use keepup_measure::environment::Environment;
use keepup_measure::sum::Sums;
use keepup_recorder::Target;
use keepup_recording::id::Id;
use keepup_results::{
    Ceilings, Event, EventLog, Kind, ResultDirectory, ResultSummary, SessionLoad, SteadyState, TrialResult,
    Verdict, default_name,
};
use keepup_stream::ledger::Ledger;
use keepup_workload::detector::SourceRate;
use keepup_workload::load::Loads;
use keepup_workload::preflight::{Checked, usable_bytes_each};
use keepup_workload::record::{DrainSpec, RecordTrial, SETTLE, TrialSpec, Verification};
use keepup_workload::wear::VolumeDisks;
use keepup_workload::{Context, run};

use crate::QualifyError;
use crate::counter::Change;
use crate::judge::{self, TrialRequest};
use crate::progress::Progress;
use crate::run_time::{CUT_OFF, TRIAL_OVERHEAD_S};
use crate::search::{Outcome, Phase, Search, Step};
use crate::search_request::{ABOVE_SATURATED, Bounds, lowest_rate};
use crate::settings::Settings;
use crate::summary::{Findings, SummaryInputs, summarise};
use crate::trial_run::TrialRun;
use crate::verdict::bounded_end;

/// Samples per trial, from which the backlog's trend is computed.
const SAMPLES: u32 = 100;
/// Minimum sampling interval.
const SAMPLE_EVERY_MIN: Duration = Duration::from_millis(10);
/// Highest rate tried, as a share of the source's ceiling: closer to it the source would be tested
/// instead.
const SOURCE_SHARE: f64 = 0.8;
/// Least time to read back a soak when earlier ones have used up the time for it.
const READ_BACK_MIN: Duration = Duration::from_secs(1);
/// Largest share of the byte limit for the unthrottled trial, whose rate is not known beforehand.
const SATURATED_SHARE: f64 = 0.2;
/// Start of the search relative to the sum of the volumes' ceilings.
const ABOVE_VOLUMES: f64 = 1.1;

type Samples = (u64, std::collections::BTreeMap<String, f64>);

/// A running qualification.
pub struct Session<'a> {
    settings: &'a Settings,
    clock: Arc<dyn Clock>,
    stop: Arc<AtomicBool>,
    watch: &'a mut dyn FnMut(Progress),
    log: EventLog,
    loads: Loads,
    samples: (Sender<Samples>, Receiver<Samples>),
    identity: Id,
    names: u32,
    begin_ns: u64,
    estimate_s: f64,
    /// Payload stored on the volumes, bytes.
    bytes_written: u64,
    /// The most that was stored of a trial's payload, as a share of what was received: below 1 with
    /// reductions, above 1 if the events as received are kept too.
    stored_share: f64,
    /// Space of the volumes, bytes.
    usable_bytes: u64,
    /// Time left to read back soaks.
    read_back_left: Duration,
    trials: Vec<TrialResult>,
    /// Whether the search started: results from then on are kept after a failure.
    has_searched: bool,
    /// Free memory at the start, bytes.
    available_bytes: u64,
}

/// Parameters of a trial to run.
struct Request {
    phase: Phase,
    /// Name: that of the phase, or what is changed.
    label: String,
    /// Rate, bytes per second; none: unthrottled.
    rate: Option<f64>,
    duration: Duration,
    /// Change of a counter-trial, and whether it applies to this trial.
    change: Option<(Change, bool)>,
    verify: bool,
    /// Bytes that it may store.
    bytes_max: f64,
}

impl Request {
    /// A short trial of which nothing is read back.
    fn unverified(label: String, rate: Option<f64>, duration: Duration, bytes_max: f64) -> Self {
        Self { phase: Phase::Narrow, label, rate, duration, change: None, verify: false, bytes_max }
    }
}

/// Qualifies this machine for `settings`, reporting progress to `watch`. `identity` is random.
///
/// # Errors Settings, volumes or the result's directory that cannot work; a recorder that cannot start. A
/// failure before the search leaves no result. An interruption is not an error: the summary says what is
/// known so far.
pub fn qualify(
    settings: &Settings,
    identity: Id,
    clock: Arc<dyn Clock>,
    stop: Arc<AtomicBool>,
    watch: &mut dyn FnMut(Progress),
) -> Result<(ResultSummary, bool), QualifyError> {
    settings.preflight_all(identity, &clock)?;
    let environment = Environment::collect(&settings.volumes, Path::new("/"));
    let disks: Vec<VolumeDisks> = settings.volumes.iter().map(|volume| VolumeDisks::of(volume)).collect();
    let created_unix_ns = clock.unix_ns();
    let id = identity.to_string()[..8].to_owned();
    let name = default_name(&settings.profile.name, &id, created_unix_ns)?;
    make_results(settings)?;
    let mut say = |text: &str| watch(Progress::Done { text: text.to_owned() });
    let loads = Loads::start(&settings.loads, &id, Arc::clone(&clock), Arc::clone(&stop), &mut say)?;
    // Includes the files of the loads.
    let volumes = settings.preflight()?;
    let directory = ResultDirectory::create(&settings.results.join(name), &id)?;
    let usable = usable_bytes_each(&volumes) * volumes.len() as u64;
    let mut session = Session {
        settings,
        begin_ns: clock.now_ns(),
        clock,
        stop,
        watch,
        log: directory.create_log()?,
        loads,
        samples: channel(),
        identity,
        names: 0,
        estimate_s: settings.cost(usable).seconds,
        bytes_written: 0,
        stored_share: 0.0,
        usable_bytes: usable,
        read_back_left: settings.lengths().read_back,
        trials: Vec::new(),
        has_searched: false,
        available_bytes: environment.moment.available_bytes.value().copied().unwrap_or(0),
    };
    let plan = summary_plan(settings);
    let outcome = session
        .keep(started(settings, &id, created_unix_ns, &plan, &environment))
        .and_then(|()| session.find(&volumes));
    if outcome.is_err() && !session.has_searched {
        // The failure is already being reported; a leftover directory has its marker.
        let _ = directory.discard();
    }
    let findings = outcome?;
    let (loads, trials) = (session.end_loads(&findings), std::mem::take(&mut session.trials));
    let (summary, generator_limited) = summarise(SummaryInputs {
        settings,
        environment: &environment,
        findings: &findings,
        trials,
        loads,
        bytes_written: session.bytes_written,
        id,
        created_unix_ns,
        plan,
        directory: directory.path(),
        volumes: &volumes,
        disks: &disks,
    });
    end_log(session, summary.verdict);
    directory.write_summary(&summary)?;
    Ok((summary, generator_limited))
}

/// Ends the log. A failure is reported, and the result is stored all the same.
fn end_log(session: Session<'_>, verdict: Verdict) {
    let finished = Event::Finished { t_unix_ns: session.clock.unix_ns(), verdict: Some(verdict) };
    let Session { mut log, watch, .. } = session;
    for outcome in [log.append(&finished), log.finish()] {
        if let Err(why) = outcome {
            watch(Progress::MissingFile { why: Cause::of(&why) });
        }
    }
}

fn make_results(settings: &Settings) -> Result<(), QualifyError> {
    std::fs::create_dir_all(&settings.results).map_err(|e| QualifyError::Settings {
        what: format!("cannot create the results directory {}: {e}", settings.results.display()).into(),
        environment: true,
    })
}

fn started(
    settings: &Settings,
    id: &str,
    t_unix_ns: u64,
    plan: &serde_json::Value,
    environment: &Environment,
) -> Event {
    Event::Started {
        t_unix_ns,
        schema_version: keepup_results::SCHEMA_VERSION,
        tool_version: settings.tool_version.clone(),
        id: id.to_owned(),
        kind: Kind::Qualify,
        command: settings.command.clone(),
        profile: settings.profile.name.clone(),
        plan: plan.clone(),
        environment: serde_json::to_value(environment).unwrap_or_default(),
    }
}

fn summary_plan(settings: &Settings) -> serde_json::Value {
    let recorder = settings.recorder(String::new());
    let mut plan = serde_json::json!({
        "profile": settings.profile.to_toml(),
        "volumes": settings.volumes,
        "quick": settings.quick,
        "until_steady": settings.until_steady,
        "soak_seconds": settings.soak.map(|s| s.as_secs_f64()),
        "write_bytes_max": settings.write_bytes_max,
        "endurance_bytes": settings.endurance,
        "pool_bytes": recorder.pool_bytes,
        "block_bytes": recorder.block_bytes,
        "segment_bytes": recorder.segment_bytes,
        "depth": recorder.depth,
        "loads": settings.loads.specs.iter().map(ToString::to_string).collect::<Vec<_>>(),
    });
    if let Some(host) = settings.generator.host() {
        plan["source"] = host.address.clone().into();
    }
    plan
}

impl Session<'_> {
    fn report(&mut self, progress: Progress) {
        (self.watch)(progress);
    }

    fn keep(&mut self, event: Event) -> Result<(), QualifyError> {
        Ok(self.log.append(&event)?)
    }

    /// Directory name unique within this run.
    fn fresh_name(&mut self) -> String {
        self.names += 1;
        format!("keepup-qualify-{}-{:03}", &self.identity.to_string()[..8], self.names)
    }

    /// Identity unique for every recording of this run.
    fn fresh_id(&self) -> Id {
        self.identity.nth(self.names)
    }

    fn context(&self) -> Context {
        let samples = self.samples.0.clone();
        Context {
            clock: Arc::clone(&self.clock),
            stop: Arc::clone(&self.stop),
            // The receiver exists as long as the session.
            sample: Box::new(move |t_ms, values| drop(samples.send((t_ms, values)))),
            note: Box::new(|_| {}),
        }
    }

    /// Results of the loads for the whole session and the reported run; stops the loads.
    fn end_loads(&mut self, findings: &Findings) -> Vec<SessionLoad> {
        let session = self.loads.over(self.begin_ns, self.clock.now_ns());
        self.loads.finish();
        let shown = findings.shown().loads.iter().cloned();
        session.into_iter().zip(shown).map(|(session, shown)| SessionLoad { session, shown }).collect()
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    fn phase(&mut self, name: &str) -> Result<(), QualifyError> {
        self.phase_of(name, 0.0)
    }

    /// Reports a phase; it and what follows take at least `ahead_s` seconds, whatever was announced.
    fn phase_of(&mut self, name: &str, ahead_s: f64) -> Result<(), QualifyError> {
        let elapsed_s = self.clock.now_ns().saturating_sub(self.begin_ns) as f64 / 1e9;
        let estimate_s = (self.estimate_s - elapsed_s).max(ahead_s);
        self.report(Progress::Phase { name: name.into(), estimate_s });
        self.keep(Event::Phase { t_unix_ns: self.clock.unix_ns(), name: name.into() })
    }

    /// Runs the investigation; a load that ended early is reported as the cause of a failure.
    fn find(&mut self, volumes: &[Checked]) -> Result<Findings, QualifyError> {
        let outcome = self.investigate(volumes);
        let failure = self.loads.failure();
        let load_failure = failure.as_ref().map(ToString::to_string);
        let mut findings = outcome.map_err(|error| failure.map_or(error, QualifyError::from))?;
        findings.load_failure = load_failure;
        Ok(findings)
    }

    fn investigate(&mut self, volumes: &[Checked]) -> Result<Findings, QualifyError> {
        for warning in volumes.iter().flat_map(|v| &v.warnings) {
            self.report(Progress::Warning { text: warning.clone() });
        }
        self.phase("ceilings of the components")?;
        let ceilings = self.measure_ceilings(volumes)?;
        let (saturated, steady) = self.saturated()?;
        let bounds = self.bounds(&ceilings, &saturated);
        let mut findings = Findings::new(ceilings, saturated, bounds.max_rate);
        findings.steady = steady;
        if let Some(fault) = findings.saturated.broken() {
            findings.fault = Some(fault);
            return Ok(findings);
        }
        let plan = self.settings.search(&bounds)?;
        self.phase("search for the highest rate without loss")?;
        let search = Search::new(plan)?;
        self.has_searched = true;
        self.search(search, &mut findings)?;
        if bounds.source_bound {
            let (alone, unthrottled) =
                (bounds.max_rate / SOURCE_SHARE, findings.saturated.outcome.offered_rate);
            findings.outcome.end = bounded_end(findings.outcome.end, alone, unthrottled);
        }
        if findings.fault.is_none() && !self.is_stopped() {
            self.phase_of("bottleneck", self.settings.lengths().counter_s())?;
            self.test_nominees(&mut findings)?;
        }
        Ok(findings)
    }

    /// The whole path, unthrottled: one trial, or rounds until its rate is steady.
    fn saturated(&mut self) -> Result<(TrialRun, Option<SteadyState>), QualifyError> {
        if self.settings.until_steady {
            self.phase("the whole path, unthrottled, until it is steady")?;
            let (last, steady) = self.until_steady()?;
            return Ok((last, Some(steady)));
        }
        self.phase("the whole path, unthrottled")?;
        let spare = (self.bytes_left() - self.settings.reserved_bytes()).max(0.0);
        let (duration, bytes_max) =
            (self.settings.lengths().saturated, spare.min(SATURATED_SHARE * self.bytes_left()));
        Ok((self.trial(&Request::unverified("saturated".to_owned(), None, duration, bytes_max))?, None))
    }

    fn bounds(&self, ceilings: &Ceilings, saturated: &TrialRun) -> Bounds {
        let source = ceilings.source_bytes_per_second.unwrap_or(f64::INFINITY) * SOURCE_SHARE;
        let through = saturated.measured.durable_bytes_per_second().max(1.0);
        let volumes_alone: f64 = ceilings.volumes.iter().filter_map(|v| v.bytes_per_second).float_sum();
        let max_rate =
            (through * ABOVE_SATURATED).min(volumes_alone * ABOVE_VOLUMES).max(through).min(source);
        Bounds {
            min_rate: lowest_rate(max_rate, self.settings.required()),
            max_rate,
            source_bound: max_rate >= source,
            write_rate: through,
            usable_bytes: self.before_storing(self.usable_bytes as f64),
            bytes_left: self.before_storing(self.bytes_left()),
        }
    }

    fn search(&mut self, mut search: Search, findings: &mut Findings) -> Result<(), QualifyError> {
        let outcome: Outcome = loop {
            if self.is_stopped() {
                break search.finish_now();
            }
            let (phase, rate, duration) = match search.next() {
                Step::Trial { rate, duration, phase } => (phase, rate, duration),
                Step::Soak { rate, duration } => {
                    let counter_s = self.settings.lengths().counter_s();
                    self.phase_of("soak", duration.as_secs_f64() + counter_s)?;
                    self.note_short_soak(duration, findings);
                    (Phase::Soak, rate, duration)
                }
                Step::Done(outcome) => break outcome,
            };
            let verify = phase == Phase::Soak;
            let (label, left) = (phase.to_string(), self.bytes_left());
            let request = Request { phase, verify, ..Request::unverified(label, Some(rate), duration, left) };
            let tried = self.trial(&request)?;
            if self.is_stopped() {
                break search.finish_now();
            }
            search.record(tried.outcome.clone());
            findings.fault = findings.fault.take().or_else(|| tried.broken());
            findings.take(phase, rate, tried);
            if phase == Phase::Recheck && !search.has_held() {
                findings.outdate_soaks();
            }
            if findings.fault.is_some() {
                break search.finish_now();
            }
        };
        findings.outcome = outcome;
        Ok(())
    }

    /// States once that soaks are shorter than planned.
    fn note_short_soak(&mut self, length: Duration, findings: &mut Findings) {
        let is_noted = std::mem::replace(&mut findings.is_soak_short, length < self.settings.soak_planned());
        if is_noted || !findings.is_soak_short {
            return;
        }
        let text = format!(
            "the soak is shortened to {:.1} s by --max-write or the free space",
            length.as_secs_f64()
        );
        self.report(Progress::Warning { text: text.clone() });
        findings.notes.push(text);
    }

    /// Bytes that may still be written.
    fn bytes_left(&self) -> f64 {
        self.settings.write_bytes_max.saturating_sub(self.bytes_written) as f64
    }

    /// Payload of the source of which so many bytes are stored.
    fn before_storing(&self, stored: f64) -> f64 {
        if self.stored_share > 0.0 { stored / self.stored_share } else { stored }
    }

    fn trial(&mut self, request: &Request) -> Result<TrialRun, QualifyError> {
        let seconds = request.duration.as_secs_f64();
        let label = request.label.clone();
        self.report(Progress::Trial { phase: label.clone(), rate: request.rate, seconds });
        self.clock.sleep_until_ns(self.clock.now_ns() + SETTLE.as_nanos() as u64);
        let rate = request.rate.map_or(SourceRate::Max, SourceRate::Bytes);
        let name = self.fresh_name();
        let mut recorder = self.settings.recorder(name);
        if let Some((change, is_changed)) = request.change {
            change.apply(is_changed, &mut recorder);
        }
        let is_discarded = recorder.target == Target::Null;
        let is_drained = !is_discarded && request.change != Some((Change::NoDrain, true));
        let drain_rate = self.settings.profile.drain.filter(|_| is_drained).map(|r| r.bytes_per_second());
        let mut source = self.settings.source(rate, request.duration);
        if !is_discarded {
            // The search cannot know the rate of a source without a schedule: the source stops at the limit.
            let bytes = self.before_storing(request.bytes_max.min(self.usable_bytes as f64));
            source.events = Some((bytes / self.settings.profile.event.mean_bytes()) as u64);
        }
        let spec = TrialSpec {
            source,
            generator: Arc::clone(&self.settings.generator),
            recorder,
            recording: self.fresh_id(),
            drain: drain_rate.map(|rate| DrainSpec { rate, to: self.settings.drain_to.clone() }),
            verify: request.verify.then_some(Verification::Sample(self.read_back_left.max(READ_BACK_MIN))),
            read_back: false,
            cut_off: (request.phase == Phase::Soak).then_some(CUT_OFF),
            first_events: None,
            watcher_slot: self.settings.watcher_slot.clone(),
            sample_every: (request.duration / SAMPLES).clamp(SAMPLE_EVERY_MIN, Duration::from_millis(500)),
        };
        let begin_ns = self.clock.now_ns();
        let mut context = self.context();
        let measured = run(&mut RecordTrial::new(spec), &mut context)?;
        let elapsed_s = self.clock.now_ns().saturating_sub(begin_ns) as f64 / 1e9;
        self.keep_samples(begin_ns)?;
        if request.verify {
            let read_back_s = elapsed_s - measured.elapsed_ns as f64 / 1e9 - TRIAL_OVERHEAD_S;
            let read_back = Duration::try_from_secs_f64(read_back_s).unwrap_or_default();
            self.read_back_left = self.read_back_left.saturating_sub(read_back);
        }
        if !is_discarded {
            self.count_bytes(&measured.record.ledger);
        }
        let asked = TrialRequest { rate: request.rate, duration: request.duration, drain_rate };
        let outcome = judge::outcome(&asked, &measured, elapsed_s);
        let mut trial = judge::result(request.phase, &asked, &measured, &outcome);
        trial.phase = label;
        let (begin_ns, end_ns) = (measured.begin_ns, measured.begin_ns + measured.elapsed_ns);
        let loads = self.loads.over(begin_ns, end_ns);
        trial.load_rates = self.loads.rates(begin_ns, end_ns);
        self.report(Progress::Tried { trial: Box::new(trial.clone()), text: one_line(&trial) });
        self.keep(Event::Trial { t_unix_ns: self.clock.unix_ns(), trial: Box::new(trial.clone()) })?;
        // Counter-trials are part of the bottleneck.
        if request.change.is_none() {
            self.trials.push(trial);
        }
        let drain_behind = judge::drain_behind(&asked, &measured);
        Ok(TrialRun { measured, asked: request.rate, outcome, loads, drain_behind })
    }

    fn count_bytes(&mut self, ledger: &Ledger) {
        let (stored, received) = (ledger.stored().bytes, ledger.total().received.bytes);
        self.bytes_written += stored;
        if received > 0 {
            self.stored_share = self.stored_share.max(stored as f64 / received as f64);
        }
    }

    fn keep_samples(&mut self, begin_ns: u64) -> Result<(), QualifyError> {
        let offset_ms = begin_ns.saturating_sub(self.begin_ns) / 1_000_000;
        while let Ok((t_ms, values)) = self.samples.1.try_recv() {
            let t_unix_ns = self.clock.unix_ns();
            self.keep(Event::Sample { t_unix_ns, t_ms: offset_ms + t_ms, values })?;
        }
        Ok(())
    }
}

fn one_line(trial: &TrialResult) -> String {
    let mut verdict = trial.failed_condition.clone().unwrap_or_else(|| "held".into());
    if trial.lost_events > 0 {
        verdict.push_str(&format!(" ({} lost)", trial.lost_events));
    }
    let (asked, through) = (trial.asked_bytes_per_second / 1e6, trial.achieved_bytes_per_second / 1e6);
    let cpu = trial.cpu_seconds_per_gb.map_or_else(String::new, |cpu| format!(", {cpu:.2} CPU s/GB"));
    format!(
        "{:<13} {asked:>6.0} MB/s requested, {through:>6.0} MB/s recorded in {:.0} s{cpu}: {verdict}",
        trial.phase, trial.seconds
    )
}
