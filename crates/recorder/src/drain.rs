//! Drain: copies durable data elsewhere while recording goes on, like the second connection to
//! tape in the paper.
//!
//! A drain reads the blocks that the journals list as durable, checks every checksum, restores
//! the order of each stream, and sends the events over the wire protocol to any recorder or sink.
//! It limits its own rate and runs at low disk priority. What cannot be read is skipped and
//! listed. It removes nothing; for a recording with a retention limit it notes what is durable
//! elsewhere, and the recorder removes that.
mod cursor;
mod delivery;
mod marks;
mod merge;
mod missing;
mod outlet;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use keepup_error::Cause;
use keepup_measure::clock::Clock;
use keepup_peer::Endpoint;
use keepup_recording::account::Incidents;
use keepup_recording::error::RecordingError;
use keepup_stream::client::ClientError;
use keepup_stream::ledger::Count;
use serde::{Serialize, Serializer};

use self::delivery::Deliver;
use self::merge::{Merge, Step};
pub use self::missing::Missing;
use self::outlet::Outlet;
use crate::RecorderError;
use crate::counters::add;

/// Interval between polls of the journals, in nanoseconds.
const POLL_NS: u64 = 50_000_000;
/// Interval between updates of the drain marks (what is durable elsewhere), in nanoseconds.
const MARK_NS: u64 = 500_000_000;
/// How long a following drain waits for its recording to appear, in nanoseconds.
const OPEN_TIMEOUT_NS: u64 = 10_000_000_000;
/// Pauses before reconnecting, in nanoseconds.
const RETRY_MIN_NS: u64 = 100_000_000;
const RETRY_MAX_NS: u64 = 2_000_000_000;
/// Reconnecting stops after this long without an event received by the other side, in
/// nanoseconds.
const GIVE_UP_NS: u64 = 30_000_000_000;
/// Longest wait of a drain that is stopped for another acknowledgement, in nanoseconds. What is in flight
/// must arrive before another drain uses the same link.
const STOP_NS: u64 = 10_000_000_000;
/// Most warnings kept until they are read.
const WARNINGS_MAX: usize = 1000;
/// A drain that fell behind its pace catches up for at most this long, in nanoseconds.
const CATCH_UP_NS: u64 = 1_000_000_000;

/// Settings of a drain.
#[derive(Clone, Debug)]
pub struct DrainPlan {
    /// Directories of the recording; one is enough when the others are where the manifest says.
    pub recording: Vec<PathBuf>,
    /// Destination: a recorder or sink.
    pub to: Endpoint,
    /// Rate limit in payload bytes per second; `None` means unlimited.
    pub rate: Option<f64>,
    /// Continue until the recording has ended; otherwise drain what is durable now.
    pub follow: bool,
    /// Timeout for the other side to make the remaining events durable.
    pub finish_timeout: Duration,
}

/// Live counters of a drain.
#[derive(Debug, Default)]
pub struct DrainCounters {
    /// Events sent.
    pub sent_events: AtomicU64,
    /// Payload bytes of those.
    pub sent_bytes: AtomicU64,
    /// Events that the other side has made durable.
    pub durable_events: AtomicU64,
    /// Bytes of segments that have been read and sent.
    pub passed_bytes: AtomicU64,
    /// Bytes of segments that are durable and not drained.
    pub behind_bytes: AtomicU64,
    /// Whether there is a connection, or there was nothing to send yet.
    pub is_connected: AtomicBool,
    /// Whether a recorder is writing the recording, which therefore grows.
    pub is_growing: AtomicBool,
    /// Time spent waiting for the other side, in nanoseconds.
    pub blocked_ns: AtomicU64,
    /// Warnings that have not been read yet.
    pub warnings: Mutex<Vec<String>>,
}

/// Result of a drain, serialized as `drain --json` prints it.
#[derive(Clone, Debug, Serialize)]
pub struct DrainReport {
    /// Events sent, of all streams.
    pub sent: Count,
    /// Events the other side made durable, with the bytes of everything sent.
    pub durable: Count,
    /// Events that were not sent because the recording lacks them or they cannot be read.
    pub missing_events: u64,
    /// The first 1000 spans of those, each with its cause.
    pub missing: Vec<Missing>,
    /// Failures and read errors.
    pub faults: Incidents,
    /// Whether everything durable at the end was drained, except what cannot be read.
    #[serde(rename = "complete")]
    pub is_complete: bool,
    /// Total elapsed time, in nanoseconds.
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub elapsed_ns: u64,
    /// CPU of the draining thread, in nanoseconds.
    #[serde(rename = "cpu_seconds", serialize_with = "seconds")]
    pub cpu_ns: u64,
}

