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

pub(crate) use file::{FileTarget, TargetFile};
pub(crate) use memory::MemoryTarget;
pub(crate) use null::NullTarget;
pub(crate) use throttled::ThrottledTarget;

use crate::error::ReplayError;

/// A request that has ended.
#[derive(Debug)]
pub(crate) struct Done {
    /// The number given with it.
    pub(crate) token: usize,
    /// What became of it.
    pub(crate) result: io::Result<()>,
}

/// Does requests, several at a time.
pub(crate) trait Target {
    /// Starts a request, number `index` of its trace; false when something must end first. Tokens are those
    /// of requests that are not under way.
    fn start(&mut self, record: &Record, index: usize, token: usize) -> Result<bool, ReplayError>;

    /// Waits until something has ended, at most `timeout`, and adds it to `done`. A zero timeout only looks.
    fn wait(&mut self, timeout: Duration, done: &mut Vec<Done>) -> Result<(), ReplayError>;

    /// Makes what was written durable and nothing of it cached, before a pass; nothing is under way.
    fn settle(&mut self) -> Result<(), ReplayError> {
        Ok(())
    }

    /// Writes the ranges `runs`, offset and length in bytes, which an earlier pass discarded; nothing is
    /// under way.
    fn refill(&mut self, _runs: &[(u64, u64)]) -> Result<(), ReplayError> {
        Ok(())
    }

    /// Reads back what was written, where that was noted.
    fn check(&mut self) -> Result<Option<ReplayCheck>, ReplayError> {
        Ok(None)
    }
}
