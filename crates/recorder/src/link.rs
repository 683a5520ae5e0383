//! What the threads of one recording hand to each other.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use keepup_recording::layout::{BlockHeader, ChannelBytes, MESSAGE_HEADER, SECTOR};
use keepup_recording::seal::EventMark;
use keepup_stream::ledger::{Count, LossCause};
use keepup_sys::pool::Block;
use keepup_sys::waker::Waker;

/// Where the first message header of a block begins.
pub(crate) const MESSAGES_START: usize = SECTOR - MESSAGE_HEADER;

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
    /// The received events that are accounted for with it: those in it, or those it was made of; none where
    /// another block accounts for them.
    pub(crate) accounts_for: Count,
}

/// What a writer tells the intake.
#[derive(Debug)]
pub(crate) enum FromWriter {
    /// The kernel confirmed a block; its memory comes back.
    Written { block: Block, slot: usize, stream_block: u64, accounts_for: Count, bytes: usize },
    /// A block is on stable storage; `stored` is what lies there.
    Durable { slot: usize, stream_block: u64, accounts_for: Count, stored: Count },
    /// The volume cannot take this block: place it elsewhere.
    Returned(Sealed),
    /// A block will not be durable here. `was_written`: the kernel had confirmed it, and so had the writer.
    Lost { meta: SealedMeta, was_written: bool, cause: LossCause },
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
