//! Progress of reading a recording.

/// Progress of a command that reads a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read, now or before.
    pub done_bytes: u64,
    /// Of these, bytes with a result of an interrupted run.
    pub known_bytes: u64,
    /// Bytes to read.
    pub total_bytes: u64,
}
