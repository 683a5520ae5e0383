//! A list that continues in a temporary file when it becomes longer than its limit in memory.
//!
//! Invariants: the file has no name, so that it ends with the process; its space is reserved before it is
//! used, so that a full disk is an error and not a signal; only this module writes it.
use std::fmt;
use std::fs::File;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use crate::SysError;
use crate::file::reserve;

/// Smallest step by which the file grows, bytes; a multiple of every page size.
const STEP_BYTES: usize = 1 << 20;

/// Where a [`SpillVec`] continues, and from which length on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpillLimit {
    /// Largest number of elements in memory.
    pub elements: usize,
    /// Directory of the temporary file; the system's one if none.
    pub directory: Option<PathBuf>,
}

/// Directory for large temporary files: `$TMPDIR`, else `/var/tmp`, because `/tmp` is often in memory.
pub fn temporary_directory() -> PathBuf {
    std::env::var_os("TMPDIR").filter(|path| !path.is_empty()).map_or("/var/tmp".into(), PathBuf::from)
}

/// A vector of plain values, in memory up to a limit, then in a temporary file.
pub struct SpillVec<T: Copy + 'static> {
    memory: Vec<T>,
    spilled: Option<Spilled>,
    length: usize,
    limit: SpillLimit,
}

/// The file and its mapping.
struct Spilled {
    file: OwnedFd,
    directory: PathBuf,
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone, as the memory of a `Box` does.
unsafe impl Send for Spilled {}
// SAFETY: a shared `Spilled` gives out its address only; `SpillVec` gives access by the rules of slices.
unsafe impl Sync for Spilled {}

impl<T: Copy + 'static> SpillVec<T> {
    /// An empty list with this limit.
    #[must_use]
    pub fn new(limit: SpillLimit) -> Self {
        const { assert!(size_of::<T>() > 0 && align_of::<T>() <= 4096) };
        Self { memory: Vec::new(), spilled: None, length: 0, limit }
    }

    /// Appends `value`.
    ///
    /// # Errors
    /// The temporary file cannot be created or has no space.
    #[inline]
    pub fn push(&mut self, value: T) -> Result<(), SysError> {
        if self.spilled.is_none() && self.length < self.limit.elements {
            self.memory.push(value);
            self.length += 1;
            return Ok(());
        }
        self.push_spilled(value)
    }

    fn push_spilled(&mut self, value: T) -> Result<(), SysError> {
        let (size, length) = (size_of::<T>(), self.length);
        let spilled = match &mut self.spilled {
            Some(spilled) => spilled,
            None => self.spill()?,
        };
        if (length + 1) * size > spilled.bytes {
            spilled.grow(spilled.bytes + (spilled.bytes / 2).max(STEP_BYTES))?;
        }
        // SAFETY: the mapping has room for one more element, and begins at a page.
        unsafe { spilled.base.cast::<T>().add(length).write(value) };
        self.length += 1;
        Ok(())
    }

    /// Moves the elements to a new file.
    fn spill(&mut self) -> Result<&mut Spilled, SysError> {
        let directory = self.limit.directory.clone().unwrap_or_else(temporary_directory);
        let mut spilled = Spilled::create(directory)?;
        let bytes = size_of_val(self.memory.as_slice());
        spilled.grow((bytes + STEP_BYTES).next_multiple_of(STEP_BYTES))?;
        // SAFETY: the mapping is longer than the elements, and the two do not overlap.
        unsafe {
            spilled
                .base
                .cast::<T>()
                .copy_from_nonoverlapping(NonNull::from(self.memory.as_slice()).cast(), self.memory.len());
        }
        self.memory = Vec::new();
        Ok(self.spilled.insert(spilled))
    }

    /// Keeps the first `length` elements.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
        self.memory.truncate(length);
    }

    /// Keeps the elements that `is_kept` accepts, in order; it may change them.
    pub fn retain_mut(&mut self, mut is_kept: impl FnMut(&mut T) -> bool) {
        let mut kept = 0;
        for at in 0..self.length {
            let mut value = self[at];
            if is_kept(&mut value) {
                self[kept] = value;
                kept += 1;
            }
        }
        self.truncate(kept);
    }

    /// Bytes in the temporary file.
    pub fn spilled_bytes(&self) -> u64 {
        self.spilled.as_ref().map_or(0, |_| (self.length * size_of::<T>()) as u64)
    }

    /// Writes the file to its disk, so that the kernel does not do it later.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn settle(&self) -> Result<(), SysError> {
        let Some(spilled) = &self.spilled else { return Ok(()) };
        crate::file::sync_data(&spilled.file, &spilled.directory)
    }
}

impl<T: Copy + 'static> Deref for SpillVec<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.spilled {
            None => &self.memory,
            // SAFETY: the first `length` elements were written, and the mapping lives as long as `self`.
            Some(spilled) => unsafe { std::slice::from_raw_parts(spilled.base.cast().as_ptr(), self.length) },
        }
    }
}

impl<T: Copy + 'static> DerefMut for SpillVec<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.spilled {
            None => &mut self.memory,
            // SAFETY: as above, and `self` is borrowed exclusively.
            Some(spilled) => unsafe {
                std::slice::from_raw_parts_mut(spilled.base.cast().as_ptr(), self.length)
            },
        }
    }
}

impl<T: Copy + fmt::Debug + 'static> fmt::Debug for SpillVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpillVec").field("length", &self.length).field("limit", &self.limit).finish()
    }
}

impl Spilled {
    fn create(directory: PathBuf) -> Result<Self, SysError> {
        let failed =
            |source| SysError::File { action: "create a temporary file in", path: directory.clone(), source };
        let file: File = tempfile::tempfile_in(&directory).map_err(failed)?;
        Ok(Self { file: file.into(), directory, base: NonNull::dangling(), bytes: 0 })
    }

    /// Makes the file and its mapping `bytes` long.
    fn grow(&mut self, bytes: usize) -> Result<(), SysError> {
        reserve(&self.file, &self.directory, bytes as u64)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address chosen by the kernel aliases nothing; the file has no name, so
        // that nothing else shortens or writes it.
        let base =
            unsafe { mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, self.file.as_fd(), 0) };
        let base = base.map_err(|e| SysError::Call { action: "map a temporary file", source: e.into() })?;
        let mapped = NonNull::new(base.cast()).ok_or_else(|| SysError::Call {
            action: "map a temporary file",
            source: std::io::Error::other("mapped at address zero"),
        })?;
        self.unmap();
        (self.base, self.bytes) = (mapped, bytes);
        // The elements are read from one end to the other. SAFETY: the range is our own mapping; the advice
        // changes no contents.
        let _ = unsafe { madvise(base, bytes, Advice::Sequential) };
        Ok(())
    }

    fn unmap(&mut self) {
        if self.bytes > 0 {
            // SAFETY: the range is our own mapping, and no slice of it is borrowed here.
            let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
            self.bytes = 0;
        }
    }
}

impl Drop for Spilled {
    fn drop(&mut self) {
        self.unmap();
    }
}

#[cfg(test)]
#[path = "spill_tests.rs"]
mod tests;
