//! Difference of a long and a short run of a program, which excludes start-up, preparation and exit. An
//! uncounted short run comes first.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use keepup_measure::sum::Sums;

use crate::peers::contestant::{Contestant, Run, RunLimits};
use crate::peers::program::Program;
use crate::peers::tools::Tool;
use crate::peers::transfer::cpu_ns;

/// Short and long run of a program.
pub(super) struct Slope {
    /// Short run, or one with little data.
    pub(super) short: Program,
    /// Long run.
    pub(super) long: Program,
}

/// Sum of all phases of one run.
fn all(program: &Program, limits: &RunLimits<'_>, name: &str) -> Result<Run> {
    let directory: PathBuf = limits.directory.join(name);
    fs::create_dir(&directory).with_context(|| format!("make {}", directory.display()))?;
    let (ended, phases) = program.once(&directory, limits.time)?;
    // The next run may need the space.
    fs::remove_dir_all(&directory).with_context(|| format!("remove {}", directory.display()))?;
    Ok(Run {
        bytes: phases.iter().map(|phase| phase.bytes).saturating_sum(),
        seconds: phases.iter().map(|phase| phase.seconds).float_sum(),
        cpu_ns: Some(cpu_ns(&ended)),
        billed_ns: phases
            .iter()
            .map(|phase| phase.billed_ns)
            .collect::<Option<Vec<_>>>()
            .map(|all| all.iter().saturating_sum()),
        ..Run::default()
    })
}

/// Difference of the long and the short run.
fn difference(long: &Run, short: &Run) -> Result<Run> {
    let more = long.bytes.saturating_sub(short.bytes);
    ensure!(
        more > long.bytes / 2,
        "the long run moved {} bytes, the short one {}: the difference is too small",
        long.bytes,
        short.bytes
    );
    ensure!(
        long.cpu_ns > short.cpu_ns,
        "the long run used no more CPU than the short one: the machine was too busy"
    );
    let less = |long: Option<u64>, short: Option<u64>| long?.checked_sub(short?);
    Ok(Run {
        bytes: more,
        seconds: long.seconds - short.seconds,
        cpu_ns: less(long.cpu_ns, short.cpu_ns),
        billed_ns: less(long.billed_ns, short.billed_ns),
        ..Run::default()
    })
}

impl Contestant for Slope {
    fn name(&self) -> &str {
        self.long.name
    }

    fn command(&self) -> String {
        format!("{} less {}", self.long.shown(), self.short.shown())
    }

    fn tool(&self) -> Option<&'static Tool> {
        self.long.tool
    }

    fn run(&self, limits: &RunLimits<'_>) -> Result<Vec<Run>> {
        // The first run has to allocate huge pages, so it does not count.
        all(&self.short, limits, "first")?;
        let short = all(&self.short, limits, "short")?;
        let long = all(&self.long, limits, "long")?;
        Ok(vec![difference(&long, &short)?])
    }
}

#[cfg(test)]
#[path = "slope_tests.rs"]
mod tests;
