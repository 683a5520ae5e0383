//! Opens a recording over all of its volumes and reads its blocks.
//!
//! Invariant: a directory counts as part of a recording only if its manifest says so.

mod segment;
mod source;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use keepup_stream::ledger::Gap;
use keepup_stream::rejected::Rejected;
use keepup_stream::wire::StreamInfo;

use crate::error::RecordingError;
use crate::journal::{DamagedLine, Journal, Rotation};
use crate::manifest::Manifest;
use crate::retention::RemovedStream;
use crate::unborn;
use crate::volume::Volume;

pub use segment::{Block, Event, Events, SegmentReader};

/// A recording, in the state of its manifests and journals when it was opened.
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
    /// A volume is not found, directories do not belong together, a manifest is damaged, or a
    /// journal is missing or belongs to another volume. Damaged journal lines are skipped and
    /// listed in [`damaged_lines`](Self::damaged_lines).
    pub fn open(dirs: &[PathBuf]) -> Result<Recording, RecordingError> {
        Recording::read(locate(dirs)?, Vec::new())
    }

    /// Like [`open`](Self::open), but accepts missing volumes and lists them in
    /// [`missing`](Self::missing).
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_present(dirs: &[PathBuf]) -> Result<Recording, RecordingError> {
        let (found, missing) = locate_present(dirs)?;
        Recording::read(found, missing)
    }

    fn read(places: VolumeDirectories, missing: Vec<PathBuf>) -> Result<Recording, RecordingError> {
        let mut volumes = Vec::new();
        for (dir, manifest) in places {
            let mut volume = Volume::new(&dir, manifest);
            volume.read_journal()?;
            if !volume.has_begun() && !Journal::is_held(&dir) {
                volume.report_missing_begin();
            }
            volumes.push(volume);
        }
        Ok(Recording { volumes, missing })
    }

    /// Volumes that were not found, as given at recording time.
    pub fn missing(&self) -> &[PathBuf] {
        &self.missing
    }

    /// Unusable lines of the journals. The information in them is missing; all other lines are
    /// used.
    pub fn damaged_lines(&self) -> impl Iterator<Item = &DamagedLine> {
        self.volumes.iter().flat_map(Volume::damaged_lines)
    }

    /// Whether a recorder is writing it.
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

    /// Whether the run has ended on all volumes.
    pub fn is_ended(&self) -> bool {
        self.volumes.iter().all(|volume| volume.end().is_some())
    }

    /// All streams that a journal declares, by id.
    pub fn streams(&self) -> BTreeMap<u32, &StreamInfo> {
        self.volumes.iter().flat_map(Volume::streams).map(|(&id, stream)| (id, stream)).collect()
    }

    /// First sequence numbers of streams that do not start at 0, by id: another recorder has recorded the
    /// events before.
    pub fn starts(&self) -> BTreeMap<u32, u64> {
        crate::volume::starts(self.volumes.iter())
    }

    /// All gaps in the journals, by stream and position, without repetition.
    pub fn gaps(&self) -> Vec<Gap> {
        crate::volume::gaps(self.volumes.iter())
    }

    /// Data that arrived and were not recorded, according to the journals, without repetition. Of a recording
    /// that was cut off, the counts may be too low.
    pub fn rejected(&self) -> Vec<Rejected> {
        crate::volume::rejected(self.volumes.iter())
    }

    /// Volumes taken out of rotation and brought back, in order, without repetition.
    pub fn rotations(&self) -> Vec<Rotation> {
        let mut all: Vec<Rotation> =
            self.volumes.iter().flat_map(|volume| volume.rotations().iter().cloned()).collect();
        all.sort_by_key(|rotation| (rotation.time_unix_ns, rotation.volume));
        all.dedup();
        all
    }

    /// Events of each stream that were removed by the retention limit.
    pub fn removed(&self) -> BTreeMap<u32, RemovedStream> {
        crate::volume::removed(self.volumes.iter())
    }
}

/// Directories and manifests of volumes.
pub(crate) type VolumeDirectories = Vec<(PathBuf, Manifest)>;

/// Finds the directories of all volumes, by number.
pub(crate) fn locate(dirs: &[PathBuf]) -> Result<VolumeDirectories, RecordingError> {
    let (found, missing) = locate_present(dirs)?;
    if let (Some(volume), Some((home, manifest))) = (missing.into_iter().next(), found.first()) {
        let index = manifest.volumes.iter().position(|known| *known == volume).unwrap_or(0);
        return Err(RecordingError::VolumeMissing { path: home.clone(), index, volume });
    }
    Ok(found)
}

/// Finds the directories of volumes, by number, and lists missing volumes.
pub(crate) fn locate_present(dirs: &[PathBuf]) -> Result<(VolumeDirectories, Vec<PathBuf>), RecordingError> {
    if let Some(path) = unborn::find(dirs).and_then(|remains| remains.into_iter().next()) {
        return Err(RecordingError::Unborn { path });
    }
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

/// Directory of volume `index` inside that of the first volume, in a copy that has all volumes in one place:
/// an archive, or what was restored from it.
pub fn nested_volume(index: u32) -> String {
    format!("volume-{index}")
}

/// Looks for a volume inside the directories of `homes`, at its recorded path and next to the volumes of
/// `homes`.
fn find_volume(homes: &[PathBuf], manifest: &Manifest, index: usize) -> Option<(PathBuf, Manifest)> {
    let recorded = manifest.volumes.get(index)?;
    let beside = |home: &PathBuf| Some(home.parent()?.parent()?.join(recorded.file_name()?));
    let nested = homes.iter().map(|home| home.join(nested_volume(index as u32)));
    let apart = std::iter::once(recorded.clone()).chain(homes.iter().filter_map(beside));
    // The nested copy comes first: the original may still exist.
    let mut candidates = nested.chain(apart.map(|volume| volume.join(&manifest.name)));
    candidates.find_map(|dir| {
        let other = Manifest::read(&dir).ok()?;
        let is_it = other.recording == manifest.recording && other.volume_index as usize == index;
        is_it.then_some((dir, other))
    })
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
