//! Child processes with a time limit, and their resource usage.
//!
//! Invariants: a process id is signalled or waited for only while it belongs to this child; a
//! child ends with its owner: when the value is dropped, and when the parent dies.
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, set_parent_process_death_signal};

use crate::SysError;

/// Exit status of a child and its resource usage, including the children that it waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Exit status.
    pub status: ExitStatus,
    /// CPU time in user mode, in nanoseconds.
    pub user_ns: u64,
    /// CPU time in kernel mode, in nanoseconds, including its io_uring workers.
    pub system_ns: u64,
    /// Peak resident memory, in bytes. At least the parent's at the time of the fork, which the
    /// kernel inherits.
    pub resident_bytes_max: u64,
}

/// A child process; killed and reaped when dropped while running.
#[derive(Debug)]
pub struct Process {
    child: Child,
    ended: Option<Ended>,
}

impl Process {
    /// Starts `command`. The kernel kills the child if the calling thread ends first.
    ///
    /// Fails if the program cannot be started.
    pub fn start(mut command: Command) -> Result<Self, SysError> {
        let tie = || {
            // A shell's background jobs ignore Ctrl-C, and children inherit that: this child
            // could not be interrupted. SAFETY: the default action is not a handler; no code of
            // this process is called.
            unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
            set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from)
        };
        // SAFETY: between fork and exec the closure makes two system calls and touches no memory.
        let child = unsafe { command.pre_exec(tie) }.spawn();
        let child = child.map_err(|source| SysError::Call { action: "start a process", source })?;
        Ok(Self { child, ended: None })
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its standard output, if piped; once.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Its standard error, if piped; once.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Sends SIGINT, as Ctrl-C does. Does nothing if the child has ended.
    ///
    /// Fails if the kernel refuses.
    pub fn interrupt(&self) -> Result<(), SysError> {
        let pid = Pid::from_raw(self.child.id().cast_signed()).filter(|_| self.ended.is_none());
        let Some(pid) = pid else { return Ok(()) };
        kill_process(pid, Signal::INT)
            .map_err(|e| SysError::Call { action: "interrupt a process", source: e.into() })
    }

    /// Waits for its end, at most for `limit`; `None` if it is still running.
    ///
    /// Fails if the kernel is older than 5.3, or another waiter took the child's status.
    pub fn wait(&mut self, limit: Duration) -> Result<Option<Ended>, SysError> {
        if self.ended.is_none() && self.ends_within(limit)? {
            self.ended = Some(wait4(self.child.id())?);
        }
        Ok(self.ended)
    }

    fn ends_within(&self, limit: Duration) -> Result<bool, SysError> {
        let failed = |e: Errno| SysError::Call { action: "watch a process", source: e.into() };
        let pid = Pid::from_raw(self.child.id().cast_signed()).ok_or_else(|| failed(Errno::SRCH))?;
        let watched = pidfd_open(pid, PidfdFlags::empty()).map_err(failed)?;
        let limit = Timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: limit.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::from_borrowed_fd(watched.as_fd(), PollFlags::IN)], Some(&limit)) {
            Ok(ready) => Ok(ready > 0),
            // Interrupted by a signal; the caller tries again.
            Err(Errno::INTR) => Ok(false),
            Err(e) => Err(failed(e)),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended.is_none() {
            // Fails for a child that has ended, which is fine.
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

/// Reaps the child `pid`, which has ended.
fn wait4(pid: u32) -> Result<Ended, SysError> {
    let mut status: libc::c_int = 0;
    // SAFETY: `rusage` has only integers, so all zeros is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to local values that outlive the call.
        let answer = unsafe { libc::wait4(pid.cast_signed(), &raw mut status, 0, &raw mut usage) };
        if answer == pid.cast_signed() {
            break;
        }
        let source = io::Error::last_os_error();
        if source.kind() != io::ErrorKind::Interrupted {
            return Err(SysError::Call { action: "wait for a process", source });
        }
    }
    let ns = |time: libc::timeval| {
        let seconds = Duration::from_secs(time.tv_sec.try_into().unwrap_or(0));
        let rest = Duration::from_micros(time.tv_usec.try_into().unwrap_or(0));
        u64::try_from((seconds + rest).as_nanos()).unwrap_or(u64::MAX)
    };
    Ok(Ended {
        status: ExitStatus::from_raw(status),
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        // getrusage(2): in units of 1024 bytes.
        resident_bytes_max: u64::try_from(usage.ru_maxrss).unwrap_or(0).saturating_mul(1024),
    })
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
