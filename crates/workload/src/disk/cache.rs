//! Size of the page cache: files are written through it, then the first one is read back and timed
//! to see whether it is still cached.
//!
//! Source: the note on the CSL upgrade, which wrote 128 MB files and found that the first was read
//! slowly from the 11th on. A read disturbs the result, because a page that was read stays longer
//! than one only written. So each total is tried with newly written files; totals are doubled and
//! then bisected ([`search`]), since linear steps would rewrite the same bytes many times.
//!
//! Whether the first file was cached is decided by time, relative to two reference reads in the
//! same run: of a file just written and of one evicted from the cache. The kernel's view (resident
//! pages) is reported too; if the two contradict, for example because the read was delayed by
//! something else, the total is tried again.
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use keepup_measure::memory::Memory;
use keepup_results::{CacheFinding, CacheMemory, CacheStep, DiskFinding};
use keepup_sys::cache::cached_bytes;
use keepup_sys::file::{
    Access, Durability, forget_cached, open_file, open_truncated, read_exact_at, sync_data, write_all_at,
};
use keepup_sys::pool::{Block, Pool};

use super::phase::{PhaseClock, RATE_GUESS};
use super::{Cost, DiskMeasured, DiskTest, TestDirectories};
use crate::error::system;
use crate::file_io::mode::Pattern;
use crate::preflight::Checked;
use crate::random_data::{SEED, fill_random};
use crate::{Context, WorkloadError};

mod search;

use search::Search;

/// Size of a write and of a read, bytes.
const TRANSFER_BYTES: usize = 1 << 20;
/// Repetitions of each reference read; the medians are used.
const REFERENCES: usize = 3;
/// Minimum ratio of cold to cached read time; below it the two are indistinguishable.
const CONTRAST_MIN: f64 = 1.5;
/// Maximum number of repeated totals per run.
const AGAIN_MAX: u64 = 2;

/// Upper limit of the bytes written at a time, and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// In bytes.
    pub bytes: u64,
    /// Reason, for the user.
    pub by: String,
}

/// Parameters of the test.
#[derive(Clone, Debug)]
pub struct CacheProbe {
    /// Size of a file, bytes.
    pub file_bytes: u64,
    /// Upper limit of the total.
    pub limit: Limit,
}

/// State of a running probe.
struct Probe<'a> {
    paths: &'a [PathBuf],
    file_bytes: u64,
    data: Block,
    stamp: u64,
}

/// Read times of one file from memory and from disk, seconds.
#[derive(Clone, Copy)]
struct Reference {
    cached: f64,
    cold: f64,
}

impl Limit {
    /// Twice the memory, or the smallest free space of all volumes.
    pub fn of(volumes: &[Checked], memory_bytes: u64) -> Self {
        let twice = Self { bytes: memory_bytes.saturating_mul(2), by: "twice the memory".into() };
        let free = |volume: &Checked| Self {
            bytes: volume.usable_bytes,
            by: format!("the free space on {}", volume.path.display()),
        };
        volumes
            .iter()
            .map(free)
            .chain([twice])
            .min_by_key(|limit| limit.bytes)
            .unwrap_or_else(|| Self { bytes: 0, by: "no volume".into() })
    }
}

impl CacheProbe {
    fn files_max(&self) -> u64 {
        (self.limit.bytes / self.file_bytes.max(1)).max(1)
    }

    fn finding(&self) -> CacheFinding {
        CacheFinding {
            file_bytes: self.file_bytes,
            cached_bytes: 0,
            evicted_bytes: None,
            unanswered: Some("the test was interrupted".into()),
            limit_bytes: self.files_max() * self.file_bytes,
            limit: self.limit.by.clone(),
            cached_bytes_per_second: None,
            cold_bytes_per_second: None,
            steps: Vec::new(),
            before: memory(),
        }
    }
}

