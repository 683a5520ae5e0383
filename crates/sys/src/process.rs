//! Child processes with a limit on their time, and what each used of the machine.
//!
//! Invariants: a number is signalled or waited for only while it is this child's; a child ends with its
//! owner: when the value is dropped, and when the parent dies.
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, set_parent_process_death_signal};

use crate::SysError;

/// How a child ended and what it used, with the children that it waited for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How it ended.
    pub status: ExitStatus,
    /// Time on a processor outside of the kernel, in nanoseconds.
    pub user_ns: u64,
    /// Time on a processor inside the kernel, in nanoseconds; that of its io_uring workers is in it.
    pub system_ns: u64,
    /// Most memory it held at a time, in bytes. The kernel hands down what the parent held when it made the
    /// child, so that this is never less.
    pub resident_bytes_max: u64,
}

/// A child process, killed and reaped when dropped before its end.
#[derive(Debug)]
pub struct Process {
    child: Child,
    ended: Option<Ended>,
}

impl Process {
    /// Starts `command`. The kernel kills the child should the calling thread end before it.
    ///
    /// Fails when the program cannot be started.
    pub fn start(mut command: Command) -> Result<Self, SysError> {
        let tie = || {
            // A shell has what it starts in the background ignore Ctrl-C, which children inherit: this one
            // could not be interrupted.
            // SAFETY: the default action is no handler; nothing of this process is called.
            unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
            set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from)
        };
        // SAFETY: between fork and exec the closure makes two system calls and touches no memory.
        let child = unsafe { command.pre_exec(tie) }.spawn();
        let child = child.map_err(|source| SysError::Call { action: "start a process", source })?;
        Ok(Self { child, ended: None })
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The end of its standard output, once and if it was asked for.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// The end of its standard error, once and if it was asked for.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Asks it to end, as Ctrl-C does. One that has ended already is left alone.
    ///
    /// Fails when the kernel refuses.
    pub fn interrupt(&self) -> Result<(), SysError> {
        let pid = Pid::from_raw(self.child.id().cast_signed()).filter(|_| self.ended.is_none());
        let Some(pid) = pid else { return Ok(()) };
        kill_process(pid, Signal::INT)
            .map_err(|e| SysError::Call { action: "interrupt a process", source: e.into() })
    }

    /// Waits for its end, at most for `limit`; `None` when it still runs then.
    ///
    /// Fails when the kernel is older than 5.3, or when somebody else took the child's status.
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
            // A signal cut the waiting short; who asked will ask again.
            Err(Errno::INTR) => Ok(false),
            Err(e) => Err(failed(e)),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended.is_none() {
            // One that has ended already cannot be killed, which is well.
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

/// Takes the status of the child `pid`, which has ended.
fn wait4(pid: u32) -> Result<Ended, SysError> {
    let mut status: libc::c_int = 0;
    // SAFETY: `rusage` holds integers only, for which all zeros is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to values of ours that live through the call.
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
