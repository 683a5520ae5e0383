//! One trace on one or more places: passes in turns, so that what changes with time meets all places alike.
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use keepup_measure::pressure::Pressure;
use keepup_results::{ReplayFidelity, ReplayPass};

use super::engine::{Account, Pass};
use super::error::ReplayError;
use super::pace::Mode;
use super::place::{Means, Place, Seat};
use super::script::Script;
use crate::load::{LoadPlan, Loads};
use crate::spent::{Spent, SpentClock};
use crate::{Context, Footprint, Workload, WorkloadError};

/// The most that a pass's span may differ from what was asked.
const SPAN_ERROR_MAX: f64 = 0.01;
/// The lateness that 99 of 100 requests may have, ns, where a tenth of the median gap is less.
const LATENESS_NS: u64 = 1_000_000;
/// The fewest passes: the first is cold, and one alone does not tell how much they differ.
pub const PASSES_MIN: u32 = 3;

/// How a trace is replayed.
#[derive(Clone, Debug)]
pub struct Manner {
    /// When requests are made.
    pub mode: Mode,
    /// The most requests under way.
    pub limit: usize,
    /// Passes on each place.
    pub passes: u32,
    /// How requests are made.
    pub means: Means,
    /// What runs beside them.
    pub loads: LoadPlan,
    /// Whether there are passes without the loads as well.
    pub with_and_without: bool,
    /// Free to name directories after.
    pub id: String,
}

/// A trace on places.
pub struct Replay<'a> {
    script: &'a Script,
    places: &'a [Place],
    manner: &'a Manner,
    tell: &'a mut dyn FnMut(&ReplayPass),
    seats: Vec<Seat>,
    /// The loads, from the first pass that wants them to the next that does not.
    loads: Option<Loads>,
    passes: Vec<ReplayPass>,
}

impl<'a> Replay<'a> {
    /// `tell` is given every pass that has ended.
    pub fn new(
        script: &'a Script,
        places: &'a [Place],
        manner: &'a Manner,
        tell: &'a mut dyn FnMut(&ReplayPass),
    ) -> Self {
        Self { script, places, manner, tell, seats: Vec::new(), loads: None, passes: Vec::new() }
    }

    /// One pass on one place, beside the loads or not; `None` when it was to stop.
    fn pass(
        &mut self,
        (number, seat, is_loaded): (u32, usize, bool),
        context: &mut Context,
    ) -> Result<Option<ReplayPass>, WorkloadError> {
        let manner = self.manner;
        self.seats[seat].target.settle()?;
        let mut loads = self.beside(is_loaded, context)?;
        let clock = Arc::clone(&context.clock);
        let pressure = || Pressure::read(Path::new("/")).io.map(|io| io.some);
        let (before, spent) = (pressure(), SpentClock::begin(clock.as_ref()));
        let seat = &mut self.seats[seat];
        let pace = manner.mode.pace(self.script);
        let account = Pass::new(self.script, pace, seat.target.as_mut(), manner.limit, context).run()?;
        let passed = spent.end(clock.as_ref());
        let waited = before.zip(pressure());
        if let Some(failure) = loads.as_mut().and_then(Loads::failure) {
            return Err(failure);
        }
        if context.stop.load(Ordering::Acquire) {
            return Ok(None);
        }
        let passed_ns = (passed.seconds * 1e9) as u64;
        let mut pass = told(self.script, manner, &account, &passed);
        pass.pass = number;
        pass.is_cold = number == 1;
        pass.place = if is_loaded { format!("{} + loads", seat.name) } else { seat.name.clone() };
        pass.io_pressure_percent = waited.map(|(before, after)| after.percent_since(&before, passed_ns));
        pass.loads =
            loads.iter().flat_map(|l| l.over(spent.begin_ns(), spent.begin_ns() + passed_ns)).collect();
        self.loads = loads;
        if number == manner.passes && is_loaded != manner.loads.specs.is_empty() {
            pass.check = seat.target.check()?;
        }
        Ok(Some(pass))
    }

