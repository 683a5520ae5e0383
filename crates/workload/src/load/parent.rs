//! Parent side: starts, monitors and stops one worker process per load.
//!
//! Invariants: an unexpected end of a worker sets the workload's stop flag and is reported as a
//! failure; files left by a worker are removed; a worker sees end of file on its standard input
//! when this process dies for any reason.
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use keepup_error::Cause;
use keepup_measure::clock::Clock;
use keepup_plan::LoadSpec;
use keepup_results::{LoadReading, LoadResult};

use super::report::Report;
use super::{LoadPlan, disk, kind};
use crate::WorkloadError;

const MS: u64 = 1_000_000;
/// Poll interval of slow conditions.
const LOOK_NS: u64 = 10 * MS;
/// Time for which a rate must hold to count as reached.
const HELD_NS: u64 = 500 * MS;
/// Timeout for reaching the rate.
const WARM_UP_NS: u64 = 3000 * MS;
/// Timeout for the report of a moment; reports come every 100 ms.
const REPORT_NS: u64 = 500 * MS;
/// Minimum time for a rate; shorter windows may lie between two reports.
const RATE_SECONDS_MIN: f64 = 0.2;
/// Timeout for the end of a worker, before and after killing it.
const END_NS: u64 = 10_000 * MS;
const KILLED_NS: u64 = 2000 * MS;
/// Maximum number of stored readings per load: all of 27 minutes, then every second one, and so on.
const READINGS_MAX: usize = 16_384;

/// Running background loads, stopped when dropped.
pub struct Loads {
    running: Vec<Running>,
    clock: Arc<dyn Clock>,
    stop: Arc<AtomicBool>,
}

/// One running load.
struct Running {
    spec: LoadSpec,
    /// Name of its directory, if any.
    name: String,
    process: Child,
    log: Arc<Mutex<ReportLog>>,
    reader: Option<JoinHandle<()>>,
}

/// Reports of a worker.
#[derive(Default)]
struct ReportLog {
    readings: Readings,
    notes: Vec<String>,
    failed: Option<String>,
    /// Its output has ended.
    is_gone: bool,
    /// It was asked to end.
    is_ending: bool,
}

/// Bounded series of readings.
#[derive(Default)]
struct Readings {
    kept: Vec<LoadReading>,
    /// Log2 of the decimation factor.
    thinned: u32,
    came: u64,
    last: Option<LoadReading>,
}

impl Readings {
    fn push(&mut self, reading: LoadReading) {
        self.last = Some(reading);
        if self.came.is_multiple_of(1 << self.thinned) {
            self.kept.push(reading);
        }
        self.came += 1;
        if self.kept.len() == READINGS_MAX {
            let mut n = 0_u64;
            self.kept.retain(|_| (n += 1, n % 2 == 1).1);
            self.thinned += 1;
        }
    }

    /// All stored readings, including the latest.
    fn all(&self) -> Vec<LoadReading> {
        let last = self.last.filter(|last| self.kept.last() != Some(last));
        self.kept.iter().copied().chain(last).collect()
    }

    fn begun_ns(&self) -> Option<u64> {
        self.kept.first().map(|first| first.t_ns)
    }
}

impl ReportLog {
    fn take(&mut self, report: Report) {
        match report {
            Report::Begun { t_ns, notes } => {
                self.notes = notes;
                self.readings.push(LoadReading { t_ns, amount: 0, cpu_ns: 0 });
            }
            // The first report may precede the start of the work.
            Report::Done { t_ns, amount, cpu_ns } => {
                if self.readings.last.is_some_and(|last| last.t_ns < t_ns) {
                    self.readings.push(LoadReading { t_ns, amount, cpu_ns });
                }
            }
            Report::Failed { why } => self.failed = Some(why),
        }
    }
}

