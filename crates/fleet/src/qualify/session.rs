//! Qualification of a fleet from start to result: unthrottled trial, search, soak, each recorder alone.
//!
//! It decides which trial follows and keeps what they found. A host that is lost takes no further part: its
//! streams go to the other recorders, and the search starts again, because rates of different hosts cannot
//! be compared.
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use keepup_plan::Profile;
use keepup_plan::units::ByteRate;
use keepup_qualify::run_time::Lengths;
use keepup_qualify::search::{Phase, Search, SearchPlan, Step};
use keepup_qualify::search_request::{ABOVE_SATURATED, Bounds, lowest_rate};
use keepup_results::format::rate as rate_text;
use keepup_results::{
    Begun, ControlTraffic, FleetQualifySummary, FleetTrialPart, FleetTrialResult, KneeInterval, LostHost,
};

use super::combine::{Part, combine, sum};
use super::found::{Found, QualifyEvent, QualifySettings, Tried, usable_bytes};
use super::summary::{Inputs, summarise};
use crate::error::FleetError;
use crate::file::FleetFile;
use crate::message::HostId;
use crate::record::drain::{drain_hosts, drain_of};
use crate::trial::{
    HostPlan, HostResult, Missing, Pair, ReadBack, TrialEnd, TrialRate, TrialRequest, pairs, plans,
};

/// Largest share of the byte limit for an unthrottled trial, whose rate is not known beforehand.
const SATURATED_SHARE: f64 = 0.2;
/// Byte limit of trials that write nothing; more than a network carries, and finite for the search.
const UNLIMITED_BYTES: f64 = 1e18;
/// Trials at one rate, if a host fails in the first one but is not lost.
const ATTEMPTS: u32 = 2;

/// Runs trials on the hosts of a fleet.
pub trait Trials {
    /// Runs a trial with these parts of the hosts at the rate `asked`, bytes per second, and waits for its
    /// end.
    ///
    /// # Errors
    /// The controller cannot start it.
    fn run(&mut self, plans: &[Option<HostPlan>], asked: Option<f64>) -> Result<TrialEnd, FleetError>;

    /// Whether the qualification is to end.
    fn is_stopped(&self) -> bool;
}

/// Recorders that are tested together, and their detector.
pub(super) struct Scope {
    /// First word of the names of its trials: the host that is tested alone.
    label: Option<String>,
    profile: Profile,
    without: BTreeSet<HostId>,
    soaks: bool,
}

/// How a trial or a search ended.
enum Ended<T> {
    Done(T),
    /// A host was lost.
    HostLost,
    /// Verification found faults, and the trial is not whole: a host has no result, or it was stopped.
    Damaged(String),
    Stopped,
}

/// A trial to run.
struct Request {
    phase: String,
    rate: TrialRate,
    time: Duration,
    is_soak: bool,
}

struct Session<'a> {
    file: &'a FleetFile,
    settings: &'a QualifySettings,
    trials: &'a mut dyn Trials,
    watch: &'a mut dyn FnMut(QualifyEvent<'_>),
    /// Hosts that were lost.
    gone: BTreeSet<HostId>,
    lost: Vec<LostHost>,
    /// Trials that were repeated with success, one reason each.
    repeated: Vec<String>,
    done: Vec<FleetTrialResult>,
    bytes_written: u64,
    control: ControlTraffic,
}

