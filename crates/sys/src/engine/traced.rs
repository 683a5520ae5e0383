//! Engine wrapper that reports every request to the tracer.
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use super::{BlockEngine, Completion, FileSlot};
use crate::SysError;
use crate::io_trace::{FileNumber, IoTracer, RequestKind, RequestList};
use crate::pool::Block;

/// Forwards to `inner`, with the tracer's request numbers as tokens.
pub(crate) struct Traced {
    inner: Box<dyn BlockEngine>,
    tracer: Arc<IoTracer>,
    line: Arc<RequestList>,
    /// The tracer's file numbers, by slot.
    files: Vec<FileNumber>,
}

impl Traced {
    pub(crate) fn new(inner: Box<dyn BlockEngine>, tracer: &Arc<IoTracer>) -> Self {
        Self { inner, tracer: Arc::clone(tracer), line: tracer.line(), files: Vec::new() }
    }

    fn begin(&self, slot: FileSlot, asked: (RequestKind, u64, u64), token: u64) -> u64 {
        let file = self.files.get(slot.0 as usize).copied().unwrap_or(FileNumber::NONE);
        self.line.begin(&self.tracer, file, asked, token)
    }

    /// Reports that a request was submitted.
    fn begun(&self, index: u64) {
        if self.inner.is_synchronous() {
            self.line.done(&self.tracer, index);
        }
    }
}

impl BlockEngine for Traced {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn buffers(&self) -> String {
        self.inner.buffers()
    }

    fn is_synchronous(&self) -> bool {
        self.inner.is_synchronous()
    }

    fn add_file(&mut self, file: Arc<OwnedFd>) -> Result<FileSlot, SysError> {
        let known = self.tracer.number_of(&file);
        let slot = self.inner.add_file(file)?;
        let at = slot.0 as usize;
        if self.files.len() <= at {
            self.files.resize(at + 1, FileNumber::NONE);
        }
        self.files[at] = known;
        Ok(slot)
    }

    fn remove_file(&mut self, slot: FileSlot) {
        self.inner.remove_file(slot);
    }

    fn write(&mut self, slot: FileSlot, offset: u64, block: Block, bytes: usize, token: u64) {
        let index = self.begin(slot, (RequestKind::Write, offset, bytes as u64), token);
        self.inner.write(slot, offset, block, bytes, index);
        self.begun(index);
    }

    fn read(&mut self, slot: FileSlot, offset: u64, block: Block, bytes: usize, token: u64) {
        let index = self.begin(slot, (RequestKind::Read, offset, bytes as u64), token);
        self.inner.read(slot, offset, block, bytes, index);
        self.begun(index);
    }

    fn set_gather(&mut self, gather: bool) {
        self.inner.set_gather(gather);
    }

    fn sync(&mut self, slot: FileSlot, token: u64) {
        let index = self.begin(slot, (RequestKind::Sync, 0, 0), token);
        self.inner.sync(slot, index);
        self.begun(index);
    }

    fn discard(&mut self, slot: FileSlot, offset: u64, bytes: u64, token: u64) {
        let index = self.begin(slot, (RequestKind::Discard, offset, bytes), token);
        self.inner.discard(slot, offset, bytes, index);
        self.begun(index);
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn wait(&mut self, timeout: Duration, ended: &mut Vec<Completion>) -> Result<(), SysError> {
        let before = ended.len();
        let outcome = self.inner.wait(timeout, ended);
        let ended = ended[before..].iter_mut();
        self.line.end(&self.tracer, ended.map(|one| (&mut one.token, one.result.is_err())));
        outcome
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        self.line.close();
    }
}
