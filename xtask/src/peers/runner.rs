//! Runs contestants alternately, A B C A B C, so that a slow phase of the machine affects all of them.

use std::time::Duration;

use anyhow::Result;

use keepup_measure::sum::Sums;

use super::contestant::{Contestant, Figure, Run, RunLimits};
use super::scratch::Scratch;

/// Work of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Work {
    /// Bytes on the disk.
    pub(super) bytes: u64,
    /// Minimum duration, independent of the disk.
    pub(super) time: Duration,
}

/// Pause between two runs, for deferred work of the disk such as discards and journal writes.
const PAUSE: Duration = Duration::from_secs(1);

/// All runs of one contestant.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Name.
    pub(super) name: String,
    /// Command line.
    pub(super) command: String,
    /// How to install its program, if missing.
    pub(super) missing: Option<String>,
    /// Phases of each round, empty if it failed.
    pub(super) runs: Vec<Vec<Run>>,
    /// Failures.
    pub(super) failures: Vec<String>,
}

impl Outcome {
    fn new(contestant: &dyn Contestant) -> Self {
        let missing = contestant.tool().filter(|tool| !tool.is_installed()).map(|tool| tool.advice());
        let (name, command) = (contestant.name().to_owned(), contestant.command());
        Self { name, command, missing, ..Self::default() }
    }

    /// A phase of each round.
    pub(super) fn phase(&self, phase: &str) -> impl Iterator<Item = Option<&Run>> {
        self.runs.iter().map(move |runs| runs.iter().find(|run| run.phase == phase))
    }

    /// A figure of each round.
    pub(super) fn figures(&self, phase: &str, figure: Figure) -> Vec<Option<f64>> {
        self.phase(phase).map(|run| figure.of(run?)).collect()
    }

    fn add(&mut self, runs: Result<Vec<Run>>) {
        if let Err(why) = &runs {
            self.failures.push(format!("round {}: {why:#}", self.runs.len() + 1));
        }
        self.runs.push(runs.unwrap_or_default());
    }
}

/// Rounds and work of each run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turns {
    /// Runs per contestant.
    pub(super) rounds: usize,
    /// Work of each run.
    pub(super) work: Work,
}

impl Turns {
    /// Time limit for one program: its minimum, plus its bytes at a very low rate, plus start-up time.
    fn limit(self) -> Duration {
        const SLOWEST_BYTES_PER_S: u64 = 20_000_000;
        self.work.time + Duration::from_secs(60 + self.work.bytes / SLOWEST_BYTES_PER_S)
    }
}

/// Runs all contestants alternately, each in an empty directory. Failed runs are recorded. Fails only if a
/// directory cannot be created.
pub(super) fn alternate(
    contestants: &[Box<dyn Contestant>],
    turns: Turns,
    scratch: &Scratch,
) -> Result<Vec<Outcome>> {
    let mut outcomes: Vec<Outcome> = contestants.iter().map(|one| Outcome::new(one.as_ref())).collect();
    for round in 1..=turns.rounds {
        for (contestant, outcome) in contestants.iter().zip(&mut outcomes) {
            if outcome.missing.is_some() {
                continue;
            }
            let run = once(contestant.as_ref(), turns, scratch)?;
            eprintln!("round {round} of {}: {}: {}", turns.rounds, contestant.name(), run_text(&run));
            outcome.add(run);
        }
    }
    Ok(outcomes)
}

/// Runs once in an empty directory, which is then removed.
pub(super) fn once(contestant: &dyn Contestant, turns: Turns, scratch: &Scratch) -> Result<Result<Vec<Run>>> {
    scratch.check_free_space(turns.work.bytes)?;
    let directory = scratch.within("run")?;
    let bytes = turns.work.bytes;
    let runs = contestant.run(&RunLimits { directory: directory.path(), bytes, time: turns.limit() });
    directory.remove();
    std::thread::sleep(PAUSE);
    Ok(runs)
}

/// Short result of a run for the progress output.
fn run_text(runs: &Result<Vec<Run>>) -> String {
    match runs {
        Ok(runs) => {
            let bytes: u64 = runs.iter().map(|run| run.bytes).saturating_sum();
            let seconds: f64 = runs.iter().map(|run| run.seconds).float_sum();
            match bytes {
                0 => format!("{seconds:.1} s"),
                _ => format!("{:.0} MB/s", bytes as f64 / seconds / 1e6),
            }
        }
        Err(why) => format!("failed: {why:#}"),
    }
}

#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;
