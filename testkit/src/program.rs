//! The program under test as a child process.
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use keepup_sys::process::Process;

/// Time limit of a child: kills a hanging one, but not a slow one on a busy machine.
const LIMIT: Duration = Duration::from_secs(300);

/// A child process whose output is collected.
#[derive(Debug)]
pub struct Program {
    child: Process,
    stdout: Option<JoinHandle<Vec<u8>>>,
    lines: Receiver<String>,
    heard: Vec<String>,
}

/// Result of a child.
#[derive(Debug)]
pub struct Run {
    /// Exit status.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// CPU time according to the kernel (`wait4`), nanoseconds.
    pub cpu_ns: u64,
}

impl Program {
    /// Starts `program` with `arguments` in `directory`.
    ///
    /// # Panics
    /// It cannot be started.
    pub fn start(program: &str, arguments: &[&str], directory: &Path) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(directory);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Process::start(command).unwrap_or_else(|e| panic!("cannot start {program}: {e}"));
        let mut out = child.take_stdout().unwrap_or_else(|| panic!("no stdout"));
        let err = child.take_stderr().unwrap_or_else(|| panic!("no stderr"));
        let stdout = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            drop(out.read_to_end(&mut bytes));
            bytes
        });
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(err).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, stdout: Some(stdout), lines, heard: Vec::new() }
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Rest of the first stderr line that starts with `start`.
    ///
    /// # Panics
    /// It ends or times out without such a line.
    pub fn line(&mut self, start: &str) -> String {
        self.line_that(|line| line.starts_with(start), start)[start.len()..].to_owned()
    }

    /// First stderr line accepted by `fits`.
    ///
    /// # Panics
    /// It ends or times out without such a line, described by `wanted`.
    pub fn line_that(&mut self, fits: impl Fn(&str) -> bool, wanted: &str) -> String {
        let deadline = Instant::now() + LIMIT;
        loop {
            if let Some(line) = self.heard.iter().find(|line| fits(line)) {
                return line.clone();
            }
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.heard.push(line),
                Err(e) => panic!("no line {wanted:?} ({e})"),
            }
        }
    }

    /// Listening address reported by a recorder.
    ///
    /// # Panics
    /// It reports none.
    pub fn address(&mut self) -> SocketAddr {
        let text = self.line("listening on ");
        text.parse().unwrap_or_else(|e| panic!("{text:?} is no address: {e}"))
    }

    /// Sends a signal by name, as in "TERM".
    pub fn signal(&self, name: &str) {
        drop(Command::new("kill").args(["-s", name, &self.id().to_string()]).status());
    }

    /// Waits for the exit.
    ///
    /// # Panics
    /// It times out; the child is killed.
    pub fn wait(self) -> Run {
        self.wait_for(LIMIT)
    }

    /// Waits for the exit with this time limit.
    ///
    /// # Panics
    /// It times out; the child is killed.
    pub fn wait_for(mut self, limit: Duration) -> Run {
        let ended = match self.child.wait(limit) {
            Ok(Some(ended)) => ended,
            other => panic!("child {} did not end ({other:?})", self.id()),
        };
        let stdout = self.stdout.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        let mut stderr = std::mem::take(&mut self.heard);
        while let Ok(line) = self.lines.recv_timeout(Duration::from_secs(30)) {
            stderr.push(line);
        }
        Run {
            status: ended.status,
            stdout: String::from_utf8_lossy(&stdout).into_owned(),
            stderr: stderr.join("\n"),
            cpu_ns: ended.user_ns + ended.system_ns,
        }
    }
}

/// A test that fails prints what each of its programs said.
impl Drop for Program {
    #[expect(clippy::print_stderr, reason = "the test harness shows it with the failure")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.heard.extend(self.lines.try_iter());
            eprintln!("child {} said on stderr: {:#?}", self.child.id(), self.heard);
        }
    }
}

impl Run {
    /// Exit code; -1 for a signal.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or(-1)
    }
}

/// Temporary directory below `parent`, removed when dropped.
///
/// # Panics
/// It cannot be created.
pub fn free_directory(parent: &str) -> tempfile::TempDir {
    let parent = PathBuf::from(parent);
    std::fs::create_dir_all(&parent).unwrap_or_else(|e| panic!("cannot make {}: {e}", parent.display()));
    tempfile::tempdir_in(&parent).unwrap_or_else(|e| panic!("no directory below {}: {e}", parent.display()))
}
