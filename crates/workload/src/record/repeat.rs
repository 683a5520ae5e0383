//! Repetitions of a trial, each with its own recording, removed before the next.
use std::sync::atomic::Ordering;
use std::time::Duration;

use keepup_results::RecordRun;

use super::{RecordTrial, TrialSpec};
use crate::load::Loads;
use crate::{Context, WorkloadError, run};

/// Pause before a trial, for the deletion of the previous recording to finish.
pub const SETTLE: Duration = Duration::from_millis(200);

/// Result of the repetitions.
#[derive(Debug, Default)]
pub struct Repeated {
    /// All completed runs.
    pub runs: Vec<RecordRun>,
    /// Error that ended the repetitions.
    pub failure: Option<WorkloadError>,
    /// Whether the user stopped it.
    pub is_interrupted: bool,
}

/// Runs the trial of `spec` `repeats` times; its name and identity are those of the first. `loads`
/// run in the background; if one ends early, the repetitions end. `tell` receives each completed
/// run.
pub fn repeat(
    spec: &TrialSpec,
    asked_bytes_per_second: Option<f64>,
    repeats: u32,
    loads: &mut Loads,
    context: &mut Context,
    tell: &mut dyn FnMut(&RecordRun),
) -> Repeated {
    let mut done = Repeated::default();
    let session_ns = context.clock.now_ns();
    for number in 1..=repeats {
        context.clock.sleep_until_ns(context.clock.now_ns() + SETTLE.as_nanos() as u64);
        let mut one = spec.clone();
        one.recorder.name = format!("{}-{number:03}", spec.recorder.name);
        one.recording = spec.recording.nth(number);
        match run(&mut RecordTrial::new(one), context) {
            Ok(measured) => {
                let begin_ns = measured.begin_ns + measured.lead_ns;
                let mut run = measured.run(spec, asked_bytes_per_second);
                run.repeat = number;
                run.begin_seconds = begin_ns.saturating_sub(session_ns) as f64 / 1e9;
                run.loads = loads.over(begin_ns, measured.begin_ns + measured.elapsed_ns);
                tell(&run);
                done.runs.push(run);
            }
            Err(failure) => done.failure = Some(failure),
        }
        done.failure = done.failure.take().or_else(|| loads.failure());
        done.is_interrupted = done.failure.is_none() && context.stop.load(Ordering::Acquire);
        if done.failure.is_some() || done.is_interrupted {
            break;
        }
    }
    done
}
