//! What the threads of one recording hand to each other.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use keepup_recording::layout::{BlockHeader, ChannelBytes};
use keepup_recording::seal::EventMark;
use keepup_stream::ledger::LossCause;
use keepup_sys::pool::Block;
use keepup_sys::waker::Waker;

/// A block that is complete but for what only its segment knows.
#[derive(Debug)]
pub(crate) struct Sealed {
    /// The memory; messages and padding are in place.
    pub(crate) block: Block,
    /// The rest of what goes with it.
    pub(crate) meta: SealedMeta,
}

/// All of a sealed block but its memory.
#[derive(Clone, Debug)]
pub(crate) struct SealedMeta {
    /// Header, with the fields of the segment still empty.
    pub(crate) header: BlockHeader,
    /// Bytes of the whole block on disk.
    pub(crate) bytes: usize,
    /// The stream's MCAP channel record.
    pub(crate) channel: Arc<ChannelBytes>,
    /// Position of the stream in the intake's table.
    pub(crate) slot: usize,
    /// Its events, for the segment's index.
    pub(crate) events: Arc<Vec<EventMark>>,
}

/// What a writer tells the intake.
#[derive(Debug)]
pub(crate) enum FromWriter {
    /// The kernel confirmed a block; its memory comes back.
    Written { block: Block, slot: usize, events: u64, payload_bytes: u64, bytes: usize },
    /// A block is on stable storage.
    Durable { slot: usize, stream_block: u64, events: u64, payload_bytes: u64 },
    /// The volume cannot take this block: place it elsewhere.
    Returned(Sealed),
    /// A block was confirmed as written but could not be made durable.
    Lost { slot: usize, first_sequence: u64, events: u64, cause: LossCause },
    /// The volume takes no more blocks.
    Failed { why: String, cause: LossCause },
}

/// Requests from the intake to a writer that are states, not messages.
#[derive(Debug, Default)]
pub(crate) struct WriterSignals {
    /// Make everything durable now.
    pub(crate) flush: AtomicBool,
    /// Take no blocks for a while, and give back those that are not under way.
    pub(crate) rest: AtomicBool,
    /// Nothing more will come: finish and end.
    pub(crate) close: AtomicBool,
}

impl WriterSignals {
    pub(crate) fn raise(flag: &AtomicBool, waker: &Waker) {
        flag.store(true, Ordering::Release);
        waker.wake();
    }
}
