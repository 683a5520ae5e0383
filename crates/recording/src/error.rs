//! What can go wrong with a recording on disk, apart from the bytes of a segment ([`LayoutError`]).

use std::io;
use std::path::{Path, PathBuf};

use crate::layout::LayoutError;

/// Failure to create, write or read a recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The system refused.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A name that is not one component of a path.
    #[error("cannot name a recording `{name}`: it must be a file name of 1 to 200 bytes, without `/`")]
    Name {
        /// The name.
        name: String,
    },
    /// The place of a new recording is taken by one.
    #[error(
        "cannot create a recording in {}: there is one already\n\
         hint: choose another name; nothing is ever overwritten", path.display()
    )]
    Exists {
        /// Directory of the recording.
        path: PathBuf,
    },
    /// The place of a new recording is taken by something else.
    #[error(
        "cannot create a recording in {}: it holds files that are not keepup's\n\
         hint: choose another name, or an empty directory", path.display()
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
    },
    /// No manifest where a recording was expected.
    #[error(
        "cannot open {} as a recording: it has no keepup.json\n\
         hint: give the recording's own directory, VOLUME/NAME", path.display()
    )]
    NotARecording {
        /// The directory.
        path: PathBuf,
    },
    /// A manifest, or a file beside the journal, that cannot be used.
    #[error("cannot use {}: {what}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Directories that do not belong together.
    #[error("cannot open {} and {} as one recording: {what}", first.display(), second.display())]
    Mixed {
        /// A directory.
        first: PathBuf,
        /// One that does not fit it.
        second: PathBuf,
        /// Why they do not fit.
        what: &'static str,
    },
    /// A volume that is nowhere to be found.
    #[error(
        "cannot open {}: volume {index} ({}) of the recording was not found\n\
         hint: mount it, or give its directory too", path.display(), volume.display()
    )]
    VolumeMissing {
        /// A directory of the recording that was found.
        path: PathBuf,
        /// Number of the missing volume.
        index: usize,
        /// Where the volume was when it was recorded.
        volume: PathBuf,
    },
    /// A journal line that is damaged, with more lines behind it, or contradicts the ones before it.
    #[error("cannot use line {line} of {}, at offset {offset}: {what}", path.display())]
    JournalLine {
        /// The journal.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// Where it begins in the file, bytes.
        offset: u64,
        /// What is wrong with it.
        what: String,
    },
    /// A file of a recording that is missing, or is no file.
    #[error("cannot use {}: {what}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A recording that somebody else is writing.
    #[error(
        "cannot change {}: the recording is still being made\nhint: stop the recorder first", path.display()
    )]
    Busy {
        /// The journal.
        path: PathBuf,
    },
    /// A segment that has no index yet.
    #[error(
        "cannot export {}: it is not sealed\n\
         hint: wait for the end of the recording, or, when it was cut off, keepup recover", path.display()
    )]
    NotSealed {
        /// The segment's file.
        path: PathBuf,
    },
    /// A segment that could not get its tail; its blocks are on stable storage.
    #[error(
        "cannot seal {}: {source}; its blocks are on stable storage\n\
         hint: keepup recover, once the volume takes writes again", path.display()
    )]
    Unsealed {
        /// The segment's file.
        path: PathBuf,
        /// Why the tail could not be written.
        source: io::Error,
    },
    /// More events than one file may take.
    #[error("cannot write {}: it would have more than {events_max} events\nhint: --stream", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Most events of one file.
        events_max: usize,
    },
    /// A journal that takes no more lines because an earlier write or flush failed.
    #[error("cannot append to {}: an earlier write to it failed, so its end is not known", path.display())]
    JournalBroken {
        /// The journal.
        path: PathBuf,
    },
    /// A record that does not fit a line.
    #[error("cannot append to {}: the record cannot be written as one line: {what}", path.display())]
    JournalRecord {
        /// The journal.
        path: PathBuf,
        /// Why not.
        what: String,
    },
    /// Bytes of a segment that do not hold what they should.
    #[error("cannot read {} at offset {offset}: {what}", path.display())]
    Segment {
        /// The segment's file.
        path: PathBuf,
        /// Offset of the damaged part in the file, bytes.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
}

impl RecordingError {
    /// An [`RecordingError::Io`], for `map_err`.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RecordingError {
        let path = path.to_path_buf();
        move |source| RecordingError::Io { doing, path, source }
    }

    /// The same for opening a file that a recording must have: when it is missing, a link or no regular file,
    /// it is the recording that is damaged.
    pub(crate) fn open(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RecordingError {
        let path = path.to_path_buf();
        move |source| match source.kind() {
            io::ErrorKind::NotFound => RecordingError::File { path, what: "it is missing" },
            io::ErrorKind::InvalidInput | io::ErrorKind::IsADirectory => {
                RecordingError::File { path, what: "it is not a regular file" }
            }
            _ if keepup_sys::regular::is_link(&source) => {
                RecordingError::File { path, what: "it is a symbolic link, and none is followed here" }
            }
            _ => RecordingError::Io { doing, path, source },
        }
    }

    /// A [`RecordingError::Segment`] from a layout error, for `map_err`.
    pub(crate) fn layout(path: &Path, offset: u64) -> impl FnOnce(LayoutError) -> RecordingError {
        let path = path.to_path_buf();
        move |source| RecordingError::Segment { path, offset, what: source.to_string() }
    }
}