/// Serializes nanoseconds as seconds.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn seconds<S: Serializer>(ns: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(*ns as f64 / 1e9)
}

/// Drains until the end of the recording (`follow`), of what is durable now, or until `stop`.
///
/// What cannot be read is skipped and listed in the report. A broken connection is
/// re-established.
///
/// # Errors
/// The recording cannot be opened, the other side cannot be reached, or it has received nothing
/// for 30 s despite reconnecting; what it acknowledged until then is durable there.
pub fn drain(
    plan: &DrainPlan,
    clock: &dyn Clock,
    stop: &AtomicBool,
    live: &DrainCounters,
) -> Result<DrainReport, RecorderError> {
    // Not every scheduler supports I/O priorities; the rate limit holds without them.
    let _ = keepup_sys::thread::yield_disk();
    let cpu_before_ns = keepup_measure::cpu::thread_cpu_ns();
    let begin_ns = clock.now_ns();
    let merge = open(plan, clock, stop)?;
    let outlet = Outlet::new(
        plan.to.clone(),
        merge.recording().unwrap_or_default(),
        clock.unix_ns(),
        merge.sent_recording(),
    );
    let pace = Pace::new(plan.rate, begin_ns);
    let reconnect = Reconnect::default();
    let mut draining =
        DrainRun { plan, clock, stop, live, merge, outlet, pace, reconnect, published_faults: 0 };
    let done = draining.run()?;
    draining.conclude(done);
    let DrainRun { merge, outlet, .. } = draining;
    let (sent, durable) = (outlet.sent(), outlet.durable());
    let (missing_events, missing, mut faults) =
        (merge.losses.events, merge.losses.listed, merge.losses.faults);
    if let Err(error) = outlet.finish(timeout(plan, stop)) {
        let what = Cause::of(&error).map(|error| {
            format!(
                "everything is durable on the other side, but the connection did not end in order: {error}"
            )
        });
        faults.push(what.to_text());
    }
    Ok(DrainReport {
        sent,
        durable,
        missing_events,
        missing,
        faults,
        is_complete: done != Done::Stopped,
        elapsed_ns: clock.now_ns().saturating_sub(begin_ns),
        cpu_ns: keepup_measure::cpu::thread_cpu_ns().saturating_sub(cpu_before_ns),
    })
}

/// Longest wait for the other side to continue, or to end.
fn timeout(plan: &DrainPlan, stop: &AtomicBool) -> Duration {
    let longest = if stop.load(Ordering::Acquire) { Duration::from_nanos(STOP_NS) } else { Duration::MAX };
    plan.finish_timeout.min(longest)
}

/// How far a drain got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Done {
    /// The recording has ended, and everything readable was sent.
    Ended,
    /// Everything durable was sent.
    All,
    /// Stopped before everything was sent.
    Stopped,
}

/// State of reconnecting, since the last progress.
#[derive(Debug, Default)]
struct Reconnect {
    since_ns: Option<u64>,
    received: u64,
    pause_ns: u64,
}

/// A drain in progress.
struct DrainRun<'a> {
    plan: &'a DrainPlan,
    clock: &'a dyn Clock,
    stop: &'a AtomicBool,
    live: &'a DrainCounters,
    merge: Merge,
    outlet: Outlet,
    pace: Pace,
    reconnect: Reconnect,
    /// Number of faults published as warnings.
    published_faults: usize,
}

