//! Repeats of a test on several volumes, in turns, so that what changes with time meets all of them alike.
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use keepup_results::DiskRun;

use super::{DiskTest, Found, OnVolumes};
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
/// place is the volumes that one run uses. `tell` is given every run that has ended.
pub fn alternate<T: DiskTest + Clone>(
    test: &T,
    places: &[Vec<PathBuf>],
    repeats: u32,
    name: &str,
    context: &mut Context,
    tell: &mut dyn FnMut(&DiskRun),
) -> Repeated {
    let mut done = Repeated { runs: Vec::new(), failure: None, is_interrupted: false };
    for repeat in 1..=repeats {
        for volumes in places {
            let directory = format!("{name}-{:03}", done.runs.len() + 1);
            let mut workload = OnVolumes::new(test.clone(), volumes.clone(), directory);
            let outcome = run(&mut workload, context);
            // What was finished stands, also when the rest failed.
            let Found { phases, skipped, finding } = match outcome {
                Ok(found) => found,
                Err(failure) => {
                    done.failure = Some(failure);
                    workload.measured().unwrap_or_default()
                }
            };
            let volumes = volumes.iter().map(|volume| volume.display().to_string()).collect();
            let run = DiskRun { volumes, repeat, phases, skipped, finding };
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
