//! Threads of the data path: named, pinned, with CPU accounting. A panic becomes an internal error.
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;

use keepup_error::Cause;
use keepup_measure::cpu::thread_cpu_ns;
use keepup_recording::account::ThreadCpu;
use keepup_sys::thread::pin_current;

use crate::RecorderError;

/// Handle of a thread that returns its result and CPU time, or the reason for its failure.
pub(crate) type Threaded<T> = JoinHandle<Result<(T, ThreadCpu), Cause>>;

/// Starts a thread pinned to `cpus` (not pinned when empty).
pub(crate) fn spawn<T: Send + 'static>(
    name: String,
    cpus: Vec<usize>,
    work: impl FnOnce() -> Result<T, Cause> + Send + 'static,
) -> Result<Threaded<T>, RecorderError> {
    let thread = name.clone();
    std::thread::Builder::new()
        .name(name.clone())
        .spawn(move || {
            pin_current(&cpus).map_err(|e| Cause::of(&e))?;
            let outcome = work()?;
            Ok((outcome, ThreadCpu { name: thread, cpu_ns: thread_cpu_ns(), run_delay_ns: run_delay_ns() }))
        })
        .map_err(|e| RecorderError::Thread { name, why: e.to_string().into() })
}

/// Joins a thread.
pub(crate) fn joined<T>(name: &str, thread: Threaded<T>) -> Result<(T, ThreadCpu), RecorderError> {
    let fail = |why: Cause| RecorderError::Thread { name: name.into(), why };
    let panicked = |payload: Box<dyn Any + Send>| RecorderError::Panicked {
        what: internal_error(name, payload.as_ref()),
    };
    thread.join().map_err(panicked)?.map_err(fail)
}

/// Runs a part of the calling thread's work; a panic becomes the text of an internal error.
///
/// # Errors
/// `work` panicked.
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    // Callers use nothing afterwards that is only valid without a panic.
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        internal_error(std::thread::current().name().unwrap_or("unnamed"), payload.as_ref())
    })
}

/// Text about the panic of a thread.
pub(crate) fn internal_error(thread: &str, payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("it panicked").replace(char::is_control, " ");
    format!("internal error: thread {thread}: {text}")
}

/// Time that the calling thread was runnable without a CPU, in nanoseconds, if the kernel reports
/// it.
fn run_delay_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}
