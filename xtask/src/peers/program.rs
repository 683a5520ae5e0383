//! One program that does all phases in one run and tells of each itself.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use keepup_sys::process::Ended;

use super::children::Running;
use super::contestant::{Contestant, Place, Run};
use super::tools::{Tool, file_name, typed};
use super::transfer::cpu_ns;

/// The phase that stands for all of them: CPU of the process.
pub(super) const WHOLE: &str = "whole run";

/// Reads the phases out of what a program printed.
pub(super) type Reader = Box<dyn Fn(&str) -> Result<Vec<Run>>>;

/// A program, its arguments, and how it tells of its phases.
pub(super) struct Program {
    /// Its name in tables and flags.
    pub(super) name: &'static str,
    /// What is started, in the directory where it is to write.
    pub(super) program: PathBuf,
    /// With these arguments; paths are relative.
    pub(super) arguments: Vec<String>,
    /// The arguments for people, where they are too many.
    pub(super) shown: Option<String>,
    /// What somebody else has to install.
    pub(super) tool: Option<&'static Tool>,
    /// How it tells of its phases.
    pub(super) read: Reader,
}

impl Program {
    /// Runs in `directory`; how it ended, and its phases.
    pub(super) fn once(&self, directory: &Path, limit: Duration) -> Result<(Ended, Vec<Run>)> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).current_dir(directory);
        let (ended, said) = Running::start(command)?.finish(limit)?;
        let phases = (self.read)(&said)?;
        Ok((ended, phases))
    }

    /// The command line for people.
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

    fn run(&self, place: &Place<'_>) -> Result<Vec<Run>> {
        let (ended, mut phases) = self.once(place.directory, place.limit)?;
        let whole = Run {
            phase: WHOLE.to_owned(),
            bytes: phases.iter().map(|phase| phase.bytes).sum(),
            seconds: phases.iter().map(|phase| phase.seconds).sum(),
            cpu_ns: Some(cpu_ns(&ended)),
            billed_ns: phases.iter().map(|phase| phase.billed_ns).sum(),
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
