//! One volume of a recording under recovery.
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use keepup_error::Cause;

use super::{SegmentRecovery, VolumeRecovery};
use crate::error::RecordingError;
use crate::files::{open_regular, sync_directory};
use crate::id::Id;
use crate::in_flight::wait_for_writes;
use crate::journal::{Journal, JournalRecord};
use crate::layout::{LayoutError, SECTOR, segment_file_name};
use crate::manifest::Manifest;
use crate::scan::{ScanOptions, ScanResult, has_block, scan};
use crate::seal::{seal, sealed_bytes};
use crate::volume::{Segment, SegmentState, Volume, preamble};

/// A volume with its journal open for appending.
pub(super) struct OpenVolume {
    pub(super) volume: Volume,
    journal: Journal,
    pub(super) report: VolumeRecovery,
    /// Whether the journal was appended to.
    pub(super) is_changed: bool,
    /// Whether journal lines are damaged. Then a segment's own tail is the better source of its
    /// length.
    is_damaged: bool,
    /// Whether there is damage that prevents an account.
    pub(super) is_blocked: bool,
    /// Results of scanning unsealed segments, until they are sealed.
    pub(super) scanned: Vec<(Segment, ScanResult)>,
}

impl OpenVolume {
    /// Opens a volume's journal for appending, and cuts off a torn last line.
    pub(super) fn open(dir: &Path, manifest: Manifest, without_locks: bool) -> Result<Self, RecordingError> {
        let mut volume = Volume::new(dir, manifest);
        let mut journal = Journal::reopen(dir, without_locks)?;
        volume.read_journal()?;
        volume.find_segments(volume.removed().first_segment);
        let has_begun = volume.has_begun();
        if !has_begun {
            volume.report_missing_begin();
        }
        let faults: Vec<String> = volume.damaged_lines().iter().map(ToString::to_string).collect();
        let is_damaged = volume.damaged_lines().iter().any(|damaged| damaged.line > 0);
        let journal_cut_bytes = journal.cut_off(volume.torn_tail())?;
        let report =
            VolumeRecovery { directory: dir.into(), journal_cut_bytes, faults, ..Default::default() };
        let mut open = Self {
            volume,
            journal,
            report,
            is_changed: false,
            is_damaged,
            is_blocked: false,
            scanned: Vec::new(),
        };
        if !has_begun {
            open.enter(JournalRecord::begin(open.volume.manifest()))?;
        }
        Ok(open)
    }

    /// Appends a line; the first one follows a line that announces the recovery.
    pub(super) fn append(&mut self, record: JournalRecord) -> Result<(), RecordingError> {
        if !self.is_changed {
            self.is_changed = true;
            self.enter(JournalRecord::Recover { tool_version: env!("CARGO_PKG_VERSION").into() })?;
        }
        self.enter(record)
    }

    fn enter(&mut self, record: JournalRecord) -> Result<(), RecordingError> {
        let path = self.volume.dir().join(crate::journal::JOURNAL_FILE);
        // A line that contradicts earlier ones is not written.
        self.volume.apply(record.clone()).map_err(|what| RecordingError::JournalRecord { path, what })?;
        self.journal.append(&record)
    }

    pub(super) fn flush(&mut self) -> Result<(), RecordingError> {
        self.journal.flush()
    }

    /// Bytes of unsealed segments below their watermarks.
    pub(super) fn unsealed_bytes(&self) -> u64 {
        self.unsealed().map(Segment::readable_bytes).fold(0, u64::saturating_add)
    }

    fn unsealed(&self) -> impl Iterator<Item = &Segment> {
        self.volume.segments().iter().filter(|segment| !segment.is_ended())
    }

    /// Scans every unsealed segment. Unreadable ones are reported when they are to be sealed.
    /// `progress` is called with the length of each block.
    ///
    /// # Errors
    /// Writes of the recorder to one of them are still in flight.
    pub(super) fn scan_all(&mut self, progress: &mut dyn FnMut(u64)) -> Result<(), RecordingError> {
        let mut open: Vec<Segment> = self.unsealed().cloned().collect();
        let mut index = self.volume.next_segment();
        loop {
            let path = self.volume.dir().join(segment_file_name(index));
            wait_for_writes(&path)?;
            let identity = open_regular(&path).and_then(|file| preamble(&file));
            let Ok(Ok(found)) = identity else { break };
            if !self.volume.is_own(&found, index) {
                break;
            }
            let state = SegmentState::Open { durable_bytes: 0, blocks: 0 };
            open.push(Segment { index, id: found.segment, path, state });
            index += 1;
        }
        for segment in open {
            wait_for_writes(&segment.path)?;
            let (path, bytes) = (&segment.path, segment.readable_bytes());
            if let Ok(found) = self.scan(segment.index, segment.id, path, bytes, progress) {
                self.scanned.push((segment, found));
            }
        }
        Ok(())
    }

    /// Drops the last `count` blocks found in a segment, which are also on another volume.
    pub(super) fn leave_out(&mut self, index: u32, count: usize) {
        let Some((_, found)) = self.scanned.iter_mut().find(|(segment, _)| segment.index == index) else {
            return;
        };
        let kept = found.index.blocks().saturating_sub(count);
        let Some(data_bytes) = found.index.offset_of(kept) else { return };
        found.index.truncate(kept);
        found.data_bytes = data_bytes;
        found.blocks_behind = found.blocks_behind.saturating_sub(count as u64);
        found.duplicates = count as u64;
    }

