//! Wakes a thread that waits in `epoll` or in a ring: an eventfd that may be signalled from anywhere.
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

use crate::SysError;

/// A counter in the kernel that can be waited for; clones signal the same one.
#[derive(Clone, Debug)]
pub struct Waker {
    fd: Arc<OwnedFd>,
}

impl Waker {
    /// Makes one; fails only when the process has no descriptors left.
    pub fn new() -> Result<Self, SysError> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|e| SysError::Call { action: "make an eventfd", source: e.into() })?;
        Ok(Self { fd: Arc::new(fd) })
    }

    /// Wakes the waiting thread, or the next one that waits.
    pub fn wake(&self) {
        // The only failure is a counter at its maximum: then the waiter is awake anyway.
        let _ = rustix::io::write(&*self.fd, &1u64.to_ne_bytes());
    }

    /// Takes back all signals so far.
    pub fn clear(&self) {
        let mut count = [0u8; 8];
        // EAGAIN means that nobody signalled.
        let _ = rustix::io::read(&*self.fd, &mut count);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
