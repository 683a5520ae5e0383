//! Applies all rules to the workspace.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::readme;
use crate::rules::{code, crates, links, modules, text, tiers, words};
use crate::source::{self, SourceFile};
use crate::violation::Violation;

/// Prints every violation as `file:line: rule: advice`. True if there are none.
pub(crate) fn run() -> Result<bool> {
    let metadata = cargo_metadata()?;
    let root = metadata["workspace_root"].as_str().context("cargo metadata names no workspace root")?;
    let files = source::read_all(Path::new(root))?;
    let mut violations = crates::check(&metadata);
    violations.extend(files.iter().flat_map(check_file));
    violations.extend(links::check(Path::new(root), &files));
    violations.extend(modules::check(&files));
    violations.extend(readme::check(Path::new(root)));
    violations.sort();
    for violation in &violations {
        println!("{}:{}: {}: {}", violation.file, violation.line, violation.rule, violation.advice);
    }
    println!("tidy: {} files, {} violations", files.len(), violations.len());
    Ok(violations.is_empty())
}

fn check_file(file: &SourceFile) -> Vec<Violation> {
    let mut found = text::check(file);
    found.extend(code::check(file));
    found.extend(tiers::check(file));
    found.extend(words::check(file));
    found
}

fn cargo_metadata() -> Result<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1"])
        .output()
        .context("run cargo metadata")?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    serde_json::from_slice(&output.stdout).context("read the output of cargo metadata")
}
