//! Instruction counts of the decode and seal paths, measured by callgrind and compared with those in the
//! journal. Unlike times, counts are reproducible, so a change of 5 % is detected on any machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value, json};

/// File with the accepted counts.
const KEPT: &str = "docs/journal/instructions.json";
/// Relative increase that is tolerated.
const TOLERANCE: f64 = 0.05;
/// Stage of the driver, and its unit.
const STAGES: [(&str, &str); 4] = [
    ("decode", "one event header, 508 streams in turn"),
    ("seal-1KiB", "one block of 1024 events of 1 KiB"),
    ("seal-256KiB", "one block of 4 events of 256 KiB"),
    ("checksum-64KiB", "64 KiB; callgrind's processor has no wide multiplication, others take another way"),
];
/// Two lengths. Their difference excludes one-time costs.
const TIMES: [u64; 2] = [200, 1200];

/// Counts, prints and compares; with `bless`, stores the counts instead.
pub(crate) fn run(bless: bool) -> Result<ExitCode> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        bail!("cannot find valgrind\nhint: apt-get install valgrind");
    }
    let (compiler, driver) = (compiler()?, driver()?);
    let mut counts = BTreeMap::new();
    for (stage, _) in STAGES {
        counts.insert(stage.to_owned(), per_time(&driver, stage)?);
    }
    if bless {
        let kept = json!({ "rustc": compiler, "instructions": counts });
        std::fs::write(KEPT, format!("{}\n", serde_json::to_string_pretty(&kept)?))?;
    }
    let kept: Value = serde_json::from_slice(&std::fs::read(KEPT).with_context(|| {
        format!("cannot read {KEPT}\nhint: cargo xtask instructions --bless, in the project's root")
    })?)?;
    let before = kept["instructions"].as_object().cloned().unwrap_or_default();
    let (text, has_risen) = compare(&before, &counts);
    println!("{text}");
    if kept["rustc"] != compiler.as_str() {
        println!("SKIPPED: instructions: the stored counts are of {}, these of {compiler}", kept["rustc"]);
        return Ok(ExitCode::SUCCESS);
    }
    Ok(if has_risen { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Table of counts with their changes, and whether one rose by more than the tolerance.
fn compare(before: &Map<String, Value>, now: &BTreeMap<String, u64>) -> (String, bool) {
    let mut lines = vec![format!("{:<16} {:>12} {:>8}  once is", "stage", "instructions", "change")];
    let mut has_risen = false;
    for (stage, what) in STAGES {
        let Some(&count) = now.get(stage) else { continue };
        let change = before.get(stage).and_then(Value::as_f64).map(|kept| count as f64 / kept - 1.0);
        has_risen |= change.is_some_and(|change| change > TOLERANCE);
        let change = change.map_or_else(|| "new".to_owned(), |change| format!("{:+.1} %", change * 100.0));
        lines.push(format!("{stage:<16} {count:>12} {change:>8}  {what}"));
    }
    (lines.join("\n"), has_risen)
}

fn compiler() -> Result<String> {
    let output = Command::new("rustc").arg("--version").output().context("cannot run rustc")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Builds the driver and returns its path.
fn driver() -> Result<PathBuf> {
    let arguments = ["bench", "-p", "keepup-recorder", "--bench", "counts", "--no-run"];
    let output = Command::new("cargo")
        .args(arguments)
        .arg("--message-format=json")
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    ensure!(output.status.success(), "cargo bench --no-run failed");
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut built = messages.filter(|message| message["target"]["name"] == "counts");
    let found = built.find_map(|message| message["executable"].as_str().map(PathBuf::from));
    found.context("no path of the driver in the output of cargo")
}

/// Instructions of one unit of a stage.
fn per_time(driver: &Path, stage: &str) -> Result<u64> {
    let [short, long] = TIMES;
    let (less, more) = (count(driver, stage, short)?, count(driver, stage, long)?);
    Ok(more.saturating_sub(less) / (long - short))
}

fn count(driver: &Path, stage: &str, times: u64) -> Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(driver)
        .args([stage, &times.to_string()])
        .output()
        .context("cannot run valgrind")?;
    let text = String::from_utf8_lossy(&output.stderr);
    match collected(&text) {
        Some(count) if output.status.success() => Ok(count),
        _ => bail!("callgrind gave no count for {stage}:\n{text}"),
    }
}

/// Number in the callgrind line "Collected : N".
fn collected(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains("Collected"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

#[cfg(test)]
#[path = "instructions_tests.rs"]
mod tests;