    /// Seals every unsealed segment, including those that the journal lost in a crash.
    pub(super) fn seal_all(&mut self) -> Result<(), RecordingError> {
        let left_over: Vec<PathBuf> = self.volume.removed().left_over(self.volume.dir()).collect();
        left_over.into_iter().try_for_each(|path| self.remove(path))?;
        for at in 0..self.volume.segments().len() {
            let segment = self.volume.segments()[at].clone();
            if !segment.is_ended() {
                let (path, bytes) = (&segment.path, segment.readable_bytes());
                match self.scan(segment.index, segment.id, path, bytes, &mut |_| {}) {
                    Ok(found) => self.seal(segment.index, &segment.path, &found)?,
                    Err(error) => self.block(&error),
                }
            }
        }
        self.adopt()
    }

    /// Adds segments that were started after the journal's last line, and removes unused prepared
    /// ones.
    fn adopt(&mut self) -> Result<(), RecordingError> {
        loop {
            let index = self.volume.next_segment();
            let path = self.volume.dir().join(segment_file_name(index));
            let read = open_regular(&path).and_then(|file| Ok((preamble(&file)?, has_block(&file)?)));
            let (identity, has_block) = match read {
                Ok(read) => read,
                Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(e) => {
                    self.block(&RecordingError::open("open the segment", &path)(e));
                    return Ok(());
                }
            };
            let was_blocked = self.is_blocked;
            let id = match identity {
                Ok(found) if self.volume.is_own(&found, index) => found.segment,
                Ok(found) => {
                    let what = "it is of another recording, volume or place".into();
                    self.block(&RecordingError::Segment { path, offset: 0, what });
                    // A segment of another recording does not affect this account.
                    self.is_blocked = was_blocked || found.recording == self.volume.manifest().recording;
                    return Ok(());
                }
                Err(error) if self.may_hold_events(&error, has_block) => {
                    self.block(&RecordingError::layout(&path, 0)(error));
                    return Ok(());
                }
                // The preamble was never written, so nothing was durable after it.
                Err(_) => return self.remove(path),
            };
            match self.scan(index, id, &path, 0, &mut |_| {}) {
                Ok(found) if found.index.blocks() > 0 => {
                    let file = segment_file_name(index);
                    self.append(JournalRecord::Segment { index, id, file, preallocated_bytes: 0 })?;
                    self.seal(index, &path, &found)?;
                }
                Ok(_) if !self.is_damaged => return self.remove(path),
                Ok(_) => {
                    let (offset, what) = (SECTOR as u64, "it has no intact block".into());
                    self.block(&RecordingError::Segment { path, offset, what });
                    return Ok(());
                }
                Err(error) => {
                    self.block(&error);
                    return Ok(());
                }
            }
        }
    }

    /// Whether a segment with such a preamble may have had a valid one: a power loss leaves
    /// zeros.
    fn may_hold_events(&self, preamble: &LayoutError, has_block: bool) -> bool {
        match preamble {
            LayoutError::Version { .. } => true,
            LayoutError::Magic { .. } | LayoutError::Short { .. } => has_block && self.is_damaged,
            _ => has_block,
        }
    }

    /// Reports damage that prevents an account.
    fn block(&mut self, error: &RecordingError) {
        self.report.faults.push(Cause::of(error).to_text());
        self.is_blocked = true;
    }

    fn remove(&mut self, path: PathBuf) -> Result<(), RecordingError> {
        fs::remove_file(&path)
            .and_then(|()| sync_directory(self.volume.dir()))
            .map_err(RecordingError::io("remove the unused", &path))?;
        self.report.removed.push(path);
        Ok(())
    }

    fn scan(
        &mut self,
        index: u32,
        id: Id,
        path: &Path,
        durable_bytes: u64,
        progress: &mut dyn FnMut(u64),
    ) -> Result<ScanResult, RecordingError> {
        if let Some(at) = self.scanned.iter().position(|(segment, _)| segment.index == index) {
            return Ok(self.scanned.swap_remove(at).1);
        }
        let file = open_regular(path).map_err(RecordingError::open("open the segment", path))?;
        let sealed_bytes = match self.is_damaged {
            true => sealed_bytes(&file).map_err(RecordingError::io("read", path))?,
            false => None,
        };
        let durable_bytes = sealed_bytes.unwrap_or(0).max(durable_bytes);
        let options = ScanOptions { durable_bytes, reads_events: false };
        scan(&file, path, &self.volume.identity(index, id), options, progress)
    }

    fn seal(&mut self, index: u32, path: &Path, found: &ScanResult) -> Result<(), RecordingError> {
        let unknown: Vec<_> =
            found.streams.values().filter(|s| !self.volume.streams().contains_key(&s.id)).cloned().collect();
        for stream in unknown {
            self.append(JournalRecord::Stream(stream))?;
        }
        let starts = found.starts.iter().filter(|(id, _)| !self.volume.starts().contains_key(id));
        for (stream, first_sequence) in starts.map(|(&id, &start)| (id, start)).collect::<Vec<_>>() {
            self.append(JournalRecord::Start { stream, first_sequence })?;
        }
        let data_bytes = found.data_bytes;
        let bytes = seal(path, &found.index, data_bytes)?;
        let blocks = found.index.blocks() as u64;
        self.append(JournalRecord::SegmentEnd { index, bytes, data_bytes, blocks })?;
        self.report.sealed.push(SegmentRecovery {
            path: path.into(),
            blocks,
            blocks_behind: found.blocks_behind,
            duplicates: found.duplicates,
            data_bytes,
        });
        Ok(())
    }
}
