//! Drops what it is given: the path without the disk.
use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use super::{BlockEngine, Completion, FileSlot, plain::wait_for};
use crate::SysError;
use crate::pool::Block;
use crate::waker::Waker;

/// Completes every request at once and keeps nothing.
#[derive(Debug)]
pub struct NullEngine {
    waker: Waker,
    ended: VecDeque<Completion>,
}

impl NullEngine {
    /// An engine woken by `waker`.
    pub fn new(waker: &Waker) -> Self {
        Self { waker: waker.clone(), ended: VecDeque::with_capacity(64) }
    }
}

impl BlockEngine for NullEngine {
    fn name(&self) -> &'static str {
        "null"
    }

    fn buffers(&self) -> String {
        "dropped".into()
    }

    fn add_file(&mut self, _file: Arc<OwnedFd>) -> Result<FileSlot, SysError> {
        Ok(FileSlot(0))
    }

    fn remove_file(&mut self, _slot: FileSlot) {}

    fn write(&mut self, _slot: FileSlot, _offset: u64, block: Block, _bytes: usize, token: u64) {
        self.ended.push_back(Completion { token, block: Some(block), result: Ok(()) });
    }

    fn read(&mut self, _slot: FileSlot, _offset: u64, block: Block, _bytes: usize, token: u64) {
        self.ended.push_back(Completion { token, block: Some(block), result: Ok(()) });
    }

    fn sync(&mut self, _slot: FileSlot, token: u64) {
        self.ended.push_back(Completion { token, block: None, result: Ok(()) });
    }

    fn in_flight(&self) -> usize {
        self.ended.len()
    }

    fn wait(&mut self, timeout: Duration, ended: &mut Vec<Completion>) -> Result<(), SysError> {
        if self.ended.is_empty() && !timeout.is_zero() {
            wait_for(self.waker.as_fd(), timeout)?;
        }
        self.waker.clear();
        ended.extend(self.ended.drain(..));
        Ok(())
    }
}
