//! The files that were recorded from a directory, under their names.
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use keepup_stream::file_index::{FileEntry, INDEX_SUFFIX};

use super::{Exported, create, flush_all, missing, not_created, payload_bytes, require_sealed, wants};
use crate::access::{From, StreamReader};
use crate::error::RecordingError;
use crate::merged::MergedRecording;
use crate::progress::Progress;
use crate::seal::link_names;

/// Longest file name, bytes.
const NAME_BYTES_MAX: usize = 255;
/// Longest path of a recorded file, bytes, and most levels of its directories.
const PATH_BYTES_MAX: usize = 4096;
const DEPTH_MAX: usize = 64;

/// Longest step between the times that a file system has.
const TIME_STEP_MAX: Duration = Duration::from_secs(2);
const NO_SUCH_TIME: &str =
    "the file system cannot store its time of change; export to another one, or --to raw";

/// Writes the recorded files to the new directory `dir`, each under its last name and with its time of
/// change. With several recorded directories, each has a subdirectory. Of several versions of a file, the
/// last one has the name, with the subdirectories in it; `#` and its sequence number follow the name of an
/// earlier one. A file without a name in the index, as after a crash, is named `file-N` after its sequence
/// number. `progress` is called often.
///
/// # Errors
/// A segment is unsealed or cannot be read, a block is damaged, the recording has no files of a directory, or
/// `dir` exists or cannot be written.
pub fn files<'a>(
    recording: impl Into<MergedRecording<'a>>,
    stream: Option<u32>,
    dir: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<Exported, RecordingError> {
    let recording = &recording.into();
    require_sealed(recording)?;
    let streams = recording.streams();
    let index_of = |name: &str| {
        let wanted = format!("{name}{INDEX_SUFFIX}");
        streams.iter().find(|(_, info)| info.name == wanted).map(|(&id, _)| id)
    };
    let pairs = streams.iter().filter(|(id, _)| wants(stream, **id));
    let pairs: Vec<(u32, u32)> = pairs.filter_map(|(&id, info)| Some((id, index_of(&info.name)?))).collect();
    if pairs.is_empty() {
        return Err(RecordingError::NoFiles);
    }
    fs::create_dir(dir).map_err(not_created("create the directory", dir))?;
    let links = link_names(streams.iter().map(|(&id, info)| (id, info.name.as_str())));
    let mut exported = Exported { missing: missing(recording, stream)?, ..Exported::default() };
    let total_bytes = payload_bytes(recording, stream);
    for &(id, index) in &pairs {
        let into = match (pairs.len(), links.get(&id)) {
            (2.., Some(link)) => {
                let into = dir.join(link.get(..NAME_BYTES_MAX).unwrap_or(link));
                fs::create_dir(&into).map_err(not_created("create the directory", &into))?;
                into
            }
            _ => dir.to_path_buf(),
        };
        let entries = read_index(recording, index)?;
        let mut names = Names::new(&entries, into);
        let Some(mut reader) = StreamReader::open_merged(recording, id)? else { continue };
        let mut outcome = Ok(());
        let events = reader.read(From::Sequence(0), &mut |event| {
            outcome = write(&names.path(event.sequence), event.payload, event.timestamp_ns);
            exported.payload_bytes += event.payload.len() as u64;
            progress(Progress { done_bytes: exported.payload_bytes, known_bytes: 0, total_bytes });
            if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        outcome?;
        exported.streams += 1;
        exported.events += events;
    }
    flush_all(dir)?;
    Ok(exported)
}

fn write(path: &Path, payload: &[u8], mtime_ns: u64) -> Result<(), RecordingError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(not_created("create the directory", parent))?;
    }
    let mut file = create(path)?;
    let time = UNIX_EPOCH + Duration::from_nanos(mtime_ns);
    let written = file.write_all(payload).and_then(|()| file.set_modified(time));
    written.map_err(RecordingError::io("write", path))?;
    // The kernel replaces a time that the file system does not have by another one.
    let stored =
        file.metadata().and_then(|meta| meta.modified()).map_err(RecordingError::io("inspect", path))?;
    let differs_by = stored.duration_since(time).unwrap_or_else(|error| error.duration());
    match differs_by <= TIME_STEP_MAX {
        true => Ok(()),
        false => Err(RecordingError::File { path: path.to_path_buf(), what: NO_SUCH_TIME }),
    }
}

