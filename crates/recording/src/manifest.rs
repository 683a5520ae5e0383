//! `keepup.json`: marks a directory as keepup's and says which recording and volume it holds.
//!
//! Invariants: created once, and changed only to say what a copy is a copy of; a directory that holds
//! anything else is refused.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use keepup_stream::wire::SentRecording;
use serde::{Deserialize, Serialize};

use crate::error::RecordingError;
use crate::files::{create_new, open_regular, replace, sync_directory};
use crate::id::Id;
use crate::layout::FORMAT_VERSION;
use crate::retention::Keep;

/// Name of the manifest within a recording's directory.
pub const MANIFEST_FILE: &str = "keepup.json";

/// A manifest larger than this is not one of ours, bytes.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;

/// Longest name of a recording, bytes.
const NAME_BYTES_MAX: usize = 200;

/// How blocks are dealt to volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Each stream has its volume.
    Pinned,
    /// Each block goes to the next volume with room in its queue.
    Free,
}

/// The recording that a copy was made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Its name.
    pub name: String,
    /// Its identity, as it was given.
    pub recording: String,
    /// When it was created, ns since the Unix epoch.
    pub created_unix_ns: u64,
}

/// What `keepup.json` says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of the format of everything in the directory.
    pub format_version: u16,
    /// Name of the recording and of its directory on each volume.
    pub name: String,
    /// The recording; the same on all of its volumes.
    pub recording: Id,
    /// This volume's part of the recording.
    pub volume: Id,
    /// Number of this volume, from 0.
    pub volume_index: u32,
    /// Directories of all volumes, as they were given.
    pub volumes: Vec<PathBuf>,
    /// How blocks were dealt to the volumes.
    pub placement: Placement,
    /// When the recording was created, ns since the Unix epoch.
    pub created_unix_ns: u64,
    /// Version of the keepup that wrote it.
    pub tool_version: String,
    /// How much of it is kept; all when nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<Keep>,
    /// Number of the run, where runs are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// What the recording carries along, as sample or operator.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// What was done to events before they were written, as it was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reductions: Vec<String>,
    /// Of a copy: what it is a copy of. Run and metadata are those of the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

