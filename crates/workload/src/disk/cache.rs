//! How large is the page cache? Files are written through it, then the first is read back and timed: as long
//! as it is in memory that is fast.
//!
//! Source: the note on the CSL upgrade, which wrote files of 128 MB and found that the first was read slowly
//! from the 11th on. That one read disturbs what it measures: a page that was read stays longer than one that
//! was only written. So each total is tried with new files, written from nothing, and the totals are doubled
//! and then bisected ([`search`]): a march by one file would write the same bytes over and over.
//!
//! Whether the first file was in memory is judged by time, against two reads of the same run: of a file
//! written just before, and of one that was taken out of memory. What the kernel says stands beside it; where
//! the two contradict each other, as they do when something else held up the read, the total is tried again.
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

use super::mode::Pattern;
use super::phase::{PhaseClock, RATE_GUESS};
use super::{Cost, DiskTest, Found, Place};
use crate::ceiling::system;
use crate::data::{SEED, fill_random};
use crate::preflight::Checked;
use crate::{Context, WorkloadError};

mod search;

use search::Search;

/// Bytes of a write and of a read.
const TRANSFER_BYTES: usize = 1 << 20;
/// How often each of the two references is read; their medians count.
const REFERENCES: usize = 3;
/// A cold read that is not slower than a cached one by this factor tells nothing.
const CONTRAST_MIN: f64 = 1.5;
/// Totals that are tried again in one run, at most.
const AGAIN_MAX: u64 = 2;

/// The most that is written at a time, and what set it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// In bytes.
    pub bytes: u64,
    /// For people.
    pub by: String,
}

/// The test.
#[derive(Clone, Debug)]
pub struct CacheProbe {
    /// Bytes of a file.
    pub file_bytes: u64,
    /// Where to stop when the first file is still cached.
    pub limit: Limit,
}

/// What is at work.
struct Probe<'a> {
    paths: &'a [PathBuf],
    file_bytes: u64,
    data: Block,
    stamp: u64,
}

/// Seconds that one file takes, in memory and not.
#[derive(Clone, Copy)]
struct Reference {
    cached: f64,
    cold: f64,
}

impl Limit {
    /// Twice the memory, or what the volume with the least room can take.
    pub fn of(volumes: &[Checked], memory_bytes: u64) -> Self {
        let twice = Self { bytes: memory_bytes.saturating_mul(2), by: "twice the memory".into() };
        let room = |volume: &Checked| Self {
            bytes: volume.usable_bytes,
            by: format!("the room on {}", volume.path.display()),
        };
        volumes
            .iter()
            .map(room)
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
            unanswered: Some("it was cut short".into()),
            limit_bytes: self.files_max() * self.file_bytes,
            limit: self.limit.by.clone(),
            cached_bytes_per_second: None,
            cold_bytes_per_second: None,
            steps: Vec::new(),
            before: memory(),
        }
    }
}

/// What the kernel says now; nothing where it cannot be asked.
fn memory() -> Option<CacheMemory> {
    let memory = Memory::read(Path::new("/")).ok()?;
    Some(CacheMemory {
        total_bytes: memory.total_bytes,
        available_bytes: memory.available_bytes,
        cached_bytes: memory.cached_bytes,
    })
}

impl Probe<'_> {
    /// Writes the first `files` files anew, each to the disk; false when it was to stop before their end.
    ///
    /// Not in the note, but a page that waits to be written cannot make room: then later ones go in its
    /// place, the first file stays for longer than its turn, and the result depends on how fast the disk is.
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

    /// Removes what was written, and with that takes it out of memory.
    fn remove(&self, files: u64) -> Result<(), WorkloadError> {
        for path in self.paths.iter().take(files as usize) {
            std::fs::remove_file(path).map_err(system(&format!("remove {}", path.display())))?;
        }
        Ok(())
    }

    /// Reads the first file, to the last byte, as a phase of this name.
    fn read(&mut self, name: String, found: &mut Found, context: &Context) -> Result<f64, WorkloadError> {
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

    /// Both references; nothing when it was to stop. Cached: written and read, nothing between. Cold:
    /// brought to the disk, taken out of memory and read.
    fn reference(
        &mut self,
        found: &mut Found,
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

    /// One total; nothing when it was to stop before its end.
    fn step(
        &mut self,
        files: u64,
        reference: Reference,
        found: &mut Found,
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
    /// Whether the two can be told apart.
    fn tells(self) -> bool {
        self.cached > 0.0 && self.cold >= self.cached * CONTRAST_MIN
    }

    /// The share that came from memory of a file that took so many seconds: each byte takes the time of one
    /// of the references.
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
        place: &mut Place,
        found: &mut Found,
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
        if !reference.tells() {
            let why = "a read from this volume is as fast as one from memory, or nothing of it is cached";
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
            search.tell(files, is_cached);
            finding.cached_bytes = search.cached() * self.file_bytes;
            finding.evicted_bytes = search.evicted().map(|files| files * self.file_bytes);
            found.finding = Some(DiskFinding::Cache(finding.clone()));
        }
        finding.unanswered = match search.evicted() {
            Some(_) => None,
            None => Some(format!("not reached: {} came first", self.limit.by)),
        };
        found.finding = Some(DiskFinding::Cache(finding));
        Ok(())
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
