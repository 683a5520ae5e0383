//! Runs a source: opens all connections, starts their threads on a common clock, merges their
//! reports.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use hdrhistogram::Histogram;
use keepup_error::Cause;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::clock::{Clock, want_precise_wakeups};
use super::fill::Fill;
use super::fleet;
use super::frontend::FrontEnd;
use super::images::Images;
use super::lane::{Lane, LaneReport, Shared};
use super::link;
use super::plan::{Protocol, Rate, SourcePlan};
use super::schedule::Schedule;
use super::{Destination, Fleet, SourceCounters, SourceError, SourceReport};
use crate::client::ClientError;
use crate::wire::Bye;

/// Timeout for accepting a connection and for the welcome, each.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Delay from creating the threads to the start of the schedule, so that all of them are ready,
/// ns.
const START_LEAD_NS: u64 = 10_000_000;
/// Lateness above an hour counts as an hour, ns.
const LATENESS_NS_MAX: u64 = 3_600_000_000_000;

/// Sends according to `plan` to the recorder at `to` and returns after the recorder's bye, if the protocol
/// has one.
/// Setting `stop` ends the schedule early and in order. `live` may be read meanwhile.
///
/// # Errors
/// The plan is invalid, the recorder refuses it, a thread cannot be started, or a connection
/// breaks. In the last case the error contains the counts up to then.
pub fn run(
    plan: &SourcePlan,
    to: impl Into<Destination>,
    stop: &AtomicBool,
    live: &SourceCounters,
) -> Result<SourceReport, SourceError> {
    plan.check()?;
    let to = to.into();
    let abort = AtomicBool::new(false);
    let coalesce_ns = Schedule::new(plan.rate, plan.burst)
        .map_or(0, |s| s.coalesce_ns(plan.connections, plan.size.mean_bytes(), plan.buffer_bytes));
    let shared = Shared { stop, abort: &abort, live, coalesce_ns };
    // Before a recorder is connected: it would wait.
    let mut images = Images::new(plan);
    let mut lanes: Vec<Body<'_>> = Vec::new();
    for connection in 0..plan.connections {
        let lane = match &to {
            Destination::Fleet(fleet) => open_fleet_lane(plan, connection, fleet, shared),
            // Images have one stream, and so one connection.
            to => open_lane(plan, connection, images.take(), to, shared),
        };
        match lane {
            Err(SourceError::Connect { error: ClientError::Stopped, .. }) => {
                let is_acknowledged = plan.protocol.is_acknowledged();
                return Ok(SourceReport { is_acknowledged, ..SourceReport::empty(plan.rate == Rate::Max)? });
            }
            lane => lanes.push(lane?),
        }
    }
    let clock = Clock::starting_in(START_LEAD_NS);
    let reports = run_lanes(lanes, &plan.cpus, &clock, &abort)?;
    merge(plan, &clock, reports)
}

/// Body of the thread of a lane.
type Body<'a> = Box<dyn FnOnce(&Clock) -> LaneReport + Send + 'a>;

/// Connects and prepares a lane over several recorders.
fn open_fleet_lane<'a>(
    plan: &SourcePlan,
    connection: u32,
    fleet: &'a Fleet,
    shared: Shared<'a>,
) -> Result<Body<'a>, SourceError> {
    if plan.protocol != Protocol::Keepup {
        let what = format!("several recorders with the protocol {}", plan.protocol);
        return Err(SourceError::Plan { what: Cause::new(what).with_hint("--as keepup") });
    }
    let begin_unix_ns = Clock::starting_in(0).unix_ns(0);
    let resume = format!("keepup source {} since {begin_unix_ns}, connection {connection}", process::id());
    let lane = fleet::open(plan, connection, fleet, shared, (&resume, lateness_histogram(connection)?))
        .map_err(|error| SourceError::Connect { connection, error })?;
    Ok(Box::new(move |clock| lane.run(clock)))
}

/// Connects and prepares one lane.
fn open_lane<'a>(
    plan: &SourcePlan,
    connection: u32,
    images: Option<Images>,
    to: &Destination,
    shared: Shared<'a>,
) -> Result<Body<'a>, SourceError> {
    let link = link::open(plan, connection, to, shared.stop, CONNECT_TIMEOUT)
        .map_err(|error| SourceError::Connect { connection, error })?;
    if plan.size.max_bytes() > link.event_bytes_max() {
        let what = format!(
            "events of up to {} bytes, but the recorder takes at most {}",
            plan.size.max_bytes(),
            link.event_bytes_max()
        );
        let hint = "send smaller events, or let the recorder take larger ones";
        return Err(SourceError::Plan { what: Cause::new(what).with_hint(hint) });
    }
    let sizes = images.as_ref().map(|images| Arc::clone(images.sizes()));
    let front = FrontEnd::new(plan, sizes, connection, &link.first_sequences());
    let fill = Fill::new(plan.seed ^ u64::from(connection), images);
    let lane = Lane::new(shared, link, front, fill, lateness_histogram(connection)?);
    Ok(Box::new(move |clock| lane.run(clock)))
}

