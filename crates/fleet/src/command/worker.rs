//! The worker of a host that runs commands.
use std::os::unix::process::ExitStatusExt as _;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use keepup_campaign::run_command;

use super::archive::pack;
use super::check::{check, check_all};
use super::plan::{CommandEnd, CommandPlan};
use super::program::Program;
use crate::agent_loop::{Reports, Worker};
use crate::directories::Directories;
use crate::host::Done;
use crate::message::Counters;
use crate::part::{LatestPart, PartControl};
use crate::placement::View;
use crate::reply::{Reply, ReplyWriter};

/// Worker of an agent.
pub struct CommandWorker {
    shared: Arc<Shared>,
    part: LatestPart,
}

/// What the threads of the parts share.
struct Shared {
    program: Box<dyn Program>,
    directories: Directories,
    /// The latest answer and the number of its run.
    answer: Mutex<(u64, Reply)>,
}

impl CommandWorker {
    /// A worker that runs commands of `program`, which write only to `directories`.
    pub fn new(program: Box<dyn Program>, directories: Directories) -> Self {
        let shared = Shared { program, directories, answer: Mutex::default() };
        Self { shared: Arc::new(shared), part: LatestPart::default() }
    }
}

impl Shared {
    fn execute(&self, plan: &CommandPlan, control: &PartControl) -> Result<String, String> {
        let stop = control.stop_flag();
        let is_stopped = || stop.load(Ordering::Acquire);
        let reply = match plan {
            CommandPlan::Part { of, number } => {
                let answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
                return match answer.0 == *of {
                    true => answer.1.part(*number).map_err(|error| error.to_string()),
                    false => Err(format!("the answer of run {of} is not here any more")),
                };
            }
            CommandPlan::Check(commands) => {
                if !begin(control) {
                    return Err(STOPPED.to_owned());
                }
                let found = check_all(&*self.program, &self.directories, commands, &is_stopped);
                let text = serde_json::to_string(&found).map_err(|error| error.to_string())?;
                let mut writer = ReplyWriter::new();
                writer.write(text.as_bytes()).and_then(|()| writer.finish())
            }
            CommandPlan::Run(arguments) => {
                if !begin(control) {
                    return Err(STOPPED.to_owned());
                }
                let place = tempfile::Builder::new().prefix("keepup-campaign-").tempdir();
                let place = place.map_err(|error| format!("cannot create a directory: {error}"))?;
                // Again: a link may have changed since the check before the first run.
                check(&*self.program, &self.directories, arguments, &is_stopped)?;
                let mut command = self.program.command(arguments);
                command.arg("--out").arg(place.path());
                let status = run_command(command, place.path(), &is_stopped)?;
                pack(CommandEnd { code: status.code(), signal: status.signal() }, place.path())
            }
        };
        let reply = reply.map_err(|error| error.to_string())?;
        let first = reply.part(0).map_err(|error| error.to_string())?;
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = (control.run, reply);
        Ok(first)
    }
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

    fn finish(&mut self, run: u64, reports: &Reports) {
        self.part.finish(run, reports);
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
