//! Ctrl-C and SIGTERM: the first signal stops cleanly and says what is left to do; another one cuts off.
//!
//! A further signal is ignored for [`GRACE`] after that message. `timeout` of GNU sends two at once, one to
//! the command and one to its process group; and a signal sent before the message was printed is no answer.
use std::io::{ErrorKind, Read as _};
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use keepup_error::Cause;
use keepup_measure::clock::{Clock, SystemClock};
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::low_level::{exit, pipe};

use crate::output::{log, log_cause};

/// Time after the first signal in which others are ignored.
const GRACE: Duration = Duration::from_secs(2);
/// Exit code of a command that was cut off.
const CUT_OFF: i32 = 130;

/// What a command says when it is stopped.
#[derive(Debug, Default)]
pub(crate) struct Stopping {
    /// What is left to do, such as "120 MB to write".
    pub(crate) left: String,
    /// Command to use after a cut-off.
    pub(crate) after_cut_off: Option<String>,
}

type Describe = Box<dyn Fn() -> Stopping + Send>;

/// Describes the command that is running.
static COMMAND: Mutex<Option<Describe>> = Mutex::new(None);

/// Sets what the next signal says.
pub(crate) fn describe(command: impl Fn() -> Stopping + Send + 'static) {
    *COMMAND.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(command));
}

/// Sets that nothing is left to do.
pub(crate) fn describe_nothing() {
    COMMAND.lock().unwrap_or_else(PoisonError::into_inner).take();
}

fn stopping() -> Stopping {
    let command = COMMAND.lock().unwrap_or_else(PoisonError::into_inner);
    command.as_ref().map(|describe| describe()).unwrap_or_default()
}

/// Flag set by the first signal. A later one exits with code 130.
pub(crate) fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    watch(true)
}

/// Stop flag of a process whose parent reports what happens.
pub(crate) fn stop_flag_of_child() -> anyhow::Result<Arc<AtomicBool>> {
    watch(false)
}

/// Stop flag of an agent; SIGHUP sets it too. The kernel sends SIGHUP to a stopped process when the parent of
/// its process group exits (POSIX, `_exit`).
#[cfg(feature = "fleet")]
pub(crate) fn stop_flag_of_agent() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = stop_flag_of_child()?;
    flag::register(signal_hook::consts::SIGHUP, Arc::clone(&stop)).context("cannot watch for signals")?;
    Ok(stop)
}

/// Lets a write beyond the file size limit (`ulimit -f`) fail with an error, which the command handles like a
/// full disk. By default, the signal kills the process.
pub(crate) fn ignore_file_size_limit() -> anyhow::Result<()> {
    // A handler, and not "ignore": children that are no keepup inherit an ignored signal.
    flag::register(SIGXFSZ, Arc::default()).context("cannot watch for signals")?;
    Ok(())
}

fn watch(says: bool) -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let watching = || -> std::io::Result<()> {
        let (signals, sender) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(&stop))?;
            pipe::register(signal, sender.try_clone()?)?;
        }
        std::thread::Builder::new().name("signals".into()).spawn(move || follow(signals, says))?;
        Ok(())
    };
    watching().context("cannot watch for signals")?;
    Ok(stop)
}

/// Each byte of `signals` is a signal.
fn follow(mut signals: UnixStream, says: bool) {
    if signals.read_exact(&mut [0]).is_err() {
        return;
    }
    if says {
        log(&message(&stopping()));
    }
    discard_pending(&mut signals);
    let until_ns = SystemClock.now_ns().saturating_add(GRACE.as_nanos() as u64);
    while signals.read_exact(&mut [0]).is_ok() {
        if SystemClock.now_ns() < until_ns {
            continue;
        }
        if says {
            log_cause(&cut_off(&stopping()));
        }
        exit(CUT_OFF);
    }
}

/// Discards the signals that have already arrived.
fn discard_pending(signals: &mut UnixStream) {
    let _ = signals.set_nonblocking(true);
    loop {
        match signals.read(&mut [0; 64]) {
            Ok(1..) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            _ => break,
        }
    }
    let _ = signals.set_nonblocking(false);
}

/// Message of the first signal.
fn message(stopping: &Stopping) -> String {
    let left = if stopping.left.is_empty() { String::new() } else { format!(": {}", stopping.left) };
    format!("stopping{left}; press Ctrl-C again after {} s to cut off", GRACE.as_secs())
}

/// Message of the signal that cuts off.
fn cut_off(stopping: &Stopping) -> Cause {
    let left =
        if stopping.left.is_empty() { String::new() } else { format!("; not done: {}", stopping.left) };
    let why = Cause::new(format!("error: cut off{left}"));
    why.with_hint(stopping.after_cut_off.clone().unwrap_or_default())
}

#[cfg(test)]
#[path = "signals_tests.rs"]
mod tests;
