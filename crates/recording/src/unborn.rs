//! What is left of a recording whose recorder ended before it began to record.
//!
//! A recorder creates the manifests on all volumes, then the journals, and only then starts the threads that
//! write data. A journal without a line therefore means that nothing was recorded, on no volume. Invariants:
//! nothing is removed while a recorder is starting, beside a segment with data or a declared stream, or
//! beside a file that a starting recorder does not create.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::RecordingError;
use crate::files::{open_regular, read_fully_at, sync_directory};
use crate::journal::{JOURNAL_FILE, Journal, JournalRecord};
use crate::layout::{SECTOR, is_segment_file_name};
use crate::manifest::{MANIFEST_FILE, Manifest};
use crate::seal::put_end_mark;

/// Longest journal that is searched for a line, bytes. A starting recorder writes two lines.
const JOURNAL_BYTES_MAX: u64 = 64 << 10;
/// Bytes of a segment that are read at once.
const CHUNK_BYTES: usize = 1 << 20;
/// First bytes of every manifest.
const MANIFEST_HEAD: &[u8] = b"{\n  \"format_version\": ";

/// State of a directory.
enum State {
    /// The manifest is incomplete, and nothing else is there.
    Torn,
    /// There is a manifest, and no line of a journal.
    Unbegun(Manifest),
    /// There are a manifest and a journal.
    Begun(Manifest),
    /// It is empty.
    Empty,
    /// Something else.
    Other,
}

/// Directories with remains of the recording that `dirs` belong to, if its recorder ended before it began to
/// record.
pub fn find(dirs: &[PathBuf]) -> Option<Vec<PathBuf>> {
    let first = dirs.first()?;
    let manifest = match inspect(first) {
        State::Torn => return Some(vec![first.clone()]),
        State::Unbegun(manifest) | State::Begun(manifest) => manifest,
        State::Empty | State::Other => return None,
    };
    let mut remains = Vec::new();
    let mut is_unborn = false;
    let recorded = manifest.volumes.iter().map(|volume| volume.join(&manifest.name));
    let mut places: Vec<PathBuf> = dirs.to_vec();
    places.extend(recorded.filter(|place| !dirs.iter().any(|dir| is_same(dir, place))));
    for place in places {
        match inspect(&place) {
            State::Torn => is_unborn = true,
            State::Unbegun(found) if found.recording == manifest.recording => is_unborn = true,
            State::Begun(found) if found.recording == manifest.recording => {}
            // Never created, if its volume is there.
            State::Other if fs::symlink_metadata(&place).is_err() && place.parent()?.is_dir() => continue,
            State::Empty => continue,
            State::Unbegun(_) | State::Begun(_) | State::Other => return None,
        }
        remains.push(place);
    }
    (is_unborn && !remains.iter().any(|place| has_data(place))).then_some(remains)
}

/// Whether `dir` is an empty directory, as a recorder leaves it that is killed before it writes a manifest.
pub fn is_empty(dir: &Path) -> bool {
    matches!(inspect(dir), State::Empty)
}

/// Removes what [`find`] returned: manifests, journals and segments without events, and the directories.
///
/// # Errors
/// A recorder is starting there, or the system refuses.
pub fn remove(remains: &[PathBuf]) -> Result<(), RecordingError> {
    // Held until everything is removed, so that no recorder starts in between.
    let locks = remains.iter().map(|dir| lock(dir)).collect::<Result<Vec<Option<File>>, _>>()?;
    for dir in remains {
        let entries = fs::read_dir(dir).map_err(RecordingError::io("list", dir))?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        // The manifest goes last: after a crash the other files are still recognized.
        paths.sort_by_key(|path| path.file_name().is_some_and(|name| name == MANIFEST_FILE));
        for path in paths {
            fs::remove_file(&path).map_err(RecordingError::io("remove", &path))?;
        }
        sync_directory(dir).map_err(RecordingError::io("flush the directory", dir))?;
        // One that existed before the recording may be in use, for example as a mount point.
        let _ = fs::remove_dir(dir);
    }
    drop(locks);
    Ok(())
}

