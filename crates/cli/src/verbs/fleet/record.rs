//! `keepup record --fleet`: a recording on all recorders of a fleet.
mod page;
mod set_file;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::Context as _;
use keepup_error::Cause;
use keepup_fleet::FleetError;
use keepup_fleet::controller::{FleetEvent, Phase, RunKind};
use keepup_fleet::controller_loop::ControllerEvent;
use keepup_fleet::file::FleetFile;
use keepup_fleet::jobs;
use keepup_fleet::message::{Counters, HostId, Role};
use keepup_fleet::record::drain::{DrainPlan, DrainResult, drain_plans};
use keepup_fleet::record::{
    FleetRecording, FleetWatch, Moved, Quiet, RecordPlan, RecordRequest, RecorderResult, RecorderSettings,
    Total, ViewMembers, plans,
};
use keepup_recorder::RecorderConfig;
use keepup_recording::id::Id;
use keepup_recording::set::SET_FILE;
use keepup_results::format::{self, number, plural, rate};
use keepup_results::live::{RunSettings, StopAfter};

use self::page::FleetPage;
use self::set_file::SetFile;
use super::events::Reporter;
use super::up::{Session, TURN, end};
use crate::exit::{Exit, usage};
use crate::http::HttpArgs;
use crate::output::{json, log, result};
use crate::progress::StatusLine;

/// Interval between updates of the progress line.
const UPDATE_EVERY: Duration = Duration::from_secs(1);
/// Most addresses of recorders in a log line.
const SHOWN_MAX: usize = 3;
/// Prefix of the directories of runs below the output directory.
const RUN: &str = "run-";

/// A recording on the recorders of a fleet.
pub(crate) struct FleetRecord<'a> {
    /// Fleet file.
    pub(crate) file: &'a Path,
    /// Directory below which each run has one [default: the name of the fleet, in the current directory].
    pub(crate) output: Option<&'a Path>,
    /// Settings of every recorder.
    pub(crate) config: &'a RecorderConfig,
    /// Name, number, metadata and limits of the run.
    pub(crate) settings: RunSettings,
    /// First port on which recorders listen.
    pub(crate) port: u16,
    /// Flags of the live page.
    pub(crate) http: &'a HttpArgs,
    /// Print one JSON object.
    pub(crate) json: bool,
}

/// Records until all clients have ended, or it is stopped.
pub(crate) fn run(request: FleetRecord<'_>) -> anyhow::Result<Exit> {
    let file = FleetFile::read(request.file)?;
    let output = request.output.map_or_else(|| PathBuf::from(&file.name), Path::to_path_buf);
    let number = match request.settings.run {
        Some(number) => number,
        None => next_run(&output).with_context(|| format!("cannot list {}", output.display()))?,
    };
    let name = request.settings.name.clone().unwrap_or_else(|| format!("{}-{RUN}{number}", file.name));
    let directory = output.join(format!("{RUN}{number}"));
    let mut plans = plans(
        &file,
        &RecordRequest {
            name: name.clone(),
            run: number,
            metadata: request.settings.metadata.clone(),
            port: request.port,
            settings: RecorderSettings::of(request.config),
        },
    )?;
    let drains = drain_plans(&file, request.port, &mut plans)?;
    let live = page::serve(request.http, &file.name)?;
    let mut session = Session::open(request.file, file.clone())?;
    // After that: a command that is refused because another controller runs must not use up a number.
    make_directory(&directory)?;
    let mut reporter = Reporter::new(&file);
    let page = live.map(|live| {
        let settings =
            RunSettings { run: Some(number), name: Some(name.clone()), ..request.settings.clone() };
        let watch = FleetWatch::new(&file, number, &plans);
        FleetPage::new(live, watch, settings, directory.display().to_string())
    });
    let parts = Parts { recorders: plans, drains };
    let mut run = Running::new(&file, (number, name), &parts, directory.join(SET_FILE), page)?;
    let done = run.conduct(&mut session, &mut reporter, &parts, &request.settings.stop);
    if let Some(page) = &mut run.page {
        let now_ns = session.lead.now_ns();
        match &done {
            Ok(ended) => page.end(now_ns, &run.recording, ended),
            Err(error) => page.fail(now_ns, &format!("{error:#}")),
        }
    }
    end_agents(&mut session, &mut reporter, run.page.as_ref());
    done?;
    // The page stays for as long as the agents.
    let Running { recording, set, .. } = run;
    if request.json {
        json(&serde_json::to_value(&recording)?);
    } else {
        result(&format!("{}\nset: {}", recording.table(), set.path().display()));
    }
    set.finish(&recording.set())?;
    Ok(if recording.is_whole() { Exit::Done } else { Exit::Failed })
}

