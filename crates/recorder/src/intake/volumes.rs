//! One intake's side of the volumes: placement, hand-over, and its entries in the journals.
//!
//! Invariant: as long as a volume works, some volume takes blocks.
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

use keepup_measure::sum::Sums;
use keepup_stream::ledger::{Explained, Gap, LossCause};
use keepup_stream::rejected::Rejected;
use keepup_stream::wire::StreamInfo;
use keepup_sys::ring;
use keepup_sys::waker::Waker;

use crate::counters::{Counters, add};
use crate::keeper::{Conclusion, ToKeeper};
use crate::link::{Failure, FromWriter, Sealed, WriterSignals};
use crate::placement::{Placement, VolumeLoad};

/// A writer is woken for small blocks when they add up to this much, or at the next tick.
const NUDGE_BYTES: u64 = 1 << 20;

/// An intake's link to one volume.
pub(crate) struct VolumeLink {
    pub(crate) blocks: ring::Producer<Sealed>,
    pub(crate) reports: ring::Consumer<FromWriter>,
    pub(crate) waker: Waker,
    pub(crate) signals: Arc<WriterSignals>,
    pub(crate) keeper: Sender<ToKeeper>,
    pub(crate) label: String,
}

/// A volume, as one intake sees it.
struct Lane {
    link: VolumeLink,
    /// Bytes handed over since the writer was last woken.
    fresh_bytes: u64,
    /// Blocks that wait for space in the ring, in order.
    waiting: VecDeque<Sealed>,
    /// A flush was requested while blocks waited for the ring.
    is_flush_due: bool,
    /// The writer ended without a request, and this was reported.
    is_dead: bool,
}

impl Lane {
    fn nudge(&mut self) {
        self.fresh_bytes = 0;
        self.link.waker.nudge();
    }

    fn has_failed(&self) -> bool {
        self.is_dead || self.link.signals.failure.get().is_some()
    }

    fn is_resting(&self) -> bool {
        self.link.signals.rest.load(Ordering::Acquire)
    }

    fn is_over(&self) -> bool {
        self.link.reports.is_abandoned() && self.link.reports.is_empty()
    }

    fn hand_over(&mut self, sealed: Sealed) {
        self.fresh_bytes += sealed.meta.bytes as u64;
        if !self.waiting.is_empty() {
            self.waiting.push_back(sealed);
        } else if let Err(sealed) = self.link.blocks.push(sealed) {
            self.waiting.push_back(sealed);
        }
        if self.fresh_bytes >= NUDGE_BYTES {
            self.nudge();
        }
    }

    /// Hands over blocks that waited, as far as the ring has space.
    fn hand_over_waiting(&mut self) {
        let mut is_fresh = false;
        while let Some(sealed) = self.waiting.pop_front() {
            if let Err(sealed) = self.link.blocks.push(sealed) {
                self.waiting.push_front(sealed);
                break;
            }
            is_fresh = true;
        }
        if self.waiting.is_empty() && std::mem::take(&mut self.is_flush_due) {
            WriterSignals::raise(&self.link.signals.flush, &self.link.waker);
        } else if is_fresh {
            self.nudge();
        }
    }
}

/// All volumes of a recording, as one intake sees them.
pub(super) struct Volumes {
    intake: usize,
    lanes: Vec<Lane>,
    loads: Vec<VolumeLoad>,
    placement: Box<dyn Placement>,
    counters: Arc<Counters>,
    /// This intake's gap entries of the journals, including the open one.
    gaps: u64,
    /// Consecutive damaged events become one entry.
    open_gap: Option<Gap>,
}

impl Volumes {
    pub(super) fn new(
        intake: usize,
        links: Vec<VolumeLink>,
        placement: Box<dyn Placement>,
        counters: Arc<Counters>,
    ) -> Self {
        let loads = vec![VolumeLoad { usable: true, bytes_waiting: 0 }; links.len()];
        let lane = |link| Lane {
            link,
            fresh_bytes: 0,
            waiting: VecDeque::new(),
            is_flush_due: false,
            is_dead: false,
        };
        let lanes = links.into_iter().map(lane).collect();
        Self { intake, lanes, loads, placement, counters, gaps: 0, open_gap: None }
    }