/// Locks the manifest in `dir`, if there is one, as a starting recorder does.
fn lock(dir: &Path) -> Result<Option<File>, RecordingError> {
    let path = dir.join(MANIFEST_FILE);
    let file = match open_regular(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(RecordingError::open("open the manifest", &path)(error)),
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(RecordingError::Busy { path }),
        // As for journals: without locks the caller sees to it that no recorder runs.
        _ if Journal::is_held(dir) => Err(RecordingError::Busy { path }),
        _ => Ok(Some(file)),
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).ok();
    one == other || real(one).is_some_and(|one| real(other) == Some(one))
}

fn inspect(dir: &Path) -> State {
    let Ok(entries) = fs::read_dir(dir) else { return State::Other };
    let Ok(names) = entries.map(|entry| Ok(entry?.file_name())).collect::<std::io::Result<Vec<_>>>() else {
        return State::Other;
    };
    if names.is_empty() {
        return State::Empty;
    }
    let is_known = |name: &str| matches!(name, MANIFEST_FILE | JOURNAL_FILE) || is_segment_file_name(name);
    let Ok(text) = read(&dir.join(MANIFEST_FILE)) else { return State::Other };
    if names.len() == 1 && is_torn(&text) {
        return State::Torn;
    }
    let Ok(manifest) = Manifest::read(dir) else { return State::Other };
    let journal = match read(&dir.join(JOURNAL_FILE)) {
        Ok(journal) => journal,
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(_) => return State::Other,
    };
    match journal.contains(&b'\n') {
        true => State::Begun(manifest),
        false if names.iter().all(|name| name.to_str().is_some_and(is_known)) => State::Unbegun(manifest),
        false => State::Other,
    }
}

/// Content of a file, up to the length of the journal of a starting recorder.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut text = Vec::new();
    open_regular(path)?.take(JOURNAL_BYTES_MAX).read_to_end(&mut text)?;
    Ok(text)
}

/// Whether these are the first bytes of a manifest, which zeros may follow, and not a whole one.
fn is_torn(text: &[u8]) -> bool {
    let written = &text[..text.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1)];
    let head = written.len().min(MANIFEST_HEAD.len());
    let is_whole = written.len() == text.len() && written.ends_with(b"}\n");
    written[..head] == MANIFEST_HEAD[..head] && !is_whole
}

/// Whether a stream was declared, or a segment has more than its preamble. True if that cannot be read.
fn has_data(dir: &Path) -> bool {
    let declares =
        |record: &JournalRecord| !matches!(record, JournalRecord::Begin { .. } | JournalRecord::Manifest(_));
    let is_declared = match Journal::read(dir) {
        Ok((records, _)) => records.iter().any(declares),
        Err(RecordingError::File { .. }) => false,
        Err(_) => true,
    };
    let has_content = |path: PathBuf| open_regular(&path).and_then(|file| has_content(&file)).unwrap_or(true);
    let Ok(entries) = fs::read_dir(dir) else { return true };
    let mut segments =
        entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_segment_file_name));
    is_declared || segments.any(|segment| has_content(segment.path()))
}

/// Whether anything but zeros and an end mark, which may be torn, follows the preamble of a segment. Blocks
/// are not searched for: a damaged one is data too.
fn has_content(file: &File) -> std::io::Result<bool> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut mark = vec![0; SECTOR];
    put_end_mark(&mut mark);
    let mut at = SECTOR as u64;
    loop {
        let read = read_fully_at(file, &mut chunk, at)?;
        let start = &mut chunk[..read.min(SECTOR)];
        if at == SECTOR as u64 && start.iter().zip(&mark).all(|(byte, mark)| *byte == 0 || byte == mark) {
            start.fill(0);
        }
        if chunk[..read].iter().any(|byte| *byte != 0) {
            return Ok(true);
        }
        if read < chunk.len() {
            return Ok(false);
        }
        at += read as u64;
    }
}

/// Names the remains, where the directory of a new recording has them.
pub fn explain(error: RecordingError) -> RecordingError {
    match error {
        RecordingError::Exists { path } if find(std::slice::from_ref(&path)).is_some() => {
            RecordingError::Remains { path }
        }
        other => other,
    }
}
