//! `keepup fleet up`: the controller.
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use keepup_fleet::FleetError;
use keepup_fleet::control::{self, Command, Server};
use keepup_fleet::controller_loop::{ControllerEvent, ControllerLoop, FleetStatus, Probe};
use keepup_fleet::file::FleetFile;
use keepup_fleet::join_info::JoinInfo;
use keepup_fleet::launch::{Launcher, Limits, Start};
use keepup_fleet::link::zenoh::{ControllerTls, ZenohController};
use keepup_fleet::link::{ControllerLink as _, Secret};
use keepup_fleet::message::HostId;
use keepup_measure::clock::SystemClock;
use keepup_results::format::plural;

use super::events::Reporter;
use crate::exit::Exit;
use crate::output::{log, result};
use crate::signals::{self, Stopping, stop_flag};
use crate::token::random_hex;

/// Interval at which signals are checked.
pub(super) const TURN: Duration = Duration::from_millis(200);
/// Time for agents to leave before their standard input is closed, ns.
const LEAVE_NS: u64 = 2_000_000_000;
/// Time for agents to exit after that, in addition to the end of a run, ns. Then they are killed.
const CLOSE_NS: u64 = 5_000_000_000;

/// Descriptors per host: its TLS connection, both ends of the Unix connection to Zenoh, and the pipes of its
/// launcher.
const DESCRIPTORS_PER_HOST: u64 = 6;
/// Descriptors in addition: connections of strangers during their handshake, and all else.
const DESCRIPTORS: u64 = 4_096;

pub(super) type RunningController = ControllerLoop<ZenohController, SystemClock>;

/// A controller whose agents are being started.
pub(super) struct Session {
    pub(super) file: FleetFile,
    pub(super) lead: RunningController,
    pub(super) server: Server,
    pub(super) stop: Arc<AtomicBool>,
}

impl Session {
    /// Listens for the agents of `file`, read from `path`, and starts them.
    pub(super) fn open(path: &Path, file: FleetFile) -> anyhow::Result<Self> {
        let secret = Secret::new(&random_hex().context("cannot read random bytes")?);
        let hosts = HostId::try_from(file.hosts.len()).context("cannot count the hosts")?;
        let tls = file.tls.then(|| ControllerTls::new(file.listen)).transpose()?;
        let starts = starts(&file, &secret, tls.as_ref())?;
        let stop = stop_flag()?;
        signals::describe(|| Stopping {
            left: "end the run on all hosts".to_owned(),
            // Agents end their recordings when the controller is gone.
            after_cut_off: Some(
                "keepup recover DIRECTORY, for a recording whose host was cut off too".to_owned(),
            ),
        });
        let socket = control::socket_of(path)?;
        // Another controller of this file is named first, before its port is found to be in use.
        control::check_free(&socket)?;
        let descriptors = u64::from(hosts) * DESCRIPTORS_PER_HOST + DESCRIPTORS;
        keepup_sys::thread::raise_descriptor_limit_to(descriptors);
        let link = ZenohController::listen(file.listen, &secret, hosts, tls.as_ref())?;
        let server = Server::open(&socket, link.waker())?;
        let join_ns = u64::try_from(file.join_time.as_nanos()).unwrap_or(u64::MAX);
        let launcher = Launcher::new(starts, Limits { parallel: file.parallel, join_ns }, link.waker());
        let id = u64::from_str_radix(&random_hex()?[..16], 16).context("cannot read random bytes")?;
        let lead = ControllerLoop::new(id, &file, link, launcher, SystemClock);
        let without = if file.tls { "" } else { " without TLS" };
        log(&format!("fleet {}: controller on {}{without}, starting {hosts} agents", file.name, file.listen));
        Ok(Self { file, lead, server, stop })
    }

    /// Whether all hosts have joined or were given up.
    fn has_gathered(&self) -> bool {
        self.lead.controller().members() == self.file.hosts.len() || !self.lead.is_starting()
    }

    /// Events of one turn while hosts are joining; none once all have joined or were given up.
    ///
    /// # Errors
    /// The user asked to stop: `verb` cannot be done.
    pub(super) fn joining(&mut self, verb: &str) -> anyhow::Result<Option<Vec<ControllerEvent>>> {
        if self.has_gathered() {
            return Ok(None);
        }
        if self.is_stopped() || self.is_down_requested()? {
            return Err(FleetError::Stopped(verb.to_owned()).into());
        }
        Ok(Some(self.lead.turn(TURN)))
    }

