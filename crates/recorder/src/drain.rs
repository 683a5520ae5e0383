//! Moves durable data elsewhere while recording goes on: the paper's second connection, towards tape.
//!
//! A drain reads what the journals say is durable, checks every checksum, puts the blocks of each stream
//! back into order, and sends their events over the wire protocol to any recorder or sink. It paces itself
//! and lets the writers go first. It removes nothing; of a recording that is kept in part it notes what is
//! durable elsewhere, and the recorder removes that.
mod merge;
mod outlet;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_recording::error::RecordingError;
use keepup_stream::ledger::Count;

use self::merge::{Merge, Step};
use self::outlet::Outlet;
use crate::RecorderError;
use crate::counters::add;

/// Pause between two looks at the journals, in nanoseconds.
const POLL_NS: u64 = 50_000_000;
/// Pause between two notes of what is durable elsewhere, in nanoseconds.
const MARK_NS: u64 = 500_000_000;
/// How long a drain that follows waits for its recording to begin, in nanoseconds.
const PATIENCE_NS: u64 = 10_000_000_000;
/// A drain that fell behind its pace catches up for at most this long, in nanoseconds.
const CATCH_UP_NS: u64 = 1_000_000_000;

/// What to drain, and where to.
#[derive(Clone, Debug)]
pub struct DrainPlan {
    /// The recording's directories; one is enough when the others are where the manifest says.
    pub recording: Vec<PathBuf>,
    /// A recorder or sink.
    pub to: SocketAddr,
    /// Payload bytes per second, at most; nothing means as fast as it goes.
    pub rate: Option<f64>,
    /// Go on until the recording has ended; else drain what is durable now.
    pub follow: bool,
    /// How long to wait for the other side to make the rest durable.
    pub finish_timeout: Duration,
}

/// Live figures of a drain.
#[derive(Debug, Default)]
pub struct DrainCounters {
    /// Events sent.
    pub sent_events: AtomicU64,
    /// Payload bytes of those.
    pub sent_bytes: AtomicU64,
    /// Bytes of segments that are durable and not drained.
    pub behind_bytes: AtomicU64,
    /// Time spent waiting for the other side, in nanoseconds.
    pub blocked_ns: AtomicU64,
}

/// What a drain came to.
#[derive(Clone, Debug)]
pub struct DrainReport {
    /// Events sent, of all streams.
    pub sent: Count,
    /// Events the other side made durable.
    pub durable: Count,
    /// Events missing in the recording, by sequence number.
    pub missing_events: u64,
    /// Whether everything durable at the end was drained.
    pub is_complete: bool,
    /// From the first look to the last word, in nanoseconds.
    pub elapsed_ns: u64,
    /// CPU of the draining thread, in nanoseconds.
    pub cpu_ns: u64,
}

/// Drains until the end of the recording (`follow`), of what is durable now, or until `stop`.
///
/// Fails when the recording cannot be read, a checksum does not hold, or the other side breaks the
/// connection; what was delivered until then is durable there.
pub fn drain(
    plan: &DrainPlan,
    clock: &dyn Clock,
    stop: &AtomicBool,
    live: &DrainCounters,
) -> Result<DrainReport, RecorderError> {
    // Not every scheduler heeds it; without it the drain is still paced.
    let _ = keepup_sys::thread::yield_disk();
    let cpu_before_ns = keepup_measure::cpu::thread_cpu_ns();
    let begin_ns = clock.now_ns();
    let mut merge = open(plan, clock, stop)?;
    let mut outlet = Outlet::new(plan.to, merge.sent_recording());
    let mut pace = Pace::new(plan.rate, begin_ns);
    let (mut next_poll_ns, mut next_mark_ns) = (0, 0);
    let is_complete = loop {
        if stop.load(Ordering::Acquire) {
            break false;
        }
        let now_ns = clock.now_ns();
        if now_ns >= next_poll_ns {
            merge.poll()?;
            outlet.declare(merge.streams())?;
            live.behind_bytes.store(merge.behind_bytes(), Ordering::Relaxed);
            next_poll_ns = now_ns + POLL_NS;
            if now_ns >= next_mark_ns {
                outlet.hear()?;
                merge.mark_drained(&outlet.durable_ends())?;
                next_mark_ns = now_ns + MARK_NS;
            }
        }
        let step = merge.step(&mut |info, header, events| {
            let bytes = outlet.send(info, header, events, stop, live)?;
            add(&live.sent_events, u64::from(header.event_count));
            add(&live.sent_bytes, bytes);
            Ok(pace.after(bytes, clock.now_ns()))
        })?;
        match step {
            Step::Sent { until_ns } => {
                live.behind_bytes.store(merge.behind_bytes(), Ordering::Relaxed);
                sleep_until(clock, until_ns, stop);
            }
            Step::SetAside => {}
            Step::Ended => break true,
            Step::Nothing if !plan.follow => break true,
            Step::Nothing => {
                outlet.hear()?;
                clock.sleep_until_ns(next_poll_ns);
            }
        }
    };
    let (sent, ends) = (outlet.sent(), outlet.sent_ends());
    let missing_events = outlet.missing_events();
    let durable = outlet.finish(plan.finish_timeout)?;
    if durable == sent {
        merge.mark_drained(&ends)?;
    }
    Ok(DrainReport {
        sent,
        durable,
        missing_events,
        is_complete,
        elapsed_ns: clock.now_ns().saturating_sub(begin_ns),
        cpu_ns: keepup_measure::cpu::thread_cpu_ns().saturating_sub(cpu_before_ns),
    })
}

/// Opens the recording; one that is to be followed may be a moment away from its manifest.
fn open(plan: &DrainPlan, clock: &dyn Clock, stop: &AtomicBool) -> Result<Merge, RecordingError> {
    let deadline_ns = clock.now_ns() + PATIENCE_NS;
    loop {
        match Merge::open(&plan.recording) {
            Err(RecordingError::NotARecording { .. } | RecordingError::VolumeMissing { .. })
                if plan.follow && clock.now_ns() < deadline_ns && !stop.load(Ordering::Acquire) =>
            {
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

/// Absolute schedule of bytes; time lost beyond a second is not caught up.
#[derive(Debug)]
struct Pace {
    rate: Option<f64>,
    due_ns: f64,
}

impl Pace {
    fn new(rate: Option<f64>, begin_ns: u64) -> Self {
        Self { rate, due_ns: begin_ns as f64 }
    }

    /// When the next block may go, after one of `bytes` went.
    fn after(&mut self, bytes: u64, now_ns: u64) -> u64 {
        let Some(rate) = self.rate else { return now_ns };
        self.due_ns = self.due_ns.max(now_ns.saturating_sub(CATCH_UP_NS) as f64) + bytes as f64 / rate * 1e9;
        self.due_ns as u64
    }
}
