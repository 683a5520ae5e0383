//! Running program: output, CPU use and exit.

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use keepup_measure::sum::Sums;
use keepup_sys::process::{Ended, Process};

use super::loopback;

/// Longest start-up time of a receiver.
const PREPARATION_LIMIT: Duration = Duration::from_secs(30);
/// A program is ready when its CPU time has not risen for this long.
const QUIET: Duration = Duration::from_millis(300);
/// CPU time in that interval that does not count as work, ns.
const QUIET_CPU_NS: u64 = 2_000_000;

/// Running program.
pub(super) struct Running {
    name: String,
    process: Process,
    stdout: JoinHandle<String>,
    stderr: JoinHandle<String>,
}

impl Running {
    /// Starts a program and collects its output.
    pub(super) fn start(mut command: Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Process::start(command).with_context(|| format!("start {name}"))?;
        let (stdout, stderr) = (collect(process.take_stdout()), collect(process.take_stderr()));
        Ok(Self { name, process, stdout, stderr })
    }

    /// Process id.
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Waits until it listens on the port in its network namespace and is idle.
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

    /// CPU time of its threads, ns, from the scheduler statistics (first number, see
    /// Documentation/scheduler/sched-stats.rst), if available. Excludes threads that have ended.
    pub(super) fn cpu_ns(&self) -> Option<u64> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.process.id())).ok()?;
        let run_ns = |text: String| text.split_ascii_whitespace().next()?.parse::<u64>().ok();
        let texts = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok());
        Some(texts.map(run_ns).collect::<Option<Vec<u64>>>()?.iter().saturating_sum())
    }

    /// Waits for its exit, at most for `limit`.
    pub(super) fn wait(&mut self, limit: Duration) -> Result<Option<Ended>> {
        self.process.wait(limit).with_context(|| format!("wait for {}", self.name))
    }

    /// Waits for a successful exit, at most for `limit`. Returns resource usage and output.
    pub(super) fn finish(self, limit: Duration) -> Result<(Ended, String)> {
        self.finish_with(limit, &[0])
    }

    /// Like [`Self::finish`], with other accepted exit `codes`.
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

/// Last lines of standard error, or of standard output before any JSON.
fn last_words(stderr: &str, stdout: &str) -> String {
    let before_json = stdout.split("\n{").next().filter(|before| !before.starts_with('{'));
    let text = if stderr.trim().is_empty() { before_json.unwrap_or(stdout) } else { stderr };
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join("; ")
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // Keeps what was read before an error.
        drop(pipe.map(|mut pipe| pipe.read_to_end(&mut bytes)));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

#[cfg(test)]
#[path = "children_tests.rs"]
mod tests;
