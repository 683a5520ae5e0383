//! `journal.jsonl`: the history of a recording on one volume, one line with a checksum per
//! record.
//!
//! A line is a JSON object, a space, the CRC-32 of the JSON text as 8 lower-case hex digits, a
//! newline. Invariants: lines are only appended; each line is handed to the system in one call; a
//! partly written line is cut off again, so only a crash can leave a torn line, and only as the
//! last one.

mod reader;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use keepup_stream::ledger::{Count, Explained, Gap};
use keepup_stream::rejected::Rejected;
use keepup_stream::wire::StreamInfo;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error::RecordingError;
use crate::files::{create_new, has_name, open_regular, open_regular_to_write, sync_directory};
use crate::id::Id;
use crate::line::put_line;
use crate::manifest::{Manifest, ManifestSum};

pub(crate) use reader::JournalReader;
pub use reader::{DamagedLine, TornTail};

/// Name of the journal within a recording's directory.
pub const JOURNAL_FILE: &str = "journal.jsonl";
/// Attempts to lock a journal, and the time between two.
const LOCK_ATTEMPTS: u32 = 5;
const LOCK_AGAIN: Duration = Duration::from_millis(5);

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "snake_case", deny_unknown_fields)]
pub enum JournalRecord {
    /// Always the first line.
    Begin {
        /// The recording.
        recording: Id,
        /// This volume's part of the recording.
        volume: Id,
        /// Creation time of the journal, ns since the Unix epoch.
        time_unix_ns: u64,
    },
    /// Checksum of the manifest beside this journal. The second line; before the manifest is replaced, that
    /// of the new one.
    Manifest(ManifestSum),
    /// A stream; precedes its first block on this volume.
    Stream(StreamInfo),
    /// A stream starts at another sequence number than 0: another recorder has recorded the events before.
    Start {
        /// Stream id.
        stream: u32,
        /// Its first sequence number; 1 or more.
        first_sequence: u64,
    },
    /// A segment; precedes its first block.
    Segment {
        /// Number of the segment on this volume: 0, 1, 2, …
        index: u32,
        /// The segment's identity, as in its preamble.
        id: Id,
        /// File name within the recording's directory.
        file: String,
        /// Preallocated length, bytes.
        preallocated_bytes: u64,
    },
    /// Progress of a segment; both offsets are block boundaries without a hole below them.
    Watermark {
        /// Number of the segment.
        segment: u32,
        /// The kernel has confirmed all writes below this offset, bytes.
        written_bytes: u64,
        /// All bytes below this offset survive a loss of power, bytes.
        durable_bytes: u64,
        /// Blocks below `durable_bytes`.
        blocks: u64,
    },
    /// A segment is sealed: with its tail and superblock, read-only, durable.
    SegmentEnd {
        /// Number of the segment.
        index: u32,
        /// Length of the file, bytes.
        bytes: u64,
        /// End of its blocks and start of its tail, bytes.
        data_bytes: u64,
        /// Blocks in it.
        blocks: u64,
    },
    /// Events that are not in the recording, and why.
    Gap(Gap),
    /// The cause of skipped events became known.
    Explained(Explained),
    /// Data of one source that arrived and are not in the recording, with their count so far: a later record
    /// of the same source, reason, unit and kind of sender replaces it. Entered in every volume's journal.
    Rejected(Rejected),
    /// A volume was taken out of rotation, or came back. Entered in every volume's journal, so
    /// that the working volumes explain the failed one.
    Rotation(Rotation),
    /// Recovery continues the journal from here, also after an end record.
    Recover {
        /// Version of the keepup that recovered it.
        tool_version: String,
    },
    /// Events listed in a gap that recovery found.
    Found {
        /// Stream id.
        stream: u32,
        /// First of them.
        first_sequence: u64,
        /// How many.
        events: u64,
    },
    /// Last line, unless recovery follows.
    End {
        /// Whether the run ended as requested and everything received is durable.
        clean: bool,
        /// Reason for the end.
        reason: String,
        /// Final counts over all volumes; the same in every volume's journal.
        streams: Vec<StreamEnd>,
    },
}

