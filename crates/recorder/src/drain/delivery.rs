//! What passes from the merged recording to the other side, and from where it continues.
use std::collections::BTreeMap;

use keepup_recording::layout::BlockHeader;
use keepup_recording::reader::Events;
use keepup_stream::ledger::Gap;
use keepup_stream::wire::StreamInfo;

use crate::RecorderError;

/// What a stream continues with.
pub(super) struct Delivery<'a> {
    /// The stream.
    pub(super) info: &'a StreamInfo,
    /// First sequence number of the stream.
    pub(super) start: u64,
    /// Losses in front of the block, or of the end of the stream, that the journals list.
    pub(super) gaps: &'a [Gap],
    /// One past the last number of the delivery.
    pub(super) end: u64,
    /// The block, if there is one.
    pub(super) block: Option<(&'a BlockHeader, Events<'a>)>,
}

/// Takes a delivery; returns when the next one is due.
pub(super) type Deliver<'a> = dyn FnMut(Delivery<'_>) -> Result<u64, RecorderError> + 'a;

/// Position from which a stream continues after its connection broke: number of the block, and
/// event.
pub(super) type Resume = BTreeMap<u32, (Option<u64>, u64)>;
