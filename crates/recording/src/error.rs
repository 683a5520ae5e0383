//! Errors of a recording on disk, except for the bytes of a segment ([`LayoutError`]).

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use keepup_error::{Cause, Diagnostic, ErrorClass};

use crate::layout::LayoutError;

/// Failure to create, write or read a recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// A system call failed.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// Operation that failed.
        doing: &'static str,
        /// File or directory concerned.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A name that is not one component of a path.
    #[error("cannot name a recording `{name}`: it must be a file name of 1 to 200 bytes, without `/`")]
    Name {
        /// The name.
        name: String,
    },
    /// The directory of a new recording already has one.
    #[error("cannot create a recording in {}: it exists already", path.display())]
    Exists {
        /// Directory of the recording.
        path: PathBuf,
    },
    /// The directory of a new recording has other files.
    #[error("cannot create a recording in {}: it holds files that are not keepup's", path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
    },
    /// No manifest in a directory that should be a recording.
    #[error("cannot open {} as a recording: it has no keepup.json", path.display())]
    NotARecording {
        /// The directory.
        path: PathBuf,
    },
    /// The recorder ended before it began to record.
    #[error(
        "cannot open {} as a recording: its recorder ended before it began to record, so nothing was \
         recorded and nothing is lost",
        path.display()
    )]
    Unborn {
        /// Directory of the recording.
        path: PathBuf,
    },
    /// The directory of a new recording has what a recorder left that ended before it began to record.
    #[error(
        "cannot create a recording in {}: it has the remains of one whose recorder ended before it began to \
         record",
        path.display()
    )]
    Remains {
        /// The directory.
        path: PathBuf,
    },
    /// Unusable manifest or other file next to the journal.
    #[error("cannot use {}: {what}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// Problem.
        what: Cause,
    },
    /// Directories of different recordings.
    #[error("cannot open {} and {} as one recording: {what}", first.display(), second.display())]
    Mixed {
        /// First directory.
        first: PathBuf,
        /// Directory that does not match the first.
        second: PathBuf,
        /// Difference.
        what: &'static str,
    },
    /// A volume was not found.
    #[error(
        "cannot open {}: volume {index} ({}) of the recording was not found",
        path.display(), volume.display()
    )]
    VolumeMissing {
        /// A directory of the recording that was found.
        path: PathBuf,
        /// Number of the missing volume.
        index: usize,
        /// Directory of the volume at recording time.
        volume: PathBuf,
    },
    /// A journal line that is damaged or contradicts earlier lines, with more lines after it.
    #[error("cannot use line {line} of {}, at offset {offset}: {what}", path.display())]
    JournalLine {
        /// The journal.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// Offset of the line in the file, bytes.
        offset: u64,
        /// Problem.
        what: String,
    },
    /// A file of a recording is missing or not a file.
    #[error("cannot use {}: {what}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Problem.
        what: &'static str,
    },
    /// A file of a recording in progress lost its name.
    #[error("cannot record to {}: another program removed, moved or replaced it", path.display())]
    Displaced {
        /// The file or directory.
        path: PathBuf,
    },
    /// Another program changed the journal of a recording in progress.
    #[error(
        "cannot record to {}: another program changed it: it has {found_bytes} bytes, and {bytes} \
         were written",
        path.display()
    )]
    JournalChanged {
        /// The journal.
        path: PathBuf,
        /// Bytes written to it.
        bytes: u64,
        /// Its length, bytes.
        found_bytes: u64,
    },
    /// Another process is writing the recording.
    #[error("cannot change {}: the recorder still writes the recording", path.display())]
    Busy {
        /// The journal, or a segment with writes in flight.
        path: PathBuf,
    },
    /// It is unknown whether another process is writing the recording.
    #[error("cannot tell whether {} is still being recorded: its file system has no locks", path.display())]
    NoLocks {
        /// The journal.
        path: PathBuf,
    },
    /// A segment without an index.
    #[error("cannot export {}: it is not sealed", path.display())]
    NotSealed {
        /// The segment's file.
        path: PathBuf,
    },
    /// No stream of the recording contains the files of a directory.
    #[error("cannot export files: the recording has none of a directory")]
    NoFiles,
    /// A segment's tail could not be written; its blocks are on stable storage.
    #[error("cannot seal {}: {source}; its blocks are on stable storage", path.display())]
    Unsealed {
        /// The segment's file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The output file or directory exists.
    #[error("cannot write {}: it exists already", path.display())]
    Taken {
        /// The file or directory.
        path: PathBuf,
    },
    /// More events than one file can hold.
    #[error("cannot write {}: it would have more than {events_max} events", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Most events of one file.
        events_max: usize,
    },
    /// A journal that accepts no more lines because an earlier write or flush failed.
    #[error("cannot append to {}: an earlier write to it failed, so its end is not known", path.display())]
    JournalBroken {
        /// The journal.
        path: PathBuf,
    },
    /// A record does not fit a line.
    #[error("cannot append to {}: the record cannot be written as one line: {what}", path.display())]
    JournalRecord {
        /// The journal.
        path: PathBuf,
        /// Cause.
        what: String,
    },
    /// Invalid bytes in a segment.
    #[error("cannot read {} at offset {offset}: {what}", path.display())]
    Segment {
        /// The segment's file.
        path: PathBuf,
        /// Offset of the damaged part in the file, bytes.
        offset: u64,
        /// Problem.
        what: Cause,
    },
}

