//! The bytes of a segment's file, read past the page cache: one part, or ahead of a reader that goes from one
//! end to the other.

use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::os::unix::fs::FileExt;
use std::path::Path;

use keepup_sys::file::Access;
use keepup_sys::{PAGE_BYTES, regular};
use rustix::fs::{Advice, fadvise};

use crate::sequential::Sequential;

/// A segment's file and the block of it that is in memory.
pub(super) struct Source {
    file: File,
    access: Access,
    buffer: PageBuffer,
    /// Block of which the first bytes are in the buffer, and how many.
    loaded: Option<(u64, usize)>,
    /// Length of the block read last: the next one is likely as long.
    likely_bytes: usize,
    ahead: Option<Sequential>,
}

/// How a part is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By itself.
    Once,
    /// With what follows, up to this offset.
    Ahead(u64),
}

impl Source {
    /// Opens a segment. One that is being written is not read ahead by the kernel where the file system has
    /// no direct I/O: the page cache would fill with data that is not written yet.
    pub(super) fn open(path: &Path, is_ended: bool) -> io::Result<Source> {
        let (file, access) = regular::open_direct(path)?;
        if access == Access::Buffered && !is_ended {
            fadvise(&file, 0, None, Advice::Random)?;
        }
        let (buffer, loaded, likely_bytes, ahead) = (PageBuffer::default(), None, 0, None);
        Ok(Source { file, access, buffer, loaded, likely_bytes, ahead })
    }

    /// Size of the file now, bytes.
    pub(super) fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// The block in memory, from its start.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// Reads `part` of the block at `offset` to the same part of [`Source::bytes`]; its ends are multiples of
    /// the page size. Returns the number of bytes, which are fewer at the end of the file.
    pub(super) fn read(&mut self, offset: u64, part: Range<usize>, way: Way) -> io::Result<usize> {
        self.buffer.extend(part.end);
        let at = offset + part.start as u64;
        match way {
            Way::Once => self.read_once(offset, part),
            Way::Ahead(limit) => {
                self.loaded = None;
                let ahead = match &mut self.ahead {
                    Some(ahead) => {
                        ahead.extend(limit)?;
                        ahead
                    }
                    none => none.insert(Sequential::new((self.file.try_clone()?, self.access), limit)?),
                };
                ahead.read_at(&mut self.buffer[part], at)
            }
        }
    }
}

impl Source {
    /// Reads the start of a block together with what is likely the rest of it, which is then there.
    fn read_once(&mut self, offset: u64, part: Range<usize>) -> io::Result<usize> {
        if part.start > 0 {
            self.likely_bytes = part.end;
            if self.loaded.is_some_and(|(at, bytes)| at == offset && bytes >= part.end) {
                return Ok(part.len());
            }
            return read_pages(&self.file, &mut self.buffer[part.clone()], offset + part.start as u64);
        }
        let likely = part.end.max(self.likely_bytes);
        self.buffer.extend(likely);
        // The rest may be unreadable.
        let read = read_pages(&self.file, &mut self.buffer[..likely], offset)
            .or_else(|_| read_pages(&self.file, &mut self.buffer[part.clone()], offset))?;
        self.loaded = Some((offset, read));
        Ok(read.min(part.end))
    }
}

/// Reads whole pages until `part` is full or the file ends.
fn read_pages(file: &File, part: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < part.len() {
        match file.read_at(&mut part[filled..], at + filled as u64) {
            // A direct read that goes on within a page is refused: the file ends there.
            Ok(bytes) if bytes % PAGE_BYTES != 0 || bytes == 0 => return Ok(filled + bytes),
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Bytes that start at a page, as direct I/O needs.
#[derive(Default)]
struct PageBuffer {
    memory: Vec<u8>,
    range: Range<usize>,
}

impl PageBuffer {
    /// Makes it at least `bytes` long, and keeps its contents.
    fn extend(&mut self, bytes: usize) {
        if bytes <= self.range.len() {
            return;
        }
        let mut memory = vec![0; bytes + PAGE_BYTES];
        let start = memory.as_ptr().align_offset(PAGE_BYTES);
        memory[start..start + self.range.len()].copy_from_slice(self);
        (self.memory, self.range) = (memory, start..start + bytes);
    }
}

impl Deref for PageBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.range.clone()]
    }
}

impl DerefMut for PageBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.range.clone()]
    }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