fn lock(log: &Mutex<ReportLog>) -> MutexGuard<'_, ReportLog> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Collects reports until the output ends.
fn listen(from: ChildStdout, log: &Mutex<ReportLog>, stop: &AtomicBool) {
    for line in BufReader::new(from).lines().map_while(Result::ok) {
        match serde_json::from_str(&line) {
            Ok(report) => lock(log).take(report),
            Err(why) => {
                lock(log).failed = Some(format!("invalid report: {why}"));
                break;
            }
        }
    }
    let mut log = lock(log);
    log.is_gone = true;
    if !log.is_ending {
        stop.store(true, Ordering::Release);
    }
}

impl Loads {
    /// Starts all loads of `plan` and waits until each has reached its rate, at most 3 s after it
    /// was ready. `note` receives messages for the user; `id` makes directory names unique. Returns
    /// early when `stop` is set; sets it when a load ends prematurely.
    ///
    /// # Errors
    /// A worker cannot be started, or its load fails.
    pub fn start(
        plan: &LoadPlan,
        id: &str,
        clock: Arc<dyn Clock>,
        stop: Arc<AtomicBool>,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, WorkloadError> {
        let mut loads = Self { running: Vec::new(), clock, stop };
        for (n, spec) in plan.specs.iter().enumerate() {
            let name = format!("keepup-load-{id}-{}", n + 1);
            let fail = |source| WorkloadError::System { action: format!("start the load {spec}"), source };
            let mut process = Command::new(&plan.program)
                .args(["load", "--child", &name, "--", &spec.to_string()])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                // Ctrl-C is handled by the parent, which ends the loads after the measurement.
                .process_group(0)
                .spawn()
                .map_err(fail)?;
            let log = Arc::new(Mutex::new(ReportLog::default()));
            let reader = process.stdout.take().map(|from| {
                let (log, stop) = (Arc::clone(&log), Arc::clone(&loads.stop));
                let listening = std::thread::Builder::new().name("ku-load-reader".into());
                listening.spawn(move || listen(from, &log, &stop))
            });
            // Added to the list before anything can fail, so that it is always stopped.
            loads.running.push(Running { spec: spec.clone(), name, process, log, reader: None });
            if let (Some(reader), Some(running)) =
                (reader.transpose().map_err(fail)?, loads.running.last_mut())
            {
                running.reader = Some(reader);
            }
        }
        loads.warm_up(note)?;
        Ok(loads)
    }

    /// Waits until all loads have reached their rates or timed out.
    fn warm_up(&mut self, note: &mut dyn FnMut(&str)) -> Result<(), WorkloadError> {
        while !self.running.is_empty() {
            if let Some(failure) = self.failure() {
                return Err(failure);
            }
            let now_ns = self.clock.now_ns();
            if self.stop.load(Ordering::Acquire) || self.running.iter().all(|load| load.is_warm(now_ns)) {
                break;
            }
            self.clock.sleep_until_ns(now_ns + LOOK_NS);
        }
        for load in &self.running {
            lock(&load.log).notes.iter().for_each(|text| note(&format!("{}: {text}", load.spec)));
        }
        Ok(())
    }

    /// Result of each load from `begin_ns` to `end_ns`; waits for the last reports of that window.
    pub fn over(&self, begin_ns: u64, end_ns: u64) -> Vec<LoadResult> {
        let deadline_ns = self.clock.now_ns() + REPORT_NS;
        self.running
            .iter()
            .map(|load| {
                while !load.has_reported(end_ns) && self.clock.now_ns() < deadline_ns {
                    self.clock.sleep_until_ns(self.clock.now_ns() + LOOK_NS);
                }
                load.over((begin_ns, end_ns))
            })
            .collect()
    }

    /// Rate of each load from `begin_ns` to `end_ns` in its own unit; none if the window is too
    /// short.
    pub fn rates(&self, begin_ns: u64, end_ns: u64) -> Vec<Option<f64>> {
        let achieved = |load: LoadResult| load.achieved.filter(|_| load.seconds >= RATE_SECONDS_MIN);
        self.over(begin_ns, end_ns).into_iter().map(achieved).collect()
    }

    /// Error of a load that ended prematurely.
    pub fn failure(&mut self) -> Option<WorkloadError> {
        let clock = Arc::clone(&self.clock);
        let why = self.running.iter_mut().find_map(|load| Some((load.failure(clock.as_ref())?, &load.spec)));
        why.map(|(why, spec)| WorkloadError::Load { spec: spec.to_string(), why: Cause::from_text(&why) })
    }

    /// Stops all loads and removes leftover files.
    pub fn finish(&mut self) {
        for load in &mut self.running {
            lock(&load.log).is_ending = true;
            // End of file on standard input ends the worker.
            drop(load.process.stdin.take());
        }
        for mut load in self.running.drain(..) {
            load.end(self.clock.as_ref());
        }
    }
}

impl Drop for Loads {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Running {
    fn has_reported(&self, t_ns: u64) -> bool {
        let log = lock(&self.log);
        log.is_gone || log.readings.last.is_some_and(|last| last.t_ns >= t_ns)
    }

