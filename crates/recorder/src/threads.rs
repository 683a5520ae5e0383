//! Threads of the data path: named, pinned, with their CPU counted.
use std::thread::JoinHandle;

use keepup_measure::cpu::thread_cpu_ns;
use keepup_sys::thread::pin_current;

use crate::RecorderError;
use crate::report::ThreadCpu;

/// A thread that ends with its result and its CPU, or with the reason why it could not work.
pub(crate) type Threaded<T> = JoinHandle<Result<(T, ThreadCpu), String>>;

/// Starts a thread that runs on `cpus` (anywhere, when empty).
pub(crate) fn spawn<T: Send + 'static>(
    name: String,
    cpus: Vec<usize>,
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<Threaded<T>, RecorderError> {
    let thread = name.clone();
    std::thread::Builder::new()
        .name(name.clone())
        .spawn(move || {
            pin_current(&cpus).map_err(|e| e.to_string())?;
            let outcome = work()?;
            Ok((outcome, ThreadCpu { name: thread, cpu_ns: thread_cpu_ns(), run_delay_ns: run_delay_ns() }))
        })
        .map_err(|e| RecorderError::Thread { name, why: e.to_string() })
}

/// Waits for a thread.
pub(crate) fn joined<T>(name: &str, thread: Threaded<T>) -> Result<(T, ThreadCpu), RecorderError> {
    let fail = |why: String| RecorderError::Thread { name: name.into(), why };
    thread.join().map_err(|_| fail("it panicked".into()))?.map_err(fail)
}

/// Time the calling thread was ready and waited for a processor, in nanoseconds, where the kernel tells.
fn run_delay_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}