    /// State of the fleet once it has gathered and the clocks of the members are known.
    fn joined(&self) -> Option<FleetStatus> {
        let status = self.has_gathered().then(|| self.lead.status(&self.file))?;
        let mut reports = status.hosts.iter().filter_map(|host| host.report.as_ref());
        reports.all(|report| report.clock_offset_ns.is_some()).then_some(status)
    }

    /// Answers a command from the control socket; returns whether it was `down`.
    pub(super) fn is_down_requested(&self) -> anyhow::Result<bool> {
        let Some(request) = self.server.request() else { return Ok(false) };
        let is_down = matches!(request.command, Command::Down);
        request.answer(match request.command {
            Command::Status => serde_json::to_string(&self.lead.status(&self.file))?,
            Command::Probe | Command::Down => "{}".to_owned(),
        });
        Ok(is_down)
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

pub(super) fn run(path: &Path) -> anyhow::Result<Exit> {
    let mut session = Session::open(path, FleetFile::read(path)?)?;
    let file = session.file.clone();
    let mut reporter = Reporter::new(&file);
    let (mut is_shown, mut had_all) = (false, false);
    let mut probe: Option<Probe> = None;
    let why = loop {
        let events = session.lead.turn(TURN);
        events.iter().for_each(|event| reporter.report(event));
        if let Some(running) = probe.take() {
            probe = running.follow(&mut session.lead, &events);
        }
        had_all |= session.lead.controller().members() == file.hosts.len();
        if !is_shown && let Some(status) = session.joined() {
            is_shown = true;
            result(&status.table());
        }
        if session.is_stopped() {
            break "the controller was interrupted";
        }
        match session.server.request() {
            None => {}
            Some(request) => match request.command {
                Command::Status => request.answer(serde_json::to_string(&session.lead.status(&file))?),
                Command::Probe if probe.is_none() => probe = Probe::begin(&mut session.lead, &file, request),
                Command::Probe => request.answer("{}".to_owned()),
                Command::Down => {
                    request.answer_last("{}".to_owned());
                    break "`keepup fleet down`";
                }
            },
        }
    };
    if !is_shown {
        result(&session.lead.status(&file).table());
    }
    end(&mut session, &mut reporter, why);
    Ok(if had_all { Exit::Done } else { Exit::Environment })
}

/// The agents to start.
fn starts(file: &FleetFile, secret: &Secret, tls: Option<&ControllerTls>) -> Result<Vec<Start>, FleetError> {
    (0..)
        .zip(&file.hosts)
        .map(|(host, entry)| {
            let failed = |error: keepup_peer::TokenError| FleetError::JoinInfo(error.to_string().into());
            let (token, shared) = (secret.token(host).map_err(failed)?, secret.shared().map_err(failed)?);
            let info = JoinInfo {
                fleet: file.name.clone(),
                controller: file.listen,
                host,
                token,
                shared,
                tls: tls.map(ControllerTls::agent),
                join_time: file.join_time,
                timing: file.timing,
                volumes: entry.volumes.clone(),
            };
            Ok(Start { host, command: entry.command.clone(), line: info.to_line()? })
        })
        .collect()
}

/// Shuts the fleet down. Agents that the order does not reach exit because their standard input is closed.
pub(super) fn end(session: &mut Session, reporter: &mut Reporter<'_>, why: &str) {
    reporter.shut_down();
    session.lead.shut_down(why).iter().for_each(|event| reporter.report(event));
    let mut wait = |session: &mut Session, ns: u64| {
        let until_ns = session.lead.now_ns().saturating_add(ns);
        while session.lead.agents() > 0 && session.lead.now_ns() < until_ns {
            session.lead.turn(TURN / 10).iter().for_each(|event| reporter.report(event));
            // `status` is answered; `down` is what happens already.
            let _ = session.is_down_requested();
        }
    };
    wait(session, LEAVE_NS);
    session.lead.close_agents();
    let longest_ns = session.file.timing.finish_ns.saturating_add(CLOSE_NS);
    if session.lead.agents() > 0 {
        let agents = plural(session.lead.agents() as u64, "agent");
        log(&format!("waiting up to {} s for {agents} to end", longest_ns / 1_000_000_000));
    }
    wait(session, longest_ns);
    match session.lead.agents() {
        0 => log("all agents have ended"),
        left => {
            let agents = plural(left as u64, "agent");
            log(&format!("warning: {agents} did not end in time, killed on this machine"));
        }
    }
}