/// Qualifies the fleet of `file`. `begun` is what the result says about its measurement.
///
/// # Errors
/// A fleet or profile with which no trial is possible, or limits that permit no search. A lost host and an
/// interruption are no errors: the result says what is known.
pub fn qualify(
    file: &FleetFile,
    settings: &QualifySettings,
    begun: &Begun,
    trials: &mut dyn Trials,
    watch: &mut dyn FnMut(QualifyEvent<'_>),
) -> Result<FleetQualifySummary, FleetError> {
    pairs(file, settings.profile.streams, &BTreeSet::new())?;
    settings.check_write_limit()?;
    let mut session = Session::new(file, settings, trials, watch);
    let (found, pairs) = session.find()?;
    let mut alone = BTreeMap::new();
    let is_each = settings.each && pairs.len() > 1 && found.fault.is_none();
    for (number, pair) in pairs.iter().enumerate().filter(|_| is_each) {
        alone.extend(session.alone(number, pair)?.map(|knee| (session.name(pair.recorder), knee)));
    }
    let stopped_alone = is_each && session.trials.is_stopped();
    let Session { lost, repeated, done, bytes_written, control, .. } = session;
    Ok(summarise(Inputs {
        file,
        settings,
        begun,
        found,
        pairs,
        alone,
        stopped_alone,
        lost,
        repeated,
        done,
        bytes_written,
        control,
    }))
}

impl<'a> Session<'a> {
    fn new(
        file: &'a FleetFile,
        settings: &'a QualifySettings,
        trials: &'a mut dyn Trials,
        watch: &'a mut dyn FnMut(QualifyEvent<'_>),
    ) -> Self {
        Self {
            file,
            settings,
            trials,
            watch,
            gone: BTreeSet::new(),
            lost: Vec::new(),
            repeated: Vec::new(),
            done: Vec::new(),
            bytes_written: 0,
            control: ControlTraffic::default(),
        }
    }
}