impl JournalRecord {
    /// The first line.
    pub(crate) fn begin(manifest: &Manifest) -> JournalRecord {
        JournalRecord::Begin {
            recording: manifest.recording,
            volume: manifest.volume,
            time_unix_ns: manifest.created_unix_ns,
        }
    }
}

/// A volume that was taken out of rotation, or came back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rotation {
    /// Time, ns since the Unix epoch.
    pub time_unix_ns: u64,
    /// Number of the volume.
    pub volume: u32,
    /// New state.
    pub state: RotationState,
    /// Reason.
    pub why: String,
}

/// Rotation state of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RotationState {
    /// It takes no more blocks.
    Failed,
    /// It takes no blocks for a while.
    Slow,
    /// It takes blocks again.
    Back,
}

/// Final counts of one stream, over all volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamEnd {
    /// Stream id.
    pub id: u32,
    /// Events that the recorder received whole.
    pub received: Count,
    /// Events that are on disk and survive a loss of power.
    pub durable: Count,
}

/// Writer of a journal.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    /// Reused for each line.
    line: Vec<u8>,
    /// Length of all complete lines, bytes.
    bytes: u64,
    is_broken: bool,
}

impl Journal {
    /// Creates the journal in a recording's directory and makes its first line and its name
    /// durable.
    ///
    /// # Errors
    /// The journal exists, or the system refuses.
    pub fn create(dir: &Path, manifest: &Manifest) -> Result<Journal, RecordingError> {
        let path = dir.join(JOURNAL_FILE);
        let file = create_new(&path).map_err(RecordingError::io("create the journal", &path))?;
        lock(&file, &path)?;
        let mut journal = Journal { file, path, line: Vec::new(), bytes: 0, is_broken: false };
        journal.append(&JournalRecord::begin(manifest))?;
        journal.append_durable(&JournalRecord::Manifest(manifest.sum(dir)?))?;
        sync_directory(dir).map_err(RecordingError::io("flush the directory of", &journal.path))?;
        Ok(journal)
    }

    /// Locks a journal in order to continue it, before it is read.
    ///
    /// `without_locks`: on a file system without locks, the caller makes sure that no other
    /// process appends.
    ///
    /// # Errors
    /// Another process appends to it or may do so, it is missing, or the system refuses.
    pub(crate) fn reopen(dir: &Path, without_locks: bool) -> Result<Journal, RecordingError> {
        let path = dir.join(JOURNAL_FILE);
        let file = open_regular_to_write(&path).map_err(RecordingError::open("open the journal", &path))?;
        if !lock(&file, &path)? && !without_locks {
            return Err(RecordingError::NoLocks { path });
        }
        let bytes = file.metadata().map_err(RecordingError::io("read the size of", &path))?.len();
        Ok(Journal { file, path, line: Vec::new(), bytes, is_broken: false })
    }

