//! `cargo xtask readme`: generates the sample in README.md from a stored result.
//!
//! Invariant: the page in README.md matches the stored result, and the result is consistent. `cargo xtask
//! tidy` checks both.

mod sample;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use keepup_report::{Style, terminal};
use keepup_results::{ResultSummary, Stored, StoredResult};
use serde_json::json;

use crate::violation::Violation;

pub(crate) const USAGE: &str = "  readme [--check | --take RESULT]
        draw the stored result of docs/sample/ into README.md; --check compares only, --take first stores
        the result of `keepup qualify` in this directory";

const README: &str = "README.md";
const SAMPLE: &str = "docs/sample/qualify-csl.json";
const START: &str = "<!-- sample: drawn by `cargo xtask readme` from docs/sample/qualify-csl.json -->\n";
const END: &str = "<!-- end of sample -->";
/// Columns of a code block on a web page that fit without scrolling.
const WIDTH: usize = 96;

/// Generates, compares or stores the sample.
pub(crate) fn run(arguments: &[&str]) -> Result<ExitCode> {
    let root = Path::new(".");
    match arguments {
        [] => draw(root)?,
        ["--take", result] => {
            take(root, Path::new(result))?;
            draw(root)?;
        }
        ["--check"] => {
            let found = check(root);
            found.iter().for_each(|found| println!("{}:{}: {}", found.file, found.line, found.advice));
            return Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        _ => bail!("cannot parse the arguments of readme\n{USAGE}"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Violations of the sample and of its page in README.md.
pub(crate) fn check(root: &Path) -> Vec<Violation> {
    let violation = |file: &str, line, advice| Violation { file: file.into(), line, rule: "sample", advice };
    let (summary, readme) = match (open(&root.join(SAMPLE)), fs::read_to_string(root.join(README))) {
        (Ok(summary), Ok(readme)) => (summary, readme),
        (Err(why), _) => return vec![violation(SAMPLE, 1, format!("{why:#}"))],
        (_, Err(why)) => return vec![violation(README, 1, why.to_string())],
    };
    let found = sample::contradictions(&summary);
    let mut found: Vec<Violation> = found.into_iter().map(|text| violation(SAMPLE, 1, text)).collect();
    match with_sample(&readme, &summary) {
        Some(wanted) if wanted == readme => {}
        Some(_) => {
            let line = 1 + readme.split(START).next().unwrap_or_default().matches('\n').count();
            let advice = format!("the sample does not match {SAMPLE}; run `cargo xtask readme`");
            found.push(violation(README, line, advice));
        }
        None => found.push(violation(README, 1, "the markers of the sample are missing".into())),
    }
    found
}

fn draw(root: &Path) -> Result<()> {
    let summary = open(&root.join(SAMPLE))?;
    refuse_contradictions(&summary)?;
    let readme = fs::read_to_string(root.join(README)).context("cannot read README.md")?;
    let drawn = with_sample(&readme, &summary).context("README.md has no markers of the sample")?;
    fs::write(root.join(README), drawn).context("cannot write README.md")
}

/// Stores a result without plan and environment.
fn take(root: &Path, result: &Path) -> Result<()> {
    let mut summary = open(result)?;
    refuse_contradictions(&summary)?;
    if let Some(noise) = sample::noise(&summary) {
        bail!("{noise}\nhint: run `keepup qualify csl` on an idle machine");
    }
    (summary.plan, summary.environment) = (json!({}), json!({}));
    let path = root.join(SAMPLE);
    let text = format!("{}\n", serde_json::to_string_pretty(&summary)?);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn refuse_contradictions(summary: &ResultSummary) -> Result<()> {
    let found = sample::contradictions(summary);
    ensure!(found.is_empty(), "the result contradicts itself:\n  {}", found.join("\n  "));
    Ok(())
}

fn open(path: &Path) -> Result<ResultSummary> {
    match StoredResult::open(path).with_context(|| format!("cannot open {}", path.display()))?.summary {
        Stored::Qualify(summary) => Ok(*summary),
        _ => bail!("{} is not a result of `keepup qualify`", path.display()),
    }
}

/// Replaces the page between the markers; `None` without markers.
fn with_sample(readme: &str, summary: &ResultSummary) -> Option<String> {
    let (before, rest) = readme.split_once(START)?;
    let (_, after) = rest.split_once(END)?;
    let page = terminal(&Stored::Qualify(Box::new(summary.clone())), Style { colour: false, width: WIDTH });
    let page = shortened(&page);
    Some(format!("{before}{START}```\n$ {}\n{page}```\n{END}{after}", summary.command))
}

/// The page with the number of what was not tested instead of the list, which is explained elsewhere.
fn shortened(page: &str) -> String {
    let (mut short, mut entries, mut is_list) = (String::new(), 0, false);
    for line in page.lines() {
        is_list &= line.starts_with("  - ") || line.starts_with("    ");
        entries += usize::from(is_list && line.starts_with("  - "));
        if !is_list {
            if entries > 0 {
                short.push_str(&format!("  ... ({entries} assumptions and limits)\n"));
                entries = 0;
            }
            short.push_str(line);
            short.push('\n');
        }
        is_list |= line == "Not tested";
    }
    short
}

#[cfg(test)]
#[path = "readme_tests.rs"]
mod tests;
