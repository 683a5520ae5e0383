//! Client side: a source on another machine, for a recorder on this one.
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_results::SourceHost;
use keepup_stream::source::{SourceCounters, SourcePlan, SourceReport};

use super::timeline::{SourceCounts, Timeline};
use crate::error::{NetError, system};
use crate::net::control::ControlConnections;
use crate::net::handshake::{Server, authenticate};
use crate::net::spec::{Direction, NetSpec};
use crate::net::wire::Message;
use crate::net::wire::source::{
    REPORT_EVERY, SCHEDULE_MAX, SourceAnswer, SourceEnd, SourceProgress, SourceRequest,
};
use crate::net::{NetMeasured, NetTest};
use crate::{Context, WorkloadError, run};

/// What starts a server.
const SERVE: &str = "start the source on the other machine: keepup source --serve --listen ADDR";
/// Time for an answer in addition to the time of the request itself. A source that cannot send the
/// rest of its buffer, or waits for the recorder's last flush, ends within 90 s of its schedule.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(120);
/// Warm-up of the network ceiling.
const RAMP: Duration = Duration::from_millis(200);

/// A machine that runs `keepup source --serve`.
#[derive(Clone, Debug)]
pub struct RemoteSource {
    server: Server,
    host: SourceHost,
    /// Address of the server, and the local address that it is reached from.
    there: IpAddr,
    here: IpAddr,
}

/// Result of a source that ran on another machine.
pub(crate) struct RemoteRun {
    /// Report, with the start of the schedule on this machine's clock.
    pub(crate) report: SourceReport,
    /// Start of the schedule on this machine's monotonic clock, ns.
    pub(crate) started_ns: u64,
    /// Counters over time.
    pub(crate) timeline: Timeline,
    /// Error that cut the source off.
    pub(crate) failure: Option<String>,
}

/// Settings of one run of a remote source.
pub(crate) struct RemoteOrder<'a> {
    pub(crate) plan: &'a SourcePlan,
    pub(crate) clock: Arc<dyn Clock>,
    /// Ends the schedule early and in order.
    pub(crate) stop: &'a AtomicBool,
    /// Updated with every report.
    pub(crate) live: &'a SourceCounters,
}

impl RemoteSource {
    /// Connects to a server and has it describe its machine.
    ///
    /// # Errors
    /// The server cannot be reached, refuses the token, or runs no source.
    pub fn connect(server: Server, clock: Arc<dyn Clock>) -> Result<Self, WorkloadError> {
        let stream = authenticate(&server, SERVE)?;
        let address = system("read the address of a connection");
        let (there, here) =
            (stream.peer_addr().map_err(&address)?, stream.local_addr().map_err(&address)?.ip());
        let mut talk = Conversation::on(stream, clock)?;
        talk.ask(SourceRequest::Describe)?;
        let machine = talk.answer(ANSWER_MAX, |answer| match answer {
            SourceAnswer::Machine { machine } => Ok(machine),
            other => Err(other),
        })?;
        let host = SourceHost {
            address: there.to_string(),
            host: machine.host,
            cpu: machine.cpu,
            cores: machine.cores,
            tool_version: machine.tool_version,
            counters_gap_seconds_max: None,
        };
        // Later connections go to the same address of the name, so that all use the same path.
        let server = Server { endpoint: there.into(), ..server };
        Ok(Self { server, host, there: there.ip(), here })
    }

    /// Description of the machine.
    #[must_use]
    pub fn host(&self) -> &SourceHost {
        &self.host
    }

    /// Address of the machine.
    #[must_use]
    pub fn there(&self) -> IpAddr {
        self.there
    }

    /// Local address on the path to the machine.
    #[must_use]
    pub fn here(&self) -> IpAddr {
        self.here
    }