/// Names of the recorded files by sequence number; later entries replace earlier ones.
fn read_index(recording: &MergedRecording<'_>, index: u32) -> Result<BTreeMap<u64, Vec<u8>>, RecordingError> {
    let mut names = BTreeMap::new();
    if let Some(mut reader) = StreamReader::open_merged(recording, index)? {
        reader.read(From::Sequence(0), &mut |event| {
            let entry = FileEntry::from_line(event.payload).filter(|entry| entry.lost.is_none());
            // A recording may come from elsewhere: a name must not lead out of the directory.
            let named = entry.and_then(|entry| Some((entry.sequence, entry.name_bytes()?)));
            if let Some((sequence, name)) = named.filter(|(_, name)| is_path(name)) {
                names.insert(sequence, name);
            }
            ControlFlow::Continue(())
        })?;
    }
    Ok(names)
}

/// Whether a name is that of a file below the directory: the parts of a path, none of which leads upwards.
fn is_path(name: &[u8]) -> bool {
    let is_name = |part: &[u8]| {
        let is_other = part.contains(&0) || part == b"." || part == b"..";
        !is_other && (1..=NAME_BYTES_MAX).contains(&part.len())
    };
    let mut parts = name.split(|&byte| byte == b'/');
    name.len() <= PATH_BYTES_MAX && parts.clone().count() <= DEPTH_MAX && parts.all(is_name)
}

/// Names of exported files, each used once.
struct Names<'a> {
    entries: &'a BTreeMap<u64, Vec<u8>>,
    /// Sequence number of the last version of each name.
    last: BTreeMap<&'a [u8], u64>,
    into: PathBuf,
    used: HashSet<Vec<u8>>,
    /// Directories of the files. A file that had the same name gets another one.
    directories: HashSet<&'a [u8]>,
}

impl<'a> Names<'a> {
    fn new(entries: &'a BTreeMap<u64, Vec<u8>>, into: PathBuf) -> Self {
        let last = entries.iter().map(|(&sequence, name)| (name.as_slice(), sequence)).collect();
        let slashes = |name: &'a [u8]| (0..name.len()).filter(move |&at| name[at] == b'/');
        let parents = entries.values().flat_map(|name| slashes(name).map(|at| &name[..at]));
        let directories: HashSet<&[u8]> = parents.collect();
        let used = entries.values().cloned().chain(directories.iter().map(|name| name.to_vec())).collect();
        Self { entries, last, into, used, directories }
    }

    fn path(&mut self, sequence: u64) -> PathBuf {
        let name = match self.entries.get(&sequence) {
            Some(name) if self.last.get(name.as_slice()) == Some(&sequence) && !self.is_directory(name) => {
                name.clone()
            }
            Some(name) => {
                let start = name.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
                let end = name.len().min(start + NAME_BYTES_MAX - 40);
                self.unused([&name[..end], b"#"].concat(), sequence)
            }
            None => self.unused(b"file-".to_vec(), sequence),
        };
        self.into.join(OsStr::from_bytes(&name))
    }

    fn is_directory(&self, name: &[u8]) -> bool {
        self.directories.contains(name)
    }

    /// A name that ends with the sequence number and that no other file has.
    fn unused(&mut self, mut name: Vec<u8>, sequence: u64) -> Vec<u8> {
        name.extend(sequence.to_string().bytes());
        while !self.used.insert(name.clone()) {
            name.push(b'_');
        }
        name
    }
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
