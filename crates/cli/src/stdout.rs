//! The only writer to stdout.
//!
//! A text that could not be written is remembered and decides the exit code (see [`finish`]): a result on a
//! full disk must not look like a result. A closed pipe is not an error, because the reader stopped reading
//! on purpose (`keepup info … | head -1`).
use std::io::{self, ErrorKind, IsTerminal as _, StdoutLock, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use keepup_error::Cause;

use crate::exit::Exit;
use crate::output::log_cause;

/// Whether a part of the output is missing.
static IS_INCOMPLETE: AtomicBool = AtomicBool::new(false);

/// Stdout for bytes whose writer handles errors itself.
#[expect(clippy::disallowed_methods, reason = "this module checks what is written to stdout")]
pub(crate) fn lock() -> StdoutLock<'static> {
    io::stdout().lock()
}

/// Whether stdout is a terminal.
pub(crate) fn is_terminal() -> bool {
    lock().is_terminal()
}

/// Prints a text and a line feed.
pub(crate) fn print(text: &str) {
    let mut out = lock();
    check(out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()));
}

/// Reports a failed write to stdout.
pub(crate) fn check(outcome: io::Result<()>) {
    match outcome {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let why = Cause::new(format!("cannot write to stdout: {error}"));
            report_once(why.with_hint("the output is incomplete: write it to a disk with free space"));
        }
        _ => {}
    }
}

/// Reports the first failure; later ones have the same cause.
fn report_once(why: Cause) {
    if !IS_INCOMPLETE.swap(true, Ordering::Relaxed) {
        log_cause(&why.map(|why| format!("error: {why}")));
    }
}

/// Reports a file of a result that could not be written. What was measured is still printed, so the command
/// goes on.
pub(crate) fn missing_file(why: &Cause) {
    IS_INCOMPLETE.store(true, Ordering::Relaxed);
    log_cause(&why.clone().map(|why| format!("error: {why}")));
}

/// Exit code of the program: a success with missing output is none.
pub(crate) fn finish(exit: Exit) -> Exit {
    check(lock().flush());
    finished(exit, IS_INCOMPLETE.load(Ordering::Relaxed))
}

fn finished(exit: Exit, is_incomplete: bool) -> Exit {
    if is_incomplete && exit.is_success() { Exit::Environment } else { exit }
}

#[cfg(test)]
#[path = "stdout_tests.rs"]
mod tests;
