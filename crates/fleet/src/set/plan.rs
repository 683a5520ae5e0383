//! Parts of the hosts in a command on a recording set.
use keepup_recording::id::Id;
use keepup_recording::set::{DigestRequest, RecordingSet, SetRecording};
use serde::{Deserialize, Serialize};

use crate::reply::ANSWER_BYTES_MAX;

/// Part of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
pub enum SetPlan {
    /// Work on its recording.
    Recording {
        /// Text of a set file with the entry of the host alone.
        set: String,
        /// Identities of recordings of other hosts; only if the entry has no identity.
        taken: Vec<Id>,
        /// What to do.
        task: SetTask,
    },
    /// Send another part of the latest answer.
    Part {
        /// Number of the part, from 1.
        number: u32,
    },
}

/// What to do with the recording of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
pub enum SetTask {
    /// Describe it.
    Describe {
        /// Whether to describe each segment.
        with_segments: bool,
    },
    /// Verify it.
    Verify {
        /// Threads; the number of CPUs if not given.
        threads: Option<u16>,
    },
    /// Recover it, if it was cut off.
    Recover {
        /// Whether to recover on a file system without locks.
        without_locks: bool,
    },
    /// Make digests of some of its events: stream, first sequence number, one past the last one, sequence
    /// numbers in each digest.
    Digest(Vec<(u32, u64, u64, u64)>),
}

/// Largest digest in an answer, bytes of JSON.
const DIGEST_BYTES_MAX: u64 = 128;
/// Largest error in the place of digests.
const DIGEST_ERROR_BYTES_MAX: u64 = 4 << 10;

impl SetTask {
    /// Limit on the answer to this task before compression, bytes.
    pub(super) fn answer_bytes_max(&self) -> u64 {
        let Self::Digest(requests) = self else { return ANSWER_BYTES_MAX };
        let request = |&(stream, start, end, step): &(u32, u64, u64, u64)| {
            let digests = DigestRequest { stream, start, end, step }.count().unwrap_or(0);
            digests.saturating_mul(DIGEST_BYTES_MAX).saturating_add(DIGEST_ERROR_BYTES_MAX)
        };
        let all = requests.iter().map(request).fold(DIGEST_ERROR_BYTES_MAX, u64::saturating_add);
        all.min(ANSWER_BYTES_MAX)
    }

    /// Digests for these requests.
    pub(super) fn digest(requests: &[DigestRequest]) -> Self {
        let tuple = |request: &DigestRequest| (request.stream, request.start, request.end, request.step);
        Self::Digest(requests.iter().map(tuple).collect())
    }
}

impl SetPlan {
    /// Part of the host of `entry`, an entry of `set`.
    ///
    /// # Errors
    /// The set is invalid.
    pub fn new(set: &RecordingSet, entry: &SetRecording, task: SetTask) -> Result<Self, String> {
        let taken = set.recordings.iter().filter_map(|other| other.id).filter(|_| entry.id.is_none());
        let taken = taken.collect();
        let own = RecordingSet {
            name: set.name.clone(),
            run: set.run,
            id: set.id,
            created_unix_ns: set.created_unix_ns,
            fleet: set.fleet.clone(),
            recordings: vec![entry.clone()],
            moves: Vec::new(),
        };
        let set = own.to_text().map_err(|cause| cause.to_text())?;
        Ok(Self::Recording { set, taken, task })
    }
}
