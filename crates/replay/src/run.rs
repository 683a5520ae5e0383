//! One trace on one or more targets: passes in turns, so that drift affects all targets alike.
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use keepup_measure::pressure::Pressure;
use keepup_results::{ReplayDevice, ReplayFidelity, ReplayPass, ReplayTimes};
use keepup_workload::load::{LoadPlan, Loads};
use keepup_workload::spent::{Spent, SpentClock};
use keepup_workload::{Context, Footprint, Workload};

use crate::engine::{Account, Pass};
use crate::error::ReplayError;
use crate::pace::Mode;
use crate::script::{DevicePart, Script};
use crate::target_spec::{IoOptions, OpenTarget, TargetSpec};

/// Maximum relative deviation of a pass's span from the requested one.
const SPAN_ERROR_MAX: f64 = 0.01;
/// Maximum 99th percentile of lateness, ns; a tenth of the median gap if that is more.
const LATENESS_NS: u64 = 1_000_000;
/// Minimum number of passes: the first is cold, and one warm pass does not show the spread.
pub const PASSES_MIN: u32 = 3;

/// Options of a replay.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// Timing mode.
    pub mode: Mode,
    /// Maximum number of in-flight requests.
    pub limit: usize,
    /// Passes per target.
    pub passes: u32,
    /// I/O settings.
    pub io: IoOptions,
    /// Background loads.
    pub loads: LoadPlan,
    /// Whether to run passes without the loads too.
    pub with_and_without: bool,
    /// Unique part of directory names.
    pub id: String,
}

/// Replay of a trace on several targets.
pub struct Replay<'a> {
    script: &'a Script,
    places: &'a [TargetSpec],
    options: &'a ReplayOptions,
    tell: &'a mut dyn FnMut(&ReplayPass),
    targets: Vec<OpenTarget>,
    /// Running loads, kept while consecutive passes need them.
    loads: Option<Loads>,
    passes: Vec<ReplayPass>,
}

impl<'a> Replay<'a> {
    /// A replay; `tell` receives each completed pass.
    pub fn new(
        script: &'a Script,
        places: &'a [TargetSpec],
        options: &'a ReplayOptions,
        tell: &'a mut dyn FnMut(&ReplayPass),
    ) -> Self {
        Self { script, places, options, tell, targets: Vec::new(), loads: None, passes: Vec::new() }
    }

    /// One pass on one target, with or without loads; `None` if interrupted.
    fn pass(
        &mut self,
        (number, target, is_loaded): (u32, usize, bool),
        context: &mut Context,
    ) -> Result<Option<ReplayPass>, ReplayError> {
        let options = self.options;
        let open = &mut self.targets[target];
        if std::mem::replace(&mut open.has_run, true) {
            open.target.refill(&self.script.refilled())?;
        }
        open.target.settle()?;
        let mut loads = self.beside(is_loaded, context)?;
        let clock = Arc::clone(&context.clock);
        let pressure = || Pressure::read(Path::new("/")).io.map(|io| io.some);
        let (before, spent) = (pressure(), SpentClock::begin(clock.as_ref()));
        let target = &mut self.targets[target];
        let pace = options.mode.pace(self.script);
        let account = Pass::new(self.script, pace, target.target.as_mut(), options.limit, context).run()?;
        let passed = spent.end(clock.as_ref());
        let waited = before.zip(pressure());
        if let Some(failure) = loads.as_mut().and_then(Loads::failure) {
            return Err(failure.into());
        }
        if context.stop.load(Ordering::Acquire) {
            return Ok(None);
        }
        let passed_ns = (passed.seconds * 1e9) as u64;
        let mut pass = pass_result(self.script, options, &account, &passed);
        pass.pass = number;
        pass.is_cold = number == 1;
        pass.place = if is_loaded { format!("{} + loads", target.name) } else { target.name.clone() };
        pass.io_pressure_percent = waited.map(|(before, after)| after.percent_since(&before, passed_ns));
        pass.loads =
            loads.iter().flat_map(|l| l.over(spent.begin_ns(), spent.begin_ns() + passed_ns)).collect();
        self.loads = loads;
        if number == options.passes && is_loaded != options.loads.specs.is_empty() {
            pass.check = target.target.check()?;
        }
        Ok(Some(pass))
    }

    /// Starts or keeps the loads, or stops them if not wanted.
    fn beside(&mut self, is_loaded: bool, context: &mut Context) -> Result<Option<Loads>, ReplayError> {
        let running = self.loads.take();
        if !is_loaded || running.is_some() {
            return Ok(running.filter(|_| is_loaded));
        }
        let (clock, stop) = (Arc::clone(&context.clock), Arc::clone(&context.stop));
        let options = self.options;
        Ok(Some(Loads::start(&options.loads, &options.id, clock, stop, &mut context.note)?))
    }

    /// Order of the passes of one round.
    fn round(&self, number: u32) -> Vec<(u32, usize, bool)> {
        let is_loaded = !self.options.loads.specs.is_empty();
        let loads: &[bool] = match (is_loaded, self.options.with_and_without) {
            (true, true) => &[false, true],
            (true, false) => &[true],
            (false, _) => &[false],
        };
        // Loads start and stop at most once per round.
        let mut round: Vec<_> = (loads.iter())
            .flat_map(|loaded| (0..self.targets.len()).map(move |target| (number, target, *loaded)))
            .collect();
        if number.is_multiple_of(2) {
            round.reverse();
        }
        round
    }
}