    /// Removes a torn last line; returns its length in bytes.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn cut_off(&mut self, torn: Option<TornTail>) -> Result<u64, RecordingError> {
        let Some(torn) = torn else { return Ok(0) };
        self.file.set_len(torn.offset).map_err(RecordingError::io("cut the torn line off", &self.path))?;
        Ok(std::mem::replace(&mut self.bytes, torn.offset) - torn.offset)
    }

    /// Whether a process appends to the journal in `dir` now.
    pub(crate) fn is_held(dir: &Path) -> bool {
        let path = dir.join(JOURNAL_FILE);
        let held = |file: File| flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK);
        open_regular(&path).is_ok_and(held)
    }

    /// Appends a line. It reaches the disk with the next [`append_durable`](Self::append_durable).
    ///
    /// # Errors
    /// The system does not take the whole line. The journal then keeps the earlier lines, or
    /// accepts no more lines if even that is not certain.
    pub fn append(&mut self, record: &JournalRecord) -> Result<(), RecordingError> {
        if self.is_broken {
            return Err(RecordingError::JournalBroken { path: self.path.clone() });
        }
        self.encode(record)?;
        if let Err(error) = self.file.write_all_at(&self.line, self.bytes) {
            // Part of the line may be in the file; no other line may follow it.
            self.is_broken = self.file.set_len(self.bytes).is_err();
            return Err(RecordingError::io("append to the journal", &self.path)(error));
        }
        self.bytes += self.line.len() as u64;
        Ok(())
    }

    /// Appends a line and makes it and all lines before it durable.
    ///
    /// # Errors
    /// As [`append`](Self::append). After a failed flush the journal accepts no more lines, since
    /// the system may have dropped unwritten data.
    pub fn append_durable(&mut self, record: &JournalRecord) -> Result<(), RecordingError> {
        self.append(record)?;
        self.flush()
    }

    /// Makes all lines durable.
    ///
    /// # Errors
    /// The system refuses; the journal then accepts no more lines.
    pub fn flush(&mut self) -> Result<(), RecordingError> {
        self.file.sync_data().map_err(|error| {
            self.is_broken = true;
            RecordingError::io("flush the journal", &self.path)(error)
        })
    }

    /// Reads a whole journal, and its torn last line, if any.
    ///
    /// # Errors
    /// A line other than the last is damaged, or the system refuses.
    pub fn read(dir: &Path) -> Result<(Vec<JournalRecord>, Option<TornTail>), RecordingError> {
        let mut records = Vec::new();
        let mut reader = JournalReader::open(dir)?;
        reader.poll(&mut |record| {
            records.push(record);
            Ok(())
        })?;
        Ok((records, reader.torn_tail()))
    }

    /// Atomically and durably replaces the manifest in the journal's directory `dir` by `manifest`.
    ///
    /// # Errors
    /// The system refuses. The journal may then have the checksums of both manifests.
    pub fn replace_manifest(&mut self, dir: &Path, manifest: &Manifest) -> Result<(), RecordingError> {
        self.append_durable(&JournalRecord::Manifest(manifest.sum(dir)?))?;
        manifest.replace(dir)
    }

    /// Checks that the journal still has its name and the length that was written.
    ///
    /// # Errors
    /// Another program removed, replaced or changed it. A changed journal accepts no more lines.
    pub(crate) fn check_place(&mut self) -> Result<(), RecordingError> {
        has_name(&self.file, &self.path)?;
        let found = self.file.metadata().map_err(RecordingError::io("read the size of", &self.path))?;
        let (bytes, found_bytes) = (self.bytes, found.len());
        if self.is_broken || bytes == found_bytes {
            return Ok(());
        }
        self.is_broken = true;
        Err(RecordingError::JournalChanged { path: self.path.clone(), bytes, found_bytes })
    }

    fn encode(&mut self, record: &JournalRecord) -> Result<(), RecordingError> {
        let fault = |what: String| RecordingError::JournalRecord { path: self.path.clone(), what };
        put_line(&mut self.line, record).map_err(fault)
    }
}

/// Locks the journal for its only writer; the process's end releases the lock. `false`: locks are
/// not supported.
fn lock(file: &File, path: &Path) -> Result<bool, RecordingError> {
    let lock = || flock(file, FlockOperation::NonBlockingLockExclusive);
    // A reader that asks whether the journal is locked holds it for a moment.
    let is_free = || {
        std::thread::sleep(LOCK_AGAIN);
        lock() != Err(Errno::WOULDBLOCK)
    };
    match lock() {
        Err(Errno::WOULDBLOCK) if (1..LOCK_ATTEMPTS).any(|_| is_free()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Err(RecordingError::Busy { path: path.to_path_buf() }),
        // Recording must work on a file system without locks.
        Err(Errno::NOTSUP | Errno::NOSYS | Errno::NOLCK) => Ok(false),
        Ok(()) => Ok(true),
        Err(e) => Err(RecordingError::io("lock the journal", path)(e.into())),
    }
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