impl DrainRun<'_> {
    /// Sends everything and waits until it is durable on the other side.
    fn run(&mut self) -> Result<Done, RecorderError> {
        loop {
            let sent = self.send_all().and_then(|done| Ok((done, self.await_durable()?)));
            match sent {
                Ok((done, true)) => return Ok(done),
                Ok((_, false)) => {
                    let (addr, waited) = (self.plan.to.address(), timeout(self.plan, self.stop));
                    let action = "wait for acknowledgements from";
                    return Err(ClientError::TimedOut { action, addr, waited }.into());
                }
                Err(RecorderError::Client(error)) if self.outlet.is_connected() => {
                    self.connect_again(error)?
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reconnects broken connections and continues from the other side's position, as long as
    /// there is progress.
    fn connect_again(&mut self, error: ClientError) -> Result<(), RecorderError> {
        self.warn(Cause::of(&error).map(|what| format!("{what}; reconnecting")).to_text());
        self.live.is_connected.store(false, Ordering::Relaxed);
        let received = self.outlet.received();
        if received > self.reconnect.received {
            self.reconnect = Reconnect::default();
        }
        let since_ns = *self.reconnect.since_ns.get_or_insert(self.clock.now_ns());
        loop {
            self.reconnect.pause_ns = (self.reconnect.pause_ns * 2).clamp(RETRY_MIN_NS, RETRY_MAX_NS);
            let now_ns = self.clock.now_ns();
            sleep_until(self.clock, now_ns + self.reconnect.pause_ns, self.stop);
            match self.outlet.reconnect() {
                _ if self.stop.load(Ordering::Acquire) => return Err(error.into()),
                _ if now_ns.saturating_sub(since_ns) >= GIVE_UP_NS => return Err(error.into()),
                Ok(resume) => {
                    self.reconnect.received = received;
                    self.merge.rewind(&resume);
                    return Ok(());
                }
                Err(_) => {}
            }
        }
    }

    /// Waits until everything sent is durable on the other side; returns whether it is. A stop shortens that.
    fn await_durable(&mut self) -> Result<bool, ClientError> {
        let (mut ends, mut since_ns) = (BTreeMap::new(), self.clock.now_ns());
        loop {
            self.poll_acks()?;
            let (now_ns, known) = (self.clock.now_ns(), self.outlet.durable_ends());
            if self.outlet.is_acknowledged() {
                self.merge.mark_drained(known);
                return Ok(true);
            } else if known != ends {
                (ends, since_ns) = (known, now_ns);
                self.merge.mark_drained(ends.clone());
            } else if now_ns.saturating_sub(since_ns) >= timeout(self.plan, self.stop).as_nanos() as u64 {
                return Ok(false);
            }
            self.clock.sleep_until_ns(now_ns + POLL_NS);
        }
    }

    fn poll_acks(&mut self) -> Result<(), ClientError> {
        self.outlet.poll_acks()?;
        self.live.durable_events.store(self.outlet.durable_events(), Ordering::Relaxed);
        Ok(())
    }

    /// Adds what is known only at the end to the report.
    fn conclude(&mut self, done: Done) {
        let held_back = self.merge.held_back();
        self.live.is_growing.store(self.merge.is_being_made(), Ordering::Relaxed);
        if done != Done::Ended && held_back > 0 {
            let what = format!("{held_back} blocks wait for earlier ones that are not durable yet");
            self.merge.losses.faults.push(what);
        }
        for (stream, events, from) in self.outlet.lost() {
            self.merge.losses.faults.push(format!(
                "the other side lost {events} events of stream {stream}, none of them before event {from}"
            ));
        }
        self.publish();
    }

    /// Sends everything available.
    fn send_all(&mut self) -> Result<Done, RecorderError> {
        let (mut next_poll_ns, mut next_mark_ns) = (0, 0);
        loop {
            if self.stop.load(Ordering::Acquire) {
                return Ok(Done::Stopped);
            }
            let now_ns = self.clock.now_ns();
            if now_ns >= next_poll_ns {
                self.merge.poll();
                self.publish();
                // Connects, if there are new streams, which may take long.
                self.live.is_connected.store(false, Ordering::Relaxed);
                self.outlet.declare(self.merge.streams())?;
                self.live.is_connected.store(true, Ordering::Relaxed);
                next_poll_ns = now_ns + POLL_NS;
                if now_ns >= next_mark_ns {
                    self.live.is_growing.store(self.merge.is_being_made(), Ordering::Relaxed);
                    self.poll_acks()?;
                    self.merge.mark_drained(self.outlet.durable_ends());
                    next_mark_ns = now_ns + MARK_NS;
                }
            }
            match self.step(now_ns)? {
                Step::Sent { until_ns } => {
                    self.publish_position();
                    sleep_until(self.clock, until_ns, self.stop);
                }
                Step::Deferred => {}
                Step::Ended => {
                    self.deliver(Merge::conclude)?;
                    self.send_rejected()?;
                    return Ok(Done::Ended);
                }
                Step::Nothing { is_settling } if !self.plan.follow && !is_settling => {
                    if self.merge.held_back() > 0 {
                        return Ok(Done::Stopped);
                    }
                    self.deliver(Merge::deliver_known_losses)?;
                    self.send_rejected()?;
                    return Ok(Done::All);
                }
                Step::Nothing { .. } => {
                    self.poll_acks()?;
                    self.clock.sleep_until_ns(next_poll_ns);
                }
            }
        }
    }

    fn send_rejected(&mut self) -> Result<(), RecorderError> {
        self.outlet.send_rejected(self.merge.rejected(), self.stop, self.live)
    }

    fn step(&mut self, now_ns: u64) -> Result<Step, RecorderError> {
        self.deliver(|merge, deliver| merge.step(now_ns, deliver))
    }

    /// Lets the recording deliver to the other side.
    fn deliver<T>(
        &mut self,
        from: impl FnOnce(&mut Merge, &mut Deliver<'_>) -> Result<T, RecorderError>,
    ) -> Result<T, RecorderError> {
        let Self { merge, outlet, pace, clock, stop, live, .. } = self;
        from(merge, &mut |delivery| {
            let events = delivery.block.as_ref().map_or(0, |(header, _)| u64::from(header.event_count));
            let bytes = outlet.send(delivery, stop, live)?;
            add(&live.sent_events, events);
            add(&live.sent_bytes, bytes);
            Ok(pace.after(bytes, clock.now_ns()))
        })
    }

    /// Publishes how far it is.
    fn publish_position(&self) {
        self.live.passed_bytes.store(self.merge.passed_bytes(), Ordering::Relaxed);
        self.live.behind_bytes.store(self.merge.behind_bytes(), Ordering::Relaxed);
    }

    /// Publishes its counters and new warnings.
    fn publish(&mut self) {
        self.publish_position();
        let listed = &self.merge.losses.faults.listed;
        let new = listed.get(self.published_faults..).unwrap_or_default().to_vec();
        self.published_faults = listed.len();
        new.into_iter().for_each(|what| self.warn(what));
    }

    fn warn(&self, what: String) {
        let mut warnings = self.live.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if warnings.len() < WARNINGS_MAX {
            warnings.push(what);
        }
    }
}

/// Opens the recording; a following drain waits for its manifest.
fn open(plan: &DrainPlan, clock: &dyn Clock, stop: &AtomicBool) -> Result<Merge, RecordingError> {
    let deadline_ns = clock.now_ns() + OPEN_TIMEOUT_NS;
    loop {
        match Merge::open(&plan.recording) {
            Err(
                RecordingError::NotARecording { .. }
                | RecordingError::Unborn { .. }
                | RecordingError::VolumeMissing { .. },
            ) if plan.follow && clock.now_ns() < deadline_ns && !stop.load(Ordering::Acquire) => {
                clock.sleep_until_ns(clock.now_ns() + POLL_NS);
            }
            outcome => return outcome,
        }
    }
}

fn sleep_until(clock: &dyn Clock, until_ns: u64, stop: &AtomicBool) {
    while clock.now_ns() < until_ns && !stop.load(Ordering::Acquire) {
        clock.sleep_until_ns(until_ns.min(clock.now_ns() + POLL_NS));
    }
}

/// Absolute schedule of bytes; a delay beyond one second is not caught up.
#[derive(Debug)]
struct Pace {
    rate: Option<f64>,
    due_ns: f64,
}

impl Pace {
    fn new(rate: Option<f64>, begin_ns: u64) -> Self {
        Self { rate, due_ns: begin_ns as f64 }
    }

    /// Earliest time of the next block after one of `bytes` was sent.
    fn after(&mut self, bytes: u64, now_ns: u64) -> u64 {
        let Some(rate) = self.rate else { return now_ns };
        self.due_ns = self.due_ns.max(now_ns.saturating_sub(CATCH_UP_NS) as f64) + bytes as f64 / rate * 1e9;
        self.due_ns as u64
    }
}
