//! The end of a copy: the other files of an ended recording, and the inventory last.
use keepup_recording::archived::archive_path;
use keepup_recording::journal::JOURNAL_FILE;
use keepup_recording::layout::segment_file_name;
use keepup_recording::manifest::MANIFEST_FILE;
use keepup_recording::retention::{REMOVED_FILE, Removed};

use super::run::ArchiveRun;
use crate::error::ArchiveError;
use crate::inventory::{INVENTORY_BYTES_MAX, INVENTORY_FILE, INVENTORY_VERSION, Inventory, split_path};

impl ArchiveRun<'_> {
    /// Sends the rest of an ended recording and the inventory; returns whether the archive has everything
    /// that must not be removed without a copy.
    pub(super) fn conclude(&mut self) -> Result<bool, ArchiveError> {
        let mut paths = Vec::new();
        for volume in 0..self.volumes() as u32 {
            let part = &self.follower.volumes()[volume as usize];
            let dir = part.dir().to_path_buf();
            let unsealed = part.segments().iter().filter(|segment| !segment.is_ended());
            let mut names: Vec<String> = unsealed.map(|segment| segment_file_name(segment.index)).collect();
            names.extend([JOURNAL_FILE.to_owned(), MANIFEST_FILE.to_owned()]);
            for name in &names {
                self.send_file(volume, &dir, name)?;
            }
            self.removed_segments += self.account_for_segments(volume)?;
            let own =
                self.state.files.keys().filter(|path| split_path(path).is_some_and(|(v, _)| v == volume));
            paths.extend(own.cloned());
        }
        let files = paths.iter().filter_map(|path| Some(self.state.files.get(path)?.file.clone()));
        self.write_inventory(&Inventory {
            version: INVENTORY_VERSION,
            name: self.manifest.name.clone(),
            recording: self.manifest.recording,
            run: self.manifest.run,
            archived_unix_ns: self.uploader.clock.unix_ns(),
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            files: files.collect(),
        })?;
        Ok(self.removed_segments == 0 || self.manifest.keep.is_some_and(|keep| keep.disposable))
    }

    fn write_inventory(&self, inventory: &Inventory) -> Result<(), ArchiveError> {
        let store = self.uploader.store;
        let fault = |what: String| ArchiveError::Inventory { url: store.location.to_string(), what };
        let text = serde_json::to_vec_pretty(inventory).map_err(|error| fault(error.to_string()))?;
        if text.len() as u64 > INVENTORY_BYTES_MAX {
            return Err(fault(format!("it is longer than {INVENTORY_BYTES_MAX} bytes")));
        }
        store.put_confirmed(INVENTORY_FILE, &text)?.map_err(fault)
    }

    /// Makes sure that the archive has every segment of a volume, or the counts of those that were removed
    /// before; returns their number.
    ///
    /// A copy that began late has no segment below some number. Any other gap is an error unless the data
    /// is disposable: a recording with a gap cannot be restored, and the segments before it may be gone
    /// elsewhere.
    fn account_for_segments(&mut self, volume: u32) -> Result<u64, ArchiveError> {
        let part = &self.follower.volumes()[volume as usize];
        let (dir, manifest, end) = (part.dir().to_path_buf(), part.manifest().clone(), part.next_segment());
        let archived: Vec<u32> = self.archived_segments(volume).keys().copied().collect();
        let lacks = |index: &u32| archived.binary_search(index).is_err();
        let Some(lacking) = (0..end).find(lacks) else { return Ok(0) };
        // The archive was the only place of a segment that it had confirmed.
        let was_archived =
            |index: &u32| self.state.forgotten.contains(&archive_path(volume, &segment_file_name(*index)));
        if let Some(segment) = (0..end).find(|index| lacks(index) && was_archived(index)) {
            return Err(ArchiveError::Vanished { dir, segment });
        }
        let removed =
            if manifest.keep.is_some() { Removed::read(&dir, &manifest)? } else { Removed::default() };
        if let Some(segment) = (removed.first_segment..end).find(lacks) {
            return Err(ArchiveError::Removed { dir, segment });
        }
        let lacking_count = || (0..end).filter(lacks).count() as u64;
        let first = archived.first().copied().unwrap_or(end);
        let known = self.state.files.contains_key(&archive_path(volume, REMOVED_FILE));
        if known && !(first..end).any(|index| lacks(&index)) {
            return Ok(lacking_count());
        }
        let superfluous: Vec<u32> =
            archived.iter().copied().take_while(|index| *index < removed.first_segment).collect();
        if let (Some(first), false) = (superfluous.first(), manifest.keep.is_some_and(|keep| keep.disposable))
        {
            let live = self.uploader.live;
            live.warn(format!("segments from {first} on are in the archive, but not segment {lacking}"));
            return Err(ArchiveError::Removed { dir, segment: lacking });
        }
        self.send_file(volume, &dir, REMOVED_FILE)?;
        if let Some(first) = superfluous.first() {
            let live = self.uploader.live;
            live.warn(format!(
                "segments from {first} on were removed from the recording; the inventory does not list them"
            ));
        }
        for index in &superfluous {
            self.state.files.remove(&archive_path(volume, &segment_file_name(*index)));
        }
        Ok(lacking_count() + superfluous.len() as u64)
    }
}