    /// Rate of the source alone on its machine, bytes per second.
    ///
    /// # Errors
    /// The server cannot be reached or refuses, or the source cannot run.
    pub fn ceiling(
        &self,
        plan: &SourcePlan,
        time: Duration,
        clock: &Arc<dyn Clock>,
    ) -> Result<f64, WorkloadError> {
        let mut talk = self.open(clock)?;
        talk.ask(SourceRequest::Ceiling { plan: plan.clone(), time })?;
        let rate = talk.answer(time + ANSWER_MAX, |answer| match answer {
            SourceAnswer::Ceiling { bytes_per_second } => Ok(bytes_per_second),
            other => Err(other),
        })?;
        match rate.is_finite() && rate >= 0.0 {
            true => Ok(rate),
            false => Err(talk.protocol_error(format!("a rate of {rate} B/s")).into()),
        }
    }

    /// Throughput of one TCP connection from the machine to this one, bytes per second.
    ///
    /// # Errors
    /// The server cannot be reached or refuses, or the connection breaks.
    pub fn network_ceiling(&self, time: Duration, context: &mut Context) -> Result<f64, WorkloadError> {
        let spec = NetSpec { direction: Direction::Receive, ramp: RAMP, run: time, ..NetSpec::default() };
        let mut test = NetTest::new(spec, vec![self.server.clone()], "network path".into())?;
        let NetMeasured { run: measured, failure } = run(&mut test, context)?;
        if let Some(failure) = failure {
            return Err(failure);
        }
        let moved = measured.flows.first().and_then(|flow| flow.received.as_ref());
        Ok(moved.map_or(0.0, |moved| moved.bytes as f64 / moved.seconds.max(1e-9)))
    }

    /// Runs a source that sends to `port` of the address that [`Self::here`] returns, and returns its report.
    ///
    /// # Errors
    /// The server cannot be reached, refuses, disconnects, falls silent, or does not end in time.
    pub(crate) fn run(&self, order: &RemoteOrder<'_>, port: u16) -> Result<RemoteRun, WorkloadError> {
        let mut talk = self.open(&order.clock)?;
        talk.ask(SourceRequest::Start { plan: order.plan.clone(), port })?;
        talk.follow(order)
    }

    pub(super) fn open(&self, clock: &Arc<dyn Clock>) -> Result<Conversation, WorkloadError> {
        Conversation::on(authenticate(&self.server, SERVE)?, Arc::clone(clock))
    }
}

impl Conversation {
    /// Follows a source that runs until its end, and returns its report.
    ///
    /// # Errors
    /// No recorder connected to it; the server disconnects, falls silent, or does not end in time.
    pub(super) fn follow(&mut self, order: &RemoteOrder<'_>) -> Result<RemoteRun, WorkloadError> {
        let talk = self;
        let mut timeline = Timeline::default();
        let time = order.plan.duration.unwrap_or(SCHEDULE_MAX) + ANSWER_MAX;
        let (mut begin_ns, mut limit) = (order.clock.now_ns(), time);
        let mut has_stopped = false;
        loop {
            if order.stop.load(Ordering::Acquire) && !has_stopped {
                has_stopped = true;
                (begin_ns, limit) = (order.clock.now_ns(), ANSWER_MAX);
                talk.ask(SourceRequest::Stop)?;
            }
            match talk.receive(REPORT_EVERY)? {
                Some(SourceAnswer::Progress { progress }) => {
                    timeline.take(order.clock.now_ns(), &progress);
                    publish(&progress, order.live);
                }
                Some(SourceAnswer::End { end }) => return conclude(talk, &end, timeline, order),
                Some(SourceAnswer::NoRecorder { why }) => {
                    return Err(NetError::NoRecorder { server: talk.peer().to_owned(), why }.into());
                }
                Some(other) => return Err(talk.unexpected(other).into()),
                None => {}
            }
            talk.connections.check_timeout(0, begin_ns, limit)?;
        }
    }
}

