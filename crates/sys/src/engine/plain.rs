//! Plain calls, one at a time: for kernels, containers and policies that forbid the ring.
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{BlockEngine, Completion, FILES_MAX, FileSlot, describe};
use crate::SysError;
use crate::file::{read_exact_at, write_all_at};
use crate::pool::{Block, PageKind, PoolMemory};
use crate::waker::Waker;

/// Writes with `pwrite`, reads with `pread`, syncs with `fdatasync`, in the caller's thread.
#[derive(Debug)]
pub struct PlainEngine {
    waker: Waker,
    kind: PageKind,
    files: Vec<Option<Arc<OwnedFd>>>,
    ended: VecDeque<Completion>,
}

impl PlainEngine {
    /// An engine for blocks of `memory`, woken by `waker`.
    pub fn new(memory: &PoolMemory, waker: &Waker) -> Self {
        let kind = memory.mapping.kind();
        Self { waker: waker.clone(), kind, files: vec![None; FILES_MAX], ended: VecDeque::with_capacity(64) }
    }

    fn file(&self, slot: FileSlot) -> std::io::Result<&OwnedFd> {
        self.files
            .get(slot.0 as usize)
            .and_then(Option::as_deref)
            .ok_or_else(|| std::io::Error::other("write to a file that was removed"))
    }
}

/// Waits until `fd` is readable or `timeout` passed.
pub(super) fn wait_for(fd: BorrowedFd<'_>, timeout: Duration) -> Result<(), SysError> {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    let limit = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
    match poll(&mut fds, Some(&limit)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(e) => Err(SysError::Call { action: "wait for work", source: e.into() }),
    }
}

impl BlockEngine for PlainEngine {
    fn name(&self) -> &'static str {
        "pwrite"
    }

    fn buffers(&self) -> String {
        describe(self.kind, false)
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
        self.ended.push_back(Completion { token, block: Some(block), result });
    }

    fn read(&mut self, slot: FileSlot, offset: u64, mut block: Block, bytes: usize, token: u64) {
        let result = self.file(slot).and_then(|file| read_exact_at(file, &mut block[..bytes], offset));
        self.ended.push_back(Completion { token, block: Some(block), result });
    }

    fn sync(&mut self, slot: FileSlot, token: u64) {
        let result = self.file(slot).and_then(|file| Ok(rustix::fs::fdatasync(file)?));
        self.ended.push_back(Completion { token, block: None, result });
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
