//! A copy in progress: sends segments as they are sealed, in any order.
//!
//! Invariant: a segment that the recorder removes meanwhile is not an error; the conclusion accounts for it.
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::Ordering;

use keepup_measure::sum::Sums;
use keepup_recording::archived::{ArchivedFile, archive_path};
use keepup_recording::error::RecordingError;
use keepup_recording::follow::Follower;
use keepup_recording::layout::segment_file_name;
use keepup_recording::manifest::Manifest;
use keepup_recording::volume::Segment;

use super::{ArchivePlan, ArchiveReport, POLL_NS};
use crate::error::ArchiveError;
use crate::inventory::split_path;
use crate::local::LocalFile;
use crate::pace::wait_until;
use crate::segment_check::SegmentCheck;
use crate::state::ArchiveState;
use crate::upload::{Completing, Uploader};

/// Segments of one volume that need nothing more: archived, or removed before.
#[derive(Debug, Default)]
struct Handled {
    /// All below this one.
    below: u32,
    /// Others, behind a segment that is not sealed.
    above: BTreeSet<u32>,
}

impl Handled {
    fn insert(&mut self, index: u32) {
        self.above.insert(index);
        while self.above.remove(&self.below) {
            self.below += 1;
        }
    }

    /// All segments below `first` were removed.
    fn skip_to(&mut self, first: u32) {
        if first > self.below {
            self.below = first;
            self.above = self.above.split_off(&first);
        }
    }

    fn has(&self, index: u32) -> bool {
        index < self.below || self.above.contains(&index)
    }
}

/// A copy in progress.
pub(super) struct ArchiveRun<'a> {
    plan: &'a ArchivePlan,
    pub(super) follower: Follower,
    /// That of the first volume.
    pub(super) manifest: Manifest,
    pub(super) state: ArchiveState,
    pub(super) uploader: Uploader<'a>,
    /// By volume.
    handled: Vec<Handled>,
    /// Segment that the store is completing while the next one is sent, with its volume and number.
    completing: Option<(usize, u32, Completing)>,
    /// Segments that the archive lacks, because they were removed before.
    pub(super) removed_segments: u64,
}

impl<'a> ArchiveRun<'a> {
    pub(super) fn new(
        plan: &'a ArchivePlan,
        follower: Follower,
        manifest: Manifest,
        state: ArchiveState,
        uploader: Uploader<'a>,
    ) -> Self {
        let handled = follower.volumes().iter().map(|_| Handled::default()).collect();
        Self { plan, follower, manifest, state, uploader, handled, completing: None, removed_segments: 0 }
    }

    /// Number of volumes.
    pub(super) fn volumes(&self) -> usize {
        self.handled.len()
    }

    /// Result of the copy, which took `elapsed_ns`.
    pub(super) fn report(&self, is_archived: bool, elapsed_ns: u64) -> ArchiveReport {
        let segments = self.follower.volumes().iter().flat_map(|part| part.segments());
        let archived = (0..self.volumes()).map(|volume| self.archived_segments(volume as u32).len() as u64);
        let files = || self.state.files.values();
        ArchiveReport {
            archive: self.uploader.store.location.to_string(),
            files: files().count() as u64,
            bytes: files().map(|known| known.file.bytes).saturating_sum(),
            known_bytes: self.uploader.live.known_bytes.load(Ordering::Relaxed),
            sealed_segments: segments.filter(|segment| segment.is_ended()).count() as u64,
            archived_segments: archived.saturating_sum(),
            damaged_segments: files().filter(|known| known.intact == Some(false)).count() as u64,
            removed_segments: self.removed_segments,
            is_archived,
            seconds: elapsed_ns as f64 / 1e9,
        }
    }

    /// Archived segments of a volume, by number.
    pub(super) fn archived_segments(&self, volume: u32) -> BTreeMap<u32, &ArchivedFile> {
        let segment = |file: &ArchivedFile| {
            let (of, name) = split_path(&file.path)?;
            let digits = name.strip_prefix("segment-")?.strip_suffix(".mcap")?;
            (of == volume).then_some(digits.parse().ok()?)
        };
        let files = self.state.files.values().map(|known| &known.file);
        files.filter_map(|file| Some((segment(file)?, file))).collect()
    }

    /// A sealed segment, to be sent with a check of its blocks.
    pub(super) fn inspect(&self, volume: usize, segment: &Segment) -> Result<LocalFile, ArchiveError> {
        let part = &self.follower.volumes()[volume];
        let file = LocalFile::inspect(part.dir(), volume as u32, &segment_file_name(segment.index))?;
        Ok(LocalFile { check: SegmentCheck::new(part, segment), ..file })
    }

