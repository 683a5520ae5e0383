//! Qualified rate of this machine from a stored result, to compare with the current rate.
use std::path::{Path, PathBuf};

use anyhow::Context;
use keepup_catalog::newest_qualification;
use keepup_error::Cause;
use keepup_measure::environment::{Environment, differences};
use keepup_recorder::watch::Qualified;
use keepup_results::format::rate;
use keepup_results::{ResultSummary, Stored, StoredResult};
use serde_json::Value;

use crate::exit::usage;
use crate::output::log;

/// Limit on listed differences.
const DIFFERENCES_MAX: usize = 3;

/// Reads the qualified rate from the result at `path` and compares its environment with the current one. Logs
/// the rate.
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
    let (failed_above, result) = (summary.failed_above, summary.result_directory);
    let qualified = Qualified { bytes_per_second, failed_above, result, differs };
    log(&describe(&qualified));
    Ok(qualified)
}

/// Both ends of what the qualification found.
fn describe(qualified: &Qualified) -> String {
    let held = rate(qualified.bytes_per_second);
    let above = match &qualified.failed_above {
        Some(failed) => format!("; {failed}; rates between the two are not proven"),
        None => "; no higher rate is proven".to_owned(),
    };
    format!("qualified rate: {held} by {}{above}", qualified.result)
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
/// volumes. Logs its rate.
pub(super) fn newest(results: &Path, volumes: &[PathBuf]) -> Option<Qualified> {
    let machine = || Environment::collect(volumes, Path::new("/")).fingerprint();
    let summary = newest_qualification(results, machine)?;
    let bytes_per_second = summary.qualified_bytes_per_second?;
    let (failed_above, result) = (summary.failed_above, summary.result_directory);
    let qualified = Qualified { bytes_per_second, failed_above, result, differs: vec![] };
    log(&describe(&qualified));
    Some(qualified)
}

#[cfg(test)]
#[path = "qualified_tests.rs"]
mod tests;
