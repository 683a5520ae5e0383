//! `keepup fleet up`: the controller.
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use keepup_fleet::FleetError;
use keepup_fleet::control::{self, Command, Server};
use keepup_fleet::file::FleetFile;
use keepup_fleet::launch::{Launcher, Limits, Start};
use keepup_fleet::lead::{FleetStatus, Lead, Probe};
use keepup_fleet::link::zenoh::ZenohLead;
use keepup_fleet::link::{LeadLink as _, Secret};
use keepup_fleet::message::HostId;
use keepup_fleet::welcome::Welcome;
use keepup_measure::clock::SystemClock;

use super::events::Reporter;
use crate::exit::Exit;
use crate::output::{log, result};
use crate::signals::stop_flag;
use crate::token::random_hex;

/// Longest wait before signals are noticed.
const TURN: Duration = Duration::from_millis(200);
/// Time for agents to leave before their standard input is closed, ns.
const LEAVE_NS: u64 = 2_000_000_000;
/// Time for agents to end after that, beside the end of a run, before they are killed, ns.
const CLOSE_NS: u64 = 5_000_000_000;

type RunningLead = Lead<ZenohLead, SystemClock>;

pub(super) fn run(path: &Path) -> anyhow::Result<Exit> {
    let file = FleetFile::read(path)?;
    let secret = Secret::new(&random_hex().context("cannot read random bytes")?);
    let hosts = HostId::try_from(file.hosts.len()).context("cannot count the hosts")?;
    let starts = starts(&file, &secret)?;
    let stop = stop_flag()?;
    let link = ZenohLead::listen(file.listen, &secret, hosts)?;
    let server = Server::open(&control::socket_of(path)?, link.waker())?;
    let join_ns = u64::try_from(file.join_time.as_nanos()).unwrap_or(u64::MAX);
    let launcher = Launcher::new(starts, Limits { parallel: file.parallel, join_ns }, link.waker());
    let id = u64::from_str_radix(&random_hex()?[..16], 16).context("cannot read random bytes")?;
    let mut lead = Lead::new(id, &file, link, launcher, SystemClock);
    let mut reporter = Reporter::new(&file);
    log(&format!("fleet {}: controller on {}, starting {hosts} agents", file.name, file.listen));
    let (mut is_joined, mut is_complete) = (false, false);
    let mut probe: Option<Probe> = None;
    let why = loop {
        let events = lead.turn(TURN);
        events.iter().for_each(|event| reporter.report(event));
        if let Some(running) = probe.take() {
            probe = running.follow(&mut lead, &events);
        }
        if !is_joined && let Some(status) = joined(&lead, &file) {
            is_joined = true;
            is_complete = status.is_complete();
            result(&status.table());
        }
        if stop.load(Ordering::Relaxed) {
            break "the controller was interrupted";
        }
        match server.request() {
            None => {}
            Some(request) => match request.command {
                Command::Status => request.answer(serde_json::to_string(&lead.status(&file))?),
                Command::Probe if probe.is_none() => probe = Probe::begin(&mut lead, &file, request),
                Command::Probe => request.answer("{}".to_owned()),
                Command::Down => {
                    request.answer_last("{}".to_owned());
                    break "`keepup fleet down`";
                }
            },
        }
    };
    end(&mut lead, &file, &mut reporter, why);
    Ok(if is_complete { Exit::Done } else { Exit::Environment })
}

/// State of the fleet once all hosts have joined or were given up, and the clocks of the members are known.
fn joined(lead: &RunningLead, file: &FleetFile) -> Option<FleetStatus> {
    if lead.controller().members() < file.hosts.len() && lead.is_starting() {
        return None;
    }
    let status = lead.status(file);
    let mut reports = status.hosts.iter().filter_map(|host| host.report.as_ref());
    reports.all(|report| report.clock_offset_ns.is_some()).then_some(status)
}

/// The agents to start.
fn starts(file: &FleetFile, secret: &Secret) -> Result<Vec<Start>, FleetError> {
    (0..)
        .zip(&file.hosts)
        .map(|(host, entry)| {
            let token = secret.token(host).map_err(|error| FleetError::Welcome(error.to_string().into()))?;
            let (controller, timing, volumes) = (file.listen, file.timing, entry.volumes.clone());
            let line = Welcome { controller, host, token, timing, volumes }.to_line()?;
            Ok(Start { host, command: entry.command.clone(), line })
        })
        .collect()
}

/// Lets all agents leave; those that do not get the order end because their standard input is closed.
fn end(lead: &mut RunningLead, file: &FleetFile, reporter: &mut Reporter, why: &str) {
    reporter.shut_down();
    lead.shut_down(why).iter().for_each(|event| reporter.report(event));
    let mut wait = |lead: &mut RunningLead, ns: u64| {
        let until_ns = lead.now_ns().saturating_add(ns);
        while lead.agents() > 0 && lead.now_ns() < until_ns {
            lead.turn(TURN / 10).iter().for_each(|event| reporter.report(event));
        }
    };
    wait(lead, LEAVE_NS);
    lead.close_agents();
    wait(lead, file.timing.finish_ns.saturating_add(CLOSE_NS));
    match lead.agents() {
        0 => log("all agents have ended"),
        left => log(&format!("warning: {left} agents did not end and are killed on this machine")),
    }
}