    /// Sends sealed segments; returns whether the recording has ended.
    pub(super) fn send_segments(&mut self) -> Result<bool, ArchiveError> {
        loop {
            // Before the poll, which then sees everything that was written by then.
            let is_being_made = self.follower.is_being_made();
            self.follower.poll();
            let is_growing = is_being_made && !self.follower.is_ended();
            self.uploader.live.is_growing.store(is_growing, Ordering::Relaxed);
            self.count_total();
            let mut is_idle = true;
            for volume in 0..self.volumes() {
                is_idle &= !self.send_next(volume)?;
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

    /// Sends the next sealed segment of a volume, past segments that are not sealed; returns whether there
    /// was one.
    fn send_next(&mut self, volume: usize) -> Result<bool, ArchiveError> {
        let part = &self.follower.volumes()[volume];
        self.handled[volume].skip_to(part.removed().first_segment);
        let (segments, handled) = (part.segments(), &self.handled[volume]);
        let from = segments.partition_point(|segment| segment.index < handled.below);
        let is_next = |segment: &&Segment| segment.is_ended() && !handled.has(segment.index);
        let Some(segment) = segments[from..].iter().find(is_next).cloned() else { return Ok(false) };
        if let Err(error) = self.send_segment(volume, &segment) {
            self.finish_segment()?;
            self.excuse(volume, segment.index, error)?;
        }
        self.handled[volume].insert(segment.index);
        Ok(true)
    }

    fn send_segment(&mut self, volume: usize, segment: &Segment) -> Result<(), ArchiveError> {
        let file = self.inspect(volume, segment)?;
        if file.bytes != segment.file_bytes() {
            let (path, what) = (file.path, "its length is not that of the journal");
            return Err(RecordingError::File { path, what }.into());
        }
        if self.has(&file) {
            return Ok(());
        }
        let sent = self.uploader.send(&file, &mut self.state)?;
        self.finish_segment()?;
        self.completing = Some((volume, segment.index, sent));
        Ok(())
    }

    /// Waits until the store has completed and confirmed the segment sent before.
    fn finish_segment(&mut self) -> Result<(), ArchiveError> {
        let Some((volume, index, completing)) = self.completing.take() else { return Ok(()) };
        match self.uploader.finish(completing, &mut self.state) {
            Ok(()) => Ok(()),
            Err(error) => self.excuse(volume, index, error),
        }
    }

    /// Accepts the error of a segment that was removed while it was sent.
    fn excuse(&mut self, volume: usize, index: u32, error: ArchiveError) -> Result<(), ArchiveError> {
        // A removed file is truncated as well.
        let may_be = matches!(
            error,
            ArchiveError::Io { .. } | ArchiveError::Changed { .. } | ArchiveError::Recording(_)
        );
        self.follower.poll();
        let part = &self.follower.volumes()[volume];
        if !may_be || index >= part.removed().first_segment {
            return Err(error);
        }
        let (name, dir) = (segment_file_name(index), part.dir().display());
        self.uploader.live.warn(format!("{dir}: {name} was removed before it was archived"));
        self.uploader.discard_upload(&archive_path(volume as u32, &name), &mut self.state)
    }

    /// Whether the archive has this file.
    fn has(&self, file: &LocalFile) -> bool {
        self.state.files.get(&file.archive_path).is_some_and(|known| file.is(&known.file))
    }

    /// Sends a file, unless the archive has it.
    pub(super) fn send(&mut self, file: &LocalFile) -> Result<(), ArchiveError> {
        if self.has(file) { Ok(()) } else { self.uploader.archive(file, &mut self.state) }
    }

    /// Sends the file `name` of a volume, unless the archive has it.
    pub(super) fn send_file(&mut self, volume: u32, dir: &Path, name: &str) -> Result<(), ArchiveError> {
        self.send(&LocalFile::inspect(dir, volume, name)?)
    }

    /// Counts the bytes of all segments.
    fn count_total(&self) {
        let archived: u64 = self.state.files.values().map(|known| known.file.bytes).saturating_sum();
        let volumes = self.follower.volumes().iter().zip(0..);
        let waiting: u64 = volumes
            .flat_map(|(part, volume)| part.segments().iter().map(move |segment| (volume, segment)))
            .filter(|(volume, segment)| {
                let path = archive_path(*volume, &segment_file_name(segment.index));
                !self.state.files.contains_key(&path)
            })
            .map(|(_, segment)| segment.file_bytes())
            .saturating_sum();
        self.uploader.live.total_bytes.store(archived + waiting, Ordering::Relaxed);
    }
}
