//! What more bytes cost: a short and a long run of a program, and their difference. What starting, preparing
//! and ending cost is in both. A short run that does not count precedes them.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::peers::contestant::{Contestant, Place, Run};
use crate::peers::program::Program;
use crate::peers::tools::Tool;
use crate::peers::transfer::cpu_ns;

/// The same program twice.
pub(super) struct Slope {
    /// For a short time, or with next to nothing to do.
    pub(super) short: Program,
    /// For a long one.
    pub(super) long: Program,
}

/// All phases of one run.
fn all(program: &Program, place: &Place<'_>, name: &str) -> Result<Run> {
    let directory: PathBuf = place.directory.join(name);
    fs::create_dir(&directory).with_context(|| format!("make {}", directory.display()))?;
    let (ended, phases) = program.once(&directory, place.limit)?;
    // The next one may need the room.
    fs::remove_dir_all(&directory).with_context(|| format!("remove {}", directory.display()))?;
    Ok(Run {
        bytes: phases.iter().map(|phase| phase.bytes).sum(),
        seconds: phases.iter().map(|phase| phase.seconds).sum(),
        cpu_ns: Some(cpu_ns(&ended)),
        billed_ns: phases.iter().map(|phase| phase.billed_ns).sum(),
        ..Run::default()
    })
}

/// What the long run did more than the short one.
fn difference(long: &Run, short: &Run) -> Result<Run> {
    let more = long.bytes.saturating_sub(short.bytes);
    ensure!(
        more > long.bytes / 2,
        "the long run moved {} bytes and the short one {}: too few more",
        long.bytes,
        short.bytes
    );
    ensure!(
        long.cpu_ns > short.cpu_ns,
        "the long run used no more CPU than the short one: the machine was too busy to tell"
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

    fn run(&self, place: &Place<'_>) -> Result<Vec<Run>> {
        // The first one after others has huge pages to look for: it does not count.
        all(&self.short, place, "first")?;
        let short = all(&self.short, place, "short")?;
        let long = all(&self.long, place, "long")?;
        Ok(vec![difference(&long, &short)?])
    }
}

#[cfg(test)]
#[path = "slope_tests.rs"]
mod tests;
