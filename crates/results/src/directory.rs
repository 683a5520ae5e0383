//! Result directories: one directory per result, identified by a marker file.
//!
//! Invariants: never writes into a non-empty directory; `result.json` is either absent or complete,
//! durable, and readable by this crate; `SHA256SUMS` is absent, or covers the files as they are.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use keepup_sys::regular;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::checksum::{self, Check, Document};
use crate::error::ResultsError;
use crate::event::Event;
use crate::file_names::{CHECKSUMS, CHECKSUMS_TEMPORARY, EVENTS, MARKER, SUMMARY, SUMMARY_TEMPORARY};
use crate::head::Kind;
use crate::log::{EventLog, EventReader};
use crate::summary::SCHEMA_VERSION;
use crate::test::Begun;
use crate::time::rfc3339;

/// Characters of the id in a directory's name, to distinguish results of the same second.
const SHORT_ID_CHARACTERS: usize = 8;
/// Longest list of checksums that is read, bytes: far above a campaign with all its cells.
const CHECKSUMS_BYTES_MAX: u64 = 64 << 20;

/// Default name of a result directory, `<profile>-<yyyymmddThhmmssZ>-<short id>`: sorts by time per
/// profile.
///
/// # Errors
/// The profile's name or the id is unsuitable for a file name.
pub fn default_name(profile: &str, id: &str, created_unix_ns: u64) -> Result<String, ResultsError> {
    let fit = |text: &str| {
        !text.is_empty()
            && !text.starts_with('.')
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
    };
    for (what, text) in [("the profile", profile), ("the id", id)] {
        if !fit(text) {
            return Err(ResultsError::BadName { what, text: text.to_owned() });
        }
    }
    let time = rfc3339(created_unix_ns).replace(['-', ':'], "");
    let short: String = id.chars().take(SHORT_ID_CHARACTERS).collect();
    Ok(format!("{profile}-{time}-{short}"))
}

/// A directory that holds one result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultDirectory {
    path: PathBuf,
}

impl ResultDirectory {
    /// Creates a result directory below `out`, and an event log with its first event.
    ///
    /// # Errors
    /// The workload's name or the id is unsuitable for a file name, or a system error.
    pub fn begin(
        out: &Path,
        kind: Kind,
        schema_version: u32,
        begun: &Begun,
    ) -> Result<(Self, EventLog), ResultsError> {
        let name = default_name(&begun.workload, &begun.id, begun.created_unix_ns)?;
        let directory = Self::create(&out.join(name), &begun.id)?;
        let mut log = directory.create_log()?;
        log.append(&Event::Started {
            t_unix_ns: begun.created_unix_ns,
            schema_version,
            tool_version: begun.tool_version.clone(),
            id: begun.id.clone(),
            kind,
            command: begun.command.clone(),
            profile: begun.workload.clone(),
            plan: begun.plan.clone(),
            environment: begun.environment.clone(),
        })?;
        Ok((directory, log))
    }

    /// Creates the directory with its parents and marks it. An existing directory must be empty.
    ///
    /// # Errors
    /// The path is not a directory, the directory is not empty, or a system error.
    pub fn create(path: &Path, id: &str) -> Result<Self, ResultsError> {
        match fs::symlink_metadata(path) {
            Ok(found) if !found.is_dir() => {
                return Err(ResultsError::NotADirectory { path: path.to_path_buf() });
            }
            Ok(_) => {
                let mut entries =
                    fs::read_dir(path).map_err(ResultsError::io("list the result directory", path))?;
                if entries.next().is_some() {
                    return Err(ResultsError::NotEmpty { path: path.to_path_buf() });
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                fs::create_dir_all(path).map_err(ResultsError::io("create the result directory", path))?;
            }
            Err(source) => {
                return Err(ResultsError::Io { what: "look at", path: path.to_path_buf(), source });
            }
        }
        // `create_new` also resolves a race of two runs for the same empty directory.
        let marker = path.join(MARKER);
        let text = format!("keepup result {id}, schema version {SCHEMA_VERSION}\n");
        write_whole(&marker, text.as_bytes(), OpenOptions::new().write(true).create_new(true))?;
        sync_directory(path)?;
        Ok(Self { path: path.to_path_buf() })
    }

    /// Opens a directory created by keepup.
    ///
    /// # Errors
    /// It has no marker file.
    pub fn open(path: &Path) -> Result<Self, ResultsError> {
        if !fs::symlink_metadata(path.join(MARKER)).is_ok_and(|marker| marker.is_file()) {
            return Err(ResultsError::NotAResult { path: path.to_path_buf() });
        }
        Ok(Self { path: path.to_path_buf() })
    }

    /// Path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the directory of a result that failed before anything was measured, with the files
    /// of this crate.
    ///
    /// # Errors
    /// It contains other files, or a system error.
    pub fn discard(&self) -> Result<(), ResultsError> {
        // The marker is removed last: a remaining directory is still recognized.
        for name in [CHECKSUMS_TEMPORARY, CHECKSUMS, EVENTS, SUMMARY_TEMPORARY, SUMMARY, MARKER] {
            let path = self.path.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                outcome => outcome.map_err(ResultsError::io("remove", &path))?,
            }
        }
        fs::remove_dir(&self.path).map_err(ResultsError::io("remove the result directory", &self.path))
    }

