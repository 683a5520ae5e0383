//! One volume of a recording that is being recovered.
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::scan::{Found, preamble, scan};
use super::{SegmentRecovery, VolumeRecovery};
use crate::error::RecordingError;
use crate::files::{open_regular, sync_directory};
use crate::id::Id;
use crate::journal::{Journal, JournalRecord};
use crate::layout::segment_file_name;
use crate::manifest::Manifest;
use crate::seal::seal;
use crate::volume::Volume;

/// A volume whose journal can be appended to.
pub(super) struct OpenVolume {
    pub(super) volume: Volume,
    journal: Journal,
    pub(super) report: VolumeRecovery,
    /// Whether the journal was appended to.
    pub(super) is_changed: bool,
}

impl OpenVolume {
    /// Opens a volume's journal to append to it, and cuts off what a crash left of its last line.
    pub(super) fn open(dir: &Path, manifest: Manifest) -> Result<Self, RecordingError> {
        let mut volume = Volume::new(dir, manifest);
        let (journal, records, journal_cut_bytes) = Journal::reopen(dir)?;
        for (line, record) in (1..).zip(records) {
            let path = dir.join(crate::journal::JOURNAL_FILE);
            volume.apply(record).map_err(|what| RecordingError::JournalLine { path, line, what })?;
        }
        volume.read_removed()?;
        let report = VolumeRecovery { directory: dir.into(), journal_cut_bytes, ..VolumeRecovery::default() };
        Ok(Self { volume, journal, report, is_changed: false })
    }

    /// Appends a line, behind one that says that this is recovery.
    pub(super) fn append(&mut self, record: JournalRecord) -> Result<(), RecordingError> {
        if !self.is_changed {
            self.is_changed = true;
            self.enter(JournalRecord::Recover { tool_version: env!("CARGO_PKG_VERSION").into() })?;
        }
        self.enter(record)
    }

    fn enter(&mut self, record: JournalRecord) -> Result<(), RecordingError> {
        self.journal.append(&record)?;
        let path = self.volume.dir().join(crate::journal::JOURNAL_FILE);
        self.volume.apply(record).map_err(|what| RecordingError::JournalRecord { path, what })
    }

    pub(super) fn flush(&mut self) -> Result<(), RecordingError> {
        self.journal.flush()
    }

    /// Seals every segment that is not sealed; also those that a crash kept out of the journal.
    pub(super) fn seal_all(&mut self) -> Result<(), RecordingError> {
        let left_over: Vec<PathBuf> = self.volume.removed().left_over(self.volume.dir()).collect();
        left_over.into_iter().try_for_each(|path| self.remove(path))?;
        for at in 0..self.volume.segments().len() {
            let segment = self.volume.segments()[at].clone();
            if !segment.is_ended() {
                match self.scan(segment.index, segment.id, &segment.path, segment.readable_bytes()) {
                    Ok(found) => self.seal(segment.index, &segment.path, &found)?,
                    Err(error) => self.report.faults.push(error.to_string()),
                }
            }
        }
        self.adopt()
    }

    /// Takes in segments that were begun after the journal's last line, and removes those prepared and not
    /// begun.
    fn adopt(&mut self) -> Result<(), RecordingError> {
        loop {
            let index = self.volume.next_segment();
            let path = self.volume.dir().join(segment_file_name(index));
            let identity = match open_regular(&path).and_then(|file| preamble(&file)) {
                Ok(identity) => identity,
                Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(e) => return Err(RecordingError::io("read the segment", &path)(e)),
            };
            let manifest = self.volume.manifest();
            let ids = (manifest.recording, manifest.volume_index, index);
            let own = identity.filter(|i| (i.recording, i.volume_index, i.segment_index) == ids);
            let found = own.map(|i| self.scan(index, i.segment, &path, 0).map(|found| (i.segment, found)));
            match found {
                Some(Ok((id, found))) if found.index.blocks() > 0 => {
                    let file = segment_file_name(index);
                    self.append(JournalRecord::Segment { index, id, file, preallocated_bytes: 0 })?;
                    self.seal(index, &path, &found)?;
                }
                Some(Err(error)) => {
                    self.report.faults.push(error.to_string());
                    return Ok(());
                }
                // A preamble that is not whole: nothing was ever written behind it.
                _ => {
                    self.remove(path)?;
                    return Ok(());
                }
            }
        }
    }

    fn remove(&mut self, path: PathBuf) -> Result<(), RecordingError> {
        fs::remove_file(&path)
            .and_then(|()| sync_directory(self.volume.dir()))
            .map_err(RecordingError::io("remove the unused", &path))?;
        self.report.removed.push(path);
        Ok(())
    }

    fn scan(&self, index: u32, id: Id, path: &Path, durable_bytes: u64) -> Result<Found, RecordingError> {
        let file = open_regular(path).map_err(RecordingError::open("open the segment", path))?;
        scan(&file, path, &self.volume.identity(index, id), durable_bytes)
    }

    fn seal(&mut self, index: u32, path: &Path, found: &Found) -> Result<(), RecordingError> {
        let unknown: Vec<_> =
            found.streams.values().filter(|s| !self.volume.streams().contains_key(&s.id)).cloned().collect();
        for stream in unknown {
            self.append(JournalRecord::Stream(stream))?;
        }
        let data_bytes = found.data_bytes;
        let bytes = seal(path, &found.index, data_bytes)?;
        let blocks = found.index.blocks() as u64;
        self.append(JournalRecord::SegmentEnd { index, bytes, data_bytes, blocks })?;
        self.report.sealed.push(SegmentRecovery {
            path: path.into(),
            blocks,
            blocks_behind: found.blocks_behind,
            data_bytes,
        });
        Ok(())
    }
}
