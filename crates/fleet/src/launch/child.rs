//! One agent's program: its process, standard input and standard error.
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process_group};

/// Longest forwarded line, bytes.
const LINE_BYTES_MAX: u64 = 1_024;
/// Limit on forwarded lines.
const LINES_MAX: usize = 200;
/// Initial value of `looks_left`.
const LOOKS: u32 = 2;
/// Stack of the thread that reads standard error, bytes.
const STACK_BYTES: usize = 128 << 10;

/// Message from the thread of an agent.
pub(super) enum Note {
    /// Standard input, after the first line.
    Input(ChildStdin),
    /// A line of standard error.
    Line(String),
    /// Standard error is closed: the process has probably exited.
    Silent,
}

/// A running agent.
#[derive(Debug)]
pub(super) struct Agent {
    pub(super) child: Child,
    /// Held open, because closing it ends the agent.
    pub(super) input: Option<ChildStdin>,
    /// Deadline for joining, ns; none once it has joined or was given up.
    pub(super) join_by_ns: Option<u64>,
    pub(super) is_given_up: bool,
    /// Number of checks for its exit to skip while standard error is open.
    pub(super) looks_left: u32,
}

impl Agent {
    /// Ends the program.
    pub(super) fn give_up(&mut self) {
        (self.input, self.join_by_ns, self.is_given_up) = (None, None, true);
        // Its children too, such as those of a shell; it may have ended.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
    }
}

/// Starts a program.
pub(super) fn start(
    command: &[String],
    line: String,
    join_by_ns: u64,
    report: impl Fn(Note) + Send + 'static,
) -> Result<Agent, String> {
    let (program, arguments) = command.split_first().ok_or("its command is empty")?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        // Ctrl-C is for the controller, which lets the agents end their parts.
        .process_group(0)
        .spawn()
        .map_err(|error| format!("cannot start {program}: {error}"))?;
    let pipes = (child.stdin.take(), child.stderr.take());
    let mut agent =
        Agent { child, input: None, join_by_ns: Some(join_by_ns), is_given_up: false, looks_left: LOOKS };
    let (Some(mut input), Some(errors)) = pipes else { return Err("it has no pipes".to_owned()) };
    let run = move || {
        // An error means that the process has exited, which is detected elsewhere.
        drop(input.write_all(line.as_bytes()).and_then(|()| input.flush()));
        report(Note::Input(input));
        pass_on(errors, &report);
        report(Note::Silent);
    };
    if let Err(error) = thread::Builder::new().name("ku-agent".into()).stack_size(STACK_BYTES).spawn(run) {
        agent.give_up();
        drop(agent.child.wait());
        return Err(format!("cannot start a thread: {error}"));
    }
    Ok(agent)
}

/// Forwards lines until the end. Output beyond the limits is read and dropped, so the agent never blocks.
fn pass_on(errors: ChildStderr, report: &impl Fn(Note)) {
    let mut errors = BufReader::new(errors);
    let mut left = LINES_MAX;
    loop {
        let mut line = Vec::new();
        match (&mut errors).take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if left == 0 => {}
            Ok(_) => {
                left -= 1;
                report(Note::Line(printable(&line)));
                if left == 0 {
                    report(Note::Line(format!("(only the first {LINES_MAX} lines are shown)")));
                }
            }
        }
    }
}

/// Replaces control characters, which could change the terminal.
fn printable(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    text.trim_end().chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
