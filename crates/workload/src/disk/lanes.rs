//! Concurrent readers and writers, each a thread with its own file, engine and pace, with a common
//! measurement window.
//!
//! Invariants: a paced request is due at its scheduled time regardless of the previous one, and its
//! latency counts from then; only requests completed inside the window count; each writer's flush
//! follows inside the phase's time.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_measure::histogram::Latency;
use keepup_measure::sum::Sums;
use keepup_results::{DiskPart, DiskPhase, LatencyFigures};
use keepup_sys::file::forget_cached;

use super::phase::PhaseClock;
use crate::file_io::mode::{Mode, Target};
use crate::file_io::{Ended, IoDirection, Mover, Point};
use crate::{Context, WorkloadError};

/// Width of the throughput bins of a part.
const TENTH_NS: u64 = 100_000_000;
/// Maximum number of bins: ten minutes.
const TENTHS_MAX: usize = 6000;
/// Poll interval while waiting for all threads to be ready.
const STEP_NS: u64 = 500_000;
/// Longest sleep between checks of the stop flag.
const LOOK: Duration = Duration::from_millis(50);

/// Schedule of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Back to back.
    Free,
    /// One per period: open loop.
    Every(Duration),
    /// A pause after each completion, as in the paper: closed loop.
    Pause(Duration),
}

/// One reader or writer.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    /// Name, unique within a phase.
    pub(super) name: String,
    /// Volume.
    pub(super) volume: String,
    /// Target file.
    pub(super) target: Target,
    /// Direction.
    pub(super) kind: IoDirection,
    /// Request size and queue depth.
    pub(super) point: Point,
    /// Schedule of requests.
    pub(super) pace: Pace,
}

/// End condition of a phase.
#[derive(Clone, Copy, Debug)]
pub(super) enum Until {
    /// The window opens after `ramp` and lasts `run`.
    Time { ramp: Duration, run: Duration },
    /// The window closes when the first lane has transferred this many bytes, durably if it writes.
    First(u64),
}

/// State shared by the threads of a phase.
struct Gate<'a> {
    clock: &'a dyn Clock,
    stop: &'a AtomicBool,
    /// Number of threads that are ready.
    ready: AtomicU64,
    /// Common start time; 0 until all are ready.
    start_ns: AtomicU64,
    /// A thread failed, so the others stop.
    failed: AtomicBool,
    begin_ns: AtomicU64,
    end_ns: AtomicU64,
}

/// Result of a thread.
struct WorkerResult {
    bytes: u64,
    operations: u64,
    latency: Latency,
    service: Latency,
    tenths: Vec<u64>,
    flush_ns: Option<u64>,
}

impl Pace {
    fn target(self, point: Point) -> Option<f64> {
        match self {
            Self::Every(period) => Some(point.bytes as f64 / period.as_secs_f64()),
            Self::Free | Self::Pause(_) => None,
        }
    }
}

impl Gate<'_> {
    fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.end_ns.load(Ordering::Acquire) || self.is_aborted()
    }

    fn is_aborted(&self) -> bool {
        self.stop.load(Ordering::Acquire) || self.failed.load(Ordering::Acquire)
    }

    /// Waits for the common start and returns its time; returns early when stopped.
    fn start(&self) -> u64 {
        while self.start_ns.load(Ordering::Acquire) == 0 && !self.is_aborted() {
            self.clock.sleep_until_ns(self.clock.now_ns() + STEP_NS);
        }
        let start_ns = self.start_ns.load(Ordering::Acquire);
        self.sleep(start_ns);
        start_ns
    }

    /// Sleeps until `until_ns`, or less when stopped.
    fn sleep(&self, until_ns: u64) {
        while !self.is_aborted() && self.clock.now_ns() < until_ns {
            self.clock.sleep_until_ns(until_ns.min(self.clock.now_ns() + LOOK.as_nanos() as u64));
        }
    }
}

