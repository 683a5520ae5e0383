//! The only writer to stdout.
//!
//! A text that could not be written is remembered and decides the exit code (see [`finish`]): a result on a
//! full disk must not look like a result. A closed pipe is not an error, because the reader stopped reading
//! on purpose (`keepup info … | head -1`).
use std::io::{self, ErrorKind, IsTerminal as _, StdoutLock, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use keepup_error::Cause;

use crate::exit::Exit;

/// The first failed write.
static FAILURE: Mutex<Option<Cause>> = Mutex::new(None);
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

/// Remembers a failed write to stdout; later failures have the same cause as the first.
pub(crate) fn check(outcome: io::Result<()>) {
    match outcome {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let why = Cause::new(format!("error: cannot write to stdout: {error}"));
            let why = why.with_hint("the output is incomplete: write it to a disk with free space");
            FAILURE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
            set_incomplete();
        }
        _ => {}
    }
}

/// Remembers that a part of the output, or a file of the result, is missing.
pub(crate) fn set_incomplete() {
    IS_INCOMPLETE.store(true, Ordering::Relaxed);
}

/// Exit code of the program, because a success with missing output is none; and the first failed write.
pub(crate) fn finish(exit: Exit) -> (Exit, Option<Cause>) {
    check(lock().flush());
    let failure = FAILURE.lock().unwrap_or_else(PoisonError::into_inner).take();
    (finished(exit, IS_INCOMPLETE.load(Ordering::Relaxed)), failure)
}

fn finished(exit: Exit, is_incomplete: bool) -> Exit {
    if is_incomplete && exit.is_success() { Exit::Environment } else { exit }
}

#[cfg(test)]
#[path = "stdout_tests.rs"]
mod tests;
