//! Wakes a thread that waits in `epoll` or io_uring: an eventfd that any thread may signal.
mod nudge;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

pub(crate) use self::nudge::Nudge;
use crate::SysError;

/// Wake-up signal; clones share it.
///
/// A wake-up costs two system calls and a context switch. If the waiting thread will poll anyway,
/// [`Waker::nudge`] skips them unless the thread asked for a wake-up.
#[derive(Clone, Debug)]
pub struct Waker {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    fd: OwnedFd,
    nudge: Nudge,
}

impl Waker {
    /// Creates a waker; fails only when the process has no descriptors left.
    pub fn new() -> Result<Self, SysError> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|e| SysError::Call { action: "make an eventfd", source: e.into() })?;
        Ok(Self { shared: Arc::new(Shared { fd, nudge: Nudge::new() }) })
    }

    /// Wakes the waiting thread, or the next one that waits.
    pub fn wake(&self) {
        // The only failure is a counter at its maximum: then the waiter is awake anyway.
        let _ = rustix::io::write(&self.shared.fd, &1u64.to_ne_bytes());
    }

    /// Wakes the waiting thread if it asked for it. Call this after handing something over.
    pub fn nudge(&self) {
        if self.shared.nudge.is_due() {
            self.wake();
        }
    }

    /// Declares whether the calling thread, which is about to wait, needs a wake-up at the next
    /// hand-over.
    ///
    /// If it does, it must poll once more after this call and before it waits.
    pub fn want_nudge(&self, wanted: bool) {
        self.shared.nudge.want(wanted);
    }

    /// Waits until the thread is woken, at most for `timeout`; an interruption ends the wait too.
    pub fn wait(&self, timeout: Duration) {
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        // A failure only shortens the wait: the caller polls again.
        let _ = poll(&mut [PollFd::new(&self.shared.fd, PollFlags::IN)], Some(&timeout));
    }

    /// Clears all signals so far.
    pub fn clear(&self) {
        let mut count = [0u8; 8];
        // EAGAIN means that there was no signal.
        let _ = rustix::io::read(&self.shared.fd, &mut count);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.fd.as_fd()
    }
}
