//! Copies a recording to a BagIt bag (RFC 8493), which repositories and libraries accept.
//!
//! The payload is the recording's own files, in the layout of an archive: the directory `data` is a
//! recording that every command opens. Invariants: nothing is overwritten; a checksum in the bag is that of
//! the bytes that were read; the declaration `bagit.txt` is written after the payload is durable, so that an
//! interrupted copy is no bag.
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use keepup_measure::space::Space;
use keepup_recording::archived::size_and_time;
use keepup_recording::error::RecordingError;
use keepup_recording::journal::JOURNAL_FILE;
use keepup_recording::layout::segment_file_name;
use keepup_recording::manifest::MANIFEST_FILE;
use keepup_recording::reader::Recording;
use keepup_recording::retention::REMOVED_FILE;
use keepup_sys::file::sync_directory;
use sha2::{Digest as _, Sha256};

use crate::counters::ArchiveCounters;
use crate::error::ArchiveError;
use crate::inventory::hex;
use crate::local::LocalFile;
use crate::reading::PartReader;
use crate::segment_check::SegmentCheck;

/// Bytes read and written at a time.
const PIECE_BYTES: u64 = 4 << 20;
const DECLARATION: &str = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n";

/// Result of a copy to a bag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BagReport {
    /// Files of the payload.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Segments with a damaged block, copied as they are.
    pub damaged_segments: u64,
}

/// Copies `recording` to a new bag in the directory `to`, dated `date` (`YYYY-MM-DD`).
///
/// # Errors
/// The recording is incomplete or cannot be read, `to` exists or has too little space, or `stop` was set. The
/// directory is removed then.
pub fn bag(
    recording: &Recording,
    to: &Path,
    date: &str,
    stop: &AtomicBool,
    live: &ArchiveCounters,
) -> Result<BagReport, ArchiveError> {
    let files = payload(recording)?;
    let needed_bytes = files.iter().map(|file| file.bytes).fold(0, u64::saturating_add);
    live.total_bytes.store(needed_bytes, Ordering::Relaxed);
    fs::create_dir(to).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => RecordingError::Taken { path: to.to_path_buf() }.into(),
        _ => ArchiveError::io("create the directory", to)(error),
    })?;
    let made = Space::of(to).map_or(Ok(()), |Space { free_bytes, .. }| match free_bytes < needed_bytes {
        true => Err(ArchiveError::Space { path: to.to_path_buf(), needed_bytes, free_bytes }),
        false => Ok(()),
    });
    let made = made.and_then(|()| fill(recording, &files, to, date, stop, live));
    if made.is_err() {
        // Created above, so nothing else is in it.
        let _ = fs::remove_dir_all(to);
    }
    made
}

/// Files of an ended recording whose segments are sealed.
fn payload(recording: &Recording) -> Result<Vec<LocalFile>, ArchiveError> {
    let volumes = recording.volumes();
    if let Some(open) = volumes.iter().flat_map(|part| part.segments()).find(|segment| !segment.is_ended()) {
        return Err(RecordingError::NotSealed { path: open.path.clone() }.into());
    }
    if let (false, Some(first)) = (recording.is_ended(), volumes.first()) {
        return Err(RecordingError::NotSealed { path: first.dir().to_path_buf() }.into());
    }
    if let Some(path) = recording.missing().first() {
        return Err(RecordingError::File { path: path.clone(), what: "it is missing" }.into());
    }
    let mut files = Vec::new();
    for part in volumes {
        let (dir, volume) = (part.dir(), part.manifest().volume_index);
        for name in [MANIFEST_FILE, JOURNAL_FILE, REMOVED_FILE] {
            if name != REMOVED_FILE || size_and_time(&dir.join(name)).is_ok() {
                files.push(LocalFile::inspect(dir, volume, name)?);
            }
        }
        for segment in part.segments() {
            let file = LocalFile::inspect(dir, volume, &segment_file_name(segment.index))?;
            files.push(LocalFile { check: SegmentCheck::new(part, segment), ..file });
        }
    }
    Ok(files)
}