/// Ends the agents. Clients of the page get answers meanwhile.
fn end_agents(session: &mut Session, reporter: &mut Reporter<'_>, page: Option<&FleetPage>) {
    std::thread::scope(|scope| {
        // Dropped at the end of this closure, also by a panic.
        let (_running, over) = mpsc::channel::<()>();
        if let Some(page) = page {
            let answer = move || page.answer_commands(&over);
            // Without a thread, clients wait until the server ends.
            drop(std::thread::Builder::new().name("ku-fleet-page".into()).spawn_scoped(scope, answer));
        }
        end(session, reporter, "the recording is over");
    });
}

/// One more than the highest run below `output`, starting at 1.
fn next_run(output: &Path) -> std::io::Result<u64> {
    let entries = match std::fs::read_dir(output) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(1),
        Err(error) => return Err(error),
    };
    let mut highest = 0;
    for entry in entries {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(RUN)?.parse::<u64>().ok());
        highest = highest.max(number.unwrap_or(0));
    }
    Ok(highest.saturating_add(1))
}

fn make_directory(directory: &Path) -> anyhow::Result<()> {
    if directory.join(SET_FILE).exists() {
        let why = Cause::new(format!("cannot record: {} already contains a run", directory.display()));
        return Err(usage(why.with_hint("choose another number with --run N, or omit --run")));
    }
    std::fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))
}

/// Parts of the hosts.
struct Parts {
    recorders: Vec<Option<RecordPlan>>,
    drains: Vec<Option<DrainPlan>>,
}

impl Parts {
    /// The plan of each host as its agent reads it.
    fn texts(&self) -> anyhow::Result<Vec<Option<String>>> {
        let text = |(recorder, drain): (&Option<RecordPlan>, &Option<DrainPlan>)| match (recorder, drain) {
            (Some(plan), _) => jobs::encode(jobs::RECORD, plan).map(Some),
            (None, Some(plan)) => jobs::encode(jobs::DRAIN, plan).map(Some),
            (None, None) => Ok(None),
        };
        Ok(self.recorders.iter().zip(&self.drains).map(text).collect::<Result<_, _>>()?)
    }
}

/// A recording in progress.
struct Running {
    recording: FleetRecording,
    /// Place of each host among the results of the recorders, or of the drain hosts.
    recorders: Vec<Option<usize>>,
    drains: Vec<Option<usize>>,
    set: SetFile,
    /// Latest counters of all hosts that have had streams.
    counters: BTreeMap<HostId, Counters>,
    members: ViewMembers,
    quiet: Quiet,
    page: Option<FleetPage>,
}

impl Running {
    fn new(
        file: &FleetFile,
        (run, name): (u64, String),
        parts: &Parts,
        set: PathBuf,
        page: Option<FleetPage>,
    ) -> anyhow::Result<Self> {
        let (mut all, mut recorders) = (Vec::new(), Vec::new());
        let (mut copied, mut drains) = (Vec::new(), Vec::new());
        for ((host, plan), drain) in file.hosts.iter().zip(&parts.recorders).zip(&parts.drains) {
            drains.push(drain.as_ref().map(|_| {
                copied.push(DrainResult::new(&host.name));
                copied.len() - 1
            }));
            recorders.push(plan.as_ref().map(|plan| {
                all.push(RecorderResult::new(&host.name, plan, host.role == Role::Spare));
                all.len() - 1
            }));
        }
        let recording = FleetRecording {
            fleet: file.name.clone(),
            name,
            run,
            id: Id::random().context("cannot read random bytes")?,
            created_unix_ns: 0,
            recorders: all,
            moves: Vec::new(),
            drains: copied,
            ended_early: None,
        };
        Ok(Self {
            recording,
            recorders,
            drains,
            set: SetFile::new(set),
            counters: BTreeMap::new(),
            members: ViewMembers::default(),
            quiet: Quiet::default(),
            page,
        })
    }