    /// Index of the intake.
    pub(super) fn intake(&self) -> usize {
        self.intake
    }

    pub(super) fn len(&self) -> usize {
        self.lanes.len()
    }

    /// Whether no volume takes blocks any more.
    pub(super) fn all_failed(&self) -> bool {
        self.lanes.iter().all(Lane::has_failed)
    }

    /// Bytes of this intake that were handed over and are not written.
    pub(super) fn bytes_waiting(&self) -> u64 {
        self.loads.iter().map(|load| load.bytes_waiting).saturating_sum()
    }

    /// Reasons why volumes failed.
    pub(super) fn failures(&self) -> String {
        let failed =
            self.lanes.iter().filter_map(|lane| Some((&lane.link.label, lane.link.signals.failure.get()?)));
        let texts: Vec<String> = failed.map(|(label, failure)| format!("{label}: {}", failure.why)).collect();
        texts.join("; ")
    }

    /// Copies the state of rotation from the writers' signals. If only slow volumes are left, uses them.
    fn refresh(&mut self) {
        let mut any = false;
        for (lane, load) in self.lanes.iter().zip(&mut self.loads) {
            load.usable = !lane.has_failed() && !lane.is_resting();
            any |= load.usable;
        }
        if !any {
            self.loads.iter_mut().zip(&self.lanes).for_each(|(load, lane)| load.usable = !lane.has_failed());
        }
    }

    #[expect(clippy::result_large_err, reason = "the block goes back to its owner; boxing would allocate")]
    /// Hands a block to the volume that the placement rule chooses; returns it with a cause if
    /// none takes it.
    pub(super) fn place(&mut self, mut sealed: Sealed) -> Result<(), (Sealed, LossCause)> {
        self.refresh();
        let Some(volume) = self.placement.choose(sealed.meta.header.stream, &self.loads) else {
            let failure = self.lanes.iter().rev().find_map(|lane| lane.link.signals.failure.get());
            let cause = failure.map_or(LossCause::VolumeFailed, |failure| failure.cause);
            return Err((sealed, cause));
        };
        let bytes = sealed.meta.bytes as u64;
        sealed.meta.intake = self.intake;
        self.loads[volume].bytes_waiting += bytes;
        add(&self.counters.intakes[self.intake].placed_bytes[volume], bytes);
        self.lanes[volume].hand_over(sealed);
        Ok(())
    }

    /// Hands over blocks that waited for space in the rings; returns those of a volume that left rotation.
    pub(super) fn serve_waiting(&mut self) -> Vec<Sealed> {
        let mut stranded = Vec::new();
        for (lane, load) in self.lanes.iter_mut().zip(&mut self.loads) {
            if lane.waiting.is_empty() {
                continue;
            }
            if lane.has_failed() || lane.is_resting() {
                for sealed in lane.waiting.drain(..) {
                    load.bytes_waiting = load.bytes_waiting.saturating_sub(sealed.meta.bytes as u64);
                    stranded.push(sealed);
                }
            }
            lane.hand_over_waiting();
        }
        stranded
    }

    /// Wakes writers that have new blocks, and enters the open gap.
    pub(super) fn nudge(&mut self) {
        self.send_open_gap();
        self.lanes.iter_mut().filter(|lane| lane.fresh_bytes > 0).for_each(Lane::nudge);
    }

    /// Whether no report of a writer waits to be handled.
    pub(super) fn is_silent(&self) -> bool {
        self.lanes.iter().all(|lane| lane.link.reports.is_empty())
    }

    pub(super) fn next_report(&mut self, volume: usize) -> Option<FromWriter> {
        self.lanes[volume].link.reports.pop()
    }

    /// Accounts for a block that the writer has completed or returned.
    pub(super) fn settle(&mut self, volume: usize, bytes: u64) {
        let load = &mut self.loads[volume];
        load.bytes_waiting = load.bytes_waiting.saturating_sub(bytes);
    }

    /// Requests a flush of every writer.
    pub(super) fn flush(&mut self) {
        for lane in &mut self.lanes {
            lane.is_flush_due = !lane.waiting.is_empty();
            WriterSignals::raise(&lane.link.signals.flush, &lane.link.waker);
        }
    }

