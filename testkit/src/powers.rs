//! Removal of privileges and features from child processes: io_uring, direct I/O, huge pages, locked memory.
//! Does not need root.
use std::panic::resume_unwind;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::thread::disable_transparent_huge_pages;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

use crate::Program;

/// `io_uring_setup`; the number is the same on every architecture supported by the filter.
const IO_URING_SETUP: i64 = 425;
/// `openat`.
const OPENAT: i64 = if cfg!(target_arch = "x86_64") { 257 } else { 56 };
/// Argument of `openat` with the flags.
const OPENAT_FLAGS: u8 = 2;

/// Runs `body` on a thread without access to io_uring, as in a container with the default seccomp
/// profile; child processes inherit the restriction.
///
/// # Errors
/// System error.
///
/// # Panics
/// `body` panics.
pub fn without_io_uring<T: Send>(body: impl FnOnce() -> T + Send) -> Result<T, String> {
    filtered(IO_URING_SETUP, Vec::new(), Errno::PERM, body)
}

/// Runs `body` on a thread on which files cannot be opened for direct I/O, as on a file system that does not
/// support it; child processes inherit the restriction.
///
/// # Errors
/// System error.
///
/// # Panics
/// `body` panics.
pub fn without_direct_io<T: Send>(body: impl FnOnce() -> T + Send) -> Result<T, String> {
    let rule = direct_open().map_err(|e| e.to_string())?;
    filtered(OPENAT, vec![rule], Errno::INVAL, body)
}

/// `openat` with `O_DIRECT`.
fn direct_open() -> Result<SeccompRule, BackendError> {
    let direct = u64::from(OFlags::DIRECT.bits());
    let is_direct = SeccompCmpOp::MaskedEq(direct);
    let condition = SeccompCondition::new(OPENAT_FLAGS, SeccompCmpArgLen::Dword, is_direct, direct)?;
    SeccompRule::new(vec![condition])
}

/// Runs `body` on a thread on which a system call fails with `errno` if one of `rules` applies, or always
/// without rules.
fn filtered<T: Send>(
    call: i64,
    rules: Vec<SeccompRule>,
    errno: Errno,
    body: impl FnOnce() -> T + Send,
) -> Result<T, String> {
    let refuse = SeccompAction::Errno(errno.raw_os_error().unsigned_abs());
    let architecture = std::env::consts::ARCH.try_into().map_err(|e| format!("{e}"))?;
    let filter = SeccompFilter::new([(call, rules)].into(), SeccompAction::Allow, refuse, architecture)
        .and_then(BpfProgram::try_from)
        .map_err(|e| e.to_string())?;
    // A filter cannot be removed, so it ends with its thread.
    std::thread::scope(|scope| {
        let filtered = scope.spawn(|| apply_filter(&filter).map(|()| body()).map_err(|e| e.to_string()));
        filtered.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Runs `body`, which starts programs without transparent huge pages.
///
/// # Errors
/// System error.
pub fn without_huge_pages<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    /// The setting is per process and inherited by child processes.
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

/// Starts `program` with a limit of `bytes` of locked memory and without CAP_IPC_LOCK.
pub fn with_locked_memory(bytes: u64, program: &str, arguments: &[&str], directory: &Path) -> Program {
    let limit = format!("--memlock={bytes}:{bytes}");
    let mut all = vec![limit.as_str()];
    // Only root has that capability and can drop it.
    if rustix::process::geteuid().is_root() {
        all.extend(["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"]);
    }
    all.push(program);
    all.extend(arguments);
    Program::start("prlimit", &all, directory)
}
