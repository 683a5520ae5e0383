//! Progress of a copy to an archive, in a file beside the recording, so that an interrupted copy continues.
//!
//! [`keepup_recording::archived`] describes the lines; recorders and `info` read them. Invariant: a file is
//! entered after the store has confirmed it, and taken back durably once the archive lacks it.
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use keepup_recording::archived::{ArchivedFile, PartChecks, StateLine as Line};
use keepup_recording::id::Id;
use keepup_recording::line::{LINE_BYTES_MAX, parse_line, put_line};
use keepup_recording::retention::ARCHIVE_STATE;
use keepup_sys::lock;
use sha2::{Digest as _, Sha256};

use crate::error::ArchiveError;
use crate::inventory::hex;
use crate::local::LocalFile;

/// A file that the archive has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownFile {
    pub(crate) file: ArchivedFile,
    /// ETag of its object, if the store returns one.
    pub(crate) etag: Option<String>,
    /// For a sealed segment: whether every block was intact as it was read.
    pub(crate) intact: Option<bool>,
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

    fn line(&self) -> Line {
        let Self { path, id, bytes, modified_unix_ns, part_bytes, .. } = self.clone();
        Line::Upload { path, id, bytes, modified_unix_ns, part_bytes }
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
    /// Archived files, by path.
    pub(crate) files: BTreeMap<String, KnownFile>,
    /// Files that the archive had, but no longer has.
    pub(crate) forgotten: BTreeSet<String>,
    /// Uploads in progress: one that the store puts together, and the next one.
    pub(crate) uploads: Vec<OpenUpload>,
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
        let mut state = Self {
            path,
            file,
            files_end: 0,
            end: 0,
            files: BTreeMap::new(),
            forgotten: BTreeSet::new(),
            uploads: Vec::new(),
            is_resumed: false,
        };
        if let Some(file) = &state.file {
            if matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)) {
                return Err(ArchiveError::Busy { to: to.to_owned(), holder: lock::holder(file) });
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
        match line {
            Line::File { file, etag, intact } if self.uploads.is_empty() => {
                self.insert(KnownFile { file, etag, intact });
                self.files_end += bytes;
            }
            Line::Forgotten { path } if self.uploads.is_empty() => {
                self.files.remove(&path);
                self.forgotten.insert(path);
                self.files_end += bytes;
            }
            Line::Upload { path, id, bytes, modified_unix_ns, part_bytes } => {
                self.uploads.retain(|upload| upload.path != path);
                let parts = BTreeMap::new();
                self.uploads.push(OpenUpload { path, id, bytes, modified_unix_ns, part_bytes, parts });
            }
            Line::Part { path, index, content, checks } => {
                let Some(upload) = self.uploads.iter_mut().find(|upload| upload.path == path) else {
                    return false;
                };
                upload.parts.insert(index, (content, checks));
            }
            _ => return false,
        }
        true
    }

    fn fault(&self, what: &str) -> ArchiveError {
        ArchiveError::State { path: self.path.clone(), what: what.to_owned() }
    }

    fn insert(&mut self, known: KnownFile) {
        self.forgotten.remove(&known.file.path);
        self.files.insert(known.file.path.clone(), known);
    }

    /// Enters an archived file, durably, in place of its upload.
    pub(crate) fn add_file(&mut self, known: KnownFile) -> Result<(), ArchiveError> {
        self.uploads.retain(|upload| upload.path != known.file.path);
        let KnownFile { file, etag, intact } = known.clone();
        self.append_to_files(&Line::File { file, etag, intact })?;
        self.insert(known);
        Ok(())
    }

    /// Enters durably that the archive no longer has the file `path`.
    pub(crate) fn forget_file(&mut self, path: &str) -> Result<(), ArchiveError> {
        self.append_to_files(&Line::Forgotten { path: path.to_owned() })?;
        self.files.remove(path);
        self.forgotten.insert(path.to_owned());
        Ok(())
    }

    /// Appends a line to those of the files, durably.
    fn append_to_files(&mut self, line: &Line) -> Result<(), ArchiveError> {
        self.end = self.files_end;
        self.append(line)?;
        self.files_end = self.end;
        self.write_uploads()
    }

    /// Upload in progress of the object `path`.
    pub(crate) fn upload(&self, path: &str) -> Option<&OpenUpload> {
        self.uploads.iter().find(|upload| upload.path == path)
    }

    /// Enters a new upload, durably.
    pub(crate) fn begin_upload(
        &mut self,
        of: &LocalFile,
        id: String,
        part_bytes: u64,
    ) -> Result<(), ArchiveError> {
        let LocalFile { archive_path: path, bytes, modified_unix_ns, .. } = of.clone();
        self.uploads.retain(|upload| upload.path != path);
        let upload = OpenUpload { path, id, bytes, modified_unix_ns, part_bytes, parts: BTreeMap::new() };
        self.append(&upload.line())?;
        self.uploads.push(upload);
        self.flush()
    }

    /// Enters a part of an upload. Not flushed: a part that is lost is sent again.
    pub(crate) fn add_part(
        &mut self,
        path: &str,
        index: usize,
        content: String,
        checks: PartChecks,
    ) -> Result<(), ArchiveError> {
        let line =
            Line::Part { path: path.to_owned(), index, content: content.clone(), checks: checks.clone() };
        self.append(&line)?;
        if let Some(upload) = self.uploads.iter_mut().find(|upload| upload.path == path) {
            upload.parts.insert(index, (content, checks));
        }
        Ok(())
    }

    /// Forgets the upload of the object `path`.
    pub(crate) fn forget_upload(&mut self, path: &str) -> Result<(), ArchiveError> {
        self.uploads.retain(|upload| upload.path != path);
        self.end = self.files_end;
        self.write_uploads()
    }

    /// Writes the lines of all uploads behind those of the files, durably.
    fn write_uploads(&mut self) -> Result<(), ArchiveError> {
        for upload in self.uploads.clone() {
            self.append(&upload.line())?;
            for (index, (content, checks)) in upload.parts {
                self.append(&Line::Part { path: upload.path.clone(), index, content, checks })?;
            }
        }
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
