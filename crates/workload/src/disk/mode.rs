//! How bytes get to a disk and back, and what they are: settings that every test of streams shares.
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use keepup_sys::engine::EngineChoice;
use keepup_sys::engine::{BlockEngine, open};
pub use keepup_sys::file::{Access, Durability};
use keepup_sys::file::{open_file, reserve, set_length};
use keepup_sys::pool::Pool;
use keepup_sys::waker::Waker;

use crate::WorkloadError;
use crate::data::{SEED, fill_random};

/// The unit in which contents are made: every page has a stamp of its own, or a part of its own.
pub(super) const PAGE_BYTES: usize = 4096;

/// The settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// Past the page cache, or through it.
    pub access: Access,
    /// Whether each write ends only when it is durable.
    pub durability: Durability,
    /// How requests are made.
    pub engine: EngineChoice,
    /// What is written.
    pub pattern: Pattern,
    /// What lies where a writer writes.
    pub space: Space,
}

impl Default for Mode {
    /// As the recorder writes: direct, through the ring, into space that was reserved, nothing to compress.
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
    /// An engine that keeps up to `depth` requests under way, and `memory_bytes` of memory for them, with
    /// data that differs from seed to seed.
    pub(super) fn open(
        &self,
        memory_bytes: usize,
        depth: usize,
        seed: u64,
    ) -> Result<(Box<dyn BlockEngine>, Pool), WorkloadError> {
        // Memory lies in regions which a request does not cross: some may stay unused at their ends.
        let mut pool = Pool::new(memory_bytes + (1 << 20))?;
        if let Some(mut all) = pool.take(pool.block_bytes_max()) {
            self.pattern.fill(&mut all, SEED.wrapping_add(seed));
            pool.give_back(all);
        }
        let (mut engine, _) = open(self.engine, &pool.memory(), &Waker::new()?, self.depth(depth))?;
        engine.set_gather(false);
        Ok((engine, pool))
    }

    /// How many requests can be under way where `depth` are wanted: some engines end one before they begin
    /// the next.
    pub(super) fn depth(&self, depth: usize) -> usize {
        match self.engine {
            EngineChoice::Plain | EngineChoice::Mapped => 1,
            EngineChoice::Auto | EngineChoice::Ring => depth.max(1),
        }
    }
}

/// What lies where a writer writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Nothing: the file grows.
    New,
    /// Space that was reserved and never written.
    Preallocated,
    /// Older data.
    Overwritten,
}

/// What is written, in per cent; both 0 is data that no disk can make smaller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// This part of every page is zeros.
    pub compressible: u8,
    /// This part of the pages was written before.
    pub duplicate: u8,
}

impl Pattern {
    /// Fills memory from which requests will be written.
    pub(super) fn fill(self, memory: &mut [u8], seed: u64) {
        fill_random(memory, seed);
        let random = PAGE_BYTES - PAGE_BYTES * usize::from(self.compressible.min(100)) / 100;
        for page in memory.chunks_mut(PAGE_BYTES) {
            let zeros = random.max(8).min(page.len());
            page[zeros..].fill(0);
        }
    }

    /// Makes the pages of a request differ from all that were written before, but for the duplicates. `count`
    /// is how many pages were made so far.
    pub(super) fn stamp(self, request: &mut [u8], count: &mut u64) {
        for page in request.chunks_mut(PAGE_BYTES) {
            *count += 1;
            // A page whose stamp stays was written with it before, or is random memory the first time.
            if *count % 100 >= u64::from(self.duplicate) {
                let stamp = count.to_le_bytes();
                let bytes = page.len().min(stamp.len());
                page[..bytes].copy_from_slice(&stamp[..bytes]);
            }
        }
    }
}

/// A file, or a part of one, that requests go to one after another.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The open file.
    pub(crate) file: Arc<std::os::fd::OwnedFd>,
    /// Its path.
    pub(crate) path: PathBuf,
    /// Where the part begins.
    base: u64,
    /// Its size.
    pub(super) bytes: u64,
    /// Whether others have parts of the same file.
    is_shared: bool,
    /// Where the next request goes.
    at: u64,
}

impl Target {
    /// Makes `path`, to be used by one alone.
    pub(crate) fn create(path: &Path, bytes: u64, mode: &Mode) -> Result<Self, WorkloadError> {
        Ok(Self::create_shared(path, bytes, 1, mode)?.remove(0))
    }

    /// Makes `path` with `parts` of `bytes` each.
    pub(super) fn create_shared(
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

    /// Whether a request of `bytes` has to begin anew at the front.
    pub(crate) fn is_full(&self, bytes: usize) -> bool {
        self.at + bytes as u64 > self.bytes
    }

    /// Back to the front, over what lies there.
    pub(super) fn rewind(&mut self) {
        self.at = 0;
    }

    /// Back to the front, with the space as it was at first: empty, or reserved anew. Nothing may be under
    /// way.
    pub(super) fn renew(&mut self, mode: &Mode) -> Result<(), WorkloadError> {
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

    /// Where the next request of `bytes` goes.
    pub(super) fn next(&mut self, bytes: usize) -> u64 {
        let at = self.base + self.at;
        self.at += bytes as u64;
        at
    }
}

#[cfg(test)]
#[path = "mode_tests.rs"]
mod tests;
