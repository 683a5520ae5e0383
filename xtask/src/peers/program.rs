//! Program that runs all phases at once and reports each of them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use keepup_measure::sum::Sums;
use keepup_sys::process::Ended;

use super::children::Running;
use super::contestant::{Contestant, Run, RunLimits};
use super::tools::{Tool, file_name, typed};
use super::transfer::cpu_ns;

/// Phase that sums up the whole process, for its CPU.
pub(super) const WHOLE: &str = "whole run";

/// Parser of the phases in the output of a program.
pub(super) type Reader = Box<dyn Fn(&str) -> Result<Vec<Run>>>;

/// Program with its arguments and output parser.
pub(super) struct Program {
    /// Name in tables and flags.
    pub(super) name: &'static str,
    /// Path of the program. It is started in its data directory.
    pub(super) program: PathBuf,
    /// Arguments with relative paths.
    pub(super) arguments: Vec<String>,
    /// Shortened arguments for display.
    pub(super) shown: Option<String>,
    /// External program that must be installed.
    pub(super) tool: Option<&'static Tool>,
    /// Output parser.
    pub(super) read: Reader,
}

impl Program {
    /// Runs in `directory`. Returns resource usage and phases.
    pub(super) fn once(&self, directory: &Path, limit: Duration) -> Result<(Ended, Vec<Run>)> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).current_dir(directory);
        let (ended, said) = Running::start(command)?.finish(limit)?;
        let phases = (self.read)(&said)?;
        Ok((ended, phases))
    }

    /// Command line for display.
    pub(super) fn shown(&self) -> String {
        match &self.shown {
            Some(arguments) => format!("`{} {arguments}`", file_name(&self.program)),
            None => typed(&self.program, &self.arguments),
        }
    }
}

impl Contestant for Program {
    fn name(&self) -> &str {
        self.name
    }

    fn command(&self) -> String {
        self.shown()
    }

    fn tool(&self) -> Option<&'static Tool> {
        self.tool
    }

    fn run(&self, limits: &RunLimits<'_>) -> Result<Vec<Run>> {
        let (ended, mut phases) = self.once(limits.directory, limits.time)?;
        let whole = Run {
            phase: WHOLE.to_owned(),
            bytes: phases.iter().map(|phase| phase.bytes).saturating_sum(),
            seconds: phases.iter().map(|phase| phase.seconds).float_sum(),
            cpu_ns: Some(cpu_ns(&ended)),
            billed_ns: phases
                .iter()
                .map(|phase| phase.billed_ns)
                .collect::<Option<Vec<_>>>()
                .map(|all| all.iter().saturating_sum()),
            resident_bytes_max: Some(ended.resident_bytes_max),
            ..Run::default()
        };
        phases.push(whole);
        Ok(phases)
    }
}

#[cfg(test)]
#[path = "program_tests.rs"]
mod tests;
