//! Engine that copies to and from memory-mapped files, for measuring their cost.
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags, madvise, mmap, msync, munmap};

use super::{BlockEngine, Completion, FILES_MAX, FileSlot, completed::Completed};
use crate::SysError;
use crate::file::untraced::punch;
use crate::pool::Block;
use crate::waker::Waker;

const PAGE_BYTES: u64 = 4096;

/// Copies between blocks and mapped files, one at a time, in the caller's thread.
///
/// Files must have their full size before they are added. The pages of a request are populated
/// before they are accessed (Linux 5.14), so that a full or failing disk is an error and not a
/// signal; only a file truncated by another process meanwhile still kills this one.
#[derive(Debug)]
pub struct MappedEngine {
    files: Vec<Option<Map>>,
    ended: Completed,
}

/// Mapping of one file.
#[derive(Debug)]
struct Map {
    file: Arc<OwnedFd>,
    base: NonNull<u8>,
    bytes: u64,
}

// SAFETY: the mapping belongs to this value alone and is not bound to a thread.
unsafe impl Send for Map {}

impl Map {
    fn new(file: Arc<OwnedFd>) -> Result<Self, SysError> {
        let fail = |e: Errno| SysError::Call { action: "map a file into memory", source: e.into() };
        let bytes = rustix::fs::fstat(&file).map_err(fail)?.st_size as u64;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let null = std::ptr::null_mut();
        // SAFETY: a new mapping at an address chosen by the kernel aliases nothing in this
        // process.
        let base = unsafe { mmap(null, bytes as usize, protection, MapFlags::SHARED, &file, 0) };
        let base = base.map_err(fail)?;
        let base = NonNull::new(base.cast()).ok_or_else(|| fail(Errno::NOMEM))?;
        Ok(Self { file, base, bytes })
    }

    /// Populates the pages of `bytes` at `offset`, and returns their address.
    fn touch(&self, offset: u64, bytes: usize, advice: Advice) -> std::io::Result<*mut u8> {
        let end = offset.checked_add(bytes as u64).filter(|end| *end <= self.bytes);
        let end = end.ok_or(std::io::ErrorKind::UnexpectedEof)?.next_multiple_of(PAGE_BYTES);
        let first = offset / PAGE_BYTES * PAGE_BYTES;
        // SAFETY: `first` and `offset` lie inside the mapping, which ends at a whole page.
        let (page, start) =
            unsafe { (self.base.as_ptr().add(first as usize), self.base.as_ptr().add(offset as usize)) };
        // SAFETY: the range is part of the mapping; populating it changes no contents.
        match unsafe { madvise(page.cast(), (end - first) as usize, advice) } {
            Ok(()) => Ok(start),
            Err(Errno::FAULT) => Err(std::io::Error::other(
                "the file's pages cannot be populated: no space, or the disk failed",
            )),
            Err(e) => Err(e.into()),
        }
    }

    fn sync(&self) -> std::io::Result<()> {
        // SAFETY: the whole mapping, which this value owns.
        unsafe { msync(self.base.as_ptr().cast(), self.bytes as usize, MsyncFlags::SYNC) }?;
        Ok(rustix::fs::fdatasync(&self.file)?)
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: no pointer into the mapping outlives the call that made it.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes as usize) };
    }
}

impl MappedEngine {
    /// Creates an engine that `waker` wakes.
    pub fn new(waker: &Waker) -> Self {
        let files = (0..FILES_MAX).map(|_| None).collect();
        Self { files, ended: Completed::new(waker) }
    }

    fn map(&self, slot: FileSlot) -> std::io::Result<&Map> {
        let map = self.files.get(slot.0 as usize).and_then(Option::as_ref);
        map.ok_or_else(|| std::io::Error::other("a file that was removed"))
    }
}

impl BlockEngine for MappedEngine {
    fn name(&self) -> &'static str {
        "mmap"
    }

    fn buffers(&self) -> String {
        "copied into the page cache".into()
    }

    fn is_synchronous(&self) -> bool {
        true
    }

    fn add_file(&mut self, file: Arc<OwnedFd>) -> Result<FileSlot, SysError> {
        let free = self.files.iter().position(Option::is_none);
        let slot =
            free.ok_or_else(|| SysError::Invalid { what: format!("more than {FILES_MAX} files open") })?;
        self.files[slot] = Some(Map::new(file)?);
        Ok(FileSlot(slot as u32))
    }

    fn remove_file(&mut self, slot: FileSlot) {
        if let Some(file) = self.files.get_mut(slot.0 as usize) {
            *file = None;
        }
    }

    fn write(&mut self, slot: FileSlot, offset: u64, block: Block, bytes: usize, token: u64) {
        let target = self.map(slot).and_then(|map| map.touch(offset, bytes, Advice::LinuxPopulateWrite));
        // SAFETY: `touch` checked that `bytes` lie inside the mapping; a block is never part of one.
        let result =
            target.map(|to| unsafe { std::ptr::copy_nonoverlapping(block[..bytes].as_ptr(), to, bytes) });
        self.ended.end(token, Some(block), result);
    }

    fn read(&mut self, slot: FileSlot, offset: u64, mut block: Block, bytes: usize, token: u64) {
        let source = self.map(slot).and_then(|map| map.touch(offset, bytes, Advice::LinuxPopulateRead));
        // SAFETY: as in `write`.
        let result = source
            .map(|from| unsafe { std::ptr::copy_nonoverlapping(from, block[..bytes].as_mut_ptr(), bytes) });
        self.ended.end(token, Some(block), result);
    }

    fn sync(&mut self, slot: FileSlot, token: u64) {
        let result = self.map(slot).and_then(Map::sync);
        self.ended.end(token, None, result);
    }

    fn discard(&mut self, slot: FileSlot, offset: u64, bytes: u64, token: u64) {
        let result = self.map(slot).and_then(|map| punch(&map.file, offset, bytes));
        self.ended.end(token, None, result);
    }

    fn in_flight(&self) -> usize {
        self.ended.count()
    }

    fn wait(&mut self, timeout: Duration, ended: &mut Vec<Completion>) -> Result<(), SysError> {
        self.ended.wait(timeout, ended)
    }
}