impl Diagnostic for RecordingError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Exists { .. } | Self::Foreign { .. } | Self::Remains { .. } | Self::Taken { .. } => {
                ErrorClass::Refused
            }
            Self::NotARecording { .. }
            | Self::Unborn { .. }
            | Self::Name { .. }
            | Self::VolumeMissing { .. } => ErrorClass::Usage,
            Self::Io { .. } => ErrorClass::Environment,
            Self::Manifest { .. }
            | Self::Mixed { .. }
            | Self::JournalLine { .. }
            | Self::File { .. }
            | Self::Displaced { .. }
            | Self::JournalChanged { .. }
            | Self::Busy { .. }
            | Self::NoLocks { .. }
            | Self::NotSealed { .. }
            | Self::NoFiles
            | Self::Unsealed { .. }
            | Self::TooLarge { .. }
            | Self::JournalBroken { .. }
            | Self::JournalRecord { .. }
            | Self::Segment { .. } => ErrorClass::Failed,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::Exists { .. } => "choose another name; nothing is ever overwritten",
            Self::Foreign { .. } => "choose another name, or an empty directory",
            Self::Unborn { .. } | Self::Remains { .. } => "keepup recover removes what is left of it",
            Self::NotARecording { .. } => "give the recording's own directory, VOLUME/NAME",
            Self::VolumeMissing { .. } => "mount it, or give its directory too",
            Self::Displaced { .. } | Self::JournalChanged { .. } => {
                "leave the files of a running recording as they are; exclude them from clean-up jobs"
            }
            Self::Busy { .. } => "stop the recorder first",
            Self::NoLocks { .. } => {
                "make sure that no recorder writes there, then keepup recover --without-locks"
            }
            Self::NotSealed { .. } => {
                "wait for the end of the recording, or, when it was cut off, keepup recover"
            }
            Self::NoFiles => "--to raw writes the payloads of other streams",
            Self::Unsealed { .. } => "keepup recover, once the volume takes writes again",
            Self::Taken { .. } => "another --out PATH; nothing is ever overwritten",
            Self::TooLarge { .. } => "--stream",
            Self::Name { .. } => "a shorter --name, without /",
            Self::Manifest { what, .. } | Self::Segment { what, .. } => return what.hint(),
            Self::Io { .. }
            | Self::Mixed { .. }
            | Self::JournalLine { .. }
            | Self::File { .. }
            | Self::JournalBroken { .. }
            | Self::JournalRecord { .. } => return None,
        };
        Some(hint.into())
    }
}

impl RecordingError {
    /// [`RecordingError::Io`], for `map_err`.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RecordingError {
        let path = path.to_path_buf();
        move |source| RecordingError::Io { doing, path, source }
    }

    /// The same for opening a file that a recording must have: a missing file, a link or an
    /// irregular file means that the recording is damaged.
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

    /// [`RecordingError::Segment`] from a layout error, for `map_err`.
    pub(crate) fn layout(path: &Path, offset: u64) -> impl FnOnce(LayoutError) -> RecordingError {
        let path = path.to_path_buf();
        move |source| RecordingError::Segment { path, offset, what: Cause::of(&source) }
    }
}