/// Runs all lanes concurrently; none if interrupted.
pub(super) fn run_lanes(
    name: String,
    mode: &Mode,
    lanes: &mut [Lane],
    until: Until,
    context: &Context,
) -> Result<Option<DiskPhase>, WorkloadError> {
    for lane in lanes.iter_mut() {
        match lane.kind {
            IoDirection::Write => lane.target.reset(mode)?,
            IoDirection::Read => {
                lane.target.rewind();
                forget_cached(&lane.target.file, &lane.target.path)?;
            }
        }
    }
    let gate = Gate {
        clock: context.clock.as_ref(),
        stop: &context.stop,
        ready: AtomicU64::new(0),
        start_ns: AtomicU64::new(0),
        failed: AtomicBool::new(false),
        begin_ns: AtomicU64::new(0),
        end_ns: AtomicU64::new(u64::MAX),
    };
    let all = lanes.len() as u64;
    let (worked, begun) = std::thread::scope(|scope| {
        let gate = &gate;
        let threads: Vec<_> = (0..all)
            .zip(lanes.iter())
            .map(|(n, lane)| {
                let limit = match until {
                    Until::First(bytes) if n == 0 => bytes,
                    _ => u64::MAX,
                };
                let work = move || thread(lane, mode, gate, (n, all), limit);
                std::thread::Builder::new().name(format!("ku-lane-{n}")).spawn_scoped(scope, work)
            })
            .collect();
        if threads.iter().any(Result::is_err) {
            gate.failed.store(true, Ordering::Release);
        }
        let begun = open(gate, until, all);
        let worked: Result<Vec<WorkerResult>, WorkloadError> = threads
            .into_iter()
            .map(|thread| {
                let action = "start a thread for a reader or writer".to_owned();
                let thread = thread.map_err(|source| WorkloadError::System { action, source })?;
                thread.join().unwrap_or(Err(WorkloadError::Thread { name: "ku-lane" }))
            })
            .collect();
        (worked, begun)
    });
    let worked = worked?;
    if context.stop.load(Ordering::Acquire) {
        return Ok(None);
    }
    let window_ns = gate.end_ns.load(Ordering::Acquire) - gate.begin_ns.load(Ordering::Acquire);
    let bytes = worked.iter().map(|worked| worked.bytes).saturating_sum();
    let mut phase = begun.end(gate.clock, name, all, bytes);
    phase.operations = Some(worked.iter().map(|worked| worked.operations).saturating_sum());
    phase.latency = common_latency(lanes, &worked);
    phase.parts = lanes.iter().zip(worked).map(|(lane, worked)| part(lane, worked, window_ns)).collect();
    Ok(Some(phase))
}

/// Waits until `all` threads are ready, releases them, waits for the window to open, and starts its
/// clock.
fn open(gate: &Gate<'_>, until: Until, all: u64) -> PhaseClock {
    while gate.ready.load(Ordering::Acquire) < all && !gate.is_aborted() {
        gate.sleep(gate.clock.now_ns() + STEP_NS);
    }
    let start_ns = gate.clock.now_ns() + 2 * STEP_NS;
    let (ramp, run) = match until {
        Until::Time { ramp, run } => (ramp, run),
        Until::First(_) => (Duration::ZERO, Duration::MAX),
    };
    let begin_ns = start_ns + ramp.as_nanos() as u64;
    let run_ns = u64::try_from(run.as_nanos()).unwrap_or(u64::MAX);
    gate.begin_ns.store(begin_ns, Ordering::Release);
    gate.end_ns.store(begin_ns.saturating_add(run_ns), Ordering::Release);
    gate.start_ns.store(start_ns, Ordering::Release);
    gate.sleep(begin_ns);
    PhaseClock::begin(gate.clock).since(begin_ns)
}

/// Body of one thread, from buffer allocation to flush. `(n, all)`: index and number of threads.
fn thread(
    lane: &Lane,
    mode: &Mode,
    gate: &Gate<'_>,
    (n, all): (u64, u64),
    limit: u64,
) -> Result<WorkerResult, WorkloadError> {
    let mover = Mover::new(lane.target.clone(), mode, &[lane.point], n + 1);
    match &mover {
        Ok(_) => gate.ready.fetch_add(1, Ordering::AcqRel),
        Err(_) => 0,
    };
    let outcome = mover.and_then(|mut mover| {
        let start_ns = gate.start();
        let outcome = work(lane, &mut mover, gate, Pacer::new(lane.pace, start_ns, n, all), limit);
        // In-flight requests use memory owned by the mover.
        mover.settle()?;
        outcome
    });
    if outcome.is_err() {
        gate.failed.store(true, Ordering::Release);
    }
    outcome
}

