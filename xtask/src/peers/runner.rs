//! Lets contestants take turns, A B C A B C: what slows the machine down for a while hits all of them.

use std::time::Duration;

use anyhow::Result;

use super::contestant::{Contestant, Figure, Place, Run};
use super::group::Work;
use super::scratch::Scratch;

/// Between two runs: what the one before left to the disk (discards, a journal) comes to its end.
const PAUSE: Duration = Duration::from_secs(1);

/// What all runs of one contestant gave.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Its name.
    pub(super) name: String,
    /// What was run.
    pub(super) command: String,
    /// How to get its program, when it is missing.
    pub(super) missing: Option<String>,
    /// The phases of each round; empty where it failed.
    pub(super) runs: Vec<Vec<Run>>,
    /// Why runs failed.
    pub(super) failures: Vec<String>,
}

impl Outcome {
    fn new(contestant: &dyn Contestant) -> Self {
        let missing = contestant.tool().filter(|tool| !tool.is_installed()).map(|tool| tool.advice());
        let (name, command) = (contestant.name().to_owned(), contestant.command());
        Self { name, command, missing, ..Self::default() }
    }

    /// One phase of each round; none where there is none.
    pub(super) fn phase(&self, phase: &str) -> impl Iterator<Item = Option<&Run>> {
        self.runs.iter().map(move |runs| runs.iter().find(|run| run.phase == phase))
    }

    /// One figure of each round; none where there is none.
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

/// How often and how much.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turns {
    /// Runs of each contestant.
    pub(super) rounds: usize,
    /// What each run has to do.
    pub(super) work: Work,
}

impl Turns {
    /// Time for one program: what it takes at least, the bytes a hundred times slower than a disk should do
    /// them, and a while to start.
    fn limit(self) -> Duration {
        const SLOWEST_BYTES_PER_S: u64 = 20_000_000;
        self.work.time + Duration::from_secs(60 + self.work.bytes / SLOWEST_BYTES_PER_S)
    }
}

/// Runs all of them in turns, each in an empty directory. A run that fails is noted, and the others go on;
/// only a directory that cannot be made ends it.
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
            eprintln!("round {round} of {}: {}: {}", turns.rounds, contestant.name(), told(&run));
            outcome.add(run);
        }
    }
    Ok(outcomes)
}

/// One run in an empty directory, which is removed.
pub(super) fn once(contestant: &dyn Contestant, turns: Turns, scratch: &Scratch) -> Result<Result<Vec<Run>>> {
    scratch.check_room(turns.work.bytes)?;
    let directory = scratch.within("run")?;
    let bytes = turns.work.bytes;
    let runs = contestant.run(&Place { directory: directory.path(), bytes, limit: turns.limit() });
    directory.remove();
    std::thread::sleep(PAUSE);
    Ok(runs)
}

/// A run in a few words, for those who wait.
fn told(runs: &Result<Vec<Run>>) -> String {
    match runs {
        Ok(runs) => {
            let bytes: u64 = runs.iter().map(|run| run.bytes).sum();
            let seconds: f64 = runs.iter().map(|run| run.seconds).sum();
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
