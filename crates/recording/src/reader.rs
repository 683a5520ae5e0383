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
use crate::journal::JournalReader;
use crate::manifest::Manifest;
use crate::volume::Volume;

pub use segment::{Block, Event, Events, SegmentReader};

/// A recording, as its manifests and journals stood when it was opened.
#[derive(Clone, Debug)]
pub struct Recording {
    volumes: Vec<Volume>,
}

impl Recording {
    /// Opens the recording that `dirs` belong to. One directory is enough when the other volumes are where
    /// the manifest says, or were moved together with this one.
    ///
    /// # Errors
    /// When a volume is not found, directories do not belong together, or a manifest or journal is damaged.
    pub fn open(dirs: &[PathBuf]) -> Result<Recording, RecordingError> {
        let mut volumes = Vec::new();
        for (dir, manifest) in locate(dirs)? {
            let mut volume = Volume::new(&dir, manifest);
            volume.catch_up(&mut JournalReader::open(&dir)?)?;
            volumes.push(volume);
        }
        Ok(Recording { volumes })
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
        let mut gaps: Vec<Gap> = self.volumes.iter().flat_map(Volume::gaps).copied().collect();
        gaps.sort_by_key(|gap| (gap.stream, gap.first_sequence, gap.events, gap.cause));
        gaps.dedup();
        gaps
    }
}

/// Finds the directory of each volume, by number.
pub(crate) fn locate(dirs: &[PathBuf]) -> Result<Vec<(PathBuf, Manifest)>, RecordingError> {
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
    let Some((home, manifest)) = found.values().next().cloned() else {
        return Err(RecordingError::NotARecording { path: PathBuf::new() });
    };
    let homes: Vec<PathBuf> = found.values().map(|(dir, _)| dir.clone()).collect();
    for (index, volume) in manifest.volumes.iter().enumerate() {
        if let Entry::Vacant(place) = found.entry(index) {
            let missing =
                || RecordingError::VolumeMissing { path: home.clone(), index, volume: volume.clone() };
            place.insert(find_volume(&homes, &manifest, index).ok_or_else(missing)?);
        }
    }
    Ok(found.into_values().collect())
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
