//! Progress of a copy to an archive, in a file beside the recording, so that an interrupted copy continues.
//!
//! Lines with checksums, as in the journal: what the file belongs to, then one line per archived file. The
//! last lines may describe an upload in progress; they are replaced by the line of its file. Invariant: a
//! file is entered after the store has confirmed it.
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use keepup_recording::id::Id;
use keepup_recording::line::{LINE_BYTES_MAX, parse_line, put_line};
use keepup_recording::retention::ARCHIVE_STATE;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::ArchiveError;
use crate::inventory::{ArchivedFile, hex};
use crate::local::LocalFile;

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    /// What the file belongs to.
    Begin { recording: Id, to: String },
    /// An archived file, with the ETag of its object.
    File { file: ArchivedFile, etag: Option<String> },
    /// An upload in progress.
    Upload { path: String, id: String, bytes: u64, modified_unix_ns: u64, part_bytes: u64 },
    /// A part of it that the store has.
    Part { index: usize, content: String, checks: PartChecks },
}

/// What is known about a part that the store has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PartChecks {
    /// MD5 of its bytes, 32 hex digits.
    pub(crate) md5: String,
    /// Whether the store has confirmed the MD5.
    pub(crate) has_md5: bool,
    /// Whether the store has confirmed the SHA-256.
    pub(crate) has_sha256: bool,
}

/// An upload in progress.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenUpload {
    path: String,
    pub(crate) id: String,
    bytes: u64,
    modified_unix_ns: u64,
    part_bytes: u64,
    /// Parts that the store has, with the store's names for them.
    pub(crate) parts: BTreeMap<usize, (String, PartChecks)>,
    /// Whether this process has asked the store to put the parts together.
    pub(crate) is_completing: bool,
}

impl OpenUpload {
    /// Whether it is an upload of this file in parts of this size.
    pub(crate) fn is_of(&self, file: &LocalFile, part_bytes: u64) -> bool {
        let own = (file.archive_path.as_str(), file.bytes, file.modified_unix_ns, part_bytes);
        own == (&self.path, self.bytes, self.modified_unix_ns, self.part_bytes)
    }

    /// Path of its object.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }
}

/// Progress of a copy.
#[derive(Debug)]
pub(crate) struct ArchiveState {
    path: PathBuf,
    /// `None` if the directory is read-only.
    file: Option<File>,
    /// End of the lines of archived files.
    files_end: u64,
    /// End of all lines.
    end: u64,
    pub(crate) files: BTreeMap<String, (ArchivedFile, Option<String>)>,
    pub(crate) upload: Option<OpenUpload>,
    /// Whether an earlier copy had begun.
    pub(crate) is_resumed: bool,
}

