//! Server side: answers one request about the source.
//!
//! Invariants: a source runs only while its client is there, and sends only to the client's address; the
//! port at which it waits is open only as long as the session; the control connection is served while the
//! source waits and runs.
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use keepup_error::Cause;
use keepup_measure::environment::Environment;
use keepup_stream::source::{
    Destination, Door, SourceCounters, SourceError, SourcePlan, SourceReport, run as run_source,
};

use super::{POLL_INTERVAL, Session};
use crate::ceiling::SourceCeiling;
use crate::error::NetError;
use crate::net::local_end::host;
use crate::net::wire::Message;
use crate::net::wire::source::{
    REPORT_EVERY, SourceAnswer, SourceEnd, SourceMachine, SourceProgress, SourceRequest,
};
use crate::{Context, WorkloadError, run};

/// Longest time from the open port to the request to run: the recorder allocates its pool meanwhile.
const RUN_REQUEST_MAX: Duration = Duration::from_secs(300);
/// Longest wait of a running source for its recorder to connect.
const RECORDER_MAX: Duration = Duration::from_secs(10);

/// Serves one request.
pub(super) fn serve(
    session: &mut Session<'_>,
    request: SourceRequest,
    log: &dyn Fn(String),
) -> Result<(), WorkloadError> {
    if !session.state.runs_sources() {
        return refuse(session, "it runs network tests only; start keepup source --serve".into(), log);
    }
    if let Err(why) = request.check() {
        return refuse(session, why, log);
    }
    if request == SourceRequest::Describe {
        return answer(session, SourceAnswer::Machine { machine: machine() });
    }
    let Some(_turn) = session.state.take_source() else {
        return refuse(session, "its source is in use by another client".into(), log);
    };
    match request {
        SourceRequest::Ceiling { plan, time } => ceiling(session, &plan, time, log),
        SourceRequest::Start { plan, port } => {
            let to = SocketAddr::new(session.client, port);
            log(format!("source to {to}{}", for_time(&plan)));
            start(session, &plan, to.into(), log)
        }
        SourceRequest::Open { plan } => open(session, &plan, log),
        SourceRequest::Describe | SourceRequest::Run | SourceRequest::Stop => {
            let message = Message::Source { request: Box::new(request) };
            Err(session.talk.unexpected(0, &message).into())
        }
    }
}

fn refuse(session: &mut Session<'_>, why: String, log: &dyn Fn(String)) -> Result<(), WorkloadError> {
    log(format!("refused, {why}"));
    session.talk.send(0, &Message::Refused { why })?;
    session.await_disconnect();
    Ok(())
}

/// Sends the last answer of a session.
fn answer(session: &mut Session<'_>, answer: SourceAnswer) -> Result<(), WorkloadError> {
    session.talk.send(0, &Message::SourceAnswer { answer: Box::new(answer) })?;
    session.await_disconnect();
    Ok(())
}

