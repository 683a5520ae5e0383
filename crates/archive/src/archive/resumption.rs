//! What a copy takes over from an interrupted one.
use keepup_recording::archived::archive_path;
use keepup_recording::layout::segment_file_name;
use keepup_recording::retention::{REMOVED_FILE, Removed};
use keepup_recording::volume::Segment;

use super::run::ArchiveRun;
use crate::error::ArchiveError;
use crate::inventory::split_path;
use crate::receipt::Receipt;
use crate::state::KnownFile;

/// Attempts to send the counts of removed segments, which the recorder may replace meanwhile.
const ATTEMPTS: u32 = 10;

impl ArchiveRun<'_> {
    /// Takes over what an interrupted copy has sent.
    pub(super) fn resume(&mut self) -> Result<(), ArchiveError> {
        for volume in 0..self.volumes() {
            self.adopt_receipts(volume as u32)?;
        }
        // Before segments are forgotten that must be sent again.
        let is_new = |volume: &u32| self.archived_segments(*volume).is_empty();
        let new: Vec<u32> = (0..self.volumes() as u32).filter(is_new).collect();
        self.forget_changed_objects()?;
        for volume in new {
            self.archive_removed(volume)?;
        }
        self.resume_uploads()
    }

    /// Enters segments that were removed from a volume after the archive had confirmed them, if the state
    /// file does not list them: it was lost. Without all their receipts, none is entered, and the copy
    /// begins with the counts of what was removed.
    fn adopt_receipts(&mut self, volume: u32) -> Result<(), ArchiveError> {
        let Some(recording) = self.uploader.receipts else { return Ok(()) };
        let part = &self.follower.volumes()[volume as usize];
        let end = Removed::read(part.dir(), part.manifest())?.first_segment;
        let begin = self.archived_segments(volume).keys().next().copied();
        let is_begun_late = self.state.files.contains_key(&archive_path(volume, REMOVED_FILE));
        let mut found = Vec::new();
        for index in if is_begun_late { begin.unwrap_or(end) } else { 0 }..end {
            let path = archive_path(volume, &segment_file_name(index));
            if self.state.files.contains_key(&path) {
                continue;
            }
            let Some(known) = Receipt::read(self.uploader.store, recording, &path)? else { return Ok(()) };
            match self.still_there(known)? {
                Some(known) => found.push(known),
                None => self.state.forget_file(&path)?,
            }
        }
        for known in found {
            self.state.add_file(known)?;
        }
        Ok(())
    }

    /// What the archive has of the file of a receipt; `None` if the object is gone or is another one. An
    /// object with another ETag than that of the receipt, or without one, is read back.
    fn still_there(&self, known: KnownFile) -> Result<Option<KnownFile>, ArchiveError> {
        let etag = self.uploader.store.head(&known.file.path)?.and_then(|meta| meta.e_tag);
        let is_confirmed = etag.is_some() && etag == known.etag;
        let found = self.uploader.compare(&known.file, is_confirmed)?;
        Ok(found.ok().map(|found| KnownFile { etag: found.e_tag, ..known }))
    }

    /// Forgets files whose objects are not as an interrupted copy left them.
    fn forget_changed_objects(&mut self) -> Result<(), ArchiveError> {
        let all: Vec<KnownFile> = self.state.files.values().cloned().collect();
        for known in all {
            let path = &known.file.path;
            let found = self.uploader.store.head(path)?;
            // Not every store returns an ETag.
            let is_same =
                |found: Option<String>| known.etag.is_none() || found.is_none() || known.etag == found;
            if found.is_some_and(|found| found.size == known.file.bytes && is_same(found.e_tag)) {
                self.uploader.live.add_known(known.file.bytes);
                continue;
            }
            // At once: the next request may fail, and the recorder must not remove the segment.
            self.state.forget_file(path)?;
            let is_there = split_path(path).is_some_and(|(volume, name)| {
                let part = self.follower.volumes().get(volume as usize);
                part.is_some_and(|part| part.dir().join(name).exists())
            });
            let next = if is_there { "sending it again" } else { "it is no longer on the volume" };
            self.uploader.live.warn(format!("{path} has changed in the archive; {next}"));
            self.uploader.reopen()?;
        }
        // An interrupted copy may have noted a loss just before.
        if self.state.forgotten.is_empty() { Ok(()) } else { self.uploader.reopen() }
    }

    /// Archives the counts of what was removed before this copy, because the restored recording must account
    /// for it.
    fn archive_removed(&mut self, volume: u32) -> Result<(), ArchiveError> {
        let part = &self.follower.volumes()[volume as usize];
        let (dir, manifest) = (part.dir().to_path_buf(), part.manifest().clone());
        if manifest.keep.is_none() {
            return Ok(());
        }
        let mut removed = Removed::read(&dir, &manifest)?;
        for _ in 0..ATTEMPTS {
            if removed.first_segment == 0 {
                return Ok(());
            }
            let sent = self.send_file(volume, &dir, REMOVED_FILE);
            let now = Removed::read(&dir, &manifest)?;
            if std::mem::replace(&mut removed, now.clone()) == now {
                return sent;
            }
        }
        Err(ArchiveError::Changed { path: dir.join(REMOVED_FILE) })
    }

    /// Completes interrupted uploads of segments, and discards those of files that are gone.
    fn resume_uploads(&mut self) -> Result<(), ArchiveError> {
        let paths: Vec<String> = self.state.uploads.iter().map(|upload| upload.path().to_owned()).collect();
        for path in paths {
            let file = split_path(&path).and_then(|(volume, name)| {
                let part = self.follower.volumes().get(volume as usize)?;
                let is_sealed = |s: &&Segment| s.is_ended() && segment_file_name(s.index) == name;
                let segment = part.segments().iter().find(is_sealed)?;
                self.inspect(volume as usize, segment).ok()
            });
            match file {
                Some(file) => self.send(&file)?,
                None => self.uploader.discard_upload(&path, &mut self.state)?,
            }
        }
        Ok(())
    }
}
