//! Retention: which sealed segments may be removed, and their removal, oldest first.
//!
//! A large file is removed in pieces, since freeing it at once would delay writes to the same
//! disk. Invariant: a segment is removed only when it is beyond the limit, and is durable
//! elsewhere or disposable. Every archive must have the segment, and only as the file that it was made
//! from: length and modification time are compared before the removal. Ages are measured on the
//! monotonic clock: a step of the wall clock removes nothing.
use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::path::Path;

use keepup_measure::sum::Sums;
use keepup_recording::archived::ArchiveStates;
use keepup_recording::error::RecordingError;
use keepup_recording::id::Id;
use keepup_recording::layout::segment_file_name;
use keepup_recording::retention::{Drained, Keep, KeepLimit, KeepUntil, Removed, RemovedStream, take_away};

/// Bytes of a removed segment that are freed in one step.
const PIECE_BYTES: u64 = 32 << 20;
/// Most warnings of one recording.
const WARNINGS_MAX: usize = 100;
/// Interval between looks at the state files of archives, in nanoseconds.
const POLL_EVERY_NS: u64 = 1_000_000_000;

/// A sealed segment.
struct SealedSegment {
    index: u32,
    bytes: u64,
    /// Sealing time, monotonic.
    sealed_ns: u64,
    streams: Vec<(u32, RemovedStream)>,
    /// Whether it has changed since it was archived.
    is_changed: bool,
}

/// What archives have, as the recorder last read it.
struct Archives {
    states: ArchiveStates,
    /// Time of the last look, monotonic.
    polled_ns: Option<u64>,
    /// Warnings that were given.
    known: BTreeSet<String>,
    /// Warnings to be given.
    warnings: Vec<String>,
}

impl Archives {
    /// Reads the state files unless that was done within the last `interval_ns`.
    fn poll(&mut self, now_ns: u64, interval_ns: u64) {
        if self.polled_ns.is_some_and(|polled| now_ns < polled.saturating_add(interval_ns.max(1))) {
            return;
        }
        self.polled_ns = Some(now_ns);
        self.states.poll();
        let faults: Vec<String> = self.states.faults().map(|(path, what)| unusable(path, what)).collect();
        faults.into_iter().for_each(|fault| self.warn(fault));
    }

    /// Gives a warning, once.
    fn warn(&mut self, what: String) {
        if self.known.len() < WARNINGS_MAX && self.known.insert(what.clone()) {
            self.warnings.push(what);
        }
    }
}

fn unusable(path: &Path, what: &str) -> String {
    format!("cannot use {}: {what}; no segment is removed until it is repaired or deleted", path.display())
}

/// What allows the removal of a segment beyond the limit.
enum Condition {
    Disposable,
    Drained,
    /// The state files of the copies to archives allow it.
    Archived(Archives),
}

/// Retention state of one volume.
pub(crate) struct Retention {
    condition: Condition,
    /// Limit of the sealed segments' size, in bytes.
    bytes_max: u64,
    /// Age limit of a sealed segment, in seconds.
    seconds_max: u64,
    kept: VecDeque<SealedSegment>,
    kept_bytes: u64,
    removed: Removed,
    /// Unlinked file being removed, and its remaining bytes.
    going: Option<(File, u64)>,
    /// Bytes beyond the limit without a copy elsewhere, at the last check.
    excess_bytes: u64,
}

impl Retention {
    /// Creates the state for a new recording's part on one of `volumes` volumes, the first of which
    /// has the recording in `first`. The segment being written and the next one, of `segment_bytes`
    /// each, count towards the limit.
    pub(crate) fn new(
        keep: Keep,
        removed: Removed,
        volumes: usize,
        first: &Path,
        segment_bytes: u64,
    ) -> Self {
        let (bytes_max, seconds_max) = match keep.limit {
            KeepLimit::Bytes(bytes) => {
                ((bytes / volumes.max(1) as u64).saturating_sub(2 * segment_bytes), u64::MAX)
            }
            KeepLimit::Seconds(seconds) => (u64::MAX, seconds),
        };
        let condition = match keep {
            Keep { disposable: true, .. } => Condition::Disposable,
            Keep { until: KeepUntil::Drained, .. } => Condition::Drained,
            Keep { until: KeepUntil::Archived, .. } => {
                let (recording, volume) = (removed.recording, removed.volume_index);
                let states = ArchiveStates::new(first, recording, Some(volume));
                let (known, warnings) = (BTreeSet::new(), Vec::new());
                Condition::Archived(Archives { states, polled_ns: None, known, warnings })
            }
        };
        let kept = VecDeque::new();
        Self { condition, bytes_max, seconds_max, kept, kept_bytes: 0, removed, going: None, excess_bytes: 0 }
    }

