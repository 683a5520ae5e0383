//! The parent's side: one process for each load, started, listened to, and ended.
//!
//! Invariants: an end of a process that was not asked for raises the workload's stop, and is told as the
//! failure it is; what a process leaves on a disk is removed; a process sees the end of its standard input
//! when this one dies, however that comes.
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use keepup_measure::clock::Clock;
use keepup_plan::LoadSpec;
use keepup_results::{LoadReading, LoadResult};

use super::report::Report;
use super::{LoadPlan, disk, kind};
use crate::WorkloadError;

const MS: u64 = 1_000_000;
/// How often things are looked at that take long.
const LOOK_NS: u64 = 10 * MS;
/// A rate counts as reached when it held for so long.
const HELD_NS: u64 = 500 * MS;
/// The longest that is waited for it.
const WARM_UP_NS: u64 = 3000 * MS;
/// The longest that is waited for the report of a moment; they come every 100 ms.
const REPORT_NS: u64 = 500 * MS;
/// The rate of a shorter time is not known: it would lie between two reports.
const TOLD_SECONDS: f64 = 0.2;
/// The longest that is waited for a process to end by itself, and after it was killed.
const END_NS: u64 = 10_000 * MS;
const KILLED_NS: u64 = 2000 * MS;
/// Readings that are kept of a load: every one of 27 minutes, then every other, and so on.
const READINGS_MAX: usize = 16_384;

/// Background loads that run; they end with this value.
pub struct Loads {
    running: Vec<Running>,
    clock: Arc<dyn Clock>,
    stop: Arc<AtomicBool>,
}

/// One of them.
struct Running {
    spec: LoadSpec,
    /// Of its directory, if it has one.
    name: String,
    process: Child,
    heard: Arc<Mutex<Heard>>,
    reader: Option<JoinHandle<()>>,
}

/// What it told.
#[derive(Default)]
struct Heard {
    readings: Readings,
    notes: Vec<String>,
    failed: Option<String>,
    /// Its output has ended.
    is_gone: bool,
    /// It was asked to end.
    is_ending: bool,
}

/// A bounded series of readings.
#[derive(Default)]
struct Readings {
    kept: Vec<LoadReading>,
    /// One of so many, as a power of two, is kept.
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

    /// All that are kept, and the last one.
    fn all(&self) -> Vec<LoadReading> {
        let last = self.last.filter(|last| self.kept.last() != Some(last));
        self.kept.iter().copied().chain(last).collect()
    }

    fn begun_ns(&self) -> Option<u64> {
        self.kept.first().map(|first| first.t_ns)
    }
}

impl Heard {
    fn take(&mut self, report: Report) {
        match report {
            Report::Begun { t_ns, notes } => {
                self.notes = notes;
                self.readings.push(LoadReading { t_ns, amount: 0, cpu_ns: 0 });
            }
            // The first one may come before the work is due.
            Report::Done { t_ns, amount, cpu_ns } => {
                if self.readings.last.is_some_and(|last| last.t_ns < t_ns) {
                    self.readings.push(LoadReading { t_ns, amount, cpu_ns });
                }
            }
            Report::Failed { why } => self.failed = Some(why),
        }
    }
}

