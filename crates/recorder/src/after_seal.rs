//! Runs a program after each sealed segment, on a thread of its own.
//!
//! Invariants: keepers never wait for it; the number of running programs, including those that cannot be
//! killed, and of waiting segments is limited; no program runs longer than the time limit before it is
//! killed, and after the end of the recording no longer than that once more. A program that fails, or a
//! segment that is skipped, is an incident and no defect of the recording.
use std::collections::VecDeque;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use keepup_error::Cause;
use keepup_measure::clock::Clock;
use keepup_recording::account::{CommandCounts, Incidents};
use keepup_recording::id::Id;
use keepup_results::printable::visible;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::RecorderError;
use crate::threads::{Threaded, joined, spawn};

/// Most segments that wait for a program.
pub const QUEUE_MAX: usize = 1024;
/// Most programs at a time.
pub const JOBS_MAX: usize = 64;
/// Interval between looks at running programs.
const POLL: Duration = Duration::from_millis(20);
/// The same without running programs: only the next segment ends the wait.
const IDLE: Duration = Duration::from_secs(1);
/// Kept end of a program's stderr, bytes.
const STDERR_KEPT: usize = 2048;
/// Most bytes of stderr that are read at a time.
const STDERR_READ: usize = 64 << 10;
/// How long a killed program may take to end, in nanoseconds; it counts as failed then.
const KILL_NS: u64 = 5_000_000_000;

/// Command that runs after each sealed segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AfterSeal {
    /// Absolute path of the program.
    program: PathBuf,
    arguments: Vec<String>,
    /// Time limit of one run.
    pub timeout: Duration,
    /// Most runs at a time, 1 to [`JOBS_MAX`].
    pub jobs: usize,
}

impl AfterSeal {
    /// Splits `command` at white space and finds the program: by its path, or in the directories `search`
    /// (those of `PATH`). There is no quoting, and no shell.
    ///
    /// # Errors
    /// There is no such program, or it is not executable.
    pub fn parse(command: &str, search: &[PathBuf], timeout: Duration, jobs: usize) -> Result<Self, Cause> {
        let mut words = command.split_ascii_whitespace();
        let Some(name) = words.next() else { return Err("the command is empty".into()) };
        let is_executable = |path: &Path| {
            path.metadata().is_ok_and(|of| of.is_file() && of.permissions().mode() & 0o111 != 0)
        };
        let found = match name.contains('/') {
            true => Some(PathBuf::from(name)).filter(|path| is_executable(path)),
            false => search.iter().map(|dir| dir.join(name)).find(|path| is_executable(path)),
        };
        let absolute = found.and_then(|path| std::path::absolute(path).ok());
        let Some(program) = absolute else {
            let hint = "give the path of an executable file; for pipes or quotes, write a script";
            return Err(Cause::new(format!("no executable program {name:?} found")).with_hint(hint));
        };
        let arguments = words.map(str::to_owned).collect();
        Ok(Self { program, arguments, timeout, jobs: jobs.clamp(1, JOBS_MAX) })
    }

    fn command(&self, recording: Id, sealed: &SealedFile) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(&sealed.path);
        command.env("KEEPUP_SEGMENT", &sealed.path);
        command.env("KEEPUP_DIRECTORY", sealed.path.parent().unwrap_or(Path::new("/")));
        command.env("KEEPUP_RECORDING", recording.to_string());
        command.env("KEEPUP_VOLUME", sealed.volume.to_string());
        command.env("KEEPUP_SEGMENT_NUMBER", sealed.index.to_string());
        command.env("KEEPUP_SEGMENT_BYTES", sealed.bytes.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // Signals to keepup, such as Ctrl-C in a terminal, do not reach it, and it can be killed with its
        // children.
        command.process_group(0);
        command
    }
}

/// A sealed segment.
#[derive(Clone, Debug)]
pub(crate) struct SealedFile {
    pub(crate) path: PathBuf,
    pub(crate) volume: u32,
    pub(crate) index: u32,
    pub(crate) bytes: u64,
}

/// A keeper's end of the queue.
#[derive(Clone, Debug)]
pub(crate) struct SealNotifier {
    queue: SyncSender<SealedFile>,
    skipped: Arc<AtomicU64>,
}

