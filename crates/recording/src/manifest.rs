//! `keepup.json`: marks a directory as keepup's and identifies its recording and volume.
//!
//! Invariants: created once, and changed only to enter the original of a copy or what detectors say about
//! themselves; a directory with any other content is refused.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use keepup_error::Cause;
use keepup_stream::wire::{METADATA_MAX, SentRecording};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::crc::crc32;
use crate::error::RecordingError;
use crate::files::{create_new, open_regular, replace, sync_directory};
use crate::id::Id;
use crate::layout::FORMAT_VERSION;
use crate::nxmx;

/// Name of the manifest within a recording's directory.
pub const MANIFEST_FILE: &str = "keepup.json";

/// Largest plausible manifest, bytes.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;

/// Longest name of a recording, bytes.
pub const NAME_BYTES_MAX: usize = 200;

/// Placement of blocks on volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Each stream stays on its volume.
    Pinned,
    /// Each block goes to the next volume with space in its queue.
    Free,
}

/// Retention setting of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keep {
    /// Data beyond this limit may be removed.
    pub limit: KeepLimit,
    /// Whether data may be removed without a copy elsewhere.
    pub disposable: bool,
    /// Which copy allows the removal of data that is not disposable.
    #[serde(default, skip_serializing_if = "KeepUntil::is_drained")]
    pub until: KeepUntil,
}

/// Copy that allows the removal of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeepUntil {
    /// Events that are durable at another recorder, in a sink or in a directory.
    #[default]
    Drained,
    /// Segments that an archive in an object store has confirmed.
    Archived,
}

impl KeepUntil {
    fn is_drained(&self) -> bool {
        *self == Self::Drained
    }
}

/// Retention limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeepLimit {
    /// Total size on all volumes.
    Bytes(u64),
    /// Age since sealing.
    Seconds(u64),
}

/// Original of a copied recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Its name.
    pub name: String,
    /// Its identity, as given.
    pub recording: String,
    /// Creation time, ns since the Unix epoch.
    pub created_unix_ns: u64,
}

/// Content of `keepup.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Format version of everything in the directory.
    pub format_version: u16,
    /// Name of the recording and of its directory on each volume.
    pub name: String,
    /// Identity of the recording; the same on all volumes.
    pub recording: Id,
    /// Identity of this volume's part.
    pub volume: Id,
    /// Number of this volume, from 0.
    pub volume_index: u32,
    /// Directories of all volumes, as given.
    pub volumes: Vec<PathBuf>,
    /// Placement of blocks on the volumes.
    pub placement: Placement,
    /// Creation time of the recording, ns since the Unix epoch.
    pub created_unix_ns: u64,
    /// Version of the keepup that wrote it.
    pub tool_version: String,
    /// Retention limit; `None` keeps everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<Keep>,
    /// Run number, where runs are numbered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// Metadata, such as sample or operator.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// Reductions applied to events before they were written, as requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reductions: Vec<String>,
    /// For a copy, its original. Run and metadata are those of the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

impl Manifest {
    /// Creates the recording's directory below the volume's and durably writes the manifest.
    ///
    /// Returns the recording's directory.
    ///
    /// # Errors
    /// The volume does not exist, or the recording's directory exists and is not empty.
    pub fn create(&self, volume: &Path) -> Result<PathBuf, RecordingError> {
        self.create_locked(volume).map(|(dir, _)| dir)
    }

