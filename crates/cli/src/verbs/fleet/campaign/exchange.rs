//! Runs of commands on hosts, and their answers.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use keepup_error::Cause;
use keepup_fleet::FleetError;
use keepup_fleet::command::{CommandPlan, Reply};
use keepup_fleet::controller::{FleetEvent, PartEnd, Phase, RunKind};
use keepup_fleet::controller_loop::ControllerEvent;
use keepup_fleet::file::FleetFile;
use keepup_fleet::jobs;
use keepup_fleet::launch::LaunchEvent;
use keepup_fleet::message::HostId;

use super::super::events::Reporter;
use super::super::up::{Session, TURN};
use crate::output::log;

/// Time for the checks of one list of commands, ns. A volume may not respond.
const CHECK_NS: u64 = 60_000_000_000;
/// Longest turn while a result is stored.
const SHORT_TURN: Duration = Duration::from_millis(10);

/// Orders to hosts and their answers.
pub(super) struct Exchange<'a, 'b> {
    session: &'a mut Session,
    reporter: &'a mut Reporter<'b>,
    /// Number of the latest run.
    run: u64,
    /// Why a host will not join any more: its agent has ended, was refused or did not start.
    absent: BTreeMap<HostId, String>,
}

impl<'a, 'b> Exchange<'a, 'b> {
    /// Waits until all hosts have joined.
    ///
    /// # Errors
    /// A host does not join, or the user interrupts.
    pub(super) fn gather(session: &'a mut Session, reporter: &'a mut Reporter<'b>) -> anyhow::Result<Self> {
        let mut exchange = Self { session, reporter, run: 0, absent: BTreeMap::new() };
        while let Some(events) = exchange.session.joining("run the campaign")? {
            exchange.take(&events, &mut BTreeMap::new());
        }
        match exchange.absent.iter().next() {
            None => Ok(exchange),
            Some((host, why)) => {
                let why = Cause::new(format!("{}: {why}", exchange.name(*host)));
                Err(FleetError::Campaign(why.with_hint("remove the host from the campaign file")).into())
            }
        }
    }

    /// The hosts.
    pub(super) fn file(&self) -> &FleetFile {
        &self.session.file
    }

    /// Name of a host.
    pub(super) fn name(&self, host: HostId) -> &str {
        self.session.file.hosts.get(host as usize).map_or("", |entry| &entry.name)
    }

    /// Whether Ctrl-C or `down` ends the campaign.
    pub(super) fn is_stopped(&self) -> bool {
        self.session.is_stopped()
    }

    /// Notices `down`, which has the effect of Ctrl-C.
    fn watch_for_end(&mut self) -> anyhow::Result<bool> {
        if self.session.is_down_requested()? {
            self.session.stop.store(true, Ordering::Relaxed);
        }
        Ok(self.session.is_stopped())
    }

    /// Waits until a host that was cut off is back, as long as its agent waits for orders.
    ///
    /// # Errors
    /// The control socket failed.
    pub(super) fn wait_for(&mut self, host: HostId) -> anyhow::Result<()> {
        let orphan_ns = self.session.file.timing.orphan_ns;
        let until_ns = self.session.lead.now_ns().saturating_add(orphan_ns);
        while self.session.lead.controller().heartbeat_of(host).is_none()
            && !self.absent.contains_key(&host)
            && self.session.lead.now_ns() < until_ns
            && !self.watch_for_end()?
        {
            let events = self.session.lead.turn(TURN);
            self.take(&events, &mut BTreeMap::new());
        }
        Ok(())
    }

