//! Qualified rate of this machine from a stored result, to compare with the current rate.
use std::path::{Path, PathBuf};

use anyhow::Context;
use keepup_catalog::newest_qualification;
use keepup_error::Cause;
use keepup_measure::environment::{Environment, differences};
use keepup_recorder::watch::Qualified;
use keepup_results::{ResultSummary, Stored, StoredResult};
use serde_json::Value;

use crate::exit::usage;
use crate::output::log;

/// Limit on listed differences.
const DIFFERENCES_MAX: usize = 3;

/// Reads the qualified rate from the result at `path` and compares its environment with the current one.
pub(super) fn read(path: &Path, volumes: &[PathBuf]) -> anyhow::Result<Qualified> {
    let stored = StoredResult::open(path).with_context(|| format!("cannot use {}", path.display()))?;
    let Stored::Qualify(summary) = stored.summary else {
        let why =
            Cause::new(format!("cannot use {}: it is not a result of `keepup qualify`", path.display()));
        return Err(usage(why.with_hint("keepup qualify PROFILE --volume DIR")));
    };
    let Some(bytes_per_second) = summary.qualified_bytes_per_second else {
        return Err(usage(format!(
            "cannot use {}: it has no qualified rate ({})",
            path.display(),
            summary.verdict
        )));
    };
    let now = Environment::collect(volumes, Path::new("/"));
    let differs = if now.fingerprint() == summary.environment_hash {
        vec![]
    } else {
        describe_differences(&summary, &now)
    };
    Ok(Qualified { bytes_per_second, result: summary.result_directory, differs })
}

/// Describes differences of machine and settings.
fn describe_differences(summary: &ResultSummary, now: &Environment) -> Vec<String> {
    let now = serde_json::to_value(now).unwrap_or(Value::Null);
    let all = differences(&summary.environment, &now);
    let lasting: Vec<_> = all.iter().filter(|difference| difference.lasting).collect();
    let mut lines: Vec<String> = lasting
        .iter()
        .take(DIFFERENCES_MAX)
        .map(|one| format!("{} was {}, is {}", one.item, one.first, one.second))
        .collect();
    match lasting.len() {
        0 => lines.push("machine or settings".into()),
        all if all > DIFFERENCES_MAX => lines.push(format!("{} more", all - DIFFERENCES_MAX)),
        _ => {}
    }
    lines
}

/// Finds the newest qualification below `results` from this machine, in its current state, with these
/// volumes.
pub(super) fn newest(results: &Path, volumes: &[PathBuf]) -> Option<Qualified> {
    let machine = || Environment::collect(volumes, Path::new("/")).fingerprint();
    let summary = newest_qualification(results, machine)?;
    let bytes_per_second = summary.qualified_bytes_per_second?;
    let mb = bytes_per_second / 1e6;
    log(&format!("this machine is qualified for {mb:.0} MB/s by {}", summary.result_directory));
    Some(Qualified { bytes_per_second, result: summary.result_directory, differs: vec![] })
}

#[cfg(test)]
#[path = "qualified_tests.rs"]
mod tests;
