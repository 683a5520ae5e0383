//! Engine that discards all data: measures the path without the disk.
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use super::{BlockEngine, Completion, FileSlot, completed::Completed};
use crate::SysError;
use crate::pool::Block;
use crate::waker::Waker;

/// Completes every request immediately.
#[derive(Debug)]
pub struct NullEngine {
    ended: Completed,
}

impl NullEngine {
    /// Creates an engine that `waker` wakes.
    pub fn new(waker: &Waker) -> Self {
        Self { ended: Completed::new(waker) }
    }
}

impl BlockEngine for NullEngine {
    fn name(&self) -> &'static str {
        "null"
    }

    fn buffers(&self) -> String {
        "dropped".into()
    }

    fn is_synchronous(&self) -> bool {
        true
    }

    fn add_file(&mut self, _file: Arc<OwnedFd>) -> Result<FileSlot, SysError> {
        Ok(FileSlot(0))
    }

    fn remove_file(&mut self, _slot: FileSlot) {}

    fn write(&mut self, _slot: FileSlot, _offset: u64, block: Block, _bytes: usize, token: u64) {
        self.ended.end(token, Some(block), Ok(()));
    }

    fn read(&mut self, _slot: FileSlot, _offset: u64, block: Block, _bytes: usize, token: u64) {
        self.ended.end(token, Some(block), Ok(()));
    }

    fn sync(&mut self, _slot: FileSlot, token: u64) {
        self.ended.end(token, None, Ok(()));
    }

    fn discard(&mut self, _slot: FileSlot, _offset: u64, _bytes: u64, token: u64) {
        self.ended.end(token, None, Ok(()));
    }

    fn in_flight(&self) -> usize {
        self.ended.count()
    }

    fn wait(&mut self, timeout: Duration, ended: &mut Vec<Completion>) -> Result<(), SysError> {
        self.ended.wait(timeout, ended)
    }
}
