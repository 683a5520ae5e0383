//! Interleaved repetitions of a test on several volumes, so that drift affects all alike.
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use keepup_results::{DiskPhase, DiskRun};

use super::{DiskMeasured, DiskTest, OnVolumes};
use crate::load::Loads;
use crate::{Context, Workload, WorkloadError, run};

/// Result of all repetitions.
#[derive(Debug)]
pub struct Repeated {
    /// All runs; the last may be incomplete.
    pub runs: Vec<DiskRun>,
    /// Error that ended the repetitions.
    pub failure: Option<WorkloadError>,
    /// Whether the user stopped it.
    pub is_interrupted: bool,
}

/// Runs `test` `repeats` times, alternating between `places` (the volumes of one run), in
/// directories with prefix `name`. `loads` run in the background; if one ends early, the test ends.
/// `tell` receives each completed run.
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
            // Completed runs are kept even if a later one failed.
            let DiskMeasured { phases, skipped, finding } = match outcome {
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

/// Converts a phase to the clock of its run, which started at `begin_ns`, and adds the concurrent
/// background load.
fn beside(mut phase: DiskPhase, begin_ns: u64, loads: &Loads) -> DiskPhase {
    let ns = |seconds: f64| (seconds * 1e9) as u64;
    phase.load_rates = loads.rates(ns(phase.begin_seconds), ns(phase.begin_seconds + phase.seconds));
    phase.begin_seconds -= begin_ns as f64 / 1e9;
    phase
}
