//! What a drain needs: how far each segment of a recording that is being written may be read.
//!
//! Invariant: what was readable stays readable; a poll reads only what the journals have gained.

use std::path::PathBuf;

use crate::error::RecordingError;
use crate::journal::JournalReader;
use crate::reader::locate;
use crate::volume::Volume;

/// Follows the journals of a recording.
#[derive(Debug)]
pub struct Follower {
    volumes: Vec<Volume>,
    journals: Vec<JournalReader>,
}

impl Follower {
    /// Opens the recording that `dirs` belong to, found as in [`Recording::open`](crate::reader::Recording).
    ///
    /// # Errors
    /// As [`Recording::open`](crate::reader::Recording::open); also while the recorder is still setting up.
    pub fn open(dirs: &[PathBuf]) -> Result<Follower, RecordingError> {
        let (mut volumes, mut journals) = (Vec::new(), Vec::new());
        for (dir, manifest) in locate(dirs)? {
            journals.push(JournalReader::open(&dir)?);
            volumes.push(Volume::new(&dir, manifest));
        }
        let mut follower = Follower { volumes, journals };
        follower.poll()?;
        Ok(follower)
    }

    /// Takes in what the journals have gained; returns true when anything is new.
    ///
    /// # Errors
    /// When a journal cannot be read or a line of it contradicts the ones before.
    pub fn poll(&mut self) -> Result<bool, RecordingError> {
        let mut is_new = false;
        for (volume, journal) in self.volumes.iter_mut().zip(&mut self.journals) {
            is_new |= volume.catch_up(journal)?;
        }
        Ok(is_new)
    }

    /// The volumes, by number, with their segments as of the last poll. Each segment may be read up to its
    /// [`readable_bytes`](crate::volume::Segment::readable_bytes).
    pub fn volumes(&self) -> &[Volume] {
        &self.volumes
    }

    /// True when the run has ended on all volumes, so that nothing new will come.
    pub fn is_ended(&self) -> bool {
        self.volumes.iter().all(|volume| volume.end().is_some())
    }
}

#[cfg(test)]
#[path = "follow_tests.rs"]
mod tests;