fn work(
    lane: &Lane,
    mover: &mut Mover,
    gate: &Gate<'_>,
    mut pacer: Pacer,
    limit: u64,
) -> Result<WorkerResult, WorkloadError> {
    let begin_ns = gate.begin_ns.load(Ordering::Acquire);
    let mut worked = WorkerResult::new();
    let mut left = limit;
    loop {
        let now_ns = gate.clock.now_ns();
        if gate.is_over(now_ns) || (left == 0 && mover.in_flight() == 0) {
            break;
        }
        let mut has_slot = left > 0 && mover.in_flight() < lane.point.depth;
        while has_slot && pacer.due_ns <= now_ns {
            let bytes = (lane.point.bytes as u64).min(left) as usize;
            let due_ns = if lane.pace == Pace::Free { now_ns } else { pacer.due_ns };
            if mover.start(lane.kind, bytes, due_ns, now_ns)? {
                left -= bytes as u64;
                pacer.begun();
                has_slot = left > 0 && mover.in_flight() < lane.point.depth;
            } else {
                has_slot = false;
            }
        }
        let until_due = match has_slot {
            true => Duration::from_nanos(pacer.due_ns.saturating_sub(now_ns)),
            false => LOOK,
        };
        let end_ns = gate.end_ns.load(Ordering::Acquire);
        let until_end = Duration::from_nanos(end_ns.saturating_sub(now_ns));
        mover.wait(until_due.min(until_end).min(LOOK), gate.clock, &mut |ended| {
            pacer.ended(ended.ended_ns);
            worked.count(ended, begin_ns, gate.end_ns.load(Ordering::Acquire));
        })?;
    }
    mover.settle()?;
    if lane.kind == IoDirection::Write && !gate.is_aborted() {
        mover.flush()?;
        let now_ns = gate.clock.now_ns();
        worked.flush_ns = Some(now_ns.saturating_sub(gate.end_ns.load(Ordering::Acquire)));
    }
    if limit != u64::MAX {
        gate.end_ns.store(gate.clock.now_ns(), Ordering::Release);
    }
    Ok(worked)
}

/// Computes due times of a lane.
struct Pacer {
    pace: Pace,
    due_ns: u64,
}

impl Pacer {
    /// Lanes with the same pace are staggered evenly over one period.
    fn new(pace: Pace, start_ns: u64, n: u64, all: u64) -> Self {
        let offset_ns = match pace {
            Pace::Every(period) => (u128::from(n) * period.as_nanos() / u128::from(all)) as u64,
            Pace::Free | Pace::Pause(_) => 0,
        };
        Self { pace, due_ns: start_ns + offset_ns }
    }

    fn begun(&mut self) {
        match self.pace {
            Pace::Free => {}
            Pace::Every(period) => self.due_ns += period.as_nanos() as u64,
            // Determined when the request completes.
            Pace::Pause(_) => self.due_ns = u64::MAX,
        }
    }

    fn ended(&mut self, now_ns: u64) {
        if let Pace::Pause(pause) = self.pace {
            self.due_ns = now_ns + pause.as_nanos() as u64;
        }
    }
}

impl WorkerResult {
    fn new() -> Self {
        Self {
            bytes: 0,
            operations: 0,
            latency: Latency::new(),
            service: Latency::new(),
            tenths: Vec::new(),
            flush_ns: None,
        }
    }

    fn count(&mut self, ended: Ended, begin_ns: u64, end_ns: u64) {
        if !(begin_ns..end_ns).contains(&ended.ended_ns) {
            return;
        }
        self.bytes += ended.bytes as u64;
        self.operations += 1;
        self.latency.record_ns(ended.ended_ns.saturating_sub(ended.due_ns));
        self.service.record_ns(ended.ended_ns.saturating_sub(ended.begun_ns));
        let tenth = ((ended.ended_ns - begin_ns) / TENTH_NS) as usize;
        if tenth < TENTHS_MAX {
            self.tenths.resize(self.tenths.len().max(tenth + 1), 0);
            self.tenths[tenth] += ended.bytes as u64;
        }
    }
}

/// Common latency distribution if all lanes do the same.
fn common_latency(lanes: &[Lane], worked: &[WorkerResult]) -> Option<LatencyFigures> {
    let (first, others) = lanes.split_first()?;
    if others.iter().any(|other| (other.kind, other.point) != (first.kind, first.point)) {
        return None;
    }
    let mut all = Latency::new();
    worked.iter().for_each(|worked| all.merge(&worked.latency));
    (worked.iter().any(|worked| worked.operations > 0)).then(|| LatencyFigures::from(&all))
}

fn part(lane: &Lane, worked: WorkerResult, window_ns: u64) -> DiskPart {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let latency = |of: &Latency| (worked.operations > 0).then(|| LatencyFigures::from(of));
    DiskPart {
        name: lane.name.clone(),
        volume: lane.volume.clone(),
        writes: lane.kind == IoDirection::Write,
        bytes: worked.bytes,
        operations: worked.operations,
        seconds: seconds(window_ns),
        flush_seconds: worked.flush_ns.map(seconds),
        target_bytes_per_second: lane.pace.target(lane.point),
        latency: latency(&worked.latency),
        service: latency(&worked.service),
        tenths: worked.tenths,
    }
}

#[cfg(test)]
#[path = "lanes_tests.rs"]
mod tests;
