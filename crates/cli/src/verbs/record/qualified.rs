//! The rate that a stored result says this machine holds, to be compared with the present one: of the result
//! that was named, or of the newest one that was measured on just this machine with these volumes.
use std::path::{Path, PathBuf};

use anyhow::Context;
use keepup_measure::environment::{Environment, differences};
use keepup_recorder::watch::Qualified;
use keepup_results::{ResultSummary, Stored, StoredResult};
use serde_json::Value;

use super::usage;
use crate::output::say;

/// Results that are looked at, at most, the newest first.
const RESULTS_MAX: usize = 1000;
/// Differences that are told.
const DIFFERENCES_MAX: usize = 3;

/// Reads the qualified rate of the result at `path`. `volumes` are what is recorded to now.
pub(super) fn named(path: &Path, volumes: &[PathBuf]) -> anyhow::Result<Qualified> {
    let stored = StoredResult::open(path).with_context(|| format!("cannot use {}", path.display()))?;
    let Stored::Qualify(summary) = stored.summary else {
        return Err(usage(format!(
            "{} is no result of a qualification\nhint: keepup qualify PROFILE --volume DIR",
            path.display()
        )));
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

/// The newest qualification in the directory `results` that was made on this machine, as it is now, with
/// these volumes. What cannot be read is passed over.
pub(super) fn found(results: &Path, volumes: &[PathBuf]) -> Option<Qualified> {
    let mut directories: Vec<_> = std::fs::read_dir(results)
        .ok()?
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    directories.sort_by(|a, b| b.cmp(a));
    directories.truncate(RESULTS_MAX);
    if directories.is_empty() {
        return None;
    }
    let machine = Environment::collect(volumes, Path::new("/")).fingerprint();
    let fits = |(_, path): (_, PathBuf)| match StoredResult::open(&path).ok()?.summary {
        Stored::Qualify(summary) if summary.environment_hash == machine => {
            let (bytes_per_second, result) = (summary.qualified_bytes_per_second?, summary.result_directory);
            Some((summary.created, Qualified { bytes_per_second, result, differs: vec![] }))
        }
        _ => None,
    };
    let (_, qualified) = directories.into_iter().filter_map(fits).max_by(|a, b| a.0.cmp(&b.0))?;
    let mb = qualified.bytes_per_second / 1e6;
    say(&format!("this machine was qualified for {mb:.0} MB/s, by {}", qualified.result));
    Some(qualified)
}

#[cfg(test)]
#[path = "qualified_tests.rs"]
mod tests;