/// Memory counters of the kernel; none if unavailable.
fn memory() -> Option<CacheMemory> {
    let memory = Memory::read(Path::new("/")).ok()?;
    Some(CacheMemory {
        total_bytes: memory.total_bytes,
        available_bytes: memory.available_bytes,
        cached_bytes: memory.cached_bytes,
    })
}

impl Probe<'_> {
    /// Writes the first `files` files from scratch, each durably; false if interrupted.
    ///
    /// The flushes are not in the note, but dirty pages cannot be evicted: later pages would be
    /// evicted in their place, the first file would stay too long, and the result would depend on
    /// the disk's speed.
    fn write(&mut self, files: u64, context: &Context) -> Result<bool, WorkloadError> {
        for path in self.paths.iter().take(files as usize) {
            let file = open_truncated(path, Access::Buffered)?;
            let action = format!("write to {}", path.display());
            let mut at = 0;
            while at < self.file_bytes {
                if context.stop.load(Ordering::Acquire) {
                    return Ok(false);
                }
                let piece = (self.file_bytes - at).min(TRANSFER_BYTES as u64) as usize;
                Pattern::default().stamp(&mut self.data[..piece], &mut self.stamp);
                write_all_at(&file, &self.data[..piece], at).map_err(system(&action))?;
                at += piece as u64;
            }
            sync_data(&file, path)?;
        }
        Ok(true)
    }

    /// Removes the written files and thereby evicts them.
    fn remove(&self, files: u64) -> Result<(), WorkloadError> {
        for path in self.paths.iter().take(files as usize) {
            std::fs::remove_file(path).map_err(system(&format!("remove {}", path.display())))?;
        }
        Ok(())
    }

    /// Reads the whole first file as a phase of this name.
    fn read(
        &mut self,
        name: String,
        found: &mut DiskMeasured,
        context: &Context,
    ) -> Result<f64, WorkloadError> {
        let path = &self.paths[0];
        let file = open_file(path, Access::Buffered, Durability::Flushed)?;
        let action = format!("read {}", path.display());
        let begun = PhaseClock::begin(context.clock.as_ref());
        let mut at = 0;
        while at < self.file_bytes {
            let piece = (self.file_bytes - at).min(TRANSFER_BYTES as u64) as usize;
            read_exact_at(&file, &mut self.data[..piece], at).map_err(system(&action))?;
            at += piece as u64;
        }
        let phase = begun.end(context.clock.as_ref(), name, 1, self.file_bytes);
        let seconds = phase.seconds;
        found.phases.push(phase);
        Ok(seconds)
    }

    /// Both reference times; none if interrupted. Cached: written, then read. Cold: written
    /// durably, evicted, then read.
    fn reference(
        &mut self,
        found: &mut DiskMeasured,
        context: &Context,
    ) -> Result<Option<Reference>, WorkloadError> {
        let (mut cached, mut cold) = (Vec::new(), Vec::new());
        for turn in 1..=REFERENCES {
            if !self.write(1, context)? {
                return Ok(None);
            }
            cached.push(self.read(format!("read cached {turn}"), found, context)?);
            let path = &self.paths[0];
            let file = open_file(path, Access::Buffered, Durability::Flushed)?;
            sync_data(&file, path)?;
            forget_cached(&file, path)?;
            cold.push(self.read(format!("read cold {turn}"), found, context)?);
            self.remove(1)?;
        }
        let middle = |seconds: &[f64]| keepup_measure::stats::median(seconds).unwrap_or(0.0);
        Ok(Some(Reference { cached: middle(&cached), cold: middle(&cold) }))
    }

    /// Tries one total; none if interrupted.
    fn step(
        &mut self,
        files: u64,
        reference: Reference,
        found: &mut DiskMeasured,
        context: &Context,
    ) -> Result<Option<CacheStep>, WorkloadError> {
        if !self.write(files, context)? {
            return Ok(None);
        }
        let memory = memory();
        let first = open_file(&self.paths[0], Access::Buffered, Durability::Flushed)?;
        let resident_share = cached_bytes(&first).map(|bytes| bytes as f64 / self.file_bytes as f64);
        drop(first);
        let name = format!("read first of {files} files");
        let tried = found.phases.iter().filter(|phase| phase.name.starts_with(&name)).count();
        let name = if tried == 0 { name } else { format!("{name} again {tried}") };
        let seconds = self.read(name, found, context)?;
        self.remove(files)?;
        Ok(Some(CacheStep {
            files,
            total_bytes: files * self.file_bytes,
            seconds,
            cached_share: reference.cached_share(seconds),
            resident_share: resident_share.map(|share| share.min(1.0)),
            memory,
        }))
    }
}

