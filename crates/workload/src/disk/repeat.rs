//! Repeats of a test on several volumes, in turns, so that what changes with time meets all of them alike.
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use keepup_results::{DiskPhase, DiskRun};

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

/// Runs the workload that `make` gives for a volume and the number of a run, on each volume in turns,
/// `repeats` times. `tell` is given every run that has ended.
pub fn alternate<W: Workload<Measured = Vec<DiskPhase>>>(
    volumes: &[PathBuf],
    repeats: u32,
    context: &mut Context,
    make: impl Fn(&PathBuf, u32) -> W,
    tell: &mut dyn FnMut(&DiskRun),
) -> Repeated {
    let mut done = Repeated { runs: Vec::new(), failure: None, is_interrupted: false };
    let mut number = 0;
    for repeat in 1..=repeats {
        for volume in volumes {
            number += 1;
            let mut workload = make(volume, number);
            let outcome = run(&mut workload, context);
            // What was finished stands, also when the rest failed.
            let phases = match outcome {
                Ok(phases) => phases,
                Err(failure) => {
                    done.failure = Some(failure);
                    workload.measured().unwrap_or_default()
                }
            };
            let run = DiskRun { volume: volume.display().to_string(), repeat, phases };
            tell(&run);
            done.runs.push(run);
            done.is_interrupted = context.stop.load(Ordering::Acquire);
            if done.failure.is_some() || done.is_interrupted {
                return done;
            }
        }
    }
    done
}
