//! Drops what it is given: the path without the disk.
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use super::{BlockEngine, Completion, FileSlot, at_once::AtOnce};
use crate::SysError;
use crate::pool::Block;
use crate::waker::Waker;

/// Completes every request at once and keeps nothing.
#[derive(Debug)]
pub struct NullEngine {
    ended: AtOnce,
}

impl NullEngine {
    /// An engine woken by `waker`.
    pub fn new(waker: &Waker) -> Self {
        Self { ended: AtOnce::new(waker) }
    }
}

impl BlockEngine for NullEngine {
    fn name(&self) -> &'static str {
        "null"
    }

    fn buffers(&self) -> String {
        "dropped".into()
    }

    fn ends_at_once(&self) -> bool {
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

    fn in_flight(&self) -> usize {
        self.ended.count()
    }

    fn wait(&mut self, timeout: Duration, ended: &mut Vec<Completion>) -> Result<(), SysError> {
        self.ended.wait(timeout, ended)
    }
}
