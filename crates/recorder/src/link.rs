//! Messages between the threads of one recording.
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use keepup_recording::layout::{BlockHeader, ChannelBytes, MESSAGE_HEADER, SECTOR};
use keepup_recording::seal::EventMark;
use keepup_stream::ledger::{Count, LossCause};
use keepup_sys::pool::Block;
use keepup_sys::waker::Waker;

/// Offset of the first message header in a block.
pub(crate) const MESSAGES_START: usize = SECTOR - MESSAGE_HEADER;

/// A complete block, except for the fields that only its segment knows.
#[derive(Debug)]
pub(crate) struct Sealed {
    /// Memory with messages and padding.
    pub(crate) block: Block,
    /// Metadata.
    pub(crate) meta: SealedMeta,
}

/// Metadata of a sealed block.
#[derive(Clone, Debug)]
pub(crate) struct SealedMeta {
    /// Header without the segment's fields.
    pub(crate) header: BlockHeader,
    /// Bytes of the whole block on disk.
    pub(crate) bytes: usize,
    /// The stream's MCAP channel record.
    pub(crate) channel: Arc<ChannelBytes>,
    /// Index of the intake that owns the stream and the memory.
    pub(crate) intake: usize,
    /// Position of the stream in that intake's table.
    pub(crate) slot: usize,
    /// Its events, for the segment index.
    pub(crate) events: Arc<Vec<EventMark>>,
    /// Received events that this block accounts for: its own, or those it was reduced from; none
    /// when another block accounts for them.
    pub(crate) accounts_for: Count,
}

/// Report of a writer to an intake.
#[derive(Debug)]
pub(crate) enum FromWriter {
    /// The kernel confirmed a write; the memory is free again.
    Written { block: Block, slot: usize, stream_block: u64, accounts_for: Count, bytes: usize },
    /// A block is on stable storage; `stored` is its size there.
    Durable { slot: usize, stream_block: u64, accounts_for: Count, stored: Count },
    /// The volume cannot take this block: place it on another one.
    Returned(Sealed),
    /// A block will not become durable on this volume. `was_written`: the kernel had confirmed
    /// it, and a `Written` report was sent.
    Lost { meta: SealedMeta, was_written: bool, cause: LossCause },
    /// The volume takes no more blocks, for the reason in its signals. Only the first intake receives this.
    Failed,
}

/// Reason why a volume takes no more blocks.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) why: String,
    pub(crate) cause: LossCause,
}

/// Flags between the intakes and one writer.
#[derive(Debug, Default)]
pub(crate) struct WriterSignals {
    /// Make everything durable now.
    pub(crate) flush: AtomicBool,
    /// Take no blocks, and return those that are not in flight.
    pub(crate) rest: AtomicBool,
    /// No more blocks come: finish and end.
    pub(crate) close: AtomicBool,
    /// The volume takes no more blocks. Set before the first block comes back for this reason.
    pub(crate) failure: OnceLock<Failure>,
}

impl WriterSignals {
    /// Blocks that are under way from an intake to a writer, or reports the other way, at most. What is above
    /// waits at its sender.
    pub(crate) const RING_SLOTS: usize = 1024;

    pub(crate) fn raise(flag: &AtomicBool, waker: &Waker) {
        flag.store(true, Ordering::Release);
        waker.wake();
    }
}

#[cfg(test)]
#[path = "link_samples.rs"]
pub(crate) mod samples;