impl Session<'_> {
    fn name(&self, host: HostId) -> String {
        self.file.hosts.get(host as usize).map_or_else(String::new, |entry| entry.name.clone())
    }

    fn say(&mut self, text: &str) {
        (self.watch)(QualifyEvent::Line(text));
    }

    /// The search on all recorders, started again whenever a host is lost; with the recorders that are left.
    fn find(&mut self) -> Result<(Found, Vec<Pair>), FleetError> {
        loop {
            let profile = self.settings.profile.clone();
            let Ok(pairs) = pairs(self.file, profile.streams, &self.gone) else {
                let why = "no recorder with a source is left".to_owned();
                return Ok((Found { unsearched: Some(why), ..Found::nothing() }, Vec::new()));
            };
            let scope = Scope { label: None, profile, without: self.gone.clone(), soaks: true };
            match self.search(&scope) {
                Ok(Ended::Done(found)) => return Ok((found, pairs)),
                Ok(Ended::Stopped) => return Ok((Found::nothing(), pairs)),
                Ok(Ended::Damaged(fault)) => {
                    return Ok((Found { fault: Some(fault), ..Found::nothing() }, pairs));
                }
                // What was found before the loss is kept.
                Err(FleetError::Qualify(why)) if !self.lost.is_empty() => {
                    return Ok((Found { unsearched: Some(why.to_string()), ..Found::nothing() }, pairs));
                }
                Err(error) => return Err(error),
                Ok(Ended::HostLost) => {
                    let trials = self.done.len();
                    self.say(&format!("the search starts again after trial {trials}, with the other hosts"));
                }
            }
        }
    }

    /// Knee of a recorder that is tested alone, if it is found; it is number `number` of all.
    fn alone(&mut self, number: usize, pair: &Pair) -> Result<Option<KneeInterval>, FleetError> {
        if self.trials.is_stopped() {
            return Ok(None);
        }
        let name = self.name(pair.recorder);
        self.say(&format!("{name} alone"));
        let drain = drain_of(&drain_hosts(self.file, &self.gone), number);
        let takes_part = |host: &HostId| [pair.recorder, pair.source].contains(host) || drain == Some(*host);
        let hosts = (0..).zip(&self.file.hosts).map(|(host, _)| host);
        let without = hosts.filter(|host| !takes_part(host) || self.gone.contains(host)).collect();
        let mut profile = self.settings.profile.clone().with_streams(pair.streams);
        let share = f64::from(pair.streams) / f64::from(self.settings.profile.streams.max(1));
        profile.drain = profile.drain.and_then(|rate| ByteRate::new(rate.bytes_per_second() * share).ok());
        let scope = Scope { label: Some(name), profile, without, soaks: false };
        // A loss now does not change what all did together.
        let before = (self.gone.clone(), self.lost.clone());
        let ended = self.search(&scope);
        (self.gone, self.lost) = before;
        let found = match ended {
            // The interval of a search that was stopped is too wide.
            Ok(Ended::Done(_)) if self.trials.is_stopped() => return Ok(None),
            Ok(Ended::Done(Found { fault: Some(fault), .. })) => {
                self.say(&format!("warning: nothing is known about it alone: {fault}"));
                return Ok(None);
            }
            Ok(Ended::Done(found)) => found,
            // A search without soaks verifies nothing.
            Ok(Ended::HostLost | Ended::Damaged(_) | Ended::Stopped) => return Ok(None),
            Err(FleetError::Qualify(why)) => {
                self.say(&format!("warning: {why}"));
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        Ok(found.outcome.knee.map(|knee| KneeInterval {
            lower_bytes_per_second: knee.lower,
            upper_bytes_per_second: knee.upper,
        }))
    }

    fn search(&mut self, scope: &Scope) -> Result<Ended<Found>, FleetError> {
        let lengths = Lengths::new(self.settings.quick);
        let bytes_max = SATURATED_SHARE * self.bytes_left();
        let (rate, time) = (TrialRate::Max((!self.settings.to_null).then_some(bytes_max)), lengths.saturated);
        let unthrottled = Request { phase: "unthrottled".to_owned(), rate, time, is_soak: false };
        let saturated = match self.trial(scope, &unthrottled)? {
            Ended::Done(tried) => tried,
            Ended::HostLost => return Ok(Ended::HostLost),
            Ended::Damaged(fault) => return Ok(Ended::Damaged(fault)),
            Ended::Stopped => return Ok(Ended::Stopped),
        };
        let mut found = Found::nothing();
        found.fault = fault(&saturated.parts);
        let plan = self.plan(scope, &saturated)?;
        (found.max_rate, found.saturated) = (plan.max_rate, Some(saturated));
        let mut search = Search::new(plan).map_err(keepup_qualify::QualifyError::from)?;
        found.outcome = loop {
            if found.fault.is_some() || self.trials.is_stopped() {
                break search.finish_now();
            }
            let (phase, rate, time) = match search.next() {
                Step::Trial { rate, duration, phase } => (phase, rate, duration),
                Step::Soak { rate, duration } if scope.soaks => (Phase::Soak, rate, duration),
                Step::Soak { .. } => break search.finish_now(),
                Step::Done(outcome) => break outcome,
            };
            let is_soak = phase == Phase::Soak;
            let rate = TrialRate::Bytes(rate);
            match self.trial(scope, &Request { phase: phase.to_string(), rate, time, is_soak })? {
                Ended::Done(tried) => {
                    found.fault = fault(&tried.parts);
                    search.record(tried.outcome.clone());
                    found.tried.push(tried);
                }
                Ended::HostLost => return Ok(Ended::HostLost),
                Ended::Damaged(fault) => found.fault = Some(fault),
                Ended::Stopped => break search.finish_now(),
            }
        };
        Ok(Ended::Done(found))
    }

    /// Plan of the search after the unthrottled trial.
    fn plan(&self, scope: &Scope, saturated: &Tried) -> Result<SearchPlan, FleetError> {
        let parts = &saturated.parts;
        // Connections may share a switch unevenly when nothing limits them, so the slowest recorder is no
        // bound.
        let through = sum(parts, |outcome| outcome.evidence.durable_rate).max(1.0);
        let max_rate = through * ABOVE_SATURATED;
        let required = scope.profile.required_bytes_per_second();
        let bounds = Bounds {
            min_rate: lowest_rate(max_rate, required),
            max_rate,
            source_bound: false,
            write_rate: through,
            usable_bytes: usable_bytes(parts),
            bytes_left: self.bytes_left(),
        };
        let soak = self.settings.soak.filter(|_| scope.soaks);
        let request = self.settings.request(&scope.profile, soak);
        let mut plan = request.plan(&bounds)?;
        if !scope.soaks {
            // The required rate is that of all recorders.
            plan.target_rate = None;
        }
        Ok(plan)
    }

    /// Bytes that may still be written.
    fn bytes_left(&self) -> f64 {
        match self.settings.to_null {
            true => UNLIMITED_BYTES,
            false => self.settings.write_bytes_max.saturating_sub(self.bytes_written) as f64,
        }
    }

    /// Runs a trial, again if a host reported an error.
    fn trial(&mut self, scope: &Scope, request: &Request) -> Result<Ended<Tried>, FleetError> {
        let read_back = Lengths::new(self.settings.quick).read_back.as_secs_f64();
        let rate = match request.rate {
            TrialRate::Max(_) => None,
            TrialRate::Bytes(rate) => Some(rate),
            TrialRate::Profile => Some(scope.profile.required_bytes_per_second()),
        };
        let plans = plans(
            self.file,
            &TrialRequest {
                profile: scope.profile.clone(),
                rate: request.rate,
                time: request.time,
                to_null: self.settings.to_null,
                check: if request.is_soak { ReadBack::Sample(read_back) } else { ReadBack::None },
                cut_off: request.is_soak,
                without: scope.without.clone(),
            },
        )?;
        let pairs = pairs(self.file, scope.profile.streams, &scope.without)?;
        let phase = scope.label.as_ref().map_or_else(String::new, |host| format!("{host} alone: "));
        let phase = format!("{phase}{}", request.phase);
        // Bytes of the failed attempt, and why it failed.
        let (mut failed_bytes, mut failed) = (0.0, None);
        for attempt in 1..=ATTEMPTS {
            let end = self.trials.run(&plans, rate)?;
            self.count(&end);
            let parts = self.parts(&pairs, &end.trial.hosts, scope.profile.streams);
            let mut outcome = combine(&parts, end.elapsed_s);
            self.keep(&phase, rate, &parts, &end);
            let (is_stopped, is_whole) = (self.trials.is_stopped(), end.missing.is_empty());
            // Damage is an answer, whatever happened to the other hosts.
            if let Some(fault) = damage(&parts).filter(|_| is_stopped || !is_whole) {
                return Ok(Ended::Damaged(fault));
            }
            if is_stopped {
                return Ok(Ended::Stopped);
            }
            if is_whole {
                outcome.bytes += failed_bytes;
                self.repeated.extend(failed);
                return Ok(Ended::Done(Tried { parts, outcome }));
            }
            let is_lost = end.missing.iter().any(|missing| missing.is_lost);
            let is_last = is_lost || attempt == ATTEMPTS;
            let has_bytes = self.may_repeat(request);
            if !is_last && !has_bytes {
                self.say("not repeated: the limit of bytes (--max-write) is too low");
            }
            if is_last || !has_bytes {
                self.exclude(&end.missing);
                return Ok(Ended::HostLost);
            }
            failed_bytes += outcome.bytes.max(0.0) + end.unreported_bytes() as f64;
            let why = end.missing.first().map(|missing| format!("{}: {}", missing.name, missing.why));
            let (trial, why) = (self.done.len(), why.unwrap_or_default());
            failed = Some(format!("trial {trial} was repeated because a host failed: {why}"));
        }
        Ok(Ended::HostLost)
    }

    /// Whether a repetition can write no more than the limit permits.
    fn may_repeat(&self, request: &Request) -> bool {
        match request.rate {
            TrialRate::Bytes(rate) => rate * request.time.as_secs_f64() <= self.bytes_left(),
            TrialRate::Max(bytes) => bytes.is_none_or(|bytes| bytes <= self.bytes_left()),
            TrialRate::Profile => true,
        }
    }

    /// Excludes hosts from further trials: those that were lost, else sources and drain hosts that failed,
    /// because recorders fail with them, else recorders that failed.
    fn exclude(&mut self, missing: &[Missing]) {
        let is_other = |missing: &&Missing| {
            let host = self.file.hosts.get(missing.host as usize);
            host.is_some_and(|host| !host.role.records())
        };
        let lost: Vec<&Missing> = missing.iter().filter(|missing| missing.is_lost).collect();
        let others: Vec<&Missing> = missing.iter().filter(is_other).collect();
        let out = match (lost.is_empty(), others.is_empty()) {
            (false, _) => lost,
            (true, false) => others,
            (true, true) => missing.iter().collect(),
        };
        for Missing { host, name, why, .. } in out {
            self.gone.insert(*host);
            let trial = self.done.len();
            self.lost.push(LostHost { host: name.clone(), trial, why: why.clone() });
            let line = format!("warning: {name} takes no further part: {why}");
            (self.watch)(QualifyEvent::Line(&line));
        }
    }

    fn count(&mut self, end: &TrialEnd) {
        let ControlTraffic { bytes, payload_bytes } = &mut self.control;
        *bytes = bytes.saturating_add(end.trial.control_bytes);
        *payload_bytes = payload_bytes.saturating_add(end.trial.received_bytes);
        if !self.settings.to_null {
            let runs = end.trial.hosts.iter().filter_map(|host| host.outcome.as_ref());
            let reported = runs.map(|outcome| outcome.run.ledger.on_volumes().bytes);
            let bytes = reported.chain([end.unreported_bytes()]).fold(0, u64::saturating_add);
            self.bytes_written = self.bytes_written.saturating_add(bytes);
        }
    }

    /// Parts of the recorders that have a result.
    fn parts(&self, pairs: &[Pair], hosts: &[HostResult], streams: u32) -> Vec<Part> {
        let part = |host: &HostResult| {
            let number = self.file.host(&host.host)?;
            let pair = pairs.iter().find(|pair| pair.recorder == number)?;
            Some(Part {
                host: host.host.clone(),
                source: host.source.clone(),
                share: f64::from(pair.streams) / f64::from(streams),
                outcome: host.outcome.clone()?,
            })
        };
        hosts.iter().filter_map(part).collect()
    }

    /// Keeps the trial for the result, and reports it.
    fn keep(&mut self, phase: &str, rate: Option<f64>, parts: &[Part], end: &TrialEnd) {
        let of = |host: &HostResult| {
            let part = parts.iter().find(|part| part.host == host.host);
            let short = part.filter(|part| part.outcome.judged.generator_limited);
            let short = short.map(|_| "the source did not keep its schedule".to_owned());
            FleetTrialPart {
                host: host.host.clone(),
                achieved_bytes_per_second: part.map(|part| part.outcome.run.achieved_bytes_per_second),
                lost_events: part.map(|part| part.outcome.judged.lost_events),
                failed: host.failure.clone().or_else(|| part?.failed()).or(short),
                start_delay_seconds: part.map(|part| part.outcome.start_delay_seconds),
                clock: host.clock.map(Into::into),
            }
        };
        let shown: Vec<FleetTrialPart> = end.trial.hosts.iter().map(of).collect();
        // A host without a result fails the trial whatever the others did.
        let missing = end.missing.iter().find(|missing| missing.is_lost).or(end.missing.first());
        let missing = missing.map(|missing| format!("{}: {}", missing.name, missing.why));
        let failed = shown.iter().find_map(|part| Some(format!("{}: {}", part.host, part.failed.as_ref()?)));
        let failed = missing.or(failed);
        let seconds = parts.iter().map(|part| part.outcome.judged.duration_s).reduce(f64::min);
        let trial = FleetTrialResult {
            phase: phase.to_owned(),
            asked_bytes_per_second: rate,
            seconds: seconds.unwrap_or_default(),
            achieved_bytes_per_second: end.trial.achieved_bytes_per_second,
            lost_events: parts
                .iter()
                .map(|part| part.outcome.judged.lost_events)
                .fold(0, u64::saturating_add),
            passed: failed.is_none(),
            failed_condition: failed,
            control_bytes: end.trial.control_bytes,
            parts: shown,
        };
        let asked =
            rate.map_or_else(|| "full speed".to_owned(), |rate| format!("{} requested", rate_text(rate)));
        let achieved = rate_text(trial.achieved_bytes_per_second);
        let held = trial.failed_condition.clone().unwrap_or_else(|| "held".to_owned());
        let (bytes_written, control) = (self.bytes_written, self.control);
        (self.watch)(QualifyEvent::Trial { trial: &trial, bytes_written, control });
        self.done.push(trial);
        self.say(&format!("  trial {}, {phase}: {asked}, {achieved} recorded: {held}", self.done.len()));
    }
}

/// A recording that was aborted, or damaged data.
fn fault(parts: &[Part]) -> Option<String> {
    parts.iter().find_map(|part| {
        let aborted = part.outcome.run.broken_off.as_ref().map(|why| format!("{}: {why}", part.host));
        aborted.or_else(|| damage(std::slice::from_ref(part)))
    })
}

/// Damaged data. An aborted recording may be due to a host that is missing, damaged data may not.
fn damage(parts: &[Part]) -> Option<String> {
    parts.iter().find_map(|part| {
        let faults = part.outcome.run.faults.filter(|&faults| faults > 0)?;
        Some(format!("{}: {faults} faults found by verification", part.host))
    })
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