fn fill(
    recording: &Recording,
    files: &[LocalFile],
    to: &Path,
    date: &str,
    stop: &AtomicBool,
    live: &ArchiveCounters,
) -> Result<BagReport, ArchiveError> {
    let mut copy = BagCopy { data: to.join("data"), reader: PartReader::new()?, stop, live };
    let (mut report, mut manifest) = (BagReport::default(), String::new());
    for file in files {
        let (sha256, is_damaged) = copy.copy(file)?;
        manifest.push_str(&format!("{sha256}  data/{}\n", file.archive_path));
        report.files += 1;
        report.bytes += file.bytes;
        report.damaged_segments += u64::from(is_damaged);
    }
    let directories = files.iter().filter_map(|file| Path::new(&file.archive_path).parent());
    for directory in directories.collect::<std::collections::BTreeSet<_>>().into_iter().rev() {
        sync_directory(&copy.data.join(directory))?;
    }
    let info = info(recording, &report, date);
    let tags = [
        ("bag-info.txt", info.as_str()),
        ("manifest-sha256.txt", manifest.as_str()),
        ("bagit.txt", DECLARATION),
    ];
    let mut tag_manifest = String::new();
    for (name, text) in tags {
        tag_manifest.push_str(&format!("{}  {name}\n", hex(&Sha256::digest(text))));
    }
    for (name, text) in [("tagmanifest-sha256.txt", tag_manifest.as_str())].iter().chain(&tags) {
        write_text(&to.join(name), text)?;
    }
    sync_directory(to)?;
    sync_directory(to.parent().filter(|home| !home.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
    Ok(report)
}

/// Content of `bag-info.txt`.
fn info(recording: &Recording, report: &BagReport, date: &str) -> String {
    let manifest = recording.manifest();
    let mut lines = vec![
        ("Bag-Software-Agent".to_owned(), format!("keepup {}", env!("CARGO_PKG_VERSION"))),
        ("Bagging-Date".to_owned(), date.to_owned()),
        ("Payload-Oxum".to_owned(), format!("{}.{}", report.bytes, report.files)),
        ("External-Identifier".to_owned(), manifest.recording.to_string()),
        ("External-Description".to_owned(), format!("keepup recording {}", manifest.name)),
    ];
    lines.extend(manifest.run.map(|run| ("Keepup-Run".to_owned(), run.to_string())));
    lines.extend(
        manifest.metadata.iter().map(|(key, value)| ("Keepup-Metadata".to_owned(), format!("{key}={value}"))),
    );
    let line = |(label, value): (String, String)| format!("{label}: {}\n", one_line(&value));
    lines.into_iter().map(line).collect()
}

/// A value on one line: senders choose metadata.
fn one_line(value: &str) -> String {
    value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
}

fn write_text(path: &Path, text: &str) -> Result<(), ArchiveError> {
    let written = File::create_new(path).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(ArchiveError::io("write", path))
}

/// A copy in progress.
struct BagCopy<'a> {
    data: PathBuf,
    reader: PartReader,
    stop: &'a AtomicBool,
    live: &'a ArchiveCounters,
}

impl BagCopy<'_> {
    /// Copies a file durably. Returns its SHA-256, and whether a block is damaged.
    fn copy(&mut self, file: &LocalFile) -> Result<(String, bool), ArchiveError> {
        let path = self.data.join(&file.archive_path);
        let home = path.parent().unwrap_or(&self.data);
        fs::create_dir_all(home).map_err(ArchiveError::io("create the directory", home))?;
        let mut out = File::create_new(&path).map_err(ArchiveError::io("create", &path))?;
        let (mut sha256, mut check, mut left) = (Sha256::new(), file.check.clone(), file.bytes);
        if left > 0 {
            self.reader.begin(&file.path, left)?;
        }
        while left > 0 {
            if self.stop.load(Ordering::Acquire) {
                return Err(ArchiveError::Stopped);
            }
            let piece = self.reader.next(left.min(PIECE_BYTES) as usize)?;
            sha256.update(&piece);
            check.iter_mut().for_each(|check| check.update(&piece));
            out.write_all(&piece).map_err(ArchiveError::io("write", &path))?;
            left -= piece.len() as u64;
            self.live.add_done(piece.len() as u64);
        }
        out.sync_all().map_err(ArchiveError::io("write", &path))?;
        file.check_unchanged()?;
        let fault = check.and_then(|check| check.finish().err());
        if let Some(fault) = &fault {
            let (offset, what) = (fault.offset, &fault.what);
            self.live.warn(format!("{}: damaged at offset {offset}: {what}", file.path.display()));
        }
        Ok((hex(&sha256.finalize()), fault.is_some()))
    }
}

#[cfg(test)]
#[path = "bag_tests.rs"]
mod tests;