fn machine() -> SourceMachine {
    let cpu = Environment::collect(&[], Path::new("/")).cpu;
    SourceMachine {
        host: host(),
        cpu: cpu.model.value().cloned(),
        cores: cpu.logical_cores.value().copied(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Measures the source alone.
fn ceiling(
    session: &mut Session<'_>,
    plan: &SourcePlan,
    time: Duration,
    log: &dyn Fn(String),
) -> Result<(), WorkloadError> {
    log(format!("source alone for {} s", time.as_secs_f64()));
    let mut context = Context {
        clock: Arc::clone(&session.state.clock),
        stop: Arc::new(AtomicBool::new(false)),
        sample: Box::new(|_, _| {}),
        note: Box::new(|_| {}),
    };
    let measured = std::thread::scope(|scope| {
        let measuring = scope.spawn(|| run(&mut SourceCeiling::new(plan, time), &mut context));
        let mut served = Ok(());
        while served.is_ok() && !measuring.is_finished() {
            served = serve_while_running(session, &AtomicBool::new(false));
        }
        let measured = measuring.join().map_err(|_| WorkloadError::Thread { name: "source" })?;
        served.map_err(WorkloadError::from).and(measured)
    });
    match measured {
        Ok(bytes_per_second) => answer(session, SourceAnswer::Ceiling { bytes_per_second }),
        Err(WorkloadError::Net(error)) => Err(error.into()),
        Err(error) => refuse(session, Cause::of(&error).to_text(), log),
    }
}

fn for_time(plan: &SourcePlan) -> String {
    plan.duration.map_or_else(String::new, |time| format!(" for {} s", time.as_secs_f64()))
}

/// Opens a port for the client's recorder, and runs the source once the client asks for it. The port is
/// closed when the session ends: a recorder reads on while the client keeps the session.
fn open(session: &mut Session<'_>, plan: &SourcePlan, log: &dyn Fn(String)) -> Result<(), WorkloadError> {
    let mut at = session.here;
    at.set_ip(at.ip().to_canonical());
    at.set_port(session.state.settings.detector_port);
    let door = match Door::open(at, Some(RECORDER_MAX)) {
        Ok(door) => door.only_from(session.client),
        Err(error) => {
            return refuse(session, format!("cannot open {at} for the recorder: {error}"), log);
        }
    };
    log(format!("source at {} as {}{}", door.address(), plan.protocol, for_time(plan)));
    let waiting = SourceAnswer::Waiting { port: door.address().port() };
    session.talk.send(0, &Message::SourceAnswer { answer: Box::new(waiting) })?;
    await_run(session)?;
    start(session, plan, Destination::Accept(door), log)
}

/// Serves the control connection until the client asks to run the source.
fn await_run(session: &mut Session<'_>) -> Result<(), NetError> {
    let begin_ns = session.state.clock.now_ns();
    loop {
        match session.talk.receive(POLL_INTERVAL)? {
            Some((_, Message::Source { request })) if *request == SourceRequest::Run => return Ok(()),
            Some((_, other)) => return Err(session.talk.unexpected(0, &other)),
            None if session.is_stopped() => session.end_stopped_session()?,
            None => session.talk.check_timeout(0, begin_ns, RUN_REQUEST_MAX)?,
        }
    }
}

/// Sends the events of the plan to the client.
fn start(
    session: &mut Session<'_>,
    plan: &SourcePlan,
    to: Destination,
    log: &dyn Fn(String),
) -> Result<(), WorkloadError> {
    let (begin_ns, begin_unix_ns) = (session.state.clock.now_ns(), session.state.clock.unix_ns());
    let (stop, live) = (AtomicBool::new(false), SourceCounters::default());
    let outcome = std::thread::scope(|scope| {
        let source = scope.spawn(|| run_source(plan, to.clone(), &stop, &live));
        let served = report_until_end(session, &source, &stop, &live, begin_ns);
        // Without its client the source ends early.
        stop.store(true, Ordering::Relaxed);
        let outcome = source.join().map_err(|_| WorkloadError::Thread { name: "source" })?;
        served.map(|()| outcome).map_err(WorkloadError::from)
    })?;
    let end = |report: &SourceReport, failure| {
        let end = SourceEnd::new(report, begin_unix_ns, failure);
        SourceAnswer::End { end }
    };
    match outcome {
        Ok(report) => answer(session, end(&report, None)),
        Err(SourceError::Broken { error, report, .. }) => {
            answer(session, end(&report, Some(Cause::of(&error).to_text())))
        }
        Err(SourceError::Connect { error, .. }) if matches!(to, Destination::Accept(_)) => {
            let why = Cause::of(&error).to_text();
            log(why.clone());
            answer(session, SourceAnswer::NoRecorder { why })
        }
        Err(error) => refuse(session, Cause::of(&error).to_text(), log),
    }
}

/// Sends the live counters at every interval until the source has ended.
fn report_until_end(
    session: &mut Session<'_>,
    source: &ScopedJoinHandle<'_, Result<SourceReport, SourceError>>,
    stop: &AtomicBool,
    live: &SourceCounters,
    begin_ns: u64,
) -> Result<(), NetError> {
    while !source.is_finished() {
        serve_while_running(session, stop)?;
        let t_ns = session.state.clock.now_ns().saturating_sub(begin_ns);
        let answer = SourceAnswer::Progress { progress: progress(live, t_ns) };
        session.talk.send(0, &Message::SourceAnswer { answer: Box::new(answer) })?;
    }
    Ok(())
}

/// Serves the control connection for one interval; a request to stop sets `stop`.
fn serve_while_running(session: &mut Session<'_>, stop: &AtomicBool) -> Result<(), NetError> {
    let until_ns = session.state.clock.now_ns() + REPORT_EVERY.as_nanos() as u64;
    while let Some(left_ns) = until_ns.checked_sub(session.state.clock.now_ns()).filter(|ns| *ns > 0) {
        if session.is_stopped() {
            return session.end_stopped_session();
        }
        match session.talk.receive(Duration::from_nanos(left_ns))? {
            Some((_, Message::Source { request })) if *request == SourceRequest::Stop => {
                stop.store(true, Ordering::Relaxed);
            }
            Some((_, other)) => return Err(session.talk.unexpected(0, &other)),
            None => {}
        }
    }
    Ok(())
}

fn progress(live: &SourceCounters, t_ns: u64) -> SourceProgress {
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    SourceProgress {
        t_ns,
        due_events: read(&live.due_events),
        due_bytes: read(&live.due_bytes),
        sent_events: read(&live.sent_events),
        sent_bytes: read(&live.sent_bytes),
        lost_events: read(&live.lost_events),
        lost_bytes: read(&live.lost_bytes),
        backlog_bytes: read(&live.backlog_bytes),
        blocked_ns: read(&live.blocked_ns),
        cpu_ns: read(&live.cpu_ns),
    }
}
