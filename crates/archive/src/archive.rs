//! Copies a recording to an archive, also while it is being recorded.
//!
//! Sealed segments are sent as they appear, the other files once the recording has ended, and the inventory
//! last.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use keepup_error::Cause;
use keepup_measure::clock::Clock;
use keepup_recording::error::RecordingError;
use keepup_recording::follow::Follower;
use keepup_recording::journal::JOURNAL_FILE;
use keepup_recording::layout::segment_file_name;
use keepup_recording::manifest::{MANIFEST_FILE, Manifest};
use keepup_recording::retention::{REMOVED_FILE, Removed};
use keepup_recording::volume::Segment;
use serde::Serialize;

use crate::counters::ArchiveCounters;
use crate::error::ArchiveError;
use crate::inventory::{
    ArchivedFile, INVENTORY_BYTES_MAX, INVENTORY_FILE, INVENTORY_VERSION, Inventory, MANIFEST_BYTES_MAX,
    archive_path, split_path,
};
use crate::local::LocalFile;
use crate::pace::{Pace, wait_until};
use crate::reading::PartReader;
use crate::state::ArchiveState;
use crate::store::{Location, Store};
use crate::upload::{Completing, Uploader};

/// Interval between polls of the journals, in nanoseconds.
const POLL_NS: u64 = 200_000_000;
/// How long a following copy waits for its recording to appear, in nanoseconds.
const OPEN_TIMEOUT_NS: u64 = 10_000_000_000;

/// Settings of a copy to an archive.
#[derive(Clone, Debug)]
pub struct ArchivePlan {
    /// Directories of the recording; one is enough when the others are where the manifest says.
    pub recording: Vec<PathBuf>,
    /// Where the archive is made, as the directory with the recording's name.
    pub to: Location,
    /// Rate limit in bytes per second; `None` means unlimited.
    pub rate: Option<f64>,
    /// Continue until the recording has ended; otherwise copy what is sealed now.
    pub follow: bool,
    /// Read every object back, even if the store has confirmed its checksum.
    pub read_back: bool,
    /// Most parts in flight, each of `part_bytes`.
    pub connections: usize,
    /// Size of a part, bytes: [`PART_BYTES`](crate::PART_BYTES).
    pub part_bytes: u64,
}

/// Result of a copy to an archive.
#[derive(Clone, Debug, Serialize)]
pub struct ArchiveReport {
    /// Address of the archive.
    pub archive: String,
    /// Files in the archive.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of those that an interrupted copy had sent.
    pub known_bytes: u64,
    /// Whether the archive is complete: the whole recording, with its inventory.
    #[serde(rename = "archived")]
    pub is_archived: bool,
    /// Total elapsed time, seconds.
    pub seconds: f64,
}

/// Copies a recording until its end (`follow`), what is sealed now, or until `stop`.
///
/// # Errors
/// The recording cannot be opened or read or was cut off, the store refuses or holds other bytes than were
/// sent, or `stop` was set. What the store has confirmed until then is not sent again.
pub fn archive(
    plan: &ArchivePlan,
    clock: &dyn Clock,
    stop: &AtomicBool,
    live: &ArchiveCounters,
) -> Result<ArchiveReport, ArchiveError> {
    // Not every scheduler supports I/O priorities; the rate limit holds without them.
    let _ = keepup_sys::thread::yield_disk();
    let begin_ns = clock.now_ns();
    let follower = open(plan, clock, stop)?;
    let first = &follower.volumes()[0];
    let (dir, manifest) = (first.dir().to_path_buf(), first.manifest().clone());
    refuse_itself(plan, &follower, &manifest.name)?;
    let store = Store::open(&plan.to, Some(&manifest.name))?;
    claim(&store, &manifest)?;
    let state = ArchiveState::open(&dir, manifest.recording, &store.location.to_string())?;
    if !state.is_kept() {
        live.warn(format!("{} is read-only: an interrupted copy will start over", dir.display()));
    }
    let uploader = Uploader {
        store: &store,
        clock,
        stop,
        live,
        pace: Pace::new(plan.rate, begin_ns),
        connections: plan.connections.clamp(1, crate::CONNECTIONS_MAX),
        part_bytes: plan.part_bytes,
        read_back: plan.read_back,
        reader: PartReader::new()?,
    };
    let next = vec![0; follower.volumes().len()];
    let mut run = ArchiveRun { plan, follower, manifest, state, uploader, next, completing: None };
    // Before segments are forgotten that must be sent again.
    let first: Vec<Option<u32>> = (0..run.next.len())
        .map(|volume| run.archived_segments(volume as u32).keys().next().copied())
        .collect();
    run.forget_changed_objects()?;
    run.begin_volumes(&first)?;
    run.resume_uploads()?;
    let is_archived = run.send_segments()? && run.conclude()?;
    let known = run.state.files.values().map(|(file, _)| file);
    Ok(ArchiveReport {
        archive: store.location.to_string(),
        files: known.clone().count() as u64,
        bytes: known.map(|file| file.bytes).sum(),
        known_bytes: live.known_bytes.load(Ordering::Relaxed),
        is_archived,
        seconds: clock.now_ns().saturating_sub(begin_ns) as f64 / 1e9,
    })
}

