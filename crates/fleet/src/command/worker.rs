//! The worker of a host that runs commands.
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use keepup_campaign::run_command;

use super::archive::pack;
use super::check::{Checker, Refusal};
use super::plan::{CommandEnd, CommandPlan};
use super::program::Program;
use crate::agent_loop::{Reports, Worker};
use crate::directories::Directories;
use crate::host::Done;
use crate::message::Counters;
use crate::part::{LatestPart, PartControl};
use crate::placement::View;
use crate::reply::{Reply, ReplyError, ReplyWriter};

/// Worker of an agent.
pub struct CommandWorker {
    shared: Arc<Shared>,
    part: LatestPart,
}

/// What the threads of the parts share.
struct Shared {
    checker: Arc<Checker>,
    /// The latest answer and the number of its run.
    answer: Mutex<(u64, Reply)>,
}

impl CommandWorker {
    /// A worker that runs commands of `program`, which write only to `directories`.
    pub fn new(program: Box<dyn Program>, directories: Directories) -> Self {
        let checker = Arc::new(Checker::new(program, directories));
        let shared = Shared { checker, answer: Mutex::default() };
        Self { shared: Arc::new(shared), part: LatestPart::default() }
    }
}

impl Shared {
    fn execute(&self, plan: &CommandPlan, control: &PartControl) -> Result<String, String> {
        let stop = control.stop_flag();
        let reply = match plan {
            CommandPlan::Part { of, number } => {
                let answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
                return match answer.0 == *of {
                    true => answer.1.part(*number).map_err(|error| error.to_string()),
                    false => Err(format!("the answer of run {of} was replaced by a later one")),
                };
            }
            CommandPlan::Check(commands) => {
                if !begin(control) {
                    return Err(STOPPED.to_owned());
                }
                let found = self.checker.check_all(commands, &stop);
                let text = serde_json::to_string(&found).map_err(|error| error.to_string())?;
                let mut writer = ReplyWriter::new();
                writer.write(text.as_bytes()).and_then(|()| writer.finish())
            }
            CommandPlan::Run(arguments) => {
                if !begin(control) {
                    return Err(STOPPED.to_owned());
                }
                // Again: a link may have changed since the check before the first run.
                match self.checker.check(arguments, &stop) {
                    Ok(_) => self.run(arguments, &stop)?,
                    // The result is that of a command that fails at its start.
                    Err(Refusal::DryRun(status, output)) => pack(end_of(status), output.path()),
                    Err(refusal) => return Err(refusal.text()),
                }
            }
        };
        let reply = reply.map_err(|error| error.to_string())?;
        let first = reply.part(0).map_err(|error| error.to_string())?;
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = (control.run, reply);
        Ok(first)
    }

    /// Runs a command that was checked; returns its result.
    fn run(&self, arguments: &[String], stop: &AtomicBool) -> Result<Result<Reply, ReplyError>, String> {
        let output = tempfile::Builder::new().prefix("keepup-campaign-").tempdir();
        let output = output.map_err(|error| format!("cannot create a temporary directory: {error}"))?;
        let mut command = self.checker.program.command(arguments);
        command.arg("--out").arg(output.path());
        let status = run_command(command, output.path(), &|| stop.load(Ordering::Acquire))?;
        Ok(pack(end_of(status), output.path()))
    }
}

fn end_of(status: ExitStatus) -> CommandEnd {
    CommandEnd { code: status.code(), signal: status.signal() }
}

/// Why a part that was asked to end has no result.
const STOPPED: &str = "it was asked to end before it started";

/// Waits for the start; returns false if the part is to end before.
fn begin(control: &PartControl) -> bool {
    control.report(Done::Prepared { run: control.run, address: None });
    control.wait().is_some()
}

impl Worker for CommandWorker {
    fn prepare(&mut self, run: u64, plan: &str, reports: &Reports) {
        let shared = Arc::clone(&self.shared);
        self.part
            .prepare((run, plan), reports, move |plan: &CommandPlan, control| shared.execute(plan, control));
    }

    fn start(&mut self, run: u64, until: Duration, _reports: &Reports) {
        self.part.start(run, until);
    }

    fn finish(&mut self, run: u64, at_once: bool, reports: &Reports) {
        self.part.finish(run, at_once, reports);
    }

    fn moved(&mut self, _view: &View) {}

    fn leased(&mut self, _until_ns: u64) {}

    fn counters(&self) -> Counters {
        Counters::default()
    }
}

#[cfg(test)]
#[path = "worker_tests.rs"]
mod tests;
