//! Phases of bonnie++: block-wise write, rewrite and read of a large file, random seeks in it, and
//! creation, stat and deletion of many empty files.
//!
//! Source: manual and read-me of bonnie++ (R. Coker), used by the report on the ESRF's camera
//! computers. The order of calls is that of the read-me; the written file grows as it does there.
//! I/O by character is optional, because it measures the processor. Writes end with a flush inside
//! the measured time.
use std::path::PathBuf;
use std::time::Duration;

use keepup_error::Cause;
use keepup_sys::file::{Access, direct_alignment, open_truncated};

use super::fio::FioFile;
use super::phase::RATE_GUESS;
use super::{Cost, DiskMeasured, DiskTest, TestDirectories};
use crate::file_io::mode::{EngineChoice, Mode, Space};
use crate::file_io::{IoDirection, Point};
use crate::{Context, WorkloadError};

mod bulk;
mod characters;
mod names;
mod seeks;

/// bonnie++'s chunk, bytes.
pub const CHUNK_BYTES: usize = 8 << 10;
/// Default chunk for direct I/O, where each chunk is a request, bytes.
pub const DIRECT_CHUNK_BYTES: usize = 1 << 20;
/// Unit of bonnie++'s file count.
pub const FILES_UNIT: u32 = 1024;
/// bonnie++'s number of seeks.
pub const SEEKS: u64 = 8192;

/// Use of the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheMode {
    /// Direct I/O.
    Direct,
    /// Buffered I/O with more data than the cache can hold.
    Buffered,
    /// Buffered I/O that may stay in the cache; phases are labelled as cached.
    Cached,
}

/// Parameters of the test.
#[derive(Clone, Debug)]
pub struct BlockTest {
    /// Size of the large file, a multiple of the chunk, bytes.
    pub size_bytes: u64,
    /// Size of each read and write, bytes.
    pub chunk_bytes: usize,
    /// Use of the page cache.
    pub through: CacheMode,
    /// Bytes to write and read by character through the page cache, 0 for none.
    pub character_bytes: u64,
    /// Size of the read of a seek, at most a chunk, bytes.
    pub seek_bytes: usize,
    /// Total number of seeks.
    pub seeks: u64,
    /// Files to create in each of the two orders.
    pub files: u32,
}

impl CacheMode {
    fn access(self) -> Access {
        if self == Self::Direct { Access::Direct } else { Access::Buffered }
    }

    /// Name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Buffered => "buffered",
            Self::Cached => "cached",
        }
    }
}

impl BlockTest {
    /// Reason why the sizes are unsuitable for a machine with this much memory, with a hint;
    /// bonnie++ requires twice the memory.
    pub fn objection(&self, memory_bytes: u64) -> Option<Cause> {
        let least = memory_bytes.saturating_mul(2);
        (self.through == CacheMode::Buffered && self.size_bytes < least).then(|| {
            Cause::new(format!(
                "cannot measure the disk: a file of {:.1} GB on a machine with {:.1} GB of memory is read \
                 from memory",
                self.size_bytes as f64 / 1e9,
                memory_bytes as f64 / 1e9,
            ))
            .with_hint(format!(
                "--size '{} GiB' or more, --direct, or --cached for figures of the cache; keepup disk cache \
                 finds its size",
                least.div_ceil(1 << 30)
            ))
        })
    }

    /// Name of a phase, marked if the cache may have served it.
    fn phase(&self, name: &str) -> String {
        if self.through == CacheMode::Cached { format!("{name}, cached") } else { name.to_owned() }
    }
}

impl DiskTest for BlockTest {
    fn name(&self) -> &'static str {
        "block"
    }

    fn cost(&self) -> Cost {
        let updates = self.seeks.div_ceil(seeks::UPDATE_EVERY) * self.seek_bytes as u64;
        let bytes_written = 2 * self.size_bytes + updates + self.character_bytes;
        let moved = 4 * self.size_bytes + 2 * updates + 2 * self.character_bytes;
        // Estimate for a rotating disk: 100 seeks/s, 1000 file operations/s.
        let slow = self.seeks as f64 / 100.0 + f64::from(self.files) * 6.0 / 1000.0;
        let time = Duration::from_secs_f64(moved as f64 / RATE_GUESS + slow);
        Cost { bytes_written, space_bytes: self.size_bytes.max(self.character_bytes), time }
    }

    fn fio(&self, volumes: &[PathBuf]) -> Result<FioFile, &'static str> {
        let (engine, space) = (EngineChoice::Plain, Space::New);
        let mut file =
            FioFile::new(&Mode { access: self.through.access(), engine, space, ..Mode::default() });
        file.remark("fio cannot rewrite the chunk that it just read, and creates files without stat calls");
        let [point, seek] = [self.chunk_bytes, self.seek_bytes].map(|bytes| Point { bytes, depth: 1 });
        for volume in volumes {
            for kind in [IoDirection::Write, IoDirection::Read] {
                file.job(kind.verb(), volume, kind, point, true);
                file.set("filename", "keepup-fio-data");
                file.set("size", self.size_bytes);
            }
            file.job("seek", volume, IoDirection::Read, seek, true);
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
        place: &mut TestDirectories,
        found: &mut DiskMeasured,
        context: &mut Context,
    ) -> Result<(), WorkloadError> {
        if self.size_bytes > 0 {
            let path = place.first.file("data");
            let file = open_truncated(&path, self.through.access())?;
            if let Some(align) = direct_alignment(&file).filter(|_| self.through == CacheMode::Direct)
                && let sizes = [self.chunk_bytes, self.seek_bytes]
                && let Some(chunk) = sizes.into_iter().find(|bytes| !bytes.is_multiple_of(align as usize))
            {
                let why = Cause::new(format!("direct I/O takes multiples of {align} bytes, not {chunk}"))
                    .with_hint("another --chunk");
                return Err(WorkloadError::Volume { path, why, trouble: crate::VolumeTrouble::Unable });
            }
            drop(file);
            if !bulk::run(self, &path, found, context)? || !seeks::run(self, &path, found, context)? {
                return Ok(());
            }
            std::fs::remove_file(&path)
                .map_err(crate::error::system(&format!("remove {}", path.display())))?;
        }
        if self.character_bytes > 0 {
            let path = place.first.file("characters");
            if !characters::run(self, &path, found, context)? {
                return Ok(());
            }
            std::fs::remove_file(&path)
                .map_err(crate::error::system(&format!("remove {}", path.display())))?;
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