impl SealNotifier {
    /// Enters a sealed segment, or counts it as skipped if too many wait.
    pub(crate) fn sealed(&self, mut sealed: SealedFile) {
        if let Ok(path) = std::path::absolute(&sealed.path) {
            sealed.path = path;
        }
        if self.queue.try_send(sealed).is_err() {
            self.skipped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The thread that runs the programs of one recording.
pub(crate) struct SealRunner {
    thread: Threaded<(CommandCounts, Incidents)>,
    /// The recording has ended.
    is_over: Arc<AtomicBool>,
}

impl SealRunner {
    /// Starts the thread. It ends after all notifiers are dropped.
    pub(crate) fn start(
        config: AfterSeal,
        recording: Id,
        clock: Arc<dyn Clock>,
    ) -> Result<(SealNotifier, Self), RecorderError> {
        let (queue, inbox) = sync_channel(QUEUE_MAX);
        let (skipped, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let mut runs = Runs::new(config, recording, clock, inbox, Arc::clone(&is_over));
        let for_thread = Arc::clone(&skipped);
        let work = move || {
            // The programs inherit both.
            keepup_sys::thread::yield_to_others();
            let _ = keepup_sys::thread::yield_disk();
            runs.run();
            runs.count_skipped(for_thread.load(Ordering::Relaxed));
            Ok((runs.counts, runs.incidents))
        };
        let thread = spawn("ku-after-seal".to_owned(), Vec::new(), work)?;
        Ok((SealNotifier { queue, skipped }, Self { thread, is_over }))
    }

    /// Waits for the programs of an ended recording, within the time limit.
    pub(crate) fn join(self) -> Result<(CommandCounts, Incidents), RecorderError> {
        self.is_over.store(true, Ordering::Release);
        Ok(joined("ku-after-seal", self.thread)?.0)
    }
}

/// Why a program was killed.
#[derive(Clone, Copy, Debug)]
enum Killed {
    /// It took longer than the time limit.
    Slow,
    /// The time after the end of the recording is over.
    Ended,
}

/// A running program.
struct Running {
    child: Child,
    sealed: SealedFile,
    /// End of its time limit, monotonic.
    until_ns: u64,
    /// When it was killed, monotonic, and why.
    killed: Option<(u64, Killed)>,
    /// End of its stderr.
    stderr: Vec<u8>,
}

/// State of the thread.
struct Runs {
    config: AfterSeal,
    recording: Id,
    clock: Arc<dyn Clock>,
    inbox: Receiver<SealedFile>,
    is_over: Arc<AtomicBool>,
    running: VecDeque<Running>,
    /// Killed programs that do not end, for example because a file server does not answer.
    stuck: Vec<Child>,
    /// Next segment, for which no program may run yet.
    waiting: Option<SealedFile>,
    /// Time limit for all programs after the end of the recording.
    deadline_ns: Option<u64>,
    counts: CommandCounts,
    incidents: Incidents,
}

impl Runs {
    fn new(
        config: AfterSeal,
        recording: Id,
        clock: Arc<dyn Clock>,
        inbox: Receiver<SealedFile>,
        is_over: Arc<AtomicBool>,
    ) -> Self {
        Self {
            config,
            recording,
            clock,
            inbox,
            is_over,
            running: VecDeque::new(),
            stuck: Vec::new(),
            waiting: None,
            deadline_ns: None,
            counts: CommandCounts::default(),
            incidents: Incidents::default(),
        }
    }

    fn run(&mut self) {
        loop {
            let now_ns = self.clock.now_ns();
            if self.deadline_ns.is_none() && self.is_over.load(Ordering::Acquire) {
                self.deadline_ns = Some(now_ns.saturating_add(self.timeout_ns()));
            }
            self.watch(now_ns);
            let is_busy = !self.running.is_empty() || !self.stuck.is_empty();
            match self.waiting.take() {
                Some(sealed) => {
                    self.begin_or_wait(sealed, now_ns);
                    if self.waiting.is_some() {
                        self.clock.sleep_until_ns(now_ns + POLL.as_nanos() as u64);
                    }
                }
                None => match self.inbox.recv_timeout(if is_busy { POLL } else { IDLE }) {
                    Ok(sealed) => self.waiting = Some(sealed),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) if self.running.is_empty() => return,
                    Err(RecvTimeoutError::Disconnected) => {
                        self.clock.sleep_until_ns(now_ns + POLL.as_nanos() as u64);
                    }
                },
            }
        }
    }

    /// Runs the program for a segment, or lets the segment wait; skips it after the deadline.
    fn begin_or_wait(&mut self, sealed: SealedFile, now_ns: u64) {
        if self.deadline_ns.is_some_and(|deadline| now_ns >= deadline) {
            self.counts.skipped += 1;
        } else if self.running.len() + self.stuck.len() >= self.config.jobs {
            self.waiting = Some(sealed);
        } else {
            self.begin(sealed);
        }
    }

    fn timeout_ns(&self) -> u64 {
        u64::try_from(self.config.timeout.as_nanos()).unwrap_or(u64::MAX)
    }

    fn begin(&mut self, sealed: SealedFile) {
        let started = self.config.command(self.recording, &sealed).spawn().and_then(|child| {
            if let Some(stderr) = &child.stderr {
                fcntl_setfl(stderr, OFlags::NONBLOCK)?;
            }
            // The recorder may be protected from the OOM killer; the program must not inherit that.
            let _ = std::fs::write(format!("/proc/{}/oom_score_adj", child.id()), "1000");
            Ok(child)
        });
        let until_ns = self.clock.now_ns().saturating_add(self.timeout_ns());
        match started {
            Ok(child) => {
                let stderr = Vec::new();
                self.running.push_back(Running { child, sealed, until_ns, killed: None, stderr });
            }
            Err(error) => self.fail(&sealed, &format!("cannot start it: {error}"), &[]),
        }
    }

    /// Reads from running programs, ends those that take too long, and counts those that have ended.
    fn watch(&mut self, now_ns: u64) {
        self.stuck.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        for _ in 0..self.running.len() {
            let Some(mut one) = self.running.pop_front() else { return };
            one.read_stderr();
            match one.child.try_wait() {
                Ok(None) if one.killed.is_some_and(|(at, _)| now_ns >= at.saturating_add(KILL_NS)) => {
                    self.fail(&one.sealed, "it was killed and does not end", &one.stderr);
                    self.stuck.push(one.child);
                }
                Ok(None) => {
                    let is_after = |limit_ns: u64| now_ns >= limit_ns;
                    let why = match (is_after(one.until_ns), self.deadline_ns.is_some_and(is_after)) {
                        (true, _) => Some(Killed::Slow),
                        (false, true) => Some(Killed::Ended),
                        (false, false) => None,
                    };
                    if let (Some(why), None) = (why, one.killed) {
                        one.kill();
                        one.killed = Some((now_ns, why));
                    }
                    self.running.push_back(one);
                }
                Ok(Some(status)) => self.end(one, status),
                Err(error) => self.fail(&one.sealed, &format!("cannot wait for it: {error}"), &one.stderr),
            }
        }
    }

    fn end(&mut self, mut one: Running, status: ExitStatus) {
        one.read_stderr();
        let limit = self.config.timeout.as_secs_f64();
        let why = match one.killed {
            Some((_, Killed::Slow)) => format!("killed, because it took longer than {limit} s"),
            Some((_, Killed::Ended)) => format!("killed {limit} s after the end of the recording"),
            None if status.success() => {
                self.counts.succeeded += 1;
                return;
            }
            None => status.to_string(),
        };
        self.fail(&one.sealed, &why, &one.stderr);
    }

    fn fail(&mut self, sealed: &SealedFile, why: &str, stderr: &[u8]) {
        self.counts.failed += 1;
        let (program, segment) = (self.config.program.display(), sealed.path.display());
        let text = String::from_utf8_lossy(stderr);
        let text = visible(text.trim()).replace("\\n", "; ");
        let said = if text.is_empty() { String::new() } else { format!("; stderr: {text}") };
        self.incidents.push(format!("cannot run {program} for {segment}: {why}{said}"));
    }

    /// Reports segments that were skipped, here and by the keepers.
    fn count_skipped(&mut self, by_keepers: u64) {
        let (program, limit) = (self.config.program.display(), self.config.timeout.as_secs_f64());
        if by_keepers > 0 {
            self.incidents.push(format!(
                "{program} was not run for {by_keepers} segments, because it is slower than the recording"
            ));
        }
        if self.counts.skipped > 0 {
            let skipped = self.counts.skipped;
            self.incidents.push(format!(
                "{program} was not run for {skipped} segments that still waited {limit} s after the end of \
                 the recording"
            ));
        }
        self.counts.skipped += by_keepers;
    }
}

impl Running {
    /// Takes what the program has written to stderr, without waiting.
    fn read_stderr(&mut self) {
        let Some(stderr) = &mut self.child.stderr else { return };
        let mut text = vec![0; STDERR_READ];
        if let Ok(read) = stderr.read(&mut text) {
            self.stderr.extend_from_slice(&text[..read]);
            let surplus = self.stderr.len().saturating_sub(STDERR_KEPT);
            self.stderr.drain(..surplus);
        }
    }

    /// Kills the program and its children.
    fn kill(&mut self) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.kill();
    }
}

#[cfg(test)]
#[path = "after_seal_tests.rs"]
mod tests;
