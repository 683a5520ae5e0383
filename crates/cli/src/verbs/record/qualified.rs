//! The rate that a stored result says this machine holds, to be compared with the present one: of the result
//! that was named, or of the newest one that was measured on just this machine with these volumes.
use std::path::{Path, PathBuf};

use anyhow::Context;
use keepup_catalog::newest_qualification;
use keepup_error::Cause;
use keepup_measure::environment::{Environment, differences};
use keepup_recorder::watch::Qualified;
use keepup_results::{ResultSummary, Stored, StoredResult};
use serde_json::Value;

use crate::exit::usage;
use crate::output::say;

/// Differences that are told.
const DIFFERENCES_MAX: usize = 3;

/// Reads the qualified rate of the result at `path`. `volumes` are what is recorded to now.
pub(super) fn named(path: &Path, volumes: &[PathBuf]) -> anyhow::Result<Qualified> {
    let stored = StoredResult::open(path).with_context(|| format!("cannot use {}", path.display()))?;
    let Stored::Qualify(summary) = stored.summary else {
        let why =
            Cause::new(format!("cannot use {}: it is not the result of a qualification", path.display()));
        return Err(usage(why.with_hint("keepup qualify PROFILE --volume DIR")));
    };
    let Some(bytes_per_second) = summary.qualified_bytes_per_second else {
        return Err(usage(format!("{} has no qualified rate: {}", path.display(), summary.verdict)));
    };
    let now = Environment::collect(volumes, Path::new("/"));
    let differs = if now.fingerprint() == summary.environment_hash { vec![] } else { told(&summary, &now) };
    Ok(Qualified { bytes_per_second, result: summary.result_directory, differs })
}

/// What of the machine and its settings is not as it was.
fn told(summary: &ResultSummary, now: &Environment) -> Vec<String> {
    let now = serde_json::to_value(now).unwrap_or(Value::Null);
    let all = differences(&summary.environment, &now);
    let lasting: Vec<_> = all.iter().filter(|difference| difference.lasting).collect();
    let mut told: Vec<String> = lasting
        .iter()
        .take(DIFFERENCES_MAX)
        .map(|one| format!("{} was {}, is {}", one.item, one.first, one.second))
        .collect();
    match lasting.len() {
        0 => told.push("machine or settings".into()),
        all if all > DIFFERENCES_MAX => told.push(format!("{} more", all - DIFFERENCES_MAX)),
        _ => {}
    }
    told
}

/// The rate of the newest qualification in the directory `results` that was made on this machine, as it is
/// now, with these volumes.
pub(super) fn found(results: &Path, volumes: &[PathBuf]) -> Option<Qualified> {
    let machine = || Environment::collect(volumes, Path::new("/")).fingerprint();
    let summary = newest_qualification(results, machine)?;
    let bytes_per_second = summary.qualified_bytes_per_second?;
    let mb = bytes_per_second / 1e6;
    say(&format!("this machine was qualified for {mb:.0} MB/s, by {}", summary.result_directory));
    Some(Qualified { bytes_per_second, result: summary.result_directory, differs: vec![] })
}

#[cfg(test)]
#[path = "qualified_tests.rs"]
mod tests;