impl Manifest {
    /// Makes the recording's directory below the volume's and writes the manifest, all durable.
    ///
    /// Returns the recording's directory.
    ///
    /// # Errors
    /// When the volume does not exist, or the recording's directory does and is not empty.
    pub fn create(&self, volume: &Path) -> Result<PathBuf, RecordingError> {
        let dir = place(volume, &self.name)?;
        let path = dir.join(MANIFEST_FILE);
        let fault = |what: String| RecordingError::Manifest { path: path.clone(), what };
        self.check().map_err(|what| fault(what.to_owned()))?;
        let mut text = serde_json::to_vec_pretty(self).map_err(|error| fault(error.to_string()))?;
        text.push(b'\n');
        let is_new = match fs::create_dir(&dir) {
            Ok(()) => true,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                refuse_occupied(&dir)?;
                false
            }
            Err(error) => return Err(RecordingError::io("create the directory", &dir)(error)),
        };
        let write = |mut file: fs::File| {
            file.write_all(&text)?;
            file.sync_all()?;
            sync_directory(&dir)?;
            sync_directory(volume)
        };
        let written = create_new(&path).and_then(|file| {
            // A manifest that is not whole would be in the way of the next try.
            write(file).inspect_err(|_| drop(fs::remove_file(&path)))
        });
        if written.is_err() && is_new {
            let _ = fs::remove_dir(&dir);
        }
        written.map_err(RecordingError::io("write the manifest", &path))?;
        Ok(dir)
    }

    /// Enters in the manifest of the recording in `dir` that it is a copy of `sent`; all or nothing, durable.
    ///
    /// # Errors
    /// When there is no manifest, or it cannot be replaced.
    pub fn enter_origin(dir: &Path, sent: &SentRecording) -> Result<(), RecordingError> {
        let SentRecording { name, id, created_unix_ns, run, metadata } = sent.clone();
        let origin = Some(Origin { name, recording: id, created_unix_ns });
        let manifest = Manifest { run, metadata, origin, ..Manifest::read(dir)? };
        let path = dir.join(MANIFEST_FILE);
        let written = replace(&path, |mut file| {
            serde_json::to_writer_pretty(file, &manifest)?;
            file.write_all(b"\n")
        });
        written.map_err(RecordingError::io("write the manifest", &path))
    }

    /// What a drain says of this recording: of a copy, what is said of the original.
    pub fn sent(&self) -> SentRecording {
        let (name, id, created_unix_ns) = match &self.origin {
            Some(origin) => (origin.name.clone(), origin.recording.clone(), origin.created_unix_ns),
            None => (self.name.clone(), self.recording.to_string(), self.created_unix_ns),
        };
        SentRecording { name, id, created_unix_ns, run: self.run, metadata: self.metadata.clone() }
    }

    /// Reads the manifest of a recording's directory.
    ///
    /// # Errors
    /// When there is none, it is not a regular file, or it is not a manifest of this version.
    pub fn read(dir: &Path) -> Result<Manifest, RecordingError> {
        let path = dir.join(MANIFEST_FILE);
        let file = match open_regular(&path) {
            Ok(file) => file,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Err(RecordingError::NotARecording { path: dir.to_path_buf() });
            }
            Err(error) => return Err(RecordingError::open("open the manifest", &path)(error)),
        };
        let mut text = Vec::new();
        file.take(MANIFEST_BYTES_MAX + 1)
            .read_to_end(&mut text)
            .map_err(RecordingError::io("read the manifest", &path))?;
        let fault = |what: String| RecordingError::Manifest { path: path.clone(), what };
        if text.len() as u64 > MANIFEST_BYTES_MAX {
            return Err(fault(format!("it is longer than {MANIFEST_BYTES_MAX} bytes")));
        }
        let manifest: Manifest = serde_json::from_slice(&text).map_err(|error| fault(error.to_string()))?;
        manifest.check().map_err(|what| fault(what.to_owned()))?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), &'static str> {
        if !is_file_name(&self.name) {
            Err("its name is not a file name")
        } else if self.format_version != FORMAT_VERSION {
            Err("it has another format version\nhint: use the keepup that wrote this recording")
        } else if self.volume_index as usize >= self.volumes.len() {
            Err("its volume's number is beyond the number of volumes")
        } else {
            Ok(())
        }
    }
}

/// The directory of a recording called `name` on `volume`, where one may be made: it does not exist, or is
/// empty.
///
/// # Errors
/// When the name is no file name, or the place is taken.
pub fn place(volume: &Path, name: &str) -> Result<PathBuf, RecordingError> {
    if !is_file_name(name) {
        return Err(RecordingError::Name { name: name.to_owned() });
    }
    let dir = volume.join(name);
    match fs::symlink_metadata(&dir) {
        Ok(_) => refuse_occupied(&dir).map(|()| dir),
        Err(_) => Ok(dir),
    }
}

fn is_file_name(name: &str) -> bool {
    !name.contains(['/', '\0']) && !matches!(name, "" | "." | "..") && name.len() <= NAME_BYTES_MAX
}

/// An empty directory that exists may be used; anything else is left alone.
fn refuse_occupied(dir: &Path) -> Result<(), RecordingError> {
    let path = dir.to_path_buf();
    let meta = fs::symlink_metadata(dir).map_err(RecordingError::io("look at", dir))?;
    if !meta.is_dir() {
        return Err(RecordingError::Foreign { path });
    }
    let mut entries = fs::read_dir(dir).map_err(RecordingError::io("list", dir))?;
    if fs::symlink_metadata(dir.join(MANIFEST_FILE)).is_ok() {
        Err(RecordingError::Exists { path })
    } else if entries.next().is_some() {
        Err(RecordingError::Foreign { path })
    } else {
        Ok(())
    }
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