fn lock(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Listens to a process until its output ends.
fn listen(from: ChildStdout, heard: &Mutex<Heard>, stop: &AtomicBool) {
    for line in BufReader::new(from).lines().map_while(Result::ok) {
        match serde_json::from_str(&line) {
            Ok(report) => lock(heard).take(report),
            Err(why) => {
                lock(heard).failed = Some(format!("it told something strange: {why}"));
                break;
            }
        }
    }
    let mut heard = lock(heard);
    heard.is_gone = true;
    if !heard.is_ending {
        stop.store(true, Ordering::Release);
    }
}

impl Loads {
    /// Starts all loads of `plan`, and waits until each has reached its rate, three seconds at most after it
    /// was ready; `note` is told what people should know. `id` makes directories unique. When `stop` is
    /// raised meanwhile this ends early; it is raised when a load ends before its time.
    ///
    /// # Errors
    /// A process cannot be started, or its load cannot be had.
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
                // Ctrl-C is for the parent: it ends its loads when what they were for has ended.
                .process_group(0)
                .spawn()
                .map_err(fail)?;
            let heard = Arc::new(Mutex::new(Heard::default()));
            let reader = process.stdout.take().map(|from| {
                let (heard, stop) = (Arc::clone(&heard), Arc::clone(&loads.stop));
                let listening = std::thread::Builder::new().name("ku-load-reader".into());
                listening.spawn(move || listen(from, &heard, &stop))
            });
            // In the list before anything can fail, so that it is ended.
            loads.running.push(Running { spec: spec.clone(), name, process, heard, reader: None });
            if let (Some(reader), Some(running)) =
                (reader.transpose().map_err(fail)?, loads.running.last_mut())
            {
                running.reader = Some(reader);
            }
        }
        loads.warm_up(note)?;
        Ok(loads)
    }

    /// Waits until all have reached their rates, or will not.
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
            lock(&load.heard).notes.iter().for_each(|text| note(&format!("{}: {text}", load.spec)));
        }
        Ok(())
    }

    /// What each did from `begin_ns` to `end_ns`; waits until they have told of that.
    pub fn over(&self, begin_ns: u64, end_ns: u64) -> Vec<LoadResult> {
        let deadline_ns = self.clock.now_ns() + REPORT_NS;
        self.running
            .iter()
            .map(|load| {
                while !load.has_told_of(end_ns) && self.clock.now_ns() < deadline_ns {
                    self.clock.sleep_until_ns(self.clock.now_ns() + LOOK_NS);
                }
                load.over((begin_ns, end_ns))
            })
            .collect()
    }

    /// The rate that each achieved from `begin_ns` to `end_ns`, in its own unit; nothing where the time is
    /// too short for its reports to tell.
    pub fn rates(&self, begin_ns: u64, end_ns: u64) -> Vec<Option<f64>> {
        let told = |load: LoadResult| load.achieved.filter(|_| load.seconds >= TOLD_SECONDS);
        self.over(begin_ns, end_ns).into_iter().map(told).collect()
    }

    /// Why a load ended before its time, if one did.
    pub fn failure(&mut self) -> Option<WorkloadError> {
        let clock = Arc::clone(&self.clock);
        let why = self.running.iter_mut().find_map(|load| Some((load.failure(clock.as_ref())?, &load.spec)));
        why.map(|(why, spec)| WorkloadError::Load { spec: spec.to_string(), why })
    }

    /// Ends them all, and removes what they left.
    pub fn finish(&mut self) {
        for load in &mut self.running {
            lock(&load.heard).is_ending = true;
            // The end of its input ends the process.
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
    fn has_told_of(&self, t_ns: u64) -> bool {
        let heard = lock(&self.heard);
        heard.is_gone || heard.readings.last.is_some_and(|last| last.t_ns >= t_ns)
    }

    fn result(&self, heard: &Heard, window: (u64, u64)) -> LoadResult {
        let (spec, readings) = (&self.spec, heard.readings.all());
        LoadResult::of(spec.to_string(), kind(spec), spec.asked(), &readings, window)
    }

    fn over(&self, window: (u64, u64)) -> LoadResult {
        let heard = lock(&self.heard);
        let mut result = self.result(&heard, window);
        result.notes.clone_from(&heard.notes);
        if heard.is_gone && !heard.is_ending {
            result.failure = Some(heard.failed.clone().unwrap_or_else(|| "it ended before its time".into()));
        }
        result
    }

    /// Whether it has been at its rate for a while, or has had its time to get there.
    fn is_warm(&self, now_ns: u64) -> bool {
        let heard = lock(&self.heard);
        let Some(begun_ns) = heard.readings.begun_ns() else { return false };
        let from_ns = now_ns.saturating_sub(HELD_NS);
        let held = from_ns >= begun_ns && !self.result(&heard, (from_ns, now_ns)).fell_short;
        held || now_ns >= begun_ns + WARM_UP_NS
    }

    fn failure(&mut self, clock: &dyn Clock) -> Option<String> {
        {
            let heard = lock(&self.heard);
            if !heard.is_gone || heard.is_ending {
                return None;
            }
        }
        let status = self.ended(clock, KILLED_NS);
        let mut heard = lock(&self.heard);
        let how = || match status {
            Some(status) if status.signal().is_some() => {
                format!("it was killed by signal {}", status.signal().unwrap_or_default())
            }
            Some(status) => format!("it ended before its time with code {}", status.code().unwrap_or(-1)),
            None => "it ended before its time".to_owned(),
        };
        Some(heard.failed.get_or_insert_with(how).clone())
    }

    /// Waits for its end, at most for `limit_ns`.
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
            // One that has just ended cannot be killed, which is well.
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