/// Final counts of a source as the result of a run.
fn conclude(
    talk: &Conversation,
    end: &SourceEnd,
    mut timeline: Timeline,
    order: &RemoteOrder<'_>,
) -> Result<RemoteRun, WorkloadError> {
    let (now_ns, now_unix_ns) = (order.clock.now_ns(), order.clock.unix_ns());
    // A source that ended before its first report started its schedule just before.
    let started_ns = timeline.on_our_clock(end.lead_ns).unwrap_or(now_ns).min(now_ns);
    let started_unix_ns = now_unix_ns.saturating_sub(now_ns - started_ns);
    let mut report = end.report(started_unix_ns).map_err(|what| talk.protocol_error(what))?;
    report.is_acknowledged = order.plan.protocol.is_acknowledged();
    // A source that was stopped before it had its recorder has no streams.
    let has_none = report.streams.is_empty() && order.stop.load(Ordering::Acquire);
    if report.streams.len() != order.plan.streams as usize && !has_none {
        let what = format!("counts of {} streams of {}", report.streams.len(), order.plan.streams);
        return Err(talk.protocol_error(what).into());
    }
    let (due, sent, lost) = (report.total(|s| s.due), report.total(|s| s.sent), report.total(|s| s.lost));
    publish(
        &SourceProgress {
            due_events: due.events,
            due_bytes: due.bytes,
            sent_events: sent.events,
            sent_bytes: sent.bytes,
            lost_events: lost.events,
            lost_bytes: lost.bytes,
            blocked_ns: report.blocked_ns,
            cpu_ns: report.cpu_ns,
            ..SourceProgress::default()
        },
        order.live,
    );
    let counts = SourceCounts { due_bytes: due.bytes, lost_bytes: lost.bytes, sent_bytes: sent.bytes };
    timeline.add(end.lead_ns.saturating_add(end.elapsed_ns), counts);
    Ok(RemoteRun { report, started_ns, timeline, failure: end.failure.clone() })
}

/// Copies reported counters to the live ones. Counts never fall, whatever a server reports.
fn publish(progress: &SourceProgress, live: &SourceCounters) {
    let raise = |counter: &AtomicU64, value: u64| {
        counter.fetch_max(value, Ordering::Relaxed);
    };
    raise(&live.due_events, progress.due_events);
    raise(&live.due_bytes, progress.due_bytes);
    raise(&live.sent_events, progress.sent_events);
    raise(&live.sent_bytes, progress.sent_bytes);
    raise(&live.lost_events, progress.lost_events);
    raise(&live.lost_bytes, progress.lost_bytes);
    raise(&live.blocked_ns, progress.blocked_ns);
    raise(&live.cpu_ns, progress.cpu_ns);
    live.backlog_bytes.store(progress.backlog_bytes, Ordering::Relaxed);
}

/// Control connection to the source of one server.
pub(super) struct Conversation {
    connections: ControlConnections,
}

impl Conversation {
    fn on(stream: TcpStream, clock: Arc<dyn Clock>) -> Result<Self, WorkloadError> {
        let mut connections = ControlConnections::new(clock);
        connections.add(stream).map_err(system("set up the control connection"))?;
        Ok(Self { connections })
    }

    pub(super) fn ask(&mut self, request: SourceRequest) -> Result<(), NetError> {
        self.connections.send(0, &Message::Source { request: Box::new(request) })
    }

    /// Next answer, or none after `patience`.
    pub(super) fn receive(&mut self, patience: Duration) -> Result<Option<SourceAnswer>, NetError> {
        match self.connections.receive(patience)? {
            Some((_, Message::SourceAnswer { answer })) => Ok(Some(*answer)),
            Some((_, other)) => Err(self.connections.unexpected(0, &other)),
            None => Ok(None),
        }
    }

    /// The answer that `wanted` accepts, within `limit`.
    pub(super) fn answer<T>(
        &mut self,
        limit: Duration,
        wanted: impl Fn(SourceAnswer) -> Result<T, SourceAnswer>,
    ) -> Result<T, NetError> {
        let begin_ns = self.connections.now_ns();
        loop {
            match self.receive(REPORT_EVERY)? {
                Some(answer) => return wanted(answer).map_err(|other| self.unexpected(other)),
                None => self.connections.check_timeout(0, begin_ns, limit)?,
            }
        }
    }

    pub(super) fn unexpected(&self, answer: SourceAnswer) -> NetError {
        self.connections.unexpected(0, &Message::SourceAnswer { answer: Box::new(answer) })
    }

    fn protocol_error(&self, what: String) -> NetError {
        NetError::Protocol { peer: self.peer().to_owned(), what }
    }

    fn peer(&self) -> &str {
        self.connections.peer(0)
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
pub(super) mod tests;