impl ArchiveState {
    /// Opens or creates the state of the copy of `recording`, whose first volume is `dir`, to the address
    /// `to`.
    ///
    /// # Errors
    /// Another process copies the recording there, or the file cannot be used. A directory that cannot be
    /// written to is accepted.
    pub(crate) fn open(dir: &Path, recording: Id, to: &str) -> Result<Self, ArchiveError> {
        let digest = hex(&Sha256::digest(to)[..8]);
        let path = dir.join(format!("{ARCHIVE_STATE}{digest}.jsonl"));
        let options = File::options().read(true).write(true).create(true).truncate(false).clone();
        let file = match options.open(&path) {
            Ok(file) => Some(file),
            Err(error) if is_read_only(&error) => None,
            Err(error) => return Err(ArchiveError::io("open", &path)(error)),
        };
        let (files, end) = (BTreeMap::new(), 0);
        let mut state = Self { path, file, files_end: end, end, files, upload: None, is_resumed: false };
        if let Some(file) = &state.file {
            if matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)) {
                return Err(state.fault("another drain copies the recording to this archive"));
            }
            let file = file.try_clone().map_err(ArchiveError::io("open", &state.path))?;
            state.read(file, recording, to)?;
        }
        if !state.is_resumed {
            state.append(&Line::Begin { recording, to: to.to_owned() })?;
            state.files_end = state.end;
        }
        state.flush()?;
        Ok(state)
    }

    /// Whether the state survives this process.
    pub(crate) fn is_kept(&self) -> bool {
        self.file.is_some()
    }

    /// Reads all lines up to the first damaged one, which a crash left.
    fn read(&mut self, file: File, recording: Id, to: &str) -> Result<(), ArchiveError> {
        let mut lines = BufReader::new(file);
        let mut text = Vec::new();
        loop {
            text.clear();
            let limited = &mut io::Read::take(&mut lines, LINE_BYTES_MAX as u64);
            limited.read_until(b'\n', &mut text).map_err(ArchiveError::io("read", &self.path))?;
            let Some(Ok(line)) = text.strip_suffix(b"\n").map(parse_line::<Line>) else { return Ok(()) };
            if !self.is_resumed {
                match line {
                    Line::Begin { recording: found, to: there } if found == recording && there == to => {}
                    _ => return Err(self.fault("it belongs to another recording or archive")),
                }
                self.is_resumed = true;
                self.files_end += text.len() as u64;
            } else {
                // A crash may leave lines of an upload behind that of its file.
                let is_used = self.apply(line, text.len() as u64);
                if !is_used {
                    return Ok(());
                }
            }
            self.end += text.len() as u64;
        }
    }

    /// Applies a line; returns whether it may follow the ones before.
    fn apply(&mut self, line: Line, bytes: u64) -> bool {
        match (line, &mut self.upload) {
            (Line::File { file, etag }, None) => {
                self.files.insert(file.path.clone(), (file, etag));
                self.files_end += bytes;
            }
            (Line::Upload { path, id, bytes, modified_unix_ns, part_bytes }, None) => {
                let parts = BTreeMap::new();
                let is_completing = false;
                let upload =
                    OpenUpload { path, id, bytes, modified_unix_ns, part_bytes, parts, is_completing };
                self.upload = Some(upload);
            }
            (Line::Part { index, content, checks }, Some(upload)) => {
                upload.parts.insert(index, (content, checks));
            }
            _ => return false,
        }
        true
    }

    fn fault(&self, what: &str) -> ArchiveError {
        ArchiveError::State { path: self.path.clone(), what: what.to_owned() }
    }

    /// Enters an archived file, durably, in place of its upload. The upload of another file stays.
    pub(crate) fn add_file(&mut self, file: ArchivedFile, etag: Option<String>) -> Result<(), ArchiveError> {
        let other = self.upload.take().filter(|upload| upload.path != file.path);
        self.end = self.files_end;
        self.append(&Line::File { file: file.clone(), etag: etag.clone() })?;
        self.files.insert(file.path.clone(), (file, etag));
        self.files_end = self.end;
        if let Some(OpenUpload { path, id, bytes, modified_unix_ns, part_bytes, parts, .. }) = &other {
            let (path, id, part_bytes) = (path.clone(), id.clone(), *part_bytes);
            self.append(&Line::Upload {
                path,
                id,
                bytes: *bytes,
                modified_unix_ns: *modified_unix_ns,
                part_bytes,
            })?;
            for (index, (content, checks)) in parts {
                let (content, checks) = (content.clone(), checks.clone());
                self.append(&Line::Part { index: *index, content, checks })?;
            }
        }
        self.upload = other;
        self.flush()
    }

    /// Enters a new upload, durably, in place of the one in progress.
    pub(crate) fn begin_upload(
        &mut self,
        of: &LocalFile,
        id: String,
        part_bytes: u64,
    ) -> Result<(), ArchiveError> {
        let LocalFile { archive_path: path, bytes, modified_unix_ns, .. } = of.clone();
        self.end = self.files_end;
        self.append(&Line::Upload {
            path: path.clone(),
            id: id.clone(),
            bytes,
            modified_unix_ns,
            part_bytes,
        })?;
        let parts = BTreeMap::new();
        let is_completing = false;
        self.upload =
            Some(OpenUpload { path, id, bytes, modified_unix_ns, part_bytes, parts, is_completing });
        self.flush()
    }

    /// Enters a part of the upload in progress. Not flushed: a part that is lost is sent again.
    pub(crate) fn add_part(
        &mut self,
        index: usize,
        content: String,
        checks: PartChecks,
    ) -> Result<(), ArchiveError> {
        self.append(&Line::Part { index, content: content.clone(), checks: checks.clone() })?;
        if let Some(upload) = &mut self.upload {
            upload.parts.insert(index, (content, checks));
        }
        Ok(())
    }

    /// Forgets the upload in progress if it is of this file.
    pub(crate) fn forget_upload_of(&mut self, file: &LocalFile) -> Result<(), ArchiveError> {
        if self.upload.take_if(|upload| upload.path == file.archive_path).is_none() {
            return Ok(());
        }
        self.end = self.files_end;
        self.flush()
    }

    fn append(&mut self, line: &Line) -> Result<(), ArchiveError> {
        let mut text = Vec::new();
        put_line(&mut text, line).map_err(|what| self.fault(&what))?;
        if let Some(file) = &self.file {
            file.write_all_at(&text, self.end).map_err(ArchiveError::io("write", &self.path))?;
        }
        self.end += text.len() as u64;
        Ok(())
    }

    /// Cuts off what lies behind the last line, and makes all lines durable.
    fn flush(&self) -> Result<(), ArchiveError> {
        let Some(file) = &self.file else { return Ok(()) };
        let flushed = file.set_len(self.end).and_then(|()| file.sync_data());
        flushed.map_err(ArchiveError::io("write", &self.path))
    }
}

fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
