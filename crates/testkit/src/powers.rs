//! Powers taken away from what a test starts: the ring, huge pages, locked memory. None of them needs root.
use std::panic::resume_unwind;
use std::path::Path;

use rustix::thread::disable_transparent_huge_pages;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

use crate::Program;

/// `io_uring_setup`; its number is the same on every architecture for which a filter can be made.
const IO_URING_SETUP: i64 = 425;

/// Runs `body` on a thread that may open no ring, as in a container with the usual seccomp profile; nor may
/// what it starts.
///
/// # Errors
/// What the system said.
///
/// # Panics
/// When `body` does.
pub fn without_io_uring<T: Send>(body: impl FnOnce() -> T + Send) -> Result<T, String> {
    let refuse = SeccompAction::Errno(rustix::io::Errno::PERM.raw_os_error().unsigned_abs());
    let architecture = std::env::consts::ARCH.try_into().map_err(|e| format!("{e}"))?;
    let rules = [(IO_URING_SETUP, Vec::new())].into();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture)
        .and_then(BpfProgram::try_from)
        .map_err(|e| e.to_string())?;
    // A filter cannot be taken off again, so it goes with its thread.
    std::thread::scope(|scope| {
        let filtered = scope.spawn(|| apply_filter(&filter).map(|()| body()).map_err(|e| e.to_string()));
        filtered.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Runs `body`, which starts programs that get no transparent huge pages.
///
/// # Errors
/// What the system said.
pub fn without_huge_pages<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    /// The switch is this process's own; programs take it over as it is when they start.
    struct Restored;
    impl Drop for Restored {
        fn drop(&mut self) {
            let _ = disable_transparent_huge_pages(false);
        }
    }
    disable_transparent_huge_pages(true).map_err(|e| e.to_string())?;
    let _restored = Restored;
    Ok(body())
}

/// Starts `program`, which may lock `bytes` of memory and has no power to lock more.
pub fn with_locked_memory(bytes: u64, program: &str, arguments: &[&str], directory: &Path) -> Program {
    let limit = format!("--memlock={bytes}:{bytes}");
    let mut all = vec![limit.as_str()];
    // Only root has that power, and only root may give it away.
    if rustix::process::geteuid().is_root() {
        all.extend(["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"]);
    }
    all.push(program);
    all.extend(arguments);
    Program::start("prlimit", &all, directory)
}
