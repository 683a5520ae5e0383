//! The writer's rings from and to the intakes: blocks are taken in turns, reports go to the owner of the
//! block.
use std::collections::VecDeque;

use keepup_sys::ring;
use keepup_sys::waker::Waker;

use crate::link::{FromWriter, Sealed};

/// Writer's end of its link to one intake.
pub(crate) struct Inlet {
    pub(crate) blocks: ring::Consumer<Sealed>,
    pub(crate) reports: ring::Producer<FromWriter>,
    /// Wakes the intake.
    pub(crate) waker: Waker,
}

/// State of one link.
struct Lane {
    inlet: Inlet,
    /// Reports that wait for space in the ring.
    outgoing: VecDeque<FromWriter>,
    /// Blocks that were in the ring at the last request for a flush, and were not taken since.
    to_flush: usize,
}

/// All links of a writer.
pub(super) struct Inlets {
    lanes: Vec<Lane>,
    /// The intake whose block is taken next.
    turn: usize,
}

impl Inlets {
    pub(super) fn new(inlets: Vec<Inlet>) -> Self {
        let lane = |inlet| Lane { inlet, outgoing: VecDeque::new(), to_flush: 0 };
        Self { lanes: inlets.into_iter().map(lane).collect(), turn: 0 }
    }

    /// Next block, and whether a flush was requested while it was in the ring.
    pub(super) fn take(&mut self) -> Option<(Sealed, bool)> {
        for _ in 0..self.lanes.len() {
            let at = self.turn;
            self.turn = (at + 1) % self.lanes.len();
            let lane = &mut self.lanes[at];
            if let Some(sealed) = lane.inlet.blocks.pop() {
                let is_awaited = lane.to_flush > 0;
                lane.to_flush = lane.to_flush.saturating_sub(1);
                return Some((sealed, is_awaited));
            }
        }
        None
    }

    /// Marks all blocks in the rings as awaited by a flush.
    pub(super) fn request_flush(&mut self) {
        self.lanes.iter_mut().for_each(|lane| lane.to_flush = lane.inlet.blocks.len());
    }

    /// Whether no block waits.
    pub(super) fn is_empty(&self) -> bool {
        self.lanes.iter().all(|lane| lane.inlet.blocks.is_empty())
    }

    /// Adds a report to those for an intake.
    pub(super) fn report(&mut self, intake: usize, report: FromWriter) {
        self.lanes[intake].outgoing.push_back(report);
    }

    /// Whether every report was sent.
    pub(super) fn is_silent(&self) -> bool {
        self.lanes.iter().all(|lane| lane.outgoing.is_empty())
    }

    /// Sends the reports, as far as the rings have space.
    pub(super) fn send_reports(&mut self) {
        for lane in &mut self.lanes {
            let mut is_sent = false;
            if lane.inlet.reports.is_abandoned() {
                // The intake panicked: nobody needs the reports.
                lane.outgoing.clear();
            }
            while let Some(report) = lane.outgoing.pop_front() {
                if let Err(report) = lane.inlet.reports.push(report) {
                    lane.outgoing.push_front(report);
                    break;
                }
                is_sent = true;
            }
            if is_sent {
                lane.inlet.waker.nudge();
            }
        }
    }
}

#[cfg(test)]
#[path = "inlets_tests.rs"]
mod tests;
