//! Recorded events of a stream, from blocks found in any order.
//!
//! Invariant: memory grows with the number of separate runs, not with blocks; adjacent runs are
//! joined.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::report::Fault;
use crate::ranges::Ranges;
use crate::retention::{REMOVED_FILE, RemovedStream};

/// Consecutive blocks of one stream.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Run {
    /// Sequence numbers of its events.
    pub(super) events: Range<u64>,
    /// Numbers of its blocks within the stream.
    pub(super) blocks: Range<u64>,
    /// Whether its first block has the gap flag.
    pub(super) is_after_gap: bool,
    /// Location of its first block.
    pub(super) place: Location,
}

/// Location of a block.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Location {
    pub(super) volume: u32,
    pub(super) segment: u32,
    pub(super) offset: u64,
}

/// Fault of a stream as a whole.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) place: Option<Location>,
    pub(super) event: u64,
    pub(super) what: String,
}

/// Result for a stream.
#[derive(Debug, Default)]
pub(super) struct Conclusion {
    pub(super) findings: Vec<Finding>,
    pub(super) lost_events: u64,
    pub(super) unsettled_events: u64,
    /// Removed events that are not matched to a hole yet.
    removed: RemovedStream,
}

/// Events found of one stream.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    /// First sequence number of the stream.
    pub(super) start: u64,
    /// By first sequence number; none overlap.
    runs: BTreeMap<u64, Run>,
    /// One past the last block found, for each volume that has any.
    block_ends: BTreeMap<u32, u64>,
}

impl Finding {
    /// As a fault of `stream`, in the file of its location.
    pub(super) fn fault(self, stream: u32, file: &Path) -> Fault {
        Fault {
            file: file.to_path_buf(),
            offset: self.place.map_or(0, |place| place.offset),
            stream: Some(stream),
            event: Some(self.event),
            what: self.what,
        }
    }
}

impl Run {
    /// Whether `next` directly follows this run.
    pub(super) fn is_followed_by(&self, next: &Run) -> bool {
        let touches = self.events.end == next.events.start && self.blocks.end == next.blocks.start;
        touches && !next.is_after_gap
    }

    /// Appends a run that follows.
    pub(super) fn extend(&mut self, next: &Run) {
        self.events.end = next.events.end;
        self.blocks.end = next.blocks.end;
    }
}

impl Coverage {
    /// Adds a run, unless some of its events are present already.
    pub(super) fn insert(&mut self, mut run: Run) -> Option<Finding> {
        let end = self.block_ends.entry(run.place.volume).or_default();
        *end = run.blocks.end.max(*end);
        let start = run.events.start;
        let before = self.runs.range(..=start).next_back().map(|(&key, _)| key);
        let after = self.runs.range(start..).next().map(|(&key, _)| key);
        let overlaps = |other: &Run| other.events.start < run.events.end && start < other.events.end;
        let mut neighbours = [before, after].into_iter().flatten().filter_map(|key| self.runs.get(&key));
        if let Some(other) = neighbours.find(|other| overlaps(other)) {
            let event = other.events.start.max(start);
            let what = format!("event {event} is in the recording twice");
            return Some(Finding { place: Some(run.place), event, what });
        }
        if let Some(next) = self.runs.get(&run.events.end).filter(|next| run.is_followed_by(next)).cloned() {
            self.runs.remove(&next.events.start);
            run.extend(&next);
        }
        match before.and_then(|key| self.runs.get_mut(&key)) {
            Some(previous) if previous.is_followed_by(&run) => previous.extend(&run),
            _ => {
                self.runs.insert(start, run);
            }
        }
        None
    }

    /// One past the last block found, for each volume that has any.
    pub(super) fn block_ends(&self) -> &BTreeMap<u32, u64> {
        &self.block_ends
    }

    /// Compares the events found with the losses listed in the journals.
    ///
    /// `settled_blocks`: blocks from this number on may have been lost in a crash; `None` when
    /// the run has ended. `removed`: events that may be missing because they were removed.
    pub(super) fn conclude(
        &self,
        journaled: &Ranges,
        settled_blocks: Option<u64>,
        removed: RemovedStream,
    ) -> Conclusion {
        let mut conclusion = Conclusion { removed, ..Conclusion::default() };
        let (mut event, mut block) = (self.start, 0);
        for run in self.runs.values() {
            let hole = event.min(run.events.start)..run.events.start;
            if run.events.start < self.start {
                let what = format!("the journal says that the stream starts at event {}", self.start);
                conclusion.add(run.place, run.events.start, what);
            }
            let may_be_cut_off = settled_blocks.is_some_and(|settled| settled <= block);
            conclusion.explain(&hole, journaled, may_be_cut_off, Some(run.place));
            if let Some(what) = misorder(&hole, block, run) {
                conclusion.add(run.place, run.events.start, what.to_owned());
            }
            if let Some(false_loss) = journaled.first_within(&run.events) {
                let what = format!("the journal lists event {false_loss} as lost, but it is present");
                conclusion.add(run.place, false_loss, what);
            }
            (event, block) = (run.events.end.max(self.start), run.blocks.end);
        }
        let tail = event..journaled.end().max(removed.end_sequence).max(event);
        conclusion.explain(&tail, journaled, settled_blocks.is_some(), None);
        if conclusion.removed.events > 0 {
            let what = format!(
                "{REMOVED_FILE} says that {} events were removed, and {} are missing there",
                removed.events,
                removed.events - conclusion.removed.events
            );
            conclusion.findings.push(Finding { place: None, event: 0, what });
        }
        conclusion
    }
}

/// Inconsistency between the numbers and flags of a run and the hole before it (possibly empty).
fn misorder(hole: &Range<u64>, next_block: u64, run: &Run) -> Option<&'static str> {
    let block = run.blocks.start;
    if hole.is_empty() && run.is_after_gap {
        Some("the block says that events are missing before it, and none are")
    } else if block < next_block || (hole.is_empty() && block > next_block) {
        Some("the block's number within its stream does not follow the one before")
    } else if !hole.is_empty() && block == next_block && !run.is_after_gap {
        Some("events are missing before the block, and it does not say so")
    } else {
        None
    }
}

impl Conclusion {
    fn add(&mut self, place: Location, event: u64, what: String) {
        self.findings.push(Finding { place: Some(place), event, what });
    }

    fn explain(
        &mut self,
        hole: &Range<u64>,
        journaled: &Ranges,
        may_be_cut_off: bool,
        place: Option<Location>,
    ) {
        let lost = journaled.count_within(hole);
        let unexplained = hole.end - hole.start - lost;
        let unexplained = unexplained - self.removed.explain(hole, unexplained);
        self.lost_events += lost;
        if may_be_cut_off {
            self.unsettled_events += unexplained;
        } else if unexplained > 0 {
            let event = journaled.first_outside(hole);
            let (start, last) = (hole.start, hole.end - 1);
            let what = format!(
                "{unexplained} events between {start} and {last} are missing, and no journal says why"
            );
            self.findings.push(Finding { place, event, what });
        }
    }
}

#[cfg(test)]
#[path = "coverage_tests.rs"]
mod tests;
