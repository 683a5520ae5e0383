//! `info`, `verify` and `recover` of a recording set with `--fleet`: the agents of its hosts read it.
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use keepup_error::Cause;
use keepup_fleet::controller::RunKind;
use keepup_fleet::controller_loop::ControllerEvent;
use keepup_fleet::file::FleetFile;
use keepup_fleet::set::{Hosts, RemoteSet};
use keepup_fleet::timing::Timing;
use keepup_recording::set::RecordingSet;
use keepup_report::plural;

use super::events::Reporter;
use super::host_states::HostStates;
use super::up::{Session, TURN, end};
use crate::exit::usage;
use crate::output::log;
use crate::progress::StatusLine;

/// Time without orders after which agents exit, ns. The controller sends none while it joins large reports.
/// Agents also exit when their standard input is closed.
const ORPHAN_NS: u64 = 600_000_000_000;

/// Starts the agents of the hosts of `set`, lets `work` use them, and ends them. Returns none if Ctrl-C or
/// `down` ended it.
pub(crate) fn with_agents<T>(
    path: &Path,
    set: &RecordingSet,
    work: impl FnOnce(&mut RemoteSet<'_, &mut Agents<'_, '_>>) -> T,
) -> anyhow::Result<Option<T>> {
    let mut file = FleetFile::read(path)?;
    let orphan_ns = file.timing.orphan_ns.max(ORPHAN_NS);
    file.timing = Timing { orphan_ns, ..file.timing.of_trial() };
    let has_recording =
        |name: &str| set.recordings.iter().any(|entry| entry.host == name && !entry.directories.is_empty());
    file.hosts.retain(|host| has_recording(&host.name));
    if file.hosts.is_empty() {
        let why = Cause::new(format!("cannot use {}: it has no host of the recording set", path.display()));
        let hosts: Vec<&str> = set.recordings.iter().map(|entry| entry.host.as_str()).collect();
        return Err(usage(why.with_hint(format!("hosts of the set: {}", hosts.join(", ")))));
    }
    let mut session = Session::open(path, file.clone())?;
    let mut reporter = Reporter::new(&file);
    let hosts = HostStates::new(file.hosts.len());
    let mut agents = Agents {
        session: &mut session,
        reporter: &mut reporter,
        hosts,
        status: StatusLine::new(),
        run: 0,
        is_stopped: false,
    };
    let found = agents.gather().map(|()| work(&mut RemoteSet::new(set, &mut agents)));
    let is_stopped = agents.is_stopped;
    drop(agents);
    end(&mut session, &mut reporter, "the command has ended");
    found.map(|found| (!is_stopped).then_some(found))
}

/// Agents of the hosts of a set.
pub(crate) struct Agents<'a, 'b> {
    session: &'a mut Session,
    reporter: &'a mut Reporter<'b>,
    hosts: HostStates,
    status: StatusLine,
    /// Number of the latest run.
    run: u64,
    /// Whether Ctrl-C or `down` ended it.
    is_stopped: bool,
}

impl Agents<'_, '_> {
    /// Waits until all hosts have joined or were given up.
    fn gather(&mut self) -> anyhow::Result<()> {
        while let Some(events) = self.session.joining("read the recording set")? {
            self.take(&events);
        }
        Ok(())
    }

    /// Reports events and remembers what they say about hosts. Returns whether the run is over.
    fn take(&mut self, events: &[ControllerEvent]) -> bool {
        events.iter().for_each(|event| self.reporter.report(event));
        self.hosts.take(events)
    }

    /// Notices Ctrl-C and `down`.
    fn watch_for_end(&mut self) -> bool {
        // A control socket that fails cannot bring `down`; Ctrl-C remains.
        self.is_stopped |= self.session.is_stopped() || self.session.is_down_requested().unwrap_or(false);
        self.is_stopped
    }

    /// Runs the plans, by host number, until all parts are over.
    fn conduct(&mut self, plans: Vec<Option<String>>) -> Result<(), String> {
        self.run += 1;
        self.hosts.start();
        let started = self.session.lead.start_run((self.run, RunKind::Commands), plans);
        let mut is_over = self.take(&started.map_err(|error| error.to_string())?);
        let (mut is_ending, mut before_ns) = (false, self.session.lead.now_ns());
        while !is_over {
            let mut events = self.session.lead.turn(TURN);
            if !is_ending && self.watch_for_end() {
                is_ending = true;
                log("ending the command");
                events.extend(self.session.lead.finish());
            }
            is_over = self.take(&events);
            let now_ns = self.session.lead.now_ns();
            self.status.show(&self.progress(), Duration::from_nanos(now_ns.saturating_sub(before_ns)));
            before_ns = now_ns;
        }
        Ok(())
    }

    /// Bytes that the agents have read.
    fn progress(&self) -> String {
        let controller = self.session.lead.controller();
        let all = (0..).take(self.session.file.hosts.len());
        let counters: Vec<u64> =
            all.filter_map(|host| Some(controller.heartbeat_of(host)?.counters.bytes)).collect();
        let read = counters.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        format!("read {:.1} GB on {}", read as f64 / 1e9, plural(counters.len() as u64, "host"))
    }
}

impl Hosts for &mut Agents<'_, '_> {
    fn run(&mut self, plans: &BTreeMap<String, String>) -> BTreeMap<String, Result<String, String>> {
        let names: Vec<String> = self.session.file.hosts.iter().map(|host| host.name.clone()).collect();
        let result = match self.watch_for_end() {
            true => Err("the command was interrupted".to_owned()),
            false => self.conduct(names.iter().map(|name| plans.get(name).cloned()).collect()),
        };
        let mut outcomes: BTreeMap<String, Result<String, String>> =
            names.into_iter().zip(self.hosts.outcomes().map(|(_, outcome)| outcome)).collect();
        let outcome = |host: &String| {
            let unknown = || Err("the fleet file has no such host".to_owned());
            let outcome = outcomes.remove(host).unwrap_or_else(unknown);
            (host.clone(), result.clone().and(outcome))
        };
        plans.keys().map(outcome).collect()
    }
}
