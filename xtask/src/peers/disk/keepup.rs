//! Disk tests of keepup.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::label;
use crate::peers::contestant::Run;
use crate::peers::program::Program;

/// Disk test with these flags; `name` is its name in tables.
pub(super) fn test(keepup: &Path, name: &'static str, test: &str, flags: &[&str]) -> Program {
    let common = ["disk", test, "--json", "--volume", "."];
    Program {
        name,
        program: keepup.to_path_buf(),
        arguments: common.iter().chain(flags).map(|flag| (*flag).to_owned()).collect(),
        shown: None,
        tool: None,
        read: Box::new(phases),
    }
}

/// Whether keepup has this disk test.
pub(super) fn has_test(keepup: &Path, test: &str) -> bool {
    let mut command = Command::new(keepup);
    command.args(["disk", test, "--help"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Phases of its only run, with their names in the tables.
fn phases(said: &str) -> Result<Vec<Run>> {
    let summary: Value = serde_json::from_str(said).context("parse the output of keepup")?;
    if let Some(failure) = summary["failure"].as_str() {
        bail!("keepup failed: {failure}");
    }
    let phases = summary["runs"][0]["phases"].as_array().context("no run in the output of keepup")?;
    phases.iter().map(phase).collect()
}

fn phase(phase: &Value) -> Result<Run> {
    let name = phase["name"].as_str().context("a phase without a name in the output of keepup")?;
    let figures = phase["bytes"].as_u64().zip(phase["seconds"].as_f64());
    let (bytes, seconds) = figures.with_context(|| format!("no rate of {name} in the output of keepup"))?;
    let phase = Run {
        phase: plain(name),
        bytes,
        events: phase["operations"].as_u64(),
        seconds,
        billed_ns: phase["cpu_seconds"].as_f64().map(|seconds| (seconds * 1e9) as u64),
        ..Run::default()
    };
    // Seeks are counted, not bytes.
    Ok(if phase.phase == "seeks" { Run { bytes: 0, ..phase } } else { phase })
}

/// Name in the tables: sizes with units, without the access mode.
fn plain(name: &str) -> String {
    let name = name.strip_suffix(", cached").unwrap_or(name);
    let words: Vec<&str> = name.split(' ').collect();
    match words[..] {
        ["seek"] => "seeks".to_owned(),
        [verb, bytes, "B", "depth", depth] => {
            let size = bytes.parse().map_or_else(|_| bytes.to_owned(), label);
            format!("{verb} {size} x {depth}")
        }
        _ => name.to_owned(),
    }
}

#[cfg(test)]
#[path = "keepup_tests.rs"]
mod tests;