    /// Like [`create`](Self::create); until the returned file is closed, nobody takes the directory for
    /// what an earlier recorder left.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_locked(&self, volume: &Path) -> Result<(PathBuf, fs::File), RecordingError> {
        let dir = new_recording_dir(volume, &self.name)?;
        let path = dir.join(MANIFEST_FILE);
        let fault = |what: Cause| RecordingError::Manifest { path: path.clone(), what };
        self.check().map_err(fault)?;
        let text = self.text(&dir)?;
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
            sync_directory(volume).map(|()| file)
        };
        let written = create_new(&path).and_then(|file| {
            // Not every file system has locks.
            let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
            // A partly written manifest would block the next attempt.
            write(file).inspect_err(|_| drop(fs::remove_file(&path)))
        });
        if written.is_err() && is_new {
            let _ = fs::remove_dir(&dir);
        }
        let file = written.map_err(RecordingError::io("write the manifest", &path))?;
        Ok((dir, file))
    }

    /// This manifest with `sent` as the original of the recording.
    #[must_use]
    pub fn with_origin(self, sent: &SentRecording) -> Manifest {
        let SentRecording { name, id, created_unix_ns, run, metadata } = sent.clone();
        let origin = Some(Origin { name, recording: id, created_unix_ns });
        Manifest { run, metadata, origin, ..self }
    }

    /// This manifest with what detectors say about themselves, below the entries that are there and up to
    /// [`METADATA_MAX`]. What the NeXus master needs has precedence.
    #[must_use]
    pub fn with_metadata(mut self, metadata: &BTreeMap<String, String>) -> Manifest {
        let mut entries: Vec<_> = metadata.iter().collect();
        entries.sort_by_key(|(key, _)| nxmx::rank(key));
        for (key, value) in entries {
            if self.metadata.len() < METADATA_MAX {
                self.metadata.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        self
    }

    /// Writes this manifest in the place of the one in `dir`. The journal has its checksum before.
    pub(crate) fn replace(&self, dir: &Path) -> Result<(), RecordingError> {
        let (path, text) = (dir.join(MANIFEST_FILE), self.text(dir)?);
        let written = replace(&path, |mut file| file.write_all(&text));
        written.map_err(RecordingError::io("write the manifest", &path))
    }

    /// Checksum of its file, which is in `dir`.
    ///
    /// # Errors
    /// A path in it is not UTF-8.
    pub fn sum(&self, dir: &Path) -> Result<ManifestSum, RecordingError> {
        self.text(dir).map(|text| ManifestSum::of(&text))
    }

    /// Content of its file, which is in `dir`.
    fn text(&self, dir: &Path) -> Result<Vec<u8>, RecordingError> {
        let fault = |error: serde_json::Error| RecordingError::Manifest {
            path: dir.join(MANIFEST_FILE),
            what: error.to_string().into(),
        };
        let mut text = serde_json::to_vec_pretty(self).map_err(fault)?;
        text.push(b'\n');
        Ok(text)
    }

    /// Description of this recording for a drain; for a copy, of the original.
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
    /// There is no manifest, it is not a regular file, or it is not a manifest of this version.
    pub fn read(dir: &Path) -> Result<Manifest, RecordingError> {
        let (path, text) = (dir.join(MANIFEST_FILE), read_text(dir)?);
        let fault = |what: Cause| RecordingError::Manifest { path: path.clone(), what };
        let manifest: Manifest =
            serde_json::from_slice(&text).map_err(|error| fault(error.to_string().into()))?;
        manifest.check().map_err(fault)?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), Cause> {
        if !is_file_name(&self.name) {
            Err("its name is not a file name".into())
        } else if self.format_version != FORMAT_VERSION {
            Err(Cause::new("it has another format version")
                .with_hint("use the keepup that wrote this recording"))
        } else if self.volume_index as usize >= self.volumes.len() {
            Err("its volume's number is beyond the number of volumes".into())
        } else {
            Ok(())
        }
    }
}

/// Length and CRC-32 of a manifest's file, as in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestSum {
    /// Length, bytes.
    pub bytes: u64,
    /// CRC-32.
    pub crc32: u32,
}

impl ManifestSum {
    fn of(text: &[u8]) -> ManifestSum {
        ManifestSum { bytes: text.len() as u64, crc32: crc32(text) }
    }

    /// Checksum of the manifest in the directory `dir`.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn read(dir: &Path) -> Result<ManifestSum, RecordingError> {
        read_text(dir).map(|text| ManifestSum::of(&text))
    }
}

/// Content of the manifest in the directory `dir`.
fn read_text(dir: &Path) -> Result<Vec<u8>, RecordingError> {
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
    if text.len() as u64 > MANIFEST_BYTES_MAX {
        let what = format!("it is longer than {MANIFEST_BYTES_MAX} bytes").into();
        return Err(RecordingError::Manifest { path, what });
    }
    Ok(text)
}

/// Directory of a new recording `name` on `volume`: it must not exist, or be empty.
///
/// # Errors
/// The name is not a file name, or the directory is in use.
pub fn new_recording_dir(volume: &Path, name: &str) -> Result<PathBuf, RecordingError> {
    if !is_file_name(name) {
        return Err(RecordingError::Name { name: name.to_owned() });
    }
    let dir = volume.join(name);
    match fs::symlink_metadata(&dir) {
        Ok(_) => refuse_occupied(&dir).map(|()| dir),
        Err(_) => Ok(dir),
    }
}

pub(crate) fn is_file_name(name: &str) -> bool {
    !name.contains(['/', '\0']) && !matches!(name, "" | "." | "..") && name.len() <= NAME_BYTES_MAX
}

/// Accepts an existing empty directory; refuses anything else.
fn refuse_occupied(dir: &Path) -> Result<(), RecordingError> {
    let path = dir.to_path_buf();
    let meta = fs::symlink_metadata(dir).map_err(RecordingError::io("inspect", dir))?;
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
