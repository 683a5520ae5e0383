//! I/O settings shared by all streaming tests: access, engine, data pattern, space.
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use keepup_sys::engine::EngineChoice;
use keepup_sys::engine::{BlockEngine, open};
pub use keepup_sys::file::{Access, Durability};
use keepup_sys::file::{open_file, reserve, set_length};
use keepup_sys::pool::Pool;
use keepup_sys::waker::Waker;

use crate::WorkloadError;
use crate::random_data::{SEED, fill_random};

/// Unit of data generation: each page has its own stamp or a unique part.
pub(super) const PAGE_BYTES: usize = 4096;

/// I/O settings of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// Direct or buffered.
    pub access: Access,
    /// Whether each write is durable on completion.
    pub durability: Durability,
    /// I/O engine.
    pub engine: EngineChoice,
    /// Data pattern.
    pub pattern: Pattern,
    /// State of the space before writing.
    pub space: Space,
}

impl Default for Mode {
    /// The recorder's settings: direct I/O, io_uring, preallocated space, incompressible data.
    fn default() -> Self {
        Self {
            access: Access::Direct,
            durability: Durability::Flushed,
            engine: EngineChoice::Auto,
            pattern: Pattern::default(),
            space: Space::Preallocated,
        }
    }
}

impl Mode {
    /// Opens an engine for up to `depth` in-flight requests with `memory_bytes` of buffer memory,
    /// filled according to `seed`.
    pub(super) fn open(
        &self,
        memory_bytes: usize,
        depth: usize,
        seed: u64,
    ) -> Result<(Box<dyn BlockEngine>, Pool), WorkloadError> {
        // Requests do not cross memory regions, so the end of a region may stay unused.
        let mut pool = Pool::new(memory_bytes + (1 << 20))?;
        if let Some(mut all) = pool.take(pool.block_bytes_max()) {
            self.pattern.fill(&mut all, SEED.wrapping_add(seed));
            pool.give_back(all);
        }
        let (mut engine, _) = open(self.engine, &pool.memory(), &Waker::new()?, self.depth(depth))?;
        engine.set_gather(false);
        Ok((engine, pool))
    }

    /// Effective queue depth when `depth` is requested: synchronous engines have one request in
    /// flight.
    pub(super) fn depth(&self, depth: usize) -> usize {
        match self.engine {
            EngineChoice::Plain | EngineChoice::Mapped => 1,
            EngineChoice::Auto | EngineChoice::Ring => depth.max(1),
        }
    }
}

/// State of the space before writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Unallocated: the file grows.
    New,
    /// Preallocated but never written.
    Preallocated,
    /// Overwritten: the space contains older data.
    Overwritten,
}

/// Data pattern in percent; 0 for both is incompressible, unique data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// Share of zeros in each page.
    pub compressible: u8,
    /// Share of pages that repeat earlier ones.
    pub duplicate: u8,
}

impl Pattern {
    /// Fills write buffers.
    pub(super) fn fill(self, memory: &mut [u8], seed: u64) {
        fill_random(memory, seed);
        let random = PAGE_BYTES - PAGE_BYTES * usize::from(self.compressible.min(100)) / 100;
        for page in memory.chunks_mut(PAGE_BYTES) {
            let zeros = random.max(8).min(page.len());
            page[zeros..].fill(0);
        }
    }

    /// Makes the pages of a request unique, except for the duplicates. `count` is the number of
    /// pages made so far.
    pub(crate) fn stamp(self, request: &mut [u8], count: &mut u64) {
        for page in request.chunks_mut(PAGE_BYTES) {
            *count += 1;
            // A page with an unchanged stamp was written before, or is random memory the first
            // time.
            if *count % 100 >= u64::from(self.duplicate) {
                let stamp = count.to_le_bytes();
                let bytes = page.len().min(stamp.len());
                page[..bytes].copy_from_slice(&stamp[..bytes]);
            }
        }
    }
}

/// A file, or a part of one, used sequentially.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The open file.
    pub(crate) file: Arc<std::os::fd::OwnedFd>,
    /// Path of the file.
    pub(crate) path: PathBuf,
    /// Start of the part.
    base: u64,
    /// Size of the part, bytes.
    pub(super) bytes: u64,
    /// Whether the file has other parts.
    is_shared: bool,
    /// Offset of the next request.
    at: u64,
}

impl Target {
    /// Creates `path` for a single user.
    pub(crate) fn create(path: &Path, bytes: u64, mode: &Mode) -> Result<Self, WorkloadError> {
        Ok(Self::create_shared(path, bytes, 1, mode)?.remove(0))
    }

    /// Creates `path` with `parts` of `bytes` each.
    pub(crate) fn create_shared(
        path: &Path,
        bytes: u64,
        parts: usize,
        mode: &Mode,
    ) -> Result<Vec<Self>, WorkloadError> {
        let file = Arc::new(open_file(path, mode.access, mode.durability)?);
        let whole = bytes * parts as u64;
        match mode.space {
            Space::New if mode.engine == EngineChoice::Mapped => set_length(&file, path, whole)?,
            Space::New => {}
            Space::Preallocated | Space::Overwritten => reserve(&file, path, whole)?,
        }
        let part = |n: usize| Self {
            file: Arc::clone(&file),
            path: path.to_owned(),
            base: n as u64 * bytes,
            bytes,
            is_shared: parts > 1,
            at: 0,
        };
        Ok((0..parts).map(part).collect())
    }

    /// Whether a request of `bytes` must wrap around to the start.
    pub(crate) fn is_full(&self, bytes: usize) -> bool {
        self.at + bytes as u64 > self.bytes
    }

    /// Returns to the start, for overwriting.
    pub(crate) fn rewind(&mut self) {
        self.at = 0;
    }

    /// Returns to the start and restores the initial state of the space: empty, or preallocated. No
    /// request may be in flight.
    pub(crate) fn reset(&mut self, mode: &Mode) -> Result<(), WorkloadError> {
        self.at = 0;
        if mode.space == Space::Overwritten || self.is_shared {
            return Ok(());
        }
        set_length(&self.file, &self.path, 0)?;
        match mode.space {
            Space::Preallocated => reserve(&self.file, &self.path, self.bytes)?,
            _ if mode.engine == EngineChoice::Mapped => set_length(&self.file, &self.path, self.bytes)?,
            _ => {}
        }
        Ok(())
    }

    /// Offset of the next request of `bytes`.
    pub(super) fn next(&mut self, bytes: usize) -> u64 {
        let at = self.base + self.at;
        self.at += bytes as u64;
        at
    }
}

#[cfg(test)]
#[path = "mode_tests.rs"]
mod tests;