/// Histogram from 1 ns to an hour, three digits.
fn lateness_histogram(connection: u32) -> Result<Histogram<u64>, SourceError> {
    Histogram::new_with_bounds(1, LATENESS_NS_MAX, 3)
        .map_err(|error| SourceError::Thread { connection, what: error.to_string().into() })
}

/// Runs one thread per lane; returns their reports in order of the connections.
fn run_lanes(
    lanes: Vec<Body<'_>>,
    cpus: &[usize],
    clock: &Clock,
    abort: &AtomicBool,
) -> Result<Vec<LaneReport>, SourceError> {
    thread::scope(|scope| {
        let mut threads = Vec::new();
        let mut failed = None;
        for (connection, lane) in (0u32..).zip(lanes) {
            let body = move || {
                let report = prepare_thread(cpus).map(|()| lane(clock));
                if !report.as_ref().is_ok_and(|r| r.error.is_none()) {
                    abort.store(true, Relaxed);
                }
                report
            };
            match thread::Builder::new().name(format!("ku-source-{connection}")).spawn_scoped(scope, body) {
                Ok(thread) => threads.push((connection, thread)),
                Err(error) => {
                    abort.store(true, Relaxed);
                    failed = Some(SourceError::Thread { connection, what: error.to_string().into() });
                    break;
                }
            }
        }
        let mut reports = Vec::new();
        for (connection, thread) in threads {
            match thread.join().unwrap_or_else(|_| Err("it panicked".into())) {
                Ok(report) => reports.push(report),
                Err(what) => failed = failed.or(Some(SourceError::Thread { connection, what })),
            }
        }
        failed.map_or(Ok(reports), Err)
    })
}

/// Pins the calling thread and requests precise wake-ups.
fn prepare_thread(cpus: &[usize]) -> Result<(), Cause> {
    want_precise_wakeups();
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu);
    }
    sched_setaffinity(None, &set).map_err(|errno| {
        Cause::new(format!("cannot bind to cores {cpus:?}: {errno}"))
            .with_hint("`nproc` says how many there are")
    })
}

impl SourceReport {
    /// Report without any event.
    ///
    /// # Errors
    /// [`SourceError::Thread`]: the histogram of lateness cannot be created.
    pub fn empty(closed_loop: bool) -> Result<Self, SourceError> {
        Ok(Self {
            closed_loop,
            streams: Vec::new(),
            bye: Bye { streams: Vec::new() },
            durable_events: 0,
            is_acknowledged: true,
            lateness_ns: lateness_histogram(0)?,
            longest_blocked_ns: 0,
            blocked_ns: 0,
            idle_ns: 0,
            cpu_ns: 0,
            started_unix_ns: 0,
            ended_unix_ns: 0,
            elapsed_ns: 0,
            max_backlog_bytes: 0,
            fleet: None,
        })
    }
}

fn merge(plan: &SourcePlan, clock: &Clock, lanes: Vec<LaneReport>) -> Result<SourceReport, SourceError> {
    let mut broken: Option<(u32, ClientError)> = None;
    let mut report = SourceReport::empty(plan.rate == Rate::Max)?;
    report.started_unix_ns = clock.unix_ns(0);
    report.is_acknowledged = plan.protocol.is_acknowledged();
    for (connection, lane) in (0u32..).zip(lanes) {
        report.streams.extend(lane.streams);
        report.bye.streams.extend(lane.bye);
        report.durable_events += lane.durable_events;
        // Both histograms have the same bounds, so no value is out of range.
        let _ = report.lateness_ns.add(&lane.lateness_ns);
        report.longest_blocked_ns = report.longest_blocked_ns.max(lane.longest_blocked_ns);
        report.blocked_ns += lane.blocked_ns;
        report.idle_ns += lane.idle_ns;
        report.cpu_ns += lane.cpu_ns;
        report.elapsed_ns = report.elapsed_ns.max(lane.ended_ns);
        report.max_backlog_bytes += lane.max_backlog_bytes;
        lane.fleet.iter().for_each(|fleet| report.fleet.get_or_insert_default().add(fleet));
        broken = broken.or(lane.error.map(|error| (connection, error)));
    }
    report.streams.sort_by_key(|stream| stream.id);
    report.bye.streams.sort_by_key(|stream| stream.id);
    report.ended_unix_ns = clock.unix_ns(report.elapsed_ns);
    match broken {
        None => Ok(report),
        Some((connection, error)) => Err(SourceError::Broken { connection, error, report: Box::new(report) }),
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