    /// Waits for the hosts, starts the run, and follows it to its end. Returns why it ended.
    fn conduct(
        &mut self,
        session: &mut Session,
        reporter: &mut Reporter<'_>,
        parts: &Parts,
        stop: &StopAfter,
    ) -> anyhow::Result<&'static str> {
        while let Some(events) = session.joining("record")? {
            events.iter().for_each(|event| reporter.report(event));
            self.page_turn(session);
        }
        self.recording.created_unix_ns = session.lead.now_ns();
        let started = session.lead.start_run((self.recording.run, RunKind::Recording), parts.texts()?);
        let mut events = started.map_err(|error| FleetError::Record(Cause::new(error.to_string())))?;
        let mut line = StatusLine::new();
        let (mut started_ns, mut ending, mut is_interrupted) = (None, None, false);
        let mut progress = Progress::default();
        loop {
            for event in &events {
                reporter.report(event);
                self.take(session, event, &line);
                if let ControllerEvent::Fleet(FleetEvent::Phase(_, Phase::Running)) = event {
                    started_ns = Some(session.lead.now_ns());
                    self.begin(session, &parts.recorders);
                }
                if let ControllerEvent::Fleet(FleetEvent::Over { why, .. }) = event {
                    self.recording.ended_early.clone_from(why);
                    return Ok(ending.unwrap_or("all recorders have ended"));
                }
            }
            events = session.lead.turn(TURN);
            let now_ns = session.lead.now_ns();
            let total = self.count(session);
            let is_down = self.page_turn(session) | session.is_down_requested()?;
            let is_stopped = is_down || session.is_stopped();
            let over = started_ns.and_then(|started_ns| {
                let elapsed_ns = now_ns.saturating_sub(started_ns);
                // Evaluated in every turn, because it measures the time without clients.
                if session.lead.controller().is_silent() {
                    self.quiet.paused();
                }
                let is_quiet = self.quiet.is_over(now_ns, &total);
                let limit = has_reached(stop, &total, elapsed_ns).then_some("the limit was reached");
                limit.or(is_quiet.then_some("all clients have ended"))
            });
            if let Some(why) = is_stopped.then_some("stopped on request").or(over)
                && ending.is_none()
            {
                ending = Some(why);
                is_interrupted = session.is_stopped();
                events.extend(session.lead.finish());
            } else if ending.is_some() && (is_down || session.is_stopped() && !is_interrupted) {
                // The recording has ended, and its drains are not to be waited for.
                is_interrupted = true;
                events.extend(session.lead.finish());
            }
            if started_ns.is_some()
                && let Some((mut text, passed)) = progress.take(now_ns, &total)
            {
                text.push_str(&self.left_to_drain(session));
                line.show(&text, passed);
            }
            if let Some(why) = self.set.turn(now_ns) {
                line.log(&format!("warning: {why}; trying again"));
            }
        }
    }

    /// Updates the page; returns whether a client stops the run.
    fn page_turn(&mut self, session: &Session) -> bool {
        let (now_ns, controller) = (session.lead.now_ns(), session.lead.controller());
        self.page.as_mut().is_some_and(|page| page.turn(now_ns, controller))
    }

    /// Enters the end of a recorder, or streams that moved; says which phase begins.
    fn take(&mut self, session: &Session, event: &ControllerEvent, line: &StatusLine) {
        if let (ControllerEvent::Fleet(event), Some(page)) = (event, &mut self.page) {
            page.on_event(session.lead.now_ns(), event);
        }
        let name = |host: u32| {
            session.file.hosts.get(host as usize).map_or_else(String::new, |host| host.name.clone())
        };
        match event {
            ControllerEvent::Fleet(FleetEvent::PartOver(host, end)) => {
                if let Some(result) = self.drain(*host) {
                    result.enter(end);
                    if let Some(why) = &result.failure {
                        line.log(&format!("warning: {}: {why}", name(*host)));
                    }
                }
                let Some(result) = self.recorder(*host) else { return };
                result.enter(end);
                if let Some(why) = &result.failure {
                    line.log(&format!("warning: {}: {why}", name(*host)));
                }
            }
            ControllerEvent::Fleet(FleetEvent::Moved { from, to, epoch }) => {
                let moved = Moved {
                    from: name(*from),
                    to: to.map(name),
                    epoch: *epoch,
                    at_unix_ns: session.lead.now_ns(),
                };
                let target = moved.to.as_deref().unwrap_or("the other recorders");
                line.log(&format!("warning: the streams of {} move to {target}", moved.from));
                self.recording.moves.push(moved);
                to.and_then(|to| self.recorder(to)).into_iter().for_each(RecorderResult::take_streams);
                self.quiet.moved(session.lead.now_ns());
                self.set.queue(self.recording.set());
            }
            ControllerEvent::Fleet(FleetEvent::Paused(_)) => self.quiet.paused(),
            ControllerEvent::Fleet(FleetEvent::Phase(_, Phase::Preparing)) => {
                line.log("preparing the recorders");
            }
            ControllerEvent::Fleet(FleetEvent::Phase(_, Phase::FinishingRecorders)) => {
                line.log("ending the recording");
            }
            _ => {}
        }
    }

    /// Sums up the counters of all recorders. One that was lost and is back has no streams any more.
    fn count(&mut self, session: &Session) -> Total {
        let controller = session.lead.controller();
        let view = controller.view();
        self.members.update(view);
        for member in view.slots.iter().flatten().filter(|_| view.run == self.recording.run) {
            if let Some(heartbeat) = controller.heartbeat_of(member.host) {
                self.counters.insert(member.host, heartbeat.counters);
            }
        }
        Total::of(self.counters.iter().map(|(&host, &counters)| (counters, self.members.has(host))))
    }

    /// What the recorders of the run have to drain, for the progress line.
    fn left_to_drain(&self, session: &Session) -> String {
        let hosts = (0..).zip(&self.recorders).filter(|(_, recorder)| recorder.is_some());
        let reports = hosts.filter_map(|(host, _)| session.lead.controller().heartbeat_of(host));
        let open = reports
            .filter(|report| report.state.run() == Some(self.recording.run) && !report.state.is_over());
        match open.map(|report| report.counters.behind_bytes).fold(0, u64::saturating_add) {
            0 => String::new(),
            left => format!(", {} to drain", format::bytes(left)),
        }
    }

    /// The run has started: the recorders have their streams.
    fn begin(&mut self, session: &Session, plans: &[Option<RecordPlan>]) {
        let members: Vec<HostId> =
            session.lead.controller().view().slots.iter().flatten().map(|member| member.host).collect();
        for host in members {
            self.recorder(host).into_iter().for_each(RecorderResult::take_streams);
        }
        // A controller that is killed leaves a set that names the recordings.
        self.set.queue(self.recording.set());
        self.announce(session, plans);
    }

    fn recorder(&mut self, host: HostId) -> Option<&mut RecorderResult> {
        let index = self.recorders.get(host as usize).copied().flatten()?;
        self.recording.recorders.get_mut(index)
    }

    fn drain(&mut self, host: HostId) -> Option<&mut DrainResult> {
        let index = self.drains.get(host as usize).copied().flatten()?;
        self.recording.drains.get_mut(index)
    }

    /// Says where clients connect.
    fn announce(&mut self, session: &Session, plans: &[Option<RecordPlan>]) {
        let controller = session.lead.controller();
        let recorders = controller.view().slots.iter().flatten();
        let addresses: Vec<String> = recorders.map(|member| member.address.to_string()).collect();
        let hosts = (0..).zip(&session.file.hosts).zip(plans);
        let spares = hosts.filter_map(|((host, entry), plan)| {
            let is_there = entry.role == Role::Spare && controller.heartbeat_of(host).is_some();
            is_there.then_some(plan.as_ref()?.listen.to_string())
        });
        let spares: Vec<String> = spares.collect();
        let shown = addresses.get(..SHOWN_MAX).unwrap_or(&addresses);
        let more = if shown.len() < addresses.len() { " and others" } else { "" };
        let listed = format!("{}{more}", shown.join(", "));
        log(&format!(
            "recording {} on {} with {} in reserve: {listed}",
            self.recording.name,
            plural(addresses.len() as u64, "recorder"),
            plural(spares.len() as u64, "spare"),
        ));
        if let Some(page) = &mut self.page {
            page.set_addresses(&listed);
        }
        // A client with one address does not follow its streams.
        let second = if addresses.len() == 1 { spares.first().or(addresses.first()) } else { None };
        let to: Vec<&str> = shown.iter().chain(second).map(String::as_str).collect();
        log(&format!("to connect a client: keepup source PROFILE --to {}", to.join(" --to ")));
    }
}

