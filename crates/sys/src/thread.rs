//! Where a thread runs, how it is called, and how politely it reads disks.
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::SysError;

/// Binds the calling thread to `cpus` (numbers as in `/proc/cpuinfo`); an empty list leaves it free.
///
/// Fails when a processor does not exist or is not allowed for this process.
pub fn pin_current(cpus: &[usize]) -> Result<(), SysError> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(SysError::Invalid { what: format!("there is no processor {cpu}") });
        }
        set.set(cpu);
    }
    sched_setaffinity(None, &set).map_err(|why| match why {
        rustix::io::Errno::INVAL => SysError::Invalid {
            what: format!(
                "no processor of {cpus:?} is there and allowed for this process (nproc --all, nproc)"
            ),
        },
        _ => SysError::Call { action: "pin a thread to its processors", source: why.into() },
    })
}

/// The processor that runs the calling thread now.
pub fn current_processor() -> usize {
    rustix::thread::sched_getcpu()
}

/// Lets this process open as many descriptors as its hard limit allows: a socket for every module of a
/// detector.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    // Without it the default of 1024 holds, and connections beyond it wait at the door.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Lets every other thread that is not so polite run before the calling one. Best effort: where the kernel
/// refuses, it runs as before.
pub fn yield_to_others() {
    const NICENESS: libc::c_int = 10;
    // SAFETY: no memory is passed. On Linux "process 0" is the calling thread.
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS) };
}

/// Asks the kernel to serve this thread's disk requests after everybody else's (best effort, lowest level).
///
/// Only some I/O schedulers honour it; the drain is paced besides.
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
