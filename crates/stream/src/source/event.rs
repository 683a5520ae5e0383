//! An event of the schedule, from its due time until its send has ended.

use crate::wire::HEADER_BYTES;

/// Longest piece of a large event, which is sent by itself; whole pages.
pub(super) const PIECE_BYTES: usize = 128 << 10;

/// An event to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Event {
    /// Index of its stream among the connection's streams.
    pub(super) slot: usize,
    pub(super) stream: u32,
    pub(super) sequence: u64,
    /// Due time, ns from the start of the schedule.
    pub(super) due_ns: u64,
    /// Payload bytes.
    pub(super) bytes: u64,
}

impl Event {
    /// Bytes it occupies in the front-end buffer.
    pub(super) fn occupied_bytes(&self) -> u64 {
        self.bytes.saturating_add(HEADER_BYTES as u64)
    }
}
