//! All checks, cheapest first. Stops at the first failure.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::tidy;

/// Name and cargo arguments of a step.
const CARGO_STEPS_AFTER_TIDY: [(&str, &[&str]); 2] = [
    ("clippy", &["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]),
    ("test", &["test", "--workspace", "--quiet"]),
];

/// Runs all checks and prints their durations. False if one failed.
pub(crate) fn run() -> Result<bool> {
    if !timed("fmt", || cargo(&["fmt", "--all", "--check"]))? || !timed("tidy", tidy::run)? {
        return Ok(false);
    }
    for (name, arguments) in CARGO_STEPS_AFTER_TIDY {
        if !timed(name, || cargo(arguments))? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn timed(name: &str, step: impl FnOnce() -> Result<bool>) -> Result<bool> {
    let start = Instant::now();
    let passed = step()?;
    println!("{name}: {} in {:.1} s", if passed { "ok" } else { "failed" }, start.elapsed().as_secs_f64());
    Ok(passed)
}

/// Runs cargo and returns whether it succeeded.
pub(crate) fn cargo(arguments: &[&str]) -> Result<bool> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo).args(arguments).status();
    Ok(status.with_context(|| format!("run cargo {}", arguments.join(" ")))?.success())
}
