//! Common part of all campaigns: builds keepup, runs the groups, writes the tables. A campaign succeeds if it
//! ran, whatever the figures are.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::claims::judge;
use super::group::Group;
use super::machine::{self, Row};
use super::options::Options;
use super::render::{self, Head, Section};
use super::runner::{Turns, alternate};
use super::scratch::Scratch;
use super::tools::Tool;

/// Prepared campaign.
pub(super) struct Campaign {
    /// Scratch directory.
    pub(super) scratch: Scratch,
    /// Release build of keepup.
    pub(super) program: PathBuf,
    machine: Vec<Row>,
}

impl Campaign {
    /// Prepares a campaign. `tools` are listed with their versions.
    pub(super) fn prepare(options: &Options, tools: &[&Tool]) -> Result<Self> {
        let scratch = Scratch::below(&options.volume)?;
        let mut machine = machine::machine(scratch.path());
        eprintln!("building keepup");
        let program = build()?;
        machine.extend(machine::versions(&program, tools));
        Ok(Self { scratch, program, machine })
    }

    /// Runs all groups and writes the tables.
    pub(super) fn run(&self, groups: Vec<Group>, options: &Options, head: &Head) -> Result<()> {
        let mut sections = Vec::new();
        for group in groups {
            eprintln!("{}: {}", group.name, group.title);
            sections.push(self.section(group, options.rounds)?);
        }
        let text = render::document(head, &self.machine, &sections);
        print!("{text}");
        match &options.out {
            Some(out) => fs::write(out, text).with_context(|| format!("write {}", out.display())),
            None => Ok(()),
        }
    }

    fn section(&self, group: Group, rounds: usize) -> Result<Section> {
        if let Some(why) = &group.skipped {
            eprintln!("SKIPPED: {why}");
            return Ok(Section { group, outcomes: Vec::new(), verdicts: Vec::new() });
        }
        let turns = Turns { rounds, work: group.work };
        let outcomes = alternate(&group.contestants, turns, &self.scratch)?;
        let judged = group.claims.iter().filter_map(|claim| Some((claim.clone(), judge(claim, &outcomes)?)));
        let verdicts = judged.collect();
        Ok(Section { group, outcomes, verdicts })
    }
}

/// Builds keepup in release mode and returns its path.
fn build() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--release", "--package", "keepup-cli", "--message-format=json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .context("run cargo build")?;
    ensure!(output.status.success(), "cargo build failed");
    executable(&String::from_utf8_lossy(&output.stdout)).context("no path of keepup in the output of cargo")
}

/// Finds the program in the messages of cargo.
fn executable(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = messages.filter(|message| message["target"]["name"] == "keepup");
    programs.find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

#[cfg(test)]
#[path = "campaign_tests.rs"]
mod tests;