    /// Asks every writer to finish and end, once no intake has blocks for them.
    pub(super) fn close(&self) {
        for lane in &self.lanes {
            WriterSignals::raise(&lane.link.signals.close, &lane.link.waker);
        }
    }

    /// Whether every block was handed over to a writer, or its writer has ended.
    pub(super) fn has_handed_over(&self) -> bool {
        self.lanes.iter().all(|lane| lane.waiting.is_empty() || lane.is_over())
    }

    /// Whether every writer has ended and all its reports are handled.
    pub(super) fn is_closed(&self) -> bool {
        self.lanes.iter().all(Lane::is_over)
    }

    /// Enters a stream with its first sequence number into every journal.
    pub(super) fn announce(&self, info: &StreamInfo, first_sequence: u64) {
        self.send_to_keepers(|| ToKeeper::Stream(info.clone(), first_sequence));
    }

    /// Enters a gap into every journal; returns the number of this intake's entry.
    pub(super) fn note_gap(&mut self, gap: Gap) -> u64 {
        if let Some(open) = self.open_gap.as_mut().filter(|open| is_continued(open, &gap)) {
            open.events = open.events.saturating_add(gap.events);
            return self.gaps;
        }
        self.send_open_gap();
        self.open_gap = Some(gap);
        self.gaps += 1;
        self.gaps
    }

    /// Enters a row of the account of rejected data into every journal.
    pub(super) fn note_rejected(&self, row: &Rejected) {
        self.send_to_keepers(|| ToKeeper::Rejected(row.clone()));
    }

    /// Enters the cause of skipped events into every journal.
    pub(super) fn note_explained(&mut self, explained: Explained) {
        self.send_open_gap();
        self.send_to_keepers(|| ToKeeper::Explained(explained));
    }

    /// Enters the open gap, if any.
    pub(super) fn send_open_gap(&mut self) {
        if let Some(gap) = self.open_gap.take() {
            self.send_to_keepers(|| ToKeeper::Gap { intake: self.intake, gap });
        }
    }

    /// Gaps that this intake entered into the journals so far.
    pub(super) fn gaps_noted(&self) -> u64 {
        self.gaps
    }

    /// This intake's gap entries on stable storage in at least one journal.
    pub(super) fn gaps_durable(&self) -> u64 {
        let durable = |volume: &crate::counters::VolumeCounters| {
            volume.gaps_durable[self.intake].load(Ordering::Relaxed)
        };
        self.counters.volumes.iter().map(durable).max().unwrap_or(0)
    }

    /// A writer that ended without a request and was not reported before; enters its failure.
    pub(super) fn next_abandoned(&mut self) -> Option<usize> {
        let is_new = |lane: &Lane| {
            // Read before the writer's end: one that was asked to end may do so.
            let was_asked = lane.link.signals.close.load(Ordering::Acquire);
            !was_asked && !lane.is_dead && lane.is_over()
        };
        let volume = self.lanes.iter().position(is_new)?;
        self.lanes[volume].is_dead = true;
        let (why, cause) = ("its writer thread ended early".to_owned(), LossCause::VolumeFailed);
        let _ = self.counters.volumes[volume].failure.set(why.clone());
        let _ = self.lanes[volume].link.signals.failure.set(Failure { why, cause });
        Some(volume)
    }

    /// Hands the final account to every journal.
    pub(super) fn conclude(&self, end: &Conclusion) {
        self.send_to_keepers(|| ToKeeper::Conclude(end.clone()));
    }

    fn send_to_keepers(&self, message: impl Fn() -> ToKeeper) {
        for lane in &self.lanes {
            // A keeper that ended has reported the reason through its writer.
            let _ = lane.link.keeper.send(message());
        }
    }
}

/// Whether `next` directly follows the damaged events of `gap` and is damaged too.
fn is_continued(gap: &Gap, next: &Gap) -> bool {
    let is_alike =
        gap.cause == LossCause::BadChecksum && (gap.stream, gap.cause) == (next.stream, next.cause);
    is_alike && gap.first_sequence.saturating_add(gap.events) == next.first_sequence
}

#[cfg(test)]
#[path = "volumes_tests.rs"]
mod tests;