/// Opens the recording; a following copy waits for its manifest.
fn open(plan: &ArchivePlan, clock: &dyn Clock, stop: &AtomicBool) -> Result<Follower, ArchiveError> {
    let deadline_ns = clock.now_ns() + OPEN_TIMEOUT_NS;
    loop {
        match Follower::open(&plan.recording) {
            Err(RecordingError::NotARecording { .. } | RecordingError::VolumeMissing { .. })
                if plan.follow && clock.now_ns() < deadline_ns =>
            {
                wait_until(clock, clock.now_ns() + POLL_NS, stop)?;
            }
            outcome => return Ok(outcome?),
        }
    }
}

/// Takes the place of the archive for this recording.
fn claim(store: &Store, manifest: &Manifest) -> Result<(), ArchiveError> {
    let is_own = |text: &[u8]| {
        let found: Option<serde_json::Value> = serde_json::from_slice(text).ok();
        found.is_some_and(|found| found["recording"] == manifest.recording.to_string())
    };
    match store.get(MANIFEST_FILE, MANIFEST_BYTES_MAX)? {
        Some(Ok(text)) if is_own(&text) => Ok(()),
        Some(_) => Err(ArchiveError::Taken { url: store.location.to_string() }),
        None => {
            let text = serde_json::to_vec_pretty(manifest).unwrap_or_default();
            store.put(MANIFEST_FILE, text.into())?;
            // Another recording of this name may have begun at the same time.
            match store.get(MANIFEST_FILE, MANIFEST_BYTES_MAX)? {
                Some(Ok(text)) if is_own(&text) => Ok(()),
                _ => Err(ArchiveError::Taken { url: store.location.to_string() }),
            }
        }
    }
}

/// Refuses an archive in the recording's own directory.
fn refuse_itself(plan: &ArchivePlan, follower: &Follower, name: &str) -> Result<(), ArchiveError> {
    let Some(archive) = plan.to.below(name).directory().and_then(|path| path.canonicalize().ok()) else {
        return Ok(());
    };
    let is_same = |dir: &Path| dir.canonicalize().is_ok_and(|dir| dir == archive);
    if follower.volumes().iter().any(|part| is_same(part.dir())) {
        let what = Cause::new("it is the recording itself").with_hint("another directory");
        return Err(ArchiveError::Url { url: plan.to.below(name).to_string(), what });
    }
    Ok(())
}

/// A copy in progress.
struct ArchiveRun<'a> {
    plan: &'a ArchivePlan,
    follower: Follower,
    /// That of the first volume.
    manifest: Manifest,
    state: ArchiveState,
    uploader: Uploader<'a>,
    /// By volume: all segments below this one are archived or were removed before.
    next: Vec<u32>,
    /// Segment that the store is completing while the next one is sent.
    completing: Option<Completing>,
}