    /// Enters a segment sealed at `sealed_ns` of the monotonic clock.
    pub(crate) fn sealed(
        &mut self,
        index: u32,
        bytes: u64,
        sealed_ns: u64,
        streams: Vec<(u32, RemovedStream)>,
    ) {
        self.kept.push_back(SealedSegment { index, bytes, sealed_ns, streams, is_changed: false });
        self.kept_bytes += bytes;
    }

    /// Takes the new warnings about archives.
    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        match &mut self.condition {
            Condition::Archived(archives) => std::mem::take(&mut archives.warnings),
            Condition::Disposable | Condition::Drained => Vec::new(),
        }
    }

    /// Whether a removed segment still has bytes to free.
    pub(crate) fn is_busy(&self) -> bool {
        self.going.is_some()
    }

    /// Frees the next piece of a removed segment.
    fn free_piece(&mut self) {
        self.going = self.going.take().and_then(|(file, bytes)| {
            let left = bytes.saturating_sub(PIECE_BYTES);
            // A file that cannot be truncated is freed as a whole.
            (left > 0 && file.set_len(left).is_ok()).then_some((file, left))
        });
    }

    /// Removes a due segment or the next piece of one. Returns the bytes beyond the limit that
    /// must stay, because they have no copy elsewhere. `now_ns` is monotonic.
    ///
    /// # Errors
    /// The drain marks cannot be read, or a segment cannot be inspected or removed; the call may be repeated.
    pub(crate) fn enforce(&mut self, dir: &Path, recording: Id, now_ns: u64) -> Result<u64, RecordingError> {
        self.free_piece();
        if self.is_busy() {
            return Ok(self.excess_bytes);
        }
        if self.due(now_ns).next().is_none() {
            self.excess_bytes = 0;
            return Ok(0);
        }
        let mut drained = Drained::default();
        match &mut self.condition {
            Condition::Disposable => {}
            Condition::Drained => drained = Drained::read(dir, recording)?,
            Condition::Archived(archives) => archives.poll(now_ns, POLL_EVERY_NS),
        }
        if self.oldest_may_go(dir, now_ns, &drained)?
            && let Some(oldest) = self.kept.front()
        {
            let (index, bytes) = (oldest.index, oldest.bytes);
            let path = self.removed.enter(dir, &oldest.streams)?;
            if let Condition::Archived(archives) = &mut self.condition {
                archives.states.forget(self.removed.volume_index, index);
            }
            self.kept.pop_front();
            self.kept_bytes -= bytes;
            self.going = Some((take_away(&path)?, bytes));
        }
        let must_stay = |kept: &&SealedSegment| kept.is_changed || !self.may_go(kept, &drained);
        let excess: u64 = self.due(now_ns).filter(must_stay).map(|kept| kept.bytes).saturating_sum();
        self.excess_bytes = excess;
        Ok(excess)
    }

    /// Whether the oldest segment is due and can be removed now. Only the oldest can go: one that could not
    /// be sealed stays, with all later ones.
    fn oldest_may_go(&mut self, dir: &Path, now_ns: u64, drained: &Drained) -> Result<bool, RecordingError> {
        let oldest = self.due(now_ns).next();
        let is_next = |kept: &SealedSegment| kept.index == self.removed.first_segment;
        if !oldest.is_some_and(|oldest| is_next(oldest) && self.may_go(oldest, drained)) {
            return Ok(false);
        }
        let Some(oldest) = self.kept.front_mut() else { return Ok(false) };
        let Condition::Archived(archives) = &mut self.condition else { return Ok(true) };
        // Another archive may have been begun since the last look.
        archives.poll(now_ns, if oldest.is_changed { POLL_EVERY_NS } else { 0 });
        let proof = archives.states.proof(self.removed.volume_index, oldest.index, oldest.bytes);
        let Some(proof) = proof else { return Ok(false) };
        let path = dir.join(segment_file_name(oldest.index));
        oldest.is_changed = !proof.is_of(&path)?;
        if oldest.is_changed {
            let path = path.display();
            archives.warn(format!("{path} has changed since it was archived and is kept; drain it again"));
        }
        Ok(!oldest.is_changed)
    }

    /// Whether there is a copy of a segment elsewhere, or none is needed.
    fn may_go(&self, kept: &SealedSegment, drained: &Drained) -> bool {
        match &self.condition {
            Condition::Disposable => true,
            Condition::Drained => drained.has(kept.index, &kept.streams),
            Condition::Archived(archives) => {
                archives.states.proof(self.removed.volume_index, kept.index, kept.bytes).is_some()
            }
        }
    }

    /// Segments beyond the limit, oldest first.
    fn due(&self, now_ns: u64) -> impl Iterator<Item = &SealedSegment> {
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
