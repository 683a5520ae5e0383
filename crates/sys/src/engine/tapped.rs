//! An engine whose requests are told to the tap.
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use super::{BlockEngine, Completion, FileSlot};
use crate::SysError;
use crate::pool::Block;
use crate::tap::{Asked, Known, Line, Tap};

/// Does what `inner` does. Requests have the numbers of the tap's line as tokens on the way.
pub(crate) struct Tapped {
    inner: Box<dyn BlockEngine>,
    tap: Arc<Tap>,
    line: Arc<Line>,
    /// What the tap calls the files, by slot.
    files: Vec<Known>,
}

impl Tapped {
    pub(crate) fn new(inner: Box<dyn BlockEngine>, tap: &Arc<Tap>) -> Self {
        Self { inner, tap: Arc::clone(tap), line: tap.line(), files: Vec::new() }
    }

    fn begin(&self, slot: FileSlot, asked: (Asked, u64, u64), token: u64) -> u64 {
        let file = self.files.get(slot.0 as usize).copied().unwrap_or(Known::NONE);
        self.line.begin(&self.tap, file, asked, token)
    }

    /// A request was handed over.
    fn begun(&self, index: u64) {
        if self.inner.ends_at_once() {
            self.line.done(&self.tap, index);
        }
    }
}

impl BlockEngine for Tapped {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn buffers(&self) -> String {
        self.inner.buffers()
    }

    fn ends_at_once(&self) -> bool {
        self.inner.ends_at_once()
    }

    fn add_file(&mut self, file: Arc<OwnedFd>) -> Result<FileSlot, SysError> {
        let known = self.tap.know(&file);
        let slot = self.inner.add_file(file)?;
        let at = slot.0 as usize;
        if self.files.len() <= at {
            self.files.resize(at + 1, Known::NONE);
        }
        self.files[at] = known;
        Ok(slot)
    }

    fn remove_file(&mut self, slot: FileSlot) {
        self.inner.remove_file(slot);
    }

    fn write(&mut self, slot: FileSlot, offset: u64, block: Block, bytes: usize, token: u64) {
        let index = self.begin(slot, (Asked::Write, offset, bytes as u64), token);
        self.inner.write(slot, offset, block, bytes, index);
        self.begun(index);
    }

    fn read(&mut self, slot: FileSlot, offset: u64, block: Block, bytes: usize, token: u64) {
        let index = self.begin(slot, (Asked::Read, offset, bytes as u64), token);
        self.inner.read(slot, offset, block, bytes, index);
        self.begun(index);
    }

    fn set_gather(&mut self, gather: bool) {
        self.inner.set_gather(gather);
    }

    fn sync(&mut self, slot: FileSlot, token: u64) {
        let index = self.begin(slot, (Asked::Sync, 0, 0), token);
        self.inner.sync(slot, index);
        self.begun(index);
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn wait(&mut self, timeout: Duration, ended: &mut Vec<Completion>) -> Result<(), SysError> {
        let before = ended.len();
        let outcome = self.inner.wait(timeout, ended);
        self.line.end(&self.tap, &mut ended[before..]);
        outcome
    }
}

impl Drop for Tapped {
    fn drop(&mut self) {
        self.line.close();
    }
}
