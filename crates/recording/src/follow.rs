//! Follows a recording in progress for a drain: readable length of each segment, losses listed in
//! the journals, and the rotation state of each volume.
//!
//! Invariants: what was readable stays readable; a poll reads only new journal lines; an
//! unreadable journal affects only the information it would have had.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use keepup_measure::sum::Sums;
use keepup_stream::ledger::Gap;
use keepup_stream::rejected::Rejected;

use crate::error::RecordingError;
use crate::journal::{Journal, JournalReader, RotationState};
use crate::reader::locate;
use crate::volume::{Volume, gaps, rejected, starts};

/// Follower of the journals of a recording.
#[derive(Debug)]
pub struct Follower {
    volumes: Vec<Volume>,
    journals: Vec<JournalReader>,
    /// Why a volume's journal is no longer followed.
    faults: Vec<Option<RecordingError>>,
    /// Gaps of all journals by stream, and the number of lines they come from.
    gaps: (usize, BTreeMap<u32, Vec<Gap>>),
}

impl Follower {
    /// Opens the recording that `dirs` belong to, located as in
    /// [`Recording::open`](crate::reader::Recording).
    ///
    /// # Errors
    /// As [`Recording::open`](crate::reader::Recording::open); also while the recorder is still
    /// setting up.
    pub fn open(dirs: &[PathBuf]) -> Result<Follower, RecordingError> {
        let (mut volumes, mut journals) = (Vec::new(), Vec::new());
        for (dir, manifest) in locate(dirs)? {
            journals.push(JournalReader::open(&dir)?);
            volumes.push(Volume::new(&dir, manifest));
        }
        let faults = volumes.iter().map(|_| None).collect();
        let mut follower = Follower { volumes, journals, faults, gaps: Default::default() };
        follower.poll();
        let unusable = |at: &usize| !follower.volumes[*at].has_begun() || follower.volumes.len() == 1;
        let fault = (0..follower.volumes.len()).filter(unusable).find_map(|at| follower.faults[at].take());
        fault.map_or(Ok(follower), Err)
    }

    /// Reads new journal lines; returns whether anything is new. A journal that is unreadable or
    /// contradicts itself keeps its last state: see [`fault`](Self::fault).
    pub fn poll(&mut self) -> bool {
        let is_new = self.catch_up();
        // Entries about a volume in another journal come after the volume's own entries.
        if is_new {
            self.catch_up();
        }
        is_new
    }

    fn catch_up(&mut self) -> bool {
        let mut is_new = false;
        for ((volume, journal), fault) in
            self.volumes.iter_mut().zip(&mut self.journals).zip(&mut self.faults)
        {
            if fault.is_none() {
                match volume.catch_up(journal) {
                    Ok(has_grown) => is_new |= has_grown,
                    Err(error) => *fault = Some(error),
                }
            }
        }
        is_new
    }

    /// The volumes, by number, with their segments as of the last poll. Each segment may be read
    /// up to its [`readable_bytes`](crate::volume::Segment::readable_bytes).
    pub fn volumes(&self) -> &[Volume] {
        &self.volumes
    }

    /// Why the journal of a volume is no longer followed, if so.
    pub fn fault(&self, volume: usize) -> Option<&RecordingError> {
        self.faults.get(volume)?.as_ref()
    }

    /// Last rotation state of a volume and its reason, from the journal with the most entries;
    /// `None` if it was never out of rotation. A failed volume's own journal is complete.
    pub fn rotation(&self, volume: usize) -> Option<(RotationState, &str)> {
        let journal = self.volumes.iter().max_by_key(|volume| volume.rotations().len())?;
        let last = journal.rotations().iter().rev().find(|rotation| rotation.volume as usize == volume)?;
        Some((last.state, &last.why))
    }

    /// Parts of `span` of a stream's events that the journals list as lost, with causes, in
    /// order.
    pub fn lost(&mut self, stream: u32, span: Range<u64>) -> Vec<Gap> {
        let lines = self.volumes.iter().map(Volume::gap_lines).saturating_sum();
        if lines != self.gaps.0 {
            let mut by_stream: BTreeMap<u32, Vec<Gap>> = BTreeMap::new();
            gaps(self.volumes.iter())
                .into_iter()
                .for_each(|gap| by_stream.entry(gap.stream).or_default().push(gap));
            self.gaps = (lines, by_stream);
        }
        let gaps = self.gaps.1.get(&stream).map(Vec::as_slice).unwrap_or_default();
        let end = |gap: &Gap| gap.first_sequence.saturating_add(gap.events);
        let first = gaps.partition_point(|gap| end(gap) <= span.start);
        let within = gaps[first..].iter().take_while(|gap| gap.first_sequence < span.end);
        let part = |gap: &Gap| {
            let (start, end) = (gap.first_sequence.max(span.start), end(gap).min(span.end));
            Gap { first_sequence: start, events: end - start, ..*gap }
        };
        within.map(part).collect()
    }

    /// First sequence numbers of streams that do not start at 0, by id.
    pub fn starts(&self) -> BTreeMap<u32, u64> {
        starts(self.volumes.iter())
    }

    /// Data that arrived and were not recorded, so far.
    pub fn rejected(&self) -> Vec<Rejected> {
        rejected(self.volumes.iter())
    }

    /// Whether a recorder is writing it.
    pub fn is_being_made(&self) -> bool {
        self.volumes.iter().any(|volume| Journal::is_held(volume.dir()))
    }

    /// Whether the run has ended on all volumes, so that no more data comes.
    pub fn is_ended(&self) -> bool {
        self.volumes.iter().all(|volume| volume.end().is_some())
    }
}

#[cfg(test)]
#[path = "follow_tests.rs"]
mod tests;