    /// Creates the event log.
    ///
    /// # Errors
    /// It exists already, or a system error.
    pub fn create_log(&self) -> Result<EventLog, ResultsError> {
        EventLog::create(&self.path.join(EVENTS))
    }

    /// Continues the event log of an earlier run; an incomplete last line is cut off. The checksums are
    /// removed until the next summary.
    ///
    /// # Errors
    /// It does not exist, or a system error.
    pub fn reopen_log(&self) -> Result<EventLog, ResultsError> {
        self.remove_checksums()?;
        EventLog::reopen(&self.path.join(EVENTS))
    }

    /// Reads the event log.
    ///
    /// # Errors
    /// It does not exist, or a system error; damage is reported by the iterator.
    pub fn events(&self) -> Result<EventReader, ResultsError> {
        EventReader::open(&self.path.join(EVENTS))
    }

    /// Writes or replaces `result.json` atomically and durably, then the checksums of all files.
    ///
    /// # Errors
    /// A figure is not finite, or a system error.
    pub fn write_summary<S: Serialize + DeserializeOwned>(&self, summary: &S) -> Result<(), ResultsError> {
        let path = self.path.join(SUMMARY);
        let unwritable = |source| ResultsError::Unwritable { path: path.clone(), source };
        let document = Document::new(summary).map_err(unwritable)?;
        serde_json::to_value(summary).and_then(serde_json::from_value::<S>).map_err(unwritable)?;
        let mut text = serde_json::to_string_pretty(&document).map_err(unwritable)?;
        text.push('\n');
        self.remove_checksums()?;
        self.replace(SUMMARY, SUMMARY_TEMPORARY, &text)?;
        let sums = checksum::lines_of(&self.path);
        let sums = sums.map_err(ResultsError::io("compute the checksums of", &self.path))?;
        self.replace(CHECKSUMS, CHECKSUMS_TEMPORARY, &sums)
    }

    /// Enters the checksum of the file `name`, which was written after the summary. Does nothing if the
    /// directory has no checksums.
    ///
    /// # Errors
    /// A system error.
    pub fn cover(&self, name: &str) -> Result<(), ResultsError> {
        let Some(sums) = self.checksums()? else { return Ok(()) };
        let sums = checksum::with_line(&sums, &self.path, name)
            .map_err(ResultsError::io("compute the checksum of", &self.path.join(name)))?;
        self.replace(CHECKSUMS, CHECKSUMS_TEMPORARY, &sums)
    }

    /// Checks the files from which results are read. Returns whether the directory has checksums.
    ///
    /// # Errors
    /// One of them was changed, the summary is missing, or a system error.
    pub(crate) fn check(&self) -> Result<bool, ResultsError> {
        let Some(sums) = self.checksums()? else { return Ok(false) };
        for name in [SUMMARY, EVENTS] {
            let path = self.path.join(name);
            match checksum::check_file(&sums, &self.path, name) {
                Ok(Check::Changed) => {
                    return Err(ResultsError::Changed { path, list: Some(self.path.join(CHECKSUMS)) });
                }
                // The summary stands alone: the event log may have been removed to save space.
                Err(error) if name == EVENTS && error.kind() == ErrorKind::NotFound => {}
                outcome => drop(outcome.map_err(ResultsError::io("read", &path))?),
            }
        }
        Ok(true)
    }

    /// The checksums, if there are any.
    fn checksums(&self) -> Result<Option<String>, ResultsError> {
        let path = self.path.join(CHECKSUMS);
        match regular::read_text(&path, CHECKSUMS_BYTES_MAX) {
            Ok(sums) => Ok(Some(sums)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ResultsError::io("read the checksums", &path)(error)),
        }
    }

    /// Removes the checksums before a file is changed: a crash must leave none, not wrong ones.
    fn remove_checksums(&self) -> Result<(), ResultsError> {
        let path = self.path.join(CHECKSUMS);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            outcome => {
                outcome.map_err(ResultsError::io("remove", &path)).and_then(|()| sync_directory(&self.path))
            }
        }
    }

    /// Writes or replaces a file atomically and durably.
    fn replace(&self, name: &str, temporary: &str, text: &str) -> Result<(), ResultsError> {
        let (path, temporary) = (self.path.join(name), self.path.join(temporary));
        // Remove a leftover of an earlier attempt, or a link placed there.
        let _ = fs::remove_file(&temporary);
        write_whole(&temporary, text.as_bytes(), OpenOptions::new().write(true).create_new(true))?;
        fs::rename(&temporary, &path).map_err(ResultsError::io("put into its place the file", &path))?;
        sync_directory(&self.path)
    }
}

fn write_whole(path: &Path, bytes: &[u8], options: &OpenOptions) -> Result<(), ResultsError> {
    options
        .open(path)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            keepup_sys::output::sync(&file)
        })
        .map_err(ResultsError::io("write", path))
}

/// Syncs a directory: a file's own flush does not cover its directory entry.
fn sync_directory(path: &Path) -> Result<(), ResultsError> {
    File::open(path).and_then(|directory| directory.sync_all()).map_err(ResultsError::io("flush", path))
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;
