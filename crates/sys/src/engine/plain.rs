//! Engine with blocking system calls, one at a time: for kernels, containers and policies that forbid
//! io_uring.
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use super::{BlockEngine, Completion, FILES_MAX, FileSlot, completed::Completed, describe};
use crate::SysError;
use crate::file::untraced::{punch, read_exact_at, write_all_at};
use crate::pool::{Block, PageKind, PoolMemory};
use crate::waker::Waker;

/// Writes with `pwrite`, reads with `pread`, syncs with `fdatasync`, in the caller's thread.
#[derive(Debug)]
pub struct PlainEngine {
    kind: PageKind,
    files: Vec<Option<Arc<OwnedFd>>>,
    ended: Completed,
}

impl PlainEngine {
    /// Creates an engine for blocks of `memory`, which `waker` wakes.
    pub fn new(memory: &PoolMemory, waker: &Waker) -> Self {
        let kind = memory.mapping.kind();
        Self { kind, files: vec![None; FILES_MAX], ended: Completed::new(waker) }
    }

    fn file(&self, slot: FileSlot) -> std::io::Result<&OwnedFd> {
        self.files
            .get(slot.0 as usize)
            .and_then(Option::as_deref)
            .ok_or_else(|| std::io::Error::other("write to a file that was removed"))
    }
}

impl BlockEngine for PlainEngine {
    fn name(&self) -> &'static str {
        "pwrite"
    }

    fn buffers(&self) -> String {
        describe(self.kind, false)
    }

    fn is_synchronous(&self) -> bool {
        true
    }

    fn add_file(&mut self, file: Arc<OwnedFd>) -> Result<FileSlot, SysError> {
        let free = self.files.iter().position(Option::is_none);
        let slot =
            free.ok_or_else(|| SysError::Invalid { what: format!("more than {FILES_MAX} files open") })?;
        self.files[slot] = Some(file);
        Ok(FileSlot(slot as u32))
    }

    fn remove_file(&mut self, slot: FileSlot) {
        if let Some(file) = self.files.get_mut(slot.0 as usize) {
            *file = None;
        }
    }

    fn write(&mut self, slot: FileSlot, offset: u64, block: Block, bytes: usize, token: u64) {
        let result = self.file(slot).and_then(|file| write_all_at(file, &block[..bytes], offset));
        self.ended.end(token, Some(block), result);
    }

    fn read(&mut self, slot: FileSlot, offset: u64, mut block: Block, bytes: usize, token: u64) {
        let result = self.file(slot).and_then(|file| read_exact_at(file, &mut block[..bytes], offset));
        self.ended.end(token, Some(block), result);
    }

    fn sync(&mut self, slot: FileSlot, token: u64) {
        let result = self.file(slot).and_then(|file| Ok(rustix::fs::fdatasync(file)?));
        self.ended.end(token, None, result);
    }

    fn discard(&mut self, slot: FileSlot, offset: u64, bytes: u64, token: u64) {
        let result = self.file(slot).and_then(|file| punch(file, offset, bytes));
        self.ended.end(token, None, result);
    }

    fn in_flight(&self) -> usize {
        self.ended.count()
    }

    fn wait(&mut self, timeout: Duration, ended: &mut Vec<Completion>) -> Result<(), SysError> {
        self.ended.wait(timeout, ended)
    }
}
