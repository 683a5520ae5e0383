//! `keepup fleet trial`: a trial on all recorders of a fleet at once.
use std::path::PathBuf;
use std::time::Duration;

use keepup_error::Cause;
use keepup_fleet::controller::{FleetEvent, PartEnd, RunKind};
use keepup_fleet::controller_loop::ControllerEvent;
use keepup_fleet::file::FleetFile;
use keepup_fleet::jobs;
use keepup_fleet::message::HostId;
use keepup_fleet::trial::{FleetTrial, HostPlan, HostResult, Outcome, TrialRequest, plans};

use super::events::Reporter;
use super::up::{Session, TURN, end};
use crate::args::{byte_rate, nonzero_duration, size};
use crate::exit::{Exit, usage};
use crate::output::{json, log, result};

/// Number of the run: a fleet is started for one.
const RUN: u64 = 1;

#[derive(clap::Args)]
pub(super) struct Args {
    /// Fleet file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Built-in profile (see `keepup profile list`) or path of a profile file
    profile: String,
    /// Rate of all streams together [default: the profile's]
    #[arg(long, value_parser = byte_rate, value_name = "RATE")]
    rate: Option<f64>,
    /// Duration
    #[arg(long, value_parser = nonzero_duration, value_name = "TIME", default_value = "10s")]
    time: Duration,
    /// Number of streams, at least one per recorder [default: the profile's]
    #[arg(long, value_name = "N")]
    streams: Option<u32>,
    /// Payload size of every event [default: the profile's]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    event: Option<u64>,
    /// Seal and checksum blocks, then drop them, to test without disks
    #[arg(long)]
    to_null: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let request = request(args)?;
    let asked = request.rate.unwrap_or_else(|| request.profile.required_bytes_per_second());
    let mut file = FleetFile::read(&args.file)?;
    file.timing = file.timing.of_trial();
    let plans = plans(&file, &request)?;
    let mut session = Session::open(&args.file, file.clone())?;
    let mut reporter = Reporter::new(&file);
    let trial = conduct(&mut session, &mut reporter, &plans, asked);
    end(&mut session, &mut reporter, "the trial is over");
    let trial = trial?;
    if args.json {
        json(&serde_json::to_value(&trial)?);
    } else {
        result(&trial.table());
    }
    Ok(if trial.is_whole() { Exit::Done } else { Exit::Failed })
}

fn request(args: &Args) -> anyhow::Result<TrialRequest> {
    let mut profile = keepup_plan::load(&args.profile)?;
    if let Some(bytes) = args.event {
        profile = profile.with_events_of(keepup_plan::units::Bytes(bytes));
    }
    if let Some(streams) = args.streams {
        profile = profile.with_streams(streams);
    }
    // Volumes are those of the hosts.
    let profile = profile.on_volumes(1);
    profile.validate().map_err(|invalid| usage(Cause::of(&invalid)))?;
    Ok(TrialRequest { profile, rate: args.rate, time: args.time, to_null: args.to_null })
}

/// Waits for the hosts, runs the trial, collects the results.
fn conduct(
    session: &mut Session,
    reporter: &mut Reporter<'_>,
    plans: &[Option<HostPlan>],
    asked: f64,
) -> anyhow::Result<FleetTrial> {
    while !session.has_gathered() {
        if session.is_stopped() || session.is_down_requested()? {
            anyhow::bail!("cannot run the trial: it was ended before all hosts had joined");
        }
        session.lead.turn(TURN).iter().for_each(|event| reporter.report(event));
    }
    let texts =
        plans.iter().map(|plan| plan.as_ref().map(|plan| jobs::encode(jobs::TRIAL, plan)).transpose());
    let texts = texts.collect::<Result<Vec<_>, _>>()?;
    let before = session.lead.status(&session.file).traffic_bytes();
    let mut ends: Vec<Option<PartEnd>> = vec![None; plans.len()];
    let started = session.lead.start_run((RUN, RunKind::Trial), texts);
    // The fleet is new: nothing else runs on it.
    let mut events = started.map_err(|error| anyhow::anyhow!("cannot start the trial: {error}"))?;
    let mut is_ending = false;
    loop {
        for event in &events {
            reporter.report(event);
            if let ControllerEvent::Fleet(FleetEvent::PartOver(host, end)) = event {
                ends[*host as usize] = Some(end.clone());
                if let (Some(HostPlan::Source(_)), Some(why)) = (&plans[*host as usize], failure(end)) {
                    log(&format!("warning: source {}: {why}", session.file.hosts[*host as usize].name));
                }
            }
        }
        let over = events.iter().find_map(|event| match event {
            ControllerEvent::Fleet(FleetEvent::Over { why, .. }) => Some(why),
            _ => None,
        });
        if let Some(why) = over {
            why.iter().for_each(|why| log(&format!("warning: the trial ended early: {why}")));
            break;
        }
        events = session.lead.turn(TURN);
        if (session.is_stopped() || session.is_down_requested()?) && !is_ending {
            is_ending = true;
            log("ending the trial");
            events.extend(session.lead.finish());
        }
    }
    let control = session.lead.status(&session.file).traffic_bytes().saturating_sub(before);
    let hosts = (0..)
        .zip(plans)
        .zip(ends)
        .filter_map(|((host, plan), end)| host_result(session, host, plan.as_ref()?, end));
    Ok(FleetTrial::new(&session.file.name, asked, control, hosts.collect()))
}

/// Result of a recorder.
fn host_result(session: &Session, host: HostId, plan: &HostPlan, end: Option<PartEnd>) -> Option<HostResult> {
    let HostPlan::Recorder(plan) = plan else { return None };
    let (outcome, failure) = match end {
        Some(PartEnd::Finished(text)) => match serde_json::from_str::<Outcome>(&text) {
            Ok(outcome) => (Some(outcome), None),
            Err(error) => (None, Some(format!("malformed result: {error}"))),
        },
        Some(end) => (None, failure(&end)),
        None => (None, Some("no result".to_owned())),
    };
    Some(HostResult {
        host: session.file.hosts.get(host as usize)?.name.clone(),
        source: plan.source.clone(),
        outcome,
        failure,
        clock: session.lead.controller().heartbeat_of(host).and_then(|heartbeat| heartbeat.clock),
    })
}

/// Why a host has no result.
fn failure(end: &PartEnd) -> Option<String> {
    match end {
        PartEnd::Finished(_) => None,
        PartEnd::Failed(why) => Some(why.clone()),
        PartEnd::Absent => Some("it did not join the fleet".to_owned()),
        PartEnd::Lost => Some("the host was lost".to_owned()),
        PartEnd::TimedOut(phase) => Some(format!("it timed out while {phase}")),
    }
}
