//! One program under way: what it prints, what it has used so far, how it ends.

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use keepup_sys::process::{Ended, Process};

use super::loopback;

/// How long a receiver may take until it listens and has finished its preparations.
const PREPARATION_LIMIT: Duration = Duration::from_secs(30);
/// Preparations have finished when CPU time stands still for this long.
const QUIET: Duration = Duration::from_millis(300);
/// What may be used in that time without counting as work, in ns.
const QUIET_CPU_NS: u64 = 2_000_000;

/// A program under way.
pub(super) struct Running {
    name: String,
    process: Process,
    stdout: JoinHandle<String>,
    stderr: JoinHandle<String>,
}

impl Running {
    /// Starts a program; its output is collected.
    pub(super) fn start(mut command: Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Process::start(command).with_context(|| format!("start {name}"))?;
        let (stdout, stderr) = (collect(process.take_stdout()), collect(process.take_stderr()));
        Ok(Self { name, process, stdout, stderr })
    }

    /// Its process id.
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Waits until it listens on the port, in the network that it is in, and has nothing left to prepare.
    pub(super) fn await_ready(&mut self, port: u16) -> Result<()> {
        let deadline = Instant::now() + PREPARATION_LIMIT;
        while !loopback::is_listening(self.process.id(), port) {
            if let Some(ended) = self.wait(Duration::from_millis(10))? {
                bail!("{} ended before it listened: {}", self.name, ended.status);
            }
            if Instant::now() > deadline {
                bail!("{} does not listen on port {port}", self.name);
            }
        }
        let mut before_ns = self.cpu_ns();
        while self.wait(QUIET)?.is_none() && Instant::now() < deadline {
            let now_ns = self.cpu_ns();
            if now_ns.unwrap_or(0) <= before_ns.unwrap_or(0) + QUIET_CPU_NS {
                return Ok(());
            }
            before_ns = now_ns;
        }
        bail!("{} was not ready within {} s", self.name, PREPARATION_LIMIT.as_secs())
    }

    /// CPU that its threads have used up to now, in ns, by the scheduler's exact account (the first number of
    /// Documentation/scheduler/sched-stats.rst); `None` where the kernel keeps none. Threads that have ended
    /// are missing.
    pub(super) fn cpu_ns(&self) -> Option<u64> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.process.id())).ok()?;
        let run_ns = |text: String| text.split_ascii_whitespace().next()?.parse::<u64>().ok();
        let texts = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok());
        texts.map(run_ns).sum()
    }

    /// Waits for its end, at most for `limit`.
    pub(super) fn wait(&mut self, limit: Duration) -> Result<Option<Ended>> {
        self.process.wait(limit).with_context(|| format!("wait for {}", self.name))
    }

    /// Waits for its end, at most for `limit`; what it used and printed. Fails when it failed or has to be
    /// killed.
    pub(super) fn finish(self, limit: Duration) -> Result<(Ended, String)> {
        self.finish_with(limit, &[0])
    }

    /// The same where it may also end with other `codes`.
    pub(super) fn finish_with(mut self, limit: Duration, codes: &[i32]) -> Result<(Ended, String)> {
        let Some(ended) = self.wait(limit)? else {
            bail!("{} did not end within {} s", self.name, limit.as_secs());
        };
        let stdout = self.stdout.join().unwrap_or_default();
        if !ended.status.code().is_some_and(|code| codes.contains(&code)) {
            let stderr = self.stderr.join().unwrap_or_default();
            bail!("{} failed ({}): {}", self.name, ended.status, last_words(&stderr, &stdout));
        }
        Ok((ended, stdout))
    }
}

/// The last lines that a program printed for people, on standard error or else on standard output, there
/// before its JSON if anything is.
fn last_words(stderr: &str, stdout: &str) -> String {
    let before_json = stdout.split("\n{").next().filter(|before| !before.starts_with('{'));
    let text = if stderr.trim().is_empty() { before_json.unwrap_or(stdout) } else { stderr };
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join("; ")
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read until a failure is as good as the rest will be.
        drop(pipe.map(|mut pipe| pipe.read_to_end(&mut bytes)));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

#[cfg(test)]
#[path = "children_tests.rs"]
mod tests;