/// Whether a limit of the run is reached.
fn has_reached(stop: &StopAfter, total: &Total, elapsed_ns: u64) -> bool {
    stop.events.is_some_and(|events| total.events >= events)
        || stop.bytes.is_some_and(|bytes| total.bytes >= bytes)
        || stop.seconds.is_some_and(|seconds| elapsed_ns as f64 / 1e9 >= seconds)
}

/// Figures of the progress line.
#[derive(Default)]
struct Progress {
    /// Time and payload of the latest line.
    latest: Option<(u64, u64)>,
}

impl Progress {
    /// Text of the line and the time since the latest one; none within a second of it.
    fn take(&mut self, now_ns: u64, total: &Total) -> Option<(String, Duration)> {
        let bytes = total.bytes;
        let (then_ns, before) = *self.latest.get_or_insert((now_ns, bytes));
        let passed = Duration::from_nanos(now_ns.saturating_sub(then_ns));
        if passed < UPDATE_EVERY {
            return None;
        }
        self.latest = Some((now_ns, bytes));
        let gained = bytes.saturating_sub(before) as f64 / passed.as_secs_f64();
        let text = format!(
            "{} events, {}, {} durable, {} streams connected",
            number(total.events),
            rate(gained),
            number(total.durable_events),
            total.connected
        );
        Some((text, passed))
    }
}