    fn result(&self, log: &ReportLog, window: (u64, u64)) -> LoadResult {
        let (spec, readings) = (&self.spec, log.readings.all());
        LoadResult::of(spec.to_string(), kind(spec), spec.asked(), &readings, window)
    }

    fn over(&self, window: (u64, u64)) -> LoadResult {
        let log = lock(&self.log);
        let mut result = self.result(&log, window);
        result.notes.clone_from(&log.notes);
        if log.is_gone && !log.is_ending {
            result.failure = Some(log.failed.clone().unwrap_or_else(|| "it ended before its time".into()));
        }
        result
    }

    /// Whether it has held its rate for a while or has timed out.
    fn is_warm(&self, now_ns: u64) -> bool {
        let log = lock(&self.log);
        let Some(begun_ns) = log.readings.begun_ns() else { return false };
        let from_ns = now_ns.saturating_sub(HELD_NS);
        let held = from_ns >= begun_ns && !self.result(&log, (from_ns, now_ns)).fell_short;
        held || now_ns >= begun_ns + WARM_UP_NS
    }

    fn failure(&mut self, clock: &dyn Clock) -> Option<String> {
        {
            let log = lock(&self.log);
            if !log.is_gone || log.is_ending {
                return None;
            }
        }
        let status = self.ended(clock, KILLED_NS);
        let mut log = lock(&self.log);
        let how = || match status {
            Some(status) if status.signal().is_some() => {
                format!("it was killed by signal {}", status.signal().unwrap_or_default())
            }
            Some(status) => format!("it ended before its time with code {}", status.code().unwrap_or(-1)),
            None => "it ended before its time".to_owned(),
        };
        Some(log.failed.get_or_insert_with(how).clone())
    }

    /// Waits up to `limit_ns` for the end of the worker.
    fn ended(&mut self, clock: &dyn Clock, limit_ns: u64) -> Option<ExitStatus> {
        let deadline_ns = clock.now_ns() + limit_ns;
        loop {
            match self.process.try_wait() {
                Ok(None) if clock.now_ns() < deadline_ns => clock.sleep_until_ns(clock.now_ns() + LOOK_NS),
                status => return status.ok().flatten(),
            }
        }
    }

    fn end(&mut self, clock: &dyn Clock) {
        let mut status = self.ended(clock, END_NS);
        if status.is_none() {
            // Killing a process that has just ended fails, which is fine.
            drop(self.process.kill());
            status = self.ended(clock, KILLED_NS);
        }
        if let (Some(reader), true) = (self.reader.take(), status.is_some()) {
            drop(reader.join());
        }
        if let LoadSpec::Disk { directory, .. } = &self.spec {
            disk::remove_left(directory, &self.name);
        }
    }
}

#[cfg(test)]
#[path = "parent_tests.rs"]
mod tests;
