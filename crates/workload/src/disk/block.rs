//! bonnie++'s phases: a large file written, rewritten and read block by block, random seeks in it, and very
//! many empty files created, looked at and deleted.
//!
//! Source: the manual and the read-me of bonnie++ (R. Coker), which the report on the ESRF's camera computers
//! used. The order of calls is that of the read-me; a file that is written grows, as it does there. What is
//! not here is its character by character input and output, which measured the C library. Writes end with a
//! flush, inside the time that counts.
use std::path::PathBuf;
use std::time::Duration;

use keepup_sys::file::{Access, direct_alignment, open_truncated};

use super::fio::FioFile;
use super::mode::{EngineChoice, Mode, Space};
use super::phase::RATE_GUESS;
use super::{Cost, DiskTest, Found, Kind, Place, Point};
use crate::{Context, WorkloadError};

mod bulk;
mod names;
mod seeks;

/// bonnie++'s chunk, in bytes.
pub const CHUNK_BYTES: usize = 8 << 10;
/// Chunk that is the default for direct I/O, where each is a request of its own. Bytes.
pub const DIRECT_CHUNK_BYTES: usize = 1 << 20;
/// bonnie++ counts files in these.
pub const FILES_UNIT: u32 = 1024;
/// bonnie++'s number of seeks.
pub const SEEKS: u64 = 8192;

/// How bytes get to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    /// Past the page cache.
    Direct,
    /// Through the page cache, with more than it can hold.
    Buffered,
    /// Through the page cache, which may hold all: figures of the cache, and named so.
    Cached,
}

/// The test.
#[derive(Clone, Debug)]
pub struct BlockTest {
    /// Bytes of the large file, a multiple of the chunk.
    pub size_bytes: u64,
    /// Bytes of each read and write.
    pub chunk_bytes: usize,
    /// How they get to the disk.
    pub through: Through,
    /// Seeks in all.
    pub seeks: u64,
    /// Files to create, in each of the two orders.
    pub files: u32,
}

impl Through {
    fn access(self) -> Access {
        if self == Self::Direct { Access::Direct } else { Access::Buffered }
    }

    /// For results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Buffered => "buffered",
            Self::Cached => "cached",
        }
    }
}

impl BlockTest {
    /// Why the sizes do not do on a machine with this much memory, and what does; bonnie++'s rule is twice
    /// the memory.
    pub fn objection(&self, memory_bytes: u64) -> Option<String> {
        let least = memory_bytes.saturating_mul(2);
        (self.through == Through::Buffered && self.size_bytes < least).then(|| {
            format!(
                "a file of {:.1} GB read through the page cache on a machine with {:.1} GB of memory is read \
                 from memory\nhint: --size '{} GiB' or more, --direct, or --cached for figures of the cache; \
                 keepup disk cache finds its size",
                self.size_bytes as f64 / 1e9,
                memory_bytes as f64 / 1e9,
                least.div_ceil(1 << 30)
            )
        })
    }

    /// A phase's name: what the cache may have answered is called so.
    fn phase(&self, name: &str) -> String {
        if self.through == Through::Cached { format!("{name}, cached") } else { name.to_owned() }
    }
}

impl DiskTest for BlockTest {
    fn name(&self) -> &'static str {
        "block"
    }

    fn cost(&self) -> Cost {
        let updates = self.seeks.div_ceil(seeks::UPDATE_EVERY) * self.chunk_bytes as u64;
        let bytes_written = 2 * self.size_bytes + updates;
        let moved = 4 * self.size_bytes + 2 * updates;
        // A disk that turns seeks 100 times a second, and makes 1000 files.
        let slow = self.seeks as f64 / 100.0 + f64::from(self.files) * 6.0 / 1000.0;
        let time = Duration::from_secs_f64(moved as f64 / RATE_GUESS + slow);
        Cost { bytes_written, space_bytes: self.size_bytes, time }
    }

    fn fio(&self, volumes: &[PathBuf]) -> Result<FioFile, &'static str> {
        let (engine, space) = (EngineChoice::Plain, Space::New);
        let mut file =
            FioFile::new(&Mode { access: self.through.access(), engine, space, ..Mode::default() });
        file.remark(
            "fio has no rewriting of what was just read, and its files are made without a look at them",
        );
        let point = Point { bytes: self.chunk_bytes, depth: 1 };
        for volume in volumes {
            for kind in [Kind::Write, Kind::Read] {
                file.job(kind.verb(), volume, kind, point, true);
                file.set("filename", "keepup-fio-data");
                file.set("size", self.size_bytes);
            }
            file.job("seek", volume, Kind::Read, point, true);
            file.set("rw", "randrw");
            file.set("rwmixread", 100 - 100 / seeks::UPDATE_EVERY);
            file.set("numjobs", seeks::SEEKERS);
            file.set("filename", "keepup-fio-data");
            file.set("size", self.size_bytes);
            file.set("number_ios", self.seeks / seeks::SEEKERS as u64);
        }
        Ok(file)
    }

    fn measure(
        &self,
        place: &mut Place,
        found: &mut Found,
        context: &mut Context,
    ) -> Result<(), WorkloadError> {
        if self.size_bytes > 0 {
            let path = place.first.file("data");
            let file = open_truncated(&path, self.through.access())?;
            if let Some(align) = direct_alignment(&file).filter(|_| self.through == Through::Direct)
                && !self.chunk_bytes.is_multiple_of(align as usize)
            {
                let what = format!(
                    "direct I/O on {} takes multiples of {align} bytes, not {}\nhint: another --chunk",
                    path.display(),
                    self.chunk_bytes
                );
                return Err(keepup_sys::SysError::Invalid { what }.into());
            }
            drop(file);
            if !bulk::run(self, &path, found, context)? || !seeks::run(self, &path, found, context)? {
                return Ok(());
            }
            std::fs::remove_file(&path)
                .map_err(crate::ceiling::system(&format!("remove {}", path.display())))?;
        }
        if self.files > 0 {
            names::run(self, &place.first, found, context)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "block_tests.rs"]
mod tests;