    /// Does `work` in a thread. Without orders meanwhile, the agents would exit.
    pub(super) fn during<T: Send>(&mut self, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = scope.spawn(work);
            while !thread.is_finished() {
                let events = self.session.lead.turn(SHORT_TURN);
                self.take(&events, &mut BTreeMap::new());
            }
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Executes these plans at the same time; returns the whole answer of each host, or why it has none.
    ///
    /// # Errors
    /// The run cannot be started, or the control socket failed.
    pub(super) fn ask(
        &mut self,
        plans: &BTreeMap<HostId, CommandPlan>,
    ) -> anyhow::Result<BTreeMap<HostId, Result<Reply, String>>> {
        let answers = self.run(plans)?;
        let run = self.run;
        let mut replies = BTreeMap::new();
        for (host, first) in answers {
            replies.insert(host, self.rest(run, host, first)?);
        }
        Ok(replies)
    }

    /// Asks for the further parts of an answer.
    fn rest(
        &mut self,
        of: u64,
        host: HostId,
        first: Result<String, String>,
    ) -> anyhow::Result<Result<Reply, String>> {
        let (mut reply, mut part) = (Reply::default(), first);
        loop {
            let next = part.and_then(|part| reply.add(&part).map_err(|error| error.to_string()));
            match next {
                Ok(None) => return Ok(Ok(reply)),
                Err(why) => return Ok(Err(why)),
                Ok(Some(number)) => {
                    let plans = BTreeMap::from([(host, CommandPlan::Part { of, number })]);
                    part = self.run(&plans)?.remove(&host).unwrap_or_else(|| Err("no answer".to_owned()));
                }
            }
        }
    }

    /// One run with these plans; returns the outcome of each host, or why it has none.
    fn run(
        &mut self,
        plans: &BTreeMap<HostId, CommandPlan>,
    ) -> anyhow::Result<BTreeMap<HostId, Result<String, String>>> {
        let hosts = (0..).zip(&self.session.file.hosts).map(|(host, _)| host);
        let texts =
            hosts.map(|host| plans.get(&host).map(|plan| jobs::encode(jobs::COMMAND, plan)).transpose());
        let texts = texts.collect::<Result<Vec<_>, _>>()?;
        self.run += 1;
        let started = self.session.lead.start_run((self.run, RunKind::Commands), texts);
        let mut events = started.map_err(|error| anyhow::anyhow!("cannot start a command: {error}"))?;
        let mut ends = BTreeMap::new();
        // What is only fetched is worth the wait: a second Ctrl-C ends everything.
        let is_result = plans.values().all(|plan| matches!(plan, CommandPlan::Part { .. }));
        let mut is_ending = is_result;
        let is_check = plans.values().any(|plan| matches!(plan, CommandPlan::Check(_)));
        let until_ns = self.session.lead.now_ns().saturating_add(CHECK_NS);
        let mut late = BTreeSet::new();
        while !self.take(&events, &mut ends) {
            events = Vec::new();
            if self.watch_for_end()? && !is_ending {
                is_ending = true;
                log("ending the command on its host");
                events.extend(self.session.lead.finish());
            } else if is_check && !is_ending && self.session.lead.now_ns() >= until_ns {
                is_ending = true;
                late = plans.keys().filter(|host| !ends.contains_key(host)).copied().collect();
                let names: Vec<&str> = late.iter().map(|host| self.name(*host)).collect();
                log(&format!("warning: ending the check: not ended in time: {}", names.join(", ")));
                events.extend(self.session.lead.finish());
            }
            events.extend(self.session.lead.turn(TURN));
        }
        let of = |host: &HostId| match late.contains(host) {
            true => {
                let seconds = CHECK_NS / 1_000_000_000;
                let why = format!("the check took longer than {seconds} s: a file system may not respond");
                (*host, Err(why))
            }
            false => (*host, self.outcome(*host, ends.get(host))),
        };
        Ok(plans.keys().map(of).collect())
    }

    fn outcome(&self, host: HostId, end: Option<&PartEnd>) -> Result<String, String> {
        Err(match end {
            Some(PartEnd::Finished(outcome)) => return Ok(outcome.clone()),
            Some(PartEnd::Failed(why)) => why.clone(),
            Some(PartEnd::Absent) => match self.absent.get(&host) {
                Some(why) => format!("the host is not in the fleet: {why}"),
                None => "the host is not in the fleet".to_owned(),
            },
            Some(PartEnd::Lost) => match self.absent.get(&host) {
                Some(why) => format!("the host was lost: {why}"),
                None => "the host was lost: no heartbeat".to_owned(),
            },
            Some(PartEnd::TimedOut(Phase::Preparing)) => "the host was not ready in time".to_owned(),
            Some(PartEnd::TimedOut(_)) => "the command did not end in time".to_owned(),
            None => "no result".to_owned(),
        })
    }

    /// Reports events and remembers what they say about hosts. Returns whether the run is over.
    fn take(&mut self, events: &[ControllerEvent], ends: &mut BTreeMap<HostId, PartEnd>) -> bool {
        let mut is_over = false;
        for event in events {
            self.reporter.report(event);
            match event {
                ControllerEvent::Launch(LaunchEvent::Failed { host, why })
                | ControllerEvent::Fleet(FleetEvent::Refused { host, why }) => {
                    self.absent.insert(*host, why.clone());
                }
                ControllerEvent::Launch(LaunchEvent::Ended { host, status }) => {
                    self.absent.insert(*host, format!("its agent has ended: {status}"));
                }
                ControllerEvent::Fleet(FleetEvent::Joined(host)) => drop(self.absent.remove(host)),
                ControllerEvent::Fleet(FleetEvent::PartOver(host, end)) => {
                    ends.insert(*host, end.clone());
                }
                ControllerEvent::Fleet(FleetEvent::Over { run, .. }) => is_over |= *run == self.run,
                _ => {}
            }
        }
        is_over
    }
}
