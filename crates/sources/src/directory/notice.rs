//! Messages from the thread that reads a directory to the intake.
use keepup_stream::rejected::RejectReason;
use serde::{Deserialize, Serialize};

use crate::DetectorError;

/// Longest notice, bytes. A name has at most 255 bytes.
const NOTICE_BYTES_MAX: usize = 64 << 10;
/// Bytes of the length in front of a notice.
pub(crate) const LENGTH_BYTES: usize = 4;

/// A message about a file or the directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Notice {
    /// A file follows: exactly `bytes` bytes, then [`Notice::Whole`] or [`Notice::Changed`].
    File {
        /// Sequence number of its event.
        sequence: u64,
        /// Its name.
        name: Vec<u8>,
        /// Its size, bytes.
        bytes: u64,
        /// Time of its last change, ns since the Unix epoch.
        mtime_ns: u64,
    },
    /// The bytes before this notice are the file.
    Whole,
    /// The bytes before this notice are not the file: it changed meanwhile or could not be read.
    Changed,
    /// A recorded file has another name now.
    Renamed {
        /// Sequence number of its event.
        sequence: u64,
        /// Its new name.
        name: Vec<u8>,
        /// Its previous name.
        from: Vec<u8>,
    },
    /// A file that will never be recorded.
    Lost {
        /// Sequence number that it would have had.
        sequence: u64,
        /// Its name.
        name: Vec<u8>,
        /// The cause.
        why: String,
    },
    /// A sentence for the report.
    Remark(String),
    /// Files that are not recorded and have no sequence number.
    Rejected {
        /// The reason.
        reason: RejectReason,
        /// How many.
        count: u64,
        /// The reason of the first of them, in full.
        detail: String,
    },
    /// The directory cannot be read any more, with the cause.
    Failed(String),
    /// All files have been sent.
    End,
}

impl Notice {
    /// The message with its length in front.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Cannot fail: numbers and strings only.
        let body = serde_json::to_vec(self).unwrap_or_default();
        let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
        bytes.extend(body);
        bytes
    }

    /// Length of a message, from the bytes in front of it.
    pub(crate) fn length(bytes: [u8; LENGTH_BYTES]) -> Result<usize, DetectorError> {
        let length = u32::from_le_bytes(bytes) as usize;
        if (1..=NOTICE_BYTES_MAX).contains(&length) {
            return Ok(length);
        }
        Err(DetectorError::TooLong { bytes: length as u64, bytes_max: NOTICE_BYTES_MAX })
    }

    /// Parses a message.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, DetectorError> {
        serde_json::from_slice(body).map_err(|e| DetectorError::Message(e.to_string()))
    }
}