impl Workload for Replay<'_> {
    type Measured = Vec<ReplayPass>;
    type Error = ReplayError;

    fn name(&self) -> &'static str {
        "replay"
    }

    fn plan(&self) -> Footprint {
        let mut footprint = Footprint::default();
        let rounds = u64::from(self.options.passes) * if self.options.with_and_without { 2 } else { 1 };
        for place in self.places {
            for (volume, begin, bytes) in place.directories(self.script) {
                let cost = self.script.cost(begin..begin + bytes);
                let written = cost.filled + cost.written * rounds + cost.refilled * (rounds - 1);
                *footprint.bytes_written.entry(volume.to_owned()).or_default() += written;
                *footprint.space_bytes.entry(volume.to_owned()).or_default() += cost.filled;
            }
        }
        let span_ns = self.options.mode.span_ns(self.script).unwrap_or(0);
        let passes = rounds * self.places.len() as u64;
        footprint.time = std::time::Duration::from_nanos(span_ns.saturating_mul(passes));
        footprint
    }

    fn prepare(&mut self, context: &mut Context) -> Result<(), ReplayError> {
        for (number, place) in self.places.iter().enumerate() {
            let name = format!("keepup-replay-{}-{number}", self.options.id);
            let named = (name.as_str(), self.options.limit);
            self.targets.push(place.open(self.script, self.options.io, named, context)?);
        }
        Ok(())
    }

    fn measure(&mut self, context: &mut Context) -> Result<(), ReplayError> {
        for number in 1..=self.options.passes {
            for turn in self.round(number) {
                let Some(pass) = self.pass(turn, context)? else { return Ok(()) };
                (self.tell)(&pass);
                let failed = failed(&pass);
                self.passes.push(pass);
                failed?;
            }
        }
        Ok(())
    }

    fn clean_up(&mut self) -> Result<(), ReplayError> {
        self.loads = None;
        self.targets.clear();
        Ok(())
    }

    fn measured(&mut self) -> Result<Vec<ReplayPass>, ReplayError> {
        Ok(std::mem::take(&mut self.passes))
    }
}

/// Error of a pass with failed requests: a broken disk is not measured further.
fn failed(pass: &ReplayPass) -> Result<(), ReplayError> {
    let Some(why) = &pass.failure else { return Ok(()) };
    let (trace, place) = (pass.trace.clone(), pass.place.clone());
    Err(ReplayError::Failed { trace, place, count: pass.failed, why: why.clone() })
}

/// Result of a pass.
fn pass_result(script: &Script, options: &ReplayOptions, account: &Account, passed: &Spent) -> ReplayPass {
    let [reads, writes, flushes, discards] = account.kinds();
    let devices = script.parts.iter().zip(account.devices());
    let device = |(part, times): (&DevicePart, Option<ReplayTimes>)| {
        Some(ReplayDevice { device: part.device.clone(), times: times? })
    };
    ReplayPass {
        trace: script.summary.trace.clone(),
        place: String::new(),
        mode: options.mode.name().into(),
        pass: 0,
        is_cold: false,
        seconds: account.end_ns as f64 / 1e9,
        busy_seconds: account.busy_seconds(),
        requests: account.requests,
        bytes_read: account.bytes_read,
        bytes_written: account.bytes_written,
        failed: account.failed,
        failure: account.failure.clone(),
        outstanding_mean: account.outstanding_mean(),
        outstanding_max: account.outstanding_max as u64,
        outstanding_limit: options.limit as u64,
        blocked: account.blocked,
        reordered: account.reordered,
        all: account.all(),
        reads,
        writes,
        flushes,
        discards,
        devices: devices.filter_map(device).collect(),
        lateness: account.lateness(),
        fidelity: fidelity(script, options.mode, account),
        check: None,
        cpu_seconds: passed.cpu_seconds,
        machine_cpu_seconds: passed.machine_cpu_seconds,
        steal_seconds: passed.steal_seconds,
        io_pressure_percent: None,
        interrupts: passed.interrupts,
        loads: Vec::new(),
    }
}

/// Whether a pass kept its requested timing, if it has one.
fn fidelity(script: &Script, mode: Mode, account: &Account) -> Option<ReplayFidelity> {
    let asked = mode.span_ns(script)? as f64 / 1e9;
    let span = account.last_ns.saturating_sub(account.first_ns) as f64 / 1e9;
    let span_error = if asked > 0.0 { (span / asked - 1.0).abs() } else { 0.0 };
    let lateness_allowed_ns = LATENESS_NS.max(mode.gap_ns(script) / 10);
    let mut why = Vec::new();
    if span_error > SPAN_ERROR_MAX {
        why.push(format!("{span:.3} s from the first request to the last instead of {asked:.3} s"));
    }
    let p99_ns = account.lateness().map_or(0, |lateness| lateness.p99_ns);
    if p99_ns > lateness_allowed_ns {
        why.push(format!(
            "1 of 100 requests was made more than {:.3} ms late; {:.3} ms are allowed",
            p99_ns as f64 / 1e6,
            lateness_allowed_ns as f64 / 1e6
        ));
    }
    if account.blocked > 0 {
        why.push(format!("{} requests were delayed by the limit of in-flight requests", account.blocked));
    }
    Some(ReplayFidelity {
        is_kept: why.is_empty(),
        is_target: account.blocked > 0,
        span_asked_seconds: asked,
        span_seconds: span,
        span_error,
        lateness_allowed_ns,
        why,
    })
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