    /// The loads where they are wanted: those that run already, or new ones.
    fn beside(&mut self, is_loaded: bool, context: &mut Context) -> Result<Option<Loads>, WorkloadError> {
        let running = self.loads.take();
        if !is_loaded || running.is_some() {
            return Ok(running.filter(|_| is_loaded));
        }
        let (clock, stop) = (Arc::clone(&context.clock), Arc::clone(&context.stop));
        Loads::start(&self.manner.loads, &self.manner.id, clock, stop, &mut context.note).map(Some)
    }

    /// What each place has in one round, in the order of the round.
    fn round(&self, number: u32) -> Vec<(u32, usize, bool)> {
        let is_loaded = !self.manner.loads.specs.is_empty();
        let loads: &[bool] = match (is_loaded, self.manner.with_and_without) {
            (true, true) => &[false, true],
            (true, false) => &[true],
            (false, _) => &[false],
        };
        // Loads begin and end once in a round at most.
        let mut round: Vec<_> = (loads.iter())
            .flat_map(|loaded| (0..self.seats.len()).map(move |seat| (number, seat, *loaded)))
            .collect();
        if number.is_multiple_of(2) {
            round.reverse();
        }
        round
    }
}

impl Workload for Replay<'_> {
    type Measured = Vec<ReplayPass>;

    fn name(&self) -> &'static str {
        "replay"
    }

    fn plan(&self) -> Footprint {
        let mut footprint = Footprint::default();
        let rounds = u64::from(self.manner.passes) * if self.manner.with_and_without { 2 } else { 1 };
        for place in self.places {
            if let Place::Volume(volume) = place {
                let filled = self.script.touched_bytes();
                let written = filled + self.script.written_bytes() * rounds;
                footprint.bytes_written.insert(volume.clone(), written);
                footprint.space_bytes.insert(volume.clone(), filled);
            }
        }
        let span_ns = self.manner.mode.span_ns(self.script).unwrap_or(0);
        let passes = rounds * self.places.len() as u64;
        footprint.time = std::time::Duration::from_nanos(span_ns.saturating_mul(passes));
        footprint
    }

    fn prepare(&mut self, context: &mut Context) -> Result<(), WorkloadError> {
        for (number, place) in self.places.iter().enumerate() {
            let name = format!("keepup-replay-{}-{number}", self.manner.id);
            let named = (name.as_str(), self.manner.limit);
            self.seats.push(place.open(self.script, self.manner.means, named, context)?);
        }
        Ok(())
    }

    fn measure(&mut self, context: &mut Context) -> Result<(), WorkloadError> {
        for number in 1..=self.manner.passes {
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

    fn clean_up(&mut self) -> Result<(), WorkloadError> {
        self.loads = None;
        self.seats.clear();
        Ok(())
    }

    fn measured(&mut self) -> Result<Vec<ReplayPass>, WorkloadError> {
        Ok(std::mem::take(&mut self.passes))
    }
}

/// The failure of a pass some of whose requests failed: a broken disk is not measured on.
fn failed(pass: &ReplayPass) -> Result<(), ReplayError> {
    let Some(why) = &pass.failure else { return Ok(()) };
    let (trace, place) = (pass.trace.clone(), pass.place.clone());
    Err(ReplayError::Failed { trace, place, count: pass.failed, why: why.clone() })
}

/// The account of a pass as a result.
fn told(script: &Script, manner: &Manner, account: &Account, passed: &Spent) -> ReplayPass {
    let [reads, writes, flushes] = account.kinds();
    ReplayPass {
        trace: script.told.trace.clone(),
        place: String::new(),
        mode: manner.mode.name().into(),
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
        outstanding_limit: manner.limit as u64,
        blocked: account.blocked,
        reordered: account.reordered,
        all: account.all(),
        reads,
        writes,
        flushes,
        lateness: account.lateness(),
        fidelity: fidelity(script, manner.mode, account),
        check: None,
        cpu_seconds: passed.cpu_seconds,
        machine_cpu_seconds: passed.machine_cpu_seconds,
        steal_seconds: passed.steal_seconds,
        io_pressure_percent: None,
        interrupts: passed.interrupts,
        loads: Vec::new(),
    }
}

/// Whether a pass kept its time, where it has one.
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
        why.push(format!("{} requests found no room: too many were under way", account.blocked));
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