impl ArchiveRun<'_> {
    /// Forgets files whose objects are not as an interrupted copy left them.
    fn forget_changed_objects(&mut self) -> Result<(), ArchiveError> {
        let mut changed = Vec::new();
        for (path, (file, etag)) in &self.state.files {
            let found = self.uploader.store.head(path)?;
            // Not every store returns an ETag.
            let is_same = |found: Option<String>| etag.is_none() || found.is_none() || *etag == found;
            if found.is_some_and(|found| found.size == file.bytes && is_same(found.e_tag)) {
                self.uploader.live.add_known(file.bytes);
            } else {
                changed.push(path.clone());
            }
        }
        for path in changed {
            self.uploader.live.warn(format!("{path} has changed in the archive; sending it again"));
            self.state.files.remove(&path);
        }
        Ok(())
    }

    /// Finds the first segment of each volume; `first` are those of an interrupted copy. Archives the counts
    /// of what was removed before this copy, because the restored recording must account for it.
    fn begin_volumes(&mut self, first: &[Option<u32>]) -> Result<(), ArchiveError> {
        for (volume, first) in first.iter().enumerate() {
            let part = &self.follower.volumes()[volume];
            let (dir, manifest) = (part.dir().to_path_buf(), part.manifest().clone());
            self.next[volume] = match first {
                Some(first) => *first,
                None if manifest.keep.is_none() => 0,
                None => {
                    let removed = Removed::read(&dir, &manifest)?;
                    if removed.first_segment > 0 {
                        let file = LocalFile::inspect(&dir, volume as u32, REMOVED_FILE)?;
                        self.uploader.archive(&file, &mut self.state)?;
                    }
                    removed.first_segment
                }
            };
        }
        Ok(())
    }

    /// Completes interrupted uploads of segments, and discards those of files that are gone.
    fn resume_uploads(&mut self) -> Result<(), ArchiveError> {
        let paths: Vec<String> = self.state.uploads.iter().map(|upload| upload.path().to_owned()).collect();
        for path in paths {
            let file = split_path(&path).and_then(|(volume, name)| {
                let part = self.follower.volumes().get(volume as usize)?;
                let is_sealed = |s: &Segment| s.is_ended() && segment_file_name(s.index) == name;
                part.segments().iter().find(|segment| is_sealed(segment))?;
                LocalFile::inspect(part.dir(), volume, name).ok()
            });
            match file {
                Some(file) => self.send(&file)?,
                None => self.uploader.discard_upload(&path, &mut self.state)?,
            }
        }
        Ok(())
    }

    /// Archived segments of a volume, by number.
    fn archived_segments(&self, volume: u32) -> BTreeMap<u32, &ArchivedFile> {
        let segment = |file: &ArchivedFile| {
            let (of, name) = split_path(&file.path)?;
            let digits = name.strip_prefix("segment-")?.strip_suffix(".mcap")?;
            (of == volume).then_some(digits.parse().ok()?)
        };
        let files = self.state.files.values().map(|(file, _)| file);
        files.filter_map(|file| Some((segment(file)?, file))).collect()
    }

    /// Sends sealed segments; returns whether the recording has ended.
    fn send_segments(&mut self) -> Result<bool, ArchiveError> {
        loop {
            // Before the poll, which then sees everything that was written by then.
            let is_being_made = self.follower.is_being_made();
            self.follower.poll();
            self.count_total();
            let mut is_idle = true;
            for volume in 0..self.next.len() {
                is_idle &= !self.send_segment(volume)?;
            }
            if !is_idle {
                continue;
            }
            self.finish_segment()?;
            if self.follower.is_ended() {
                return Ok(true);
            } else if !is_being_made {
                let dir = self.follower.volumes()[0].dir().to_path_buf();
                return Err(ArchiveError::CutOff { dir });
            } else if !self.plan.follow {
                return Ok(false);
            }
            let clock = self.uploader.clock;
            wait_until(clock, clock.now_ns() + POLL_NS, self.uploader.stop)?;
        }
    }

    /// Sends the next sealed segment of a volume; returns whether there was one.
    fn send_segment(&mut self, volume: usize) -> Result<bool, ArchiveError> {
        let part = &self.follower.volumes()[volume];
        let next = self.next[volume];
        let Some(segment) = part.segments().iter().find(|segment| segment.index >= next) else {
            return Ok(false);
        };
        if !segment.is_ended() {
            return Ok(false);
        }
        let (index, dir, bytes) = (segment.index, part.dir().to_path_buf(), segment.file_bytes());
        match LocalFile::inspect(&dir, volume as u32, &segment_file_name(index)) {
            // Removed since the poll.
            Err(ArchiveError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                self.follower.poll();
                let is_removed = self.follower.volumes()[volume].segment(index).is_none();
                if !is_removed {
                    let path = dir.join(segment_file_name(index));
                    return Err(RecordingError::File { path, what: "it is missing" }.into());
                }
            }
            outcome => {
                let file = outcome?;
                if file.bytes != bytes {
                    let path = dir.join(segment_file_name(index));
                    return Err(
                        RecordingError::File { path, what: "its length is not that of the journal" }.into()
                    );
                }
                let is_known =
                    self.state.files.get(&file.archive_path).is_some_and(|(known, _)| file.is(known));
                let sent = (!is_known).then(|| self.uploader.send(&file, &mut self.state));
                // Also after an error: what was sent before is complete.
                self.finish_segment()?;
                if let Some(sent) = sent {
                    self.completing = Some(sent?);
                }
            }
        }
        self.next[volume] = index + 1;
        Ok(true)
    }

    /// Waits until the store has completed and confirmed the segment sent before.
    fn finish_segment(&mut self) -> Result<(), ArchiveError> {
        let Some(completing) = self.completing.take() else { return Ok(()) };
        self.uploader.finish(completing, &mut self.state)
    }

    /// Sends a file, unless the archive has it.
    fn send(&mut self, file: &LocalFile) -> Result<(), ArchiveError> {
        let known = self.state.files.get(&file.archive_path);
        match known {
            Some((known, _)) if file.is(known) => Ok(()),
            _ => self.uploader.archive(file, &mut self.state),
        }
    }

    /// Counts the bytes of all segments.
    fn count_total(&self) {
        let archived: u64 = self.state.files.values().map(|(file, _)| file.bytes).sum();
        let volumes = self.follower.volumes().iter().zip(0..);
        let waiting: u64 = volumes
            .flat_map(|(part, volume)| part.segments().iter().map(move |segment| (volume, segment)))
            .filter(|(volume, segment)| {
                let path = archive_path(*volume, &segment_file_name(segment.index));
                !self.state.files.contains_key(&path)
            })
            .map(|(_, segment)| segment.file_bytes())
            .sum();
        self.uploader.live.total_bytes.store(archived + waiting, Ordering::Relaxed);
    }

    /// Sends the rest of an ended recording and the inventory.
    fn conclude(&mut self) -> Result<bool, ArchiveError> {
        let mut paths = Vec::new();
        for volume in 0..self.next.len() as u32 {
            let part = &self.follower.volumes()[volume as usize];
            let dir = part.dir().to_path_buf();
            let unsealed: Vec<u32> =
                part.segments().iter().filter(|segment| !segment.is_ended()).map(|s| s.index).collect();
            let mut names: Vec<String> = unsealed.into_iter().map(segment_file_name).collect();
            names.extend([JOURNAL_FILE.to_owned(), MANIFEST_FILE.to_owned()]);
            for name in &names {
                self.send(&LocalFile::inspect(&dir, volume, name)?)?;
            }
            self.account_for_segments(volume)?;
            let own =
                self.state.files.keys().filter(|path| split_path(path).is_some_and(|(v, _)| v == volume));
            paths.extend(own.cloned());
        }
        let files = paths.iter().filter_map(|path| Some(self.state.files.get(path)?.0.clone()));
        let inventory = Inventory {
            version: INVENTORY_VERSION,
            name: self.manifest.name.clone(),
            recording: self.manifest.recording,
            run: self.manifest.run,
            archived_unix_ns: self.uploader.clock.unix_ns(),
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            files: files.collect(),
        };
        let store = self.uploader.store;
        let url = || store.location.to_string();
        let fault = |what: String| ArchiveError::Inventory { url: url(), what };
        let text = serde_json::to_vec_pretty(&inventory).map_err(|error| fault(error.to_string()))?;
        store.put(INVENTORY_FILE, text.clone().into())?;
        match store.get(INVENTORY_FILE, INVENTORY_BYTES_MAX)? {
            Some(Ok(found)) if found == text => Ok(true),
            Some(Err(what)) => Err(fault(what)),
            _ => Err(fault(
                "checksum mismatch: the archive does not hold the bytes that were written".to_owned(),
            )),
        }
    }

    /// Makes sure that the archive has every segment of a volume, or the counts of those that were removed.
    fn account_for_segments(&mut self, volume: u32) -> Result<(), ArchiveError> {
        let part = &self.follower.volumes()[volume as usize];
        let (dir, manifest, end) = (part.dir().to_path_buf(), part.manifest().clone(), part.next_segment());
        let archived: Vec<u32> = self.archived_segments(volume).keys().copied().collect();
        let first = archived.first().copied().unwrap_or(end);
        let lacks = |index: &u32| archived.binary_search(index).is_err();
        let removed =
            if manifest.keep.is_some() { Removed::read(&dir, &manifest)? } else { Removed::default() };
        let known = self.state.files.contains_key(&archive_path(volume, REMOVED_FILE));
        let is_begun_late = first > 0 && !known;
        if !is_begun_late && !(first..end).any(|index| lacks(&index)) {
            return Ok(());
        }
        // Only a recording whose data may be removed without a copy gets here.
        if let Some(segment) = (removed.first_segment..end).find(lacks) {
            return Err(ArchiveError::Removed { dir, segment });
        }
        self.send(&LocalFile::inspect(&dir, volume, REMOVED_FILE)?)?;
        let superfluous = |index: &&u32| **index < removed.first_segment;
        if let Some(first) = archived.iter().find(superfluous) {
            let live = self.uploader.live;
            live.warn(format!(
                "segments from {first} on were removed from the recording; the inventory does not list them"
            ));
        }
        for index in archived.iter().filter(superfluous) {
            self.state.files.remove(&archive_path(volume, &segment_file_name(*index)));
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
