//! Opens a recording over all of its volumes and reads its blocks.
//!
//! Invariant: a directory is taken as part of a recording only when its manifest says so.

mod segment;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use keepup_stream::ledger::Gap;
use keepup_stream::wire::StreamInfo;

use crate::error::RecordingError;
use crate::journal::{DamagedLine, Journal, Rotation};
use crate::manifest::Manifest;
use crate::master::MASTER_FILE;
use crate::retention::RemovedStream;
use crate::volume::Volume;

pub use segment::{Block, Event, Events, SegmentReader};

/// A recording, as its manifests and journals stood when it was opened.
#[derive(Clone, Debug)]
pub struct Recording {
    volumes: Vec<Volume>,
    missing: Vec<PathBuf>,
}

impl Recording {
    /// Opens the recording that `dirs` belong to. One directory is enough when the other volumes are where
    /// the manifest says, or were moved together with this one.
    ///
    /// # Errors
    /// When a volume is not found, directories do not belong together, a manifest is damaged, or a journal is
    /// missing or of another volume. Lines of a journal that are damaged are left out, and
    /// [`damaged_lines`](Self::damaged_lines) tells of them.
    pub fn open(dirs: &[PathBuf]) -> Result<Recording, RecordingError> {
        Recording::read(locate(dirs)?, Vec::new())
    }

    /// The same, also when volumes are not found: [`missing`](Self::missing) tells which.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_present(dirs: &[PathBuf]) -> Result<Recording, RecordingError> {
        let (found, missing) = locate_present(dirs)?;
        Recording::read(found, missing)
    }

    fn read(places: Places, missing: Vec<PathBuf>) -> Result<Recording, RecordingError> {
        let mut volumes = Vec::new();
        for (dir, manifest) in places {
            let mut volume = Volume::new(&dir, manifest);
            volume.read_journal()?;
            if !volume.has_begun() && !Journal::is_held(&dir) {
                volume.tell_unbegun();
            }
            volumes.push(volume);
        }
        Ok(Recording { volumes, missing })
    }

    /// Volumes that were not found, as they were given when it was recorded.
    pub fn missing(&self) -> &[PathBuf] {
        &self.missing
    }

    /// Lines of the journals that cannot be used. What they told of the recording is not known; everything
    /// else is as the other lines say.
    pub fn damaged_lines(&self) -> impl Iterator<Item = &DamagedLine> {
        self.volumes.iter().flat_map(Volume::damaged_lines)
    }

    /// True while a recorder is at work on it.
    pub fn is_being_made(&self) -> bool {
        self.volumes.iter().any(|volume| Journal::is_held(volume.dir()))
    }

    /// The volumes, by number; never empty.
    pub fn volumes(&self) -> &[Volume] {
        &self.volumes
    }

    /// The first volume's manifest; all agree on everything but the volume.
    pub fn manifest(&self) -> &Manifest {
        self.volumes[0].manifest()
    }

    /// True when the run has ended on all volumes.
    pub fn is_ended(&self) -> bool {
        self.volumes.iter().all(|volume| volume.end().is_some())
    }

    /// All streams that a journal declares, by id.
    pub fn streams(&self) -> BTreeMap<u32, &StreamInfo> {
        self.volumes.iter().flat_map(Volume::streams).map(|(&id, stream)| (id, stream)).collect()
    }

    /// All gaps that a journal tells of, by stream and place, each once.
    pub fn gaps(&self) -> Vec<Gap> {
        crate::volume::gaps(self.volumes.iter())
    }

    /// Volumes that were taken out of rotation and came back, in the order in which it happened, each once.
    pub fn rotations(&self) -> Vec<Rotation> {
        let mut all: Vec<Rotation> =
            self.volumes.iter().flat_map(|volume| volume.rotations().iter().cloned()).collect();
        all.sort_by_key(|rotation| (rotation.time_unix_ns, rotation.volume));
        all.dedup();
        all
    }

    /// What was removed of each stream because no more was to be kept.
    pub fn removed(&self) -> BTreeMap<u32, RemovedStream> {
        crate::volume::removed(self.volumes.iter())
    }

    /// Where the NeXus master is, once the recording has ended.
    pub fn master_path(&self) -> PathBuf {
        self.volumes[0].dir().join(MASTER_FILE)
    }

    /// Whether it is there; a link to one elsewhere is none.
    pub fn has_master(&self) -> bool {
        std::fs::symlink_metadata(self.master_path()).is_ok_and(|meta| meta.is_file())
    }
}

/// Directories and manifests of volumes.
pub(crate) type Places = Vec<(PathBuf, Manifest)>;

/// Finds the directory of each volume, by number; all of them.
pub(crate) fn locate(dirs: &[PathBuf]) -> Result<Places, RecordingError> {
    let (found, missing) = locate_present(dirs)?;
    if let (Some(volume), Some((home, manifest))) = (missing.into_iter().next(), found.first()) {
        let index = manifest.volumes.iter().position(|known| *known == volume).unwrap_or(0);
        return Err(RecordingError::VolumeMissing { path: home.clone(), index, volume });
    }
    Ok(found)
}

/// Finds the directories of volumes, by number, and tells which volumes are missing.
pub(crate) fn locate_present(dirs: &[PathBuf]) -> Result<(Places, Vec<PathBuf>), RecordingError> {
    let mut found: BTreeMap<usize, (PathBuf, Manifest)> = BTreeMap::new();
    for dir in dirs {
        let manifest = Manifest::read(dir)?;
        if let Some((first, known)) = found.values().next()
            && (known.recording, &known.name, &known.volumes)
                != (manifest.recording, &manifest.name, &manifest.volumes)
        {
            return Err(mixed(first, dir, "their manifests are of different recordings"));
        }
        if let Some((first, _)) = found.get(&(manifest.volume_index as usize)) {
            return Err(mixed(first, dir, "both are the same volume"));
        }
        found.insert(manifest.volume_index as usize, (dir.clone(), manifest));
    }
    let Some((_, manifest)) = found.values().next().cloned() else {
        return Err(RecordingError::NotARecording { path: PathBuf::new() });
    };
    let homes: Vec<PathBuf> = found.values().map(|(dir, _)| dir.clone()).collect();
    let mut missing = Vec::new();
    for (index, volume) in manifest.volumes.iter().enumerate() {
        if let Entry::Vacant(place) = found.entry(index) {
            match find_volume(&homes, &manifest, index) {
                Some(volume) => _ = place.insert(volume),
                None => missing.push(volume.clone()),
            }
        }
    }
    Ok((found.into_values().collect(), missing))
}

fn mixed(first: &Path, second: &Path, what: &'static str) -> RecordingError {
    RecordingError::Mixed { first: first.to_path_buf(), second: second.to_path_buf(), what }
}

/// Looks for a volume where it was recorded, and beside the volumes of `homes`.
fn find_volume(homes: &[PathBuf], manifest: &Manifest, index: usize) -> Option<(PathBuf, Manifest)> {
    let recorded = manifest.volumes.get(index)?;
    let beside = |home: &PathBuf| Some(home.parent()?.parent()?.join(recorded.file_name()?));
    let mut candidates = std::iter::once(recorded.clone()).chain(homes.iter().filter_map(beside));
    candidates.find_map(|volume| {
        let dir = volume.join(&manifest.name);
        let other = Manifest::read(&dir).ok()?;
        let is_it = other.recording == manifest.recording && other.volume_index as usize == index;
        is_it.then_some((dir, other))
    })
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
