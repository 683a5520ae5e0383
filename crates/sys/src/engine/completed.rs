//! Completion queue of the synchronous engines.
use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Completion;
use crate::SysError;
use crate::pool::Block;
use crate::waker::Waker;

/// Completions that have not been collected yet.
#[derive(Debug)]
pub(super) struct Completed {
    waker: Waker,
    ended: VecDeque<Completion>,
}

impl Completed {
    pub(super) fn new(waker: &Waker) -> Self {
        Self { waker: waker.clone(), ended: VecDeque::with_capacity(64) }
    }

    /// Adds a completion.
    pub(super) fn end(&mut self, token: u64, block: Option<Block>, result: std::io::Result<()>) {
        self.ended.push_back(Completion { token, block, result });
    }

    /// Number of uncollected completions.
    pub(super) fn count(&self) -> usize {
        self.ended.len()
    }

    /// As [`super::BlockEngine::wait`].
    pub(super) fn wait(&mut self, timeout: Duration, ended: &mut Vec<Completion>) -> Result<(), SysError> {
        if self.ended.is_empty() && !timeout.is_zero() {
            let mut fds = [PollFd::from_borrowed_fd(self.waker.as_fd(), PollFlags::IN)];
            let limit = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
            match poll(&mut fds, Some(&limit)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(SysError::Call { action: "wait for work", source: e.into() }),
            }
        }
        self.waker.clear();
        ended.extend(self.ended.drain(..));
        Ok(())
    }
}
