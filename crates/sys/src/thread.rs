//! Thread placement and disk priority.
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::SysError;

/// Pins the calling thread to `cpus` (numbers as in `/proc/cpuinfo`); an empty list leaves it
/// unpinned.
///
/// Fails if a CPU does not exist or is not allowed for this process.
pub fn pin_current(cpus: &[usize]) -> Result<(), SysError> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(SysError::Invalid { what: format!("CPU {cpu} does not exist") });
        }
        set.set(cpu);
    }
    sched_setaffinity(None, &set).map_err(|why| match why {
        rustix::io::Errno::INVAL => SysError::Invalid {
            what: format!(
                "none of the CPUs {cpus:?} exists and is allowed for this process (nproc --all, nproc)"
            ),
        },
        _ => SysError::Call { action: "pin a thread to its processors", source: why.into() },
    })
}

/// CPUs that the calling thread may use, in order.
///
/// # Errors
/// As `sched_getaffinity(2)`.
pub fn allowed_cpus() -> Result<Vec<usize>, SysError> {
    let set = sched_getaffinity(None)
        .map_err(|why| SysError::Call { action: "read the processors of a thread", source: why.into() })?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// CPU of the calling thread.
pub fn current_processor() -> usize {
    rustix::thread::sched_getcpu()
}

/// Raises the descriptor limit of this process to its hard limit: a detector may need a socket
/// per module.
pub fn raise_descriptor_limit() {
    raise_descriptor_limit_to(u64::MAX);
}

/// Raises the descriptor limit of this process to `wanted`, or to its hard limit if that is lower.
/// Never lowers it. Child processes inherit it.
pub fn raise_descriptor_limit_to(wanted: u64) {
    let limit = getrlimit(Resource::Nofile);
    // Otherwise the default of 1024 holds, and further connections wait in the backlog.
    let _ = setrlimit(Resource::Nofile, raised(limit, wanted));
}

/// `limit` with at least `wanted`, as far as its maximum allows. None is "unlimited".
fn raised(limit: Rlimit, wanted: u64) -> Rlimit {
    let allowed = limit.maximum.map_or(wanted, |maximum| wanted.min(maximum));
    Rlimit { current: limit.current.map(|current| current.max(allowed)), ..limit }
}

/// Lowers the scheduling priority of the calling thread to the minimum. Best effort: if the
/// kernel refuses, the priority stays.
pub fn yield_to_others() {
    const NICENESS: libc::c_int = 10;
    // SAFETY: no memory is passed. On Linux "process 0" is the calling thread.
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS) };
}

/// Lowers the I/O priority of the calling thread to the minimum (best effort class, lowest
/// level).
///
/// Only some I/O schedulers support it; the drain also limits its rate.
pub fn yield_disk() -> Result<(), SysError> {
    const WHO_PROCESS: libc::c_int = 1;
    const CLASS_BEST_EFFORT: libc::c_int = 2;
    const CLASS_SHIFT: libc::c_int = 13;
    let priority = (CLASS_BEST_EFFORT << CLASS_SHIFT) | 7;
    // SAFETY: ioprio_set takes three integers and touches no memory of ours.
    let answer = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, priority) };
    if answer == 0 {
        return Ok(());
    }
    Err(SysError::Call { action: "lower the disk priority", source: std::io::Error::last_os_error() })
}

#[cfg(test)]
#[path = "thread_tests.rs"]
mod tests;
