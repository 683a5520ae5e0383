//! What requests go to: one contract, one file for each kind.
mod check;
mod file;
mod memory;
mod null;
mod throttled;

use std::io;
use std::time::Duration;

use keepup_results::ReplayCheck;
use keepup_trace::Record;

pub(super) use file::FileTarget;
pub(super) use memory::MemoryTarget;
pub(super) use null::NullTarget;
pub(super) use throttled::ThrottledTarget;

use crate::WorkloadError;

/// A request that has ended.
#[derive(Debug)]
pub(super) struct Done {
    /// The number given with it.
    pub(super) token: usize,
    /// What became of it.
    pub(super) result: io::Result<()>,
}

/// Does requests, several at a time.
pub(super) trait Target {
    /// Starts a request, number `index` of its trace; false when something must end first. Tokens are those
    /// of requests that are not under way.
    fn start(&mut self, record: &Record, index: usize, token: usize) -> Result<bool, WorkloadError>;

    /// Waits until something has ended, at most `timeout`, and adds it to `done`. A zero timeout only looks.
    fn wait(&mut self, timeout: Duration, done: &mut Vec<Done>) -> Result<(), WorkloadError>;

    /// Makes what was written durable and nothing of it cached, before a pass; nothing is under way.
    fn settle(&mut self) -> Result<(), WorkloadError> {
        Ok(())
    }

    /// Reads back what was written, where that was noted.
    fn check(&mut self) -> Result<Option<ReplayCheck>, WorkloadError> {
        Ok(None)
    }
}
