//! Repeats of a test on several volumes, in turns, so that what changes with time meets all of them alike.
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use keepup_results::{DiskPhase, DiskRun};

use super::{DiskTest, Found, OnVolumes};
use crate::load::Loads;
use crate::{Context, Workload, WorkloadError, run};

/// What the repeats came to.
#[derive(Debug)]
pub struct Repeated {
    /// Every run, the last one perhaps with fewer phases.
    pub runs: Vec<DiskRun>,
    /// What cut it short.
    pub failure: Option<WorkloadError>,
    /// Whether the user stopped it.
    pub is_interrupted: bool,
}

/// Runs `test` on each of `places` in turns, `repeats` times, in directories whose names begin with `name`. A
/// place is the volumes that one run uses. `loads` run beside it; one that ends before its time ends all.
/// `tell` is given every run that has ended.
pub fn alternate<T: DiskTest + Clone>(
    test: &T,
    places: &[Vec<PathBuf>],
    repeats: u32,
    name: &str,
    loads: &mut Loads,
    context: &mut Context,
    tell: &mut dyn FnMut(&DiskRun),
) -> Repeated {
    let mut done = Repeated { runs: Vec::new(), failure: None, is_interrupted: false };
    for repeat in 1..=repeats {
        for volumes in places {
            let directory = format!("{name}-{:03}", done.runs.len() + 1);
            let mut workload = OnVolumes::new(test.clone(), volumes.clone(), directory);
            let begin_ns = context.clock.now_ns();
            let outcome = run(&mut workload, context);
            let end_ns = context.clock.now_ns();
            // What was finished stands, also when the rest failed.
            let Found { phases, skipped, finding } = match outcome {
                Ok(found) => found,
                Err(failure) => {
                    done.failure = Some(failure);
                    workload.measured().unwrap_or_default()
                }
            };
            let volumes = volumes.iter().map(|volume| volume.display().to_string()).collect();
            let phases = phases.into_iter().map(|phase| beside(phase, begin_ns, loads)).collect();
            let loads_now = loads.over(begin_ns, end_ns);
            let run = DiskRun { volumes, repeat, phases, skipped, finding, loads: loads_now };
            tell(&run);
            done.runs.push(run);
            done.failure = done.failure.take().or_else(|| loads.failure());
            done.is_interrupted = done.failure.is_none() && context.stop.load(Ordering::Acquire);
            if done.failure.is_some() || done.is_interrupted {
                return done;
            }
        }
    }
    done
}

/// A phase on the clock of its run, which began at `begin_ns`, with what the loads did meanwhile.
fn beside(mut phase: DiskPhase, begin_ns: u64, loads: &Loads) -> DiskPhase {
    let ns = |seconds: f64| (seconds * 1e9) as u64;
    phase.load_rates = loads.rates(ns(phase.begin_seconds), ns(phase.begin_seconds + phase.seconds));
    phase.begin_seconds -= begin_ns as f64 / 1e9;
    phase
}
