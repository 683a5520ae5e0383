//! The campaign `cargo xtask peers record`: builds keepup, sets fio to its best, lets every group run, writes
//! the tables. It succeeds when it ran, whatever the figures are.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;

use super::claims::judge;
use super::contestant::{Contestant, Figure};
use super::fio::{self, Fio};
use super::groups::{self, Group};
use super::machine;
use super::options::Options;
use super::render::{self, Section};
use super::runner::{Turns, alternate, once};
use super::scratch::Scratch;

/// Bytes of each run by which fio's best setting is found.
const CALIBRATION_BYTES: u64 = 2 << 30;

/// Runs the campaign.
pub(super) fn run(options: &Options) -> Result<()> {
    let scratch = Scratch::below(&options.volume)?;
    scratch.check_room(options.bytes)?;
    let mut rows = machine::machine(scratch.path());
    eprintln!("building keepup");
    let program = build()?;
    rows.extend(machine::versions(&program));
    let groups = |fio| groups::select(groups::all(&program, fio), &options.only).map_err(|why| anyhow!(why));
    let (fio, note) = match groups(Fio::FIRST)?.iter().any(has_fio) && fio::TOOL.is_installed() {
        true => calibrate(options.bytes, &scratch).map(|(fio, note)| (fio, Some(note)))?,
        false => (Fio::FIRST, None),
    };
    let mut sections = Vec::new();
    for group in groups(fio)? {
        eprintln!("{}: {}", group.name, group.title);
        let turns = Turns { rounds: options.rounds, bytes: options.bytes };
        let outcomes = alternate(&group.contestants, turns, &scratch)?;
        let judged = group.claims.iter().filter_map(|claim| Some((claim.clone(), judge(claim, &outcomes)?)));
        let verdicts = judged.collect();
        let notes = note.iter().filter(|_| has_fio(&group)).cloned().collect();
        sections.push(Section { group, outcomes, verdicts, notes });
    }
    let text = render::document(&rows, &sections, options.bytes, options.rounds);
    print!("{text}");
    match &options.out {
        Some(out) => fs::write(out, text).with_context(|| format!("write {}", out.display())),
        None => Ok(()),
    }
}

/// Whether fio takes part in a group.
fn has_fio(group: &Group) -> bool {
    group.contestants.iter().any(|contestant| contestant.tool() == Some(&fio::TOOL))
}

/// The setting at which fio was fastest in one short run of each, and what all of them gave.
fn calibrate(bytes: u64, scratch: &Scratch) -> Result<(Fio, String)> {
    let turns = Turns { rounds: 1, bytes: bytes.min(CALIBRATION_BYTES) };
    let mut best = (Fio::FIRST, 0.0);
    let mut told = Vec::new();
    for fio in Fio::settings() {
        let run = once(&fio as &dyn Contestant, turns, scratch)?;
        let rate = run.as_ref().ok().and_then(|run| Figure::Rate.of(run));
        let shown = rate.map_or("failed".to_owned(), |rate| format!("{rate:.0} MB/s"));
        eprintln!("fio, {}: {shown}", fio.setting());
        told.push(format!("{} {shown}", fio.setting()));
        if rate.is_some_and(|rate| rate > best.1) {
            best = (fio, rate.unwrap_or_default());
        }
    }
    let gigabytes = turns.bytes as f64 / 1e9;
    let note = format!(
        "fio is set to {}, the fastest of one run of {gigabytes:.2} GB each: {}",
        best.0.setting(),
        told.join(", ")
    );
    Ok((best.0, note))
}

/// Builds keepup as users do; where the program lies is cargo's to say.
fn build() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--release", "--package", "keepup-cli", "--message-format=json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .context("run cargo build")?;
    ensure!(output.status.success(), "cargo build failed");
    executable(&String::from_utf8_lossy(&output.stdout)).context("cargo did not say where it put keepup")
}

/// The program among cargo's messages, one JSON object a line.
fn executable(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = messages.filter(|message| message["target"]["name"] == "keepup");
    programs.find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
