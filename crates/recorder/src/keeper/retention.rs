//! Which sealed segments may go, and takes them away, oldest first.
//!
//! A large file goes in pieces: freed at once it would hold up whoever writes to the same disk. Invariant: a
//! segment goes only when it is beyond what is to be kept, and is elsewhere or disposable. Ages are measured
//! on the monotonic clock: a step of the wall clock removes nothing.
use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;

use keepup_recording::error::RecordingError;
use keepup_recording::id::Id;
use keepup_recording::retention::{Drained, Keep, KeepLimit, Removed, RemovedStream, take_away};

/// Bytes of a removed segment that are freed at a time.
const PIECE_BYTES: u64 = 32 << 20;

/// A sealed segment.
struct Kept {
    index: u32,
    bytes: u64,
    /// When it was sealed, monotonic.
    sealed_ns: u64,
    streams: Vec<(u32, RemovedStream)>,
}

/// What one volume keeps.
pub(crate) struct Retention {
    is_disposable: bool,
    /// Bytes that the sealed segments may have.
    bytes_max: u64,
    /// Seconds after which a sealed segment may go.
    seconds_max: u64,
    kept: VecDeque<Kept>,
    kept_bytes: u64,
    removed: Removed,
    /// A file without a name, and the bytes that it still has.
    going: Option<(File, u64)>,
    /// Beyond the limit and nowhere else, at the last look.
    excess_bytes: u64,
}

impl Retention {
    /// For a new recording's part on one of `volumes` volumes. The segment being written and the next one,
    /// of `segment_bytes` each, count as kept.
    pub(crate) fn new(keep: Keep, removed: Removed, volumes: usize, segment_bytes: u64) -> Self {
        let (bytes_max, seconds_max) = match keep.limit {
            KeepLimit::Bytes(bytes) => {
                ((bytes / volumes.max(1) as u64).saturating_sub(2 * segment_bytes), u64::MAX)
            }
            KeepLimit::Seconds(seconds) => (u64::MAX, seconds),
        };
        let (kept, is_disposable) = (VecDeque::new(), keep.disposable);
        Self {
            is_disposable,
            bytes_max,
            seconds_max,
            kept,
            kept_bytes: 0,
            removed,
            going: None,
            excess_bytes: 0,
        }
    }

    /// Segment `index` was sealed at `sealed_ns` of the monotonic clock.
    pub(crate) fn sealed(
        &mut self,
        index: u32,
        bytes: u64,
        sealed_ns: u64,
        streams: Vec<(u32, RemovedStream)>,
    ) {
        self.kept.push_back(Kept { index, bytes, sealed_ns, streams });
        self.kept_bytes += bytes;
    }

    /// Whether a removed segment still has bytes: the next piece should go soon.
    pub(crate) fn is_busy(&self) -> bool {
        self.going.is_some()
    }

    /// Frees the next piece of a removed segment.
    fn free_a_piece(&mut self) {
        self.going = self.going.take().and_then(|(file, bytes)| {
            let left = bytes.saturating_sub(PIECE_BYTES);
            // What cannot be cut goes as a whole.
            (left > 0 && file.set_len(left).is_ok()).then_some((file, left))
        });
    }

    /// Takes away a part of what may go, or the next piece of it. Returns the bytes beyond the limit that
    /// must stay, because they are nowhere else. `now_ns` is monotonic.
    ///
    /// # Errors
    /// When what is elsewhere cannot be read, or a segment cannot be removed; it may be tried again.
    pub(crate) fn enforce(&mut self, dir: &Path, recording: Id, now_ns: u64) -> Result<u64, RecordingError> {
        self.free_a_piece();
        if self.is_busy() {
            return Ok(self.excess_bytes);
        }
        let drained = match self.is_disposable || self.due(now_ns).next().is_none() {
            true => None,
            false => Some(Drained::read(dir, recording)?),
        };
        let may_go =
            |kept: &Kept| drained.as_ref().is_none_or(|drained| drained.has(kept.index, &kept.streams));
        // One that could not be sealed stays, and with it those behind it: the oldest go first.
        let is_next = |kept: &Kept| kept.index == self.removed.first_segment;
        if self.due(now_ns).next().is_some_and(|oldest| may_go(oldest) && is_next(oldest))
            && let Some(oldest) = self.kept.front()
        {
            let (path, bytes) = (self.removed.enter(dir, &oldest.streams)?, oldest.bytes);
            self.kept.pop_front();
            self.kept_bytes -= bytes;
            self.going = Some((take_away(&path)?, bytes));
        }
        let excess: u64 = self.due(now_ns).filter(|kept| !may_go(kept)).map(|kept| kept.bytes).sum();
        self.excess_bytes = excess;
        Ok(excess)
    }

    /// The segments beyond the limit, oldest first.
    fn due(&self, now_ns: u64) -> impl Iterator<Item = &Kept> {
        let mut left = self.kept_bytes;
        self.kept.iter().take_while(move |kept| {
            let age_s = now_ns.saturating_sub(kept.sealed_ns) / 1_000_000_000;
            let is_due = left > self.bytes_max || age_s >= self.seconds_max;
            left -= kept.bytes;
            is_due
        })
    }
}

#[cfg(test)]
#[path = "retention_tests.rs"]
mod tests;