impl Reference {
    /// Whether cached and cold reads are distinguishable.
    fn is_distinguishable(self) -> bool {
        self.cached > 0.0 && self.cold >= self.cached * CONTRAST_MIN
    }

    /// Cached share of a file with this read time, by interpolation between the references.
    fn cached_share(self, seconds: f64) -> f64 {
        ((self.cold - seconds) / (self.cold - self.cached)).clamp(0.0, 1.0)
    }
}

impl DiskTest for CacheProbe {
    fn name(&self) -> &'static str {
        "cache"
    }

    fn cost(&self) -> Cost {
        let again = AGAIN_MAX * self.files_max();
        let files = Search::files_written_max(self.files_max()) + again + REFERENCES as u64;
        let bytes_written = files * self.file_bytes;
        let time = Duration::from_secs_f64(bytes_written as f64 / RATE_GUESS);
        Cost { bytes_written, space_bytes: self.files_max() * self.file_bytes, time }
    }

    fn measure(
        &self,
        place: &mut TestDirectories,
        found: &mut DiskMeasured,
        context: &mut Context,
    ) -> Result<(), WorkloadError> {
        let mut finding = self.finding();
        found.finding = Some(DiskFinding::Cache(finding.clone()));
        let mut pool = Pool::new(TRANSFER_BYTES)?;
        let Some(mut data) = pool.take(TRANSFER_BYTES) else { return Ok(()) };
        fill_random(&mut data, SEED);
        let paths: Vec<PathBuf> =
            (0..self.files_max()).map(|number| place.first.file(&format!("data_{number:04}"))).collect();
        let mut probe = Probe { paths: &paths, file_bytes: self.file_bytes, data, stamp: 0 };
        let Some(reference) = probe.reference(found, context)? else { return Ok(()) };
        let rate = |seconds: f64| (seconds > 0.0).then(|| self.file_bytes as f64 / seconds);
        finding.cached_bytes_per_second = rate(reference.cached);
        finding.cold_bytes_per_second = rate(reference.cold);
        if !reference.is_distinguishable() {
            let why = "cached and uncached reads of this volume take the same time";
            finding.unanswered = Some(why.into());
            found.finding = Some(DiskFinding::Cache(finding));
            return Ok(());
        }
        let mut search = Search::new(self.files_max());
        let mut again = AGAIN_MAX;
        while let Some(files) = search.next() {
            let Some(step) = probe.step(files, reference, found, context)? else { return Ok(()) };
            let (is_cached, is_doubtful) = (step.is_cached(), step.is_doubtful());
            finding.steps.push(step);
            if is_doubtful && again > 0 {
                again -= 1;
                continue;
            }
            search.record(files, is_cached);
            finding.cached_bytes = search.cached() * self.file_bytes;
            finding.evicted_bytes = search.evicted().map(|files| files * self.file_bytes);
            found.finding = Some(DiskFinding::Cache(finding.clone()));
        }
        finding.unanswered = match search.evicted() {
            Some(_) => None,
            None => Some(format!("cache size not reached before the limit ({})", self.limit.by)),
        };
        found.finding = Some(DiskFinding::Cache(finding));
        Ok(())
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
