//! `keepup doctor --fleet`: a check of all hosts of a fleet at once.
use std::path::Path;

use keepup_fleet::check::{CheckPlan, CheckRequest, HostEnd, plans, summary};
use keepup_fleet::controller::RunKind;
use keepup_fleet::controller_loop::ControllerEvent;
use keepup_fleet::file::FleetFile;
use keepup_fleet::jobs;
use keepup_measure::clock::{Clock, SystemClock};
use keepup_qualify::doctor::Needs;
use keepup_report::listing;
use keepup_results::format::rate;
use keepup_results::{DoctorCounts, FLEET_DOCTOR_SCHEMA_VERSION, FleetDoctorSummary, rfc3339};

use super::events::Reporter;
use super::host_states::HostStates;
use super::up::{Session, TURN, end};
use crate::exit::Exit;
use crate::output::{command, json, log, print_listing};

/// Time for the check, ns: a host may hang, for example at a disk that does not answer.
const CHECK_NS: u64 = 60_000_000_000;
/// Number of the run: a fleet is started for one.
const RUN: u64 = 1;

/// Checks the hosts of the fleet file at `path` and prints the result. Exit code 130 if Ctrl-C or `down`
/// ended the check, otherwise 1 if a finding is harmful.
pub(crate) fn run(path: &Path, request: &CheckRequest, as_json: bool) -> anyhow::Result<Exit> {
    let mut file = FleetFile::read(path)?;
    file.timing = file.timing.of_trial();
    let (plans, mut limits) = plans(&file, request);
    let mut session = Session::open(path, file.clone())?;
    let mut reporter = Reporter::new(&file);
    let mut check = Check::new(&mut session, &mut reporter);
    let ends = check.conduct(&plans);
    let is_stopped = check.is_stopped;
    if check.is_late {
        limits.push("the time was over before all hosts had ended: paths may be missing".to_owned());
    }
    if is_stopped {
        limits.push("the check was interrupted: paths may be missing".to_owned());
    }
    end(&mut session, &mut reporter, "the check is over");
    let judged = summary(&file, &ends?, env!("CARGO_PKG_VERSION"));
    let mut notes = vec![match &request.profile {
        Some(profile) => format!(
            "judged for {}: its {} streams are distributed evenly over the recorders",
            profile.name, profile.streams
        ),
        None => {
            let needs = Needs::of_no_one(request.stall);
            format!(
                "no profile given: each host is judged for a single stream of {}, by {}",
                rate(needs.rate),
                needs.transport_name()
            )
        }
    }];
    notes.extend(limits);
    let counts = DoctorCounts::of(judged.findings.iter().map(|found| &found.finding));
    let summary = FleetDoctorSummary {
        schema_version: FLEET_DOCTOR_SCHEMA_VERSION,
        tool_version: env!("CARGO_PKG_VERSION").into(),
        created: rfc3339(SystemClock.unix_ns()),
        command: command(),
        fleet: file.name.clone(),
        hosts: judged.hosts,
        counts,
        findings: judged.findings,
        notes,
    };
    match as_json {
        true => json(&serde_json::to_value(&summary)?),
        false => print_listing(|style| listing::fleet_doctor(&summary, style)),
    }
    Ok(match summary.counts.harmful {
        _ if is_stopped => Exit::Interrupted,
        0 => Exit::Done,
        _ => Exit::Failed,
    })
}

/// A check that is being made.
struct Check<'a, 'b> {
    session: &'a mut Session,
    reporter: &'a mut Reporter<'b>,
    hosts: HostStates,
    /// Whether the time was over before all hosts had ended.
    is_late: bool,
    /// Whether Ctrl-C or `down` ended it.
    is_stopped: bool,
}

impl<'a, 'b> Check<'a, 'b> {
    fn new(session: &'a mut Session, reporter: &'a mut Reporter<'b>) -> Self {
        let hosts = HostStates::new(session.file.hosts.len());
        Self { session, reporter, hosts, is_late: false, is_stopped: false }
    }

    /// Waits for the hosts, runs the check, collects the outcomes.
    fn conduct(&mut self, plans: &[CheckPlan]) -> anyhow::Result<Vec<HostEnd>> {
        while let Some(events) = self.session.joining("check the fleet")? {
            self.take(&events);
        }
        let texts = plans.iter().map(|plan| jobs::encode(jobs::CHECK, plan).map(Some));
        let texts = texts.collect::<Result<Vec<_>, _>>()?;
        let started = self.session.lead.start_run((RUN, RunKind::Trial), texts);
        // The fleet is new: nothing else runs on it.
        let events = started.map_err(|error| anyhow::anyhow!("cannot start the check: {error}"))?;
        let mut is_over = self.take(&events);
        let until_ns = self.session.lead.now_ns().saturating_add(CHECK_NS);
        let mut is_ending = false;
        while !is_over {
            let mut events = self.session.lead.turn(TURN);
            let is_late = self.session.lead.now_ns() >= until_ns;
            // Requests for the status are answered meanwhile, in any case.
            let is_down = self.session.is_down_requested()?;
            if (is_late || is_down || self.session.is_stopped()) && !is_ending {
                (is_ending, self.is_late, self.is_stopped) = (true, is_late, !is_late);
                log("ending the check");
                events.extend(self.session.lead.finish());
            }
            is_over = self.take(&events);
        }
        let controller = self.session.lead.controller();
        let ends = self.hosts.outcomes().map(|(host, outcome)| HostEnd {
            outcome,
            clock: controller.heartbeat_of(host).and_then(|heartbeat| heartbeat.clock),
        });
        Ok(ends.collect())
    }

    /// Reports events and remembers what they say about hosts. Returns whether the run is over.
    fn take(&mut self, events: &[ControllerEvent]) -> bool {
        events.iter().for_each(|event| self.reporter.report(event));
        self.hosts.take(events)
    }
}
