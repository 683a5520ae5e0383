//! Order of the packets of one stream: which is the next event, which waits for another one, which is a copy,
//! late, or the first of a counter that has started again.
//!
//! A packet ahead of the stream waits for those before it, at most `window` packets. A packet behind the
//! stream, far ahead or between two steps is set aside, and the next packets decide:
//!
//! - The stream continues: those set aside are copies of what was recorded (duplicates, if the content is the
//!   same), late, or wrong.
//! - They continue each other instead: the counter has started again, and the stream continues with them,
//!   unless all of them are duplicates. A run that starts with the first number of the count is a new count
//!   even if its content is that of the last one.
//!
//! Invariant: nothing is discarded while it is undecided; what is set aside is at most `aside_max` packets.
use std::collections::{BTreeMap, VecDeque};

use keepup_stream::ledger::LossCause;
use keepup_stream::rejected::RejectReason;
use keepup_stream::wire::crc32;

/// A gap of more packets than this must be confirmed by further packets: the number may be wrong.
const NEAR_MAX: u64 = 1 << 20;
/// A gap of more packets than this is a new start of the counter, not a loss.
const GAP_MAX: u64 = 1 << 40;
/// Sequence numbers stay below this, whatever a sender counts.
const SEQUENCE_MAX: u64 = 1 << 60;
/// Packets of which the checksum is kept, to recognize copies; at least.
const HISTORY_MIN: usize = 1024;
/// Distance within which a packet belongs to its neighbors, in packets; at least.
const NEIGHBORS_MIN: u64 = 64;

/// A packet that waits for another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) timestamp_ns: u64,
    /// What the kernel had dropped when it arrived.
    pub(super) drops: u32,
    /// Its number, and that of the frame to which it belongs.
    pub(super) number: u64,
    pub(super) frame: u64,
    pub(super) bytes: Vec<u8>,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The next event, with this sequence number, and the cause of a gap before it.
    Next(u64, Option<LossCause>),
    /// It must be held.
    Early,
    /// It must be set aside.
    Aside,
    /// It was received before, with the same content.
    Duplicate,
    /// It is not recorded.
    Rejected(RejectReason),
    /// It decides about the packets that were set aside: settle them, then ask again.
    Settle(Outcome),
}

/// What packets that were set aside have turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Copies, late or wrong packets; the stream continues without them.
    Copies,
    /// The next packets of the stream.
    Restart,
}

/// Place of a number behind the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// Recorded, with the same content.
    Same,
    /// Recorded, with other content.
    Other,
    /// Given up, or recorded without a checksum.
    Late,
    /// Behind all packets of which something is known.
    Older,
    /// Too far ahead.
    Far,
    /// Between two steps.
    OffStep,
}

/// A recorded or missing packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Past {
    Missing,
    /// Handed out; its checksum, once that is known.
    Recorded(Option<u32>),
}

/// The order.
#[derive(Debug)]
pub(super) struct Order {
    step: u64,
    mask: u64,
    window: usize,
    /// Most packets that are set aside.
    aside_max: usize,
    /// A gap of more packets is a new start.
    gap_max: u64,
    /// First number of the current count.
    first: u64,
    /// Number and sequence number of the next packet.
    number: u64,
    sequence: u64,
    /// What the kernel had dropped when the last event arrived.
    drops: u32,
    /// By sequence number.
    held: BTreeMap<u64, Held>,
    aside: Vec<Held>,
    /// Distances of the lowest and the highest number set aside from the first one, in steps.
    span: (i64, i64),
    /// The last packets of the current count, up to the one before the next.
    past: VecDeque<Past>,
    /// Number with which the stream continues once nothing is held.
    restart: Option<u64>,
    restarts: u64,
    /// Whether events are missing before the next packet.
    is_after_gap: bool,
}

impl Order {
    /// Order of a stream whose packets are numbered in steps of `step`, modulo `mask` + 1, from `number` on.
    /// At most `aside_max` packets are set aside.
    pub(super) fn new(
        (step, mask): (u64, u64),
        (window, aside_max): (usize, usize),
        number: u64,
        drops: u32,
    ) -> Self {
        // What may be ahead in a count of less than a byte is either held or known to be missing.
        let most = if mask < u64::from(u8::MAX) { (mask / 8 / step).max(1) as usize } else { usize::MAX };
        let window = window.min(most);
        Self {
            step,
            mask,
            window,
            aside_max,
            gap_max: GAP_MAX,
            first: number,
            number,
            sequence: 0,
            drops,
            held: BTreeMap::new(),
            aside: Vec::new(),
            span: (0, 0),
            past: VecDeque::new(),
            restart: None,
            restarts: 0,
            is_after_gap: false,
        }
    }

    /// Takes a gap of more than `packets` for a new start of the counter.
    pub(super) fn limit_gap(&mut self, packets: u64) {
        self.gap_max = packets.min(GAP_MAX);
    }

    /// Times that the counter started again.
    pub(super) fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Whether packets are held.
    pub(super) fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether packets are set aside.
    pub(super) fn has_aside(&self) -> bool {
        !self.aside.is_empty()
    }

    /// Judges a packet. After [`Verdict::Next`] the stream has gone on.
    pub(super) fn judge(&mut self, number: u64, drops: u32, content: &[u8]) -> Verdict {
        let near = self.ahead(number).filter(|packets| *packets < NEAR_MAX);
        if !self.aside.is_empty() {
            let continues = near.is_some_and(|packets| packets <= self.neighbors());
            match (continues, self.is_beside(number)) {
                (false, true) if self.aside.len() < self.aside_max => return Verdict::Aside,
                (true, false) => return Verdict::Settle(Outcome::Copies),
                // Only a run without a gap to the stream may have caught up with it.
                (true, true) if self.distance(number) == Some(self.span.1.saturating_add(1)) => {
                    return Verdict::Settle(self.outcome(true));
                }
                (true, true) => return Verdict::Settle(Outcome::Copies),
                (false, _) => return Verdict::Settle(self.outcome(false)),
            }
        }
        match near {
            Some(0) => {
                let (sequence, cause) = (self.sequence, self.cause(drops));
                self.go_on(1, drops);
                Verdict::Next(sequence, std::mem::take(&mut self.is_after_gap).then_some(cause))
            }
            Some(packets) => match self.held.get(&self.sequence.saturating_add(packets)) {
                Some(held) if held.bytes == content => Verdict::Duplicate,
                Some(_) => Verdict::Rejected(RejectReason::Conflicting),
                None => Verdict::Early,
            },
            None => Verdict::Aside,
        }
    }

    /// Takes the checksum of an event that was handed out, to recognize copies of it.
    pub(super) fn note(&mut self, sequence: u64, crc: u32) {
        let back = self.sequence.checked_sub(sequence).and_then(|back| usize::try_from(back).ok());
        let at = back.and_then(|back| self.past.len().checked_sub(back));
        if let Some(past @ Past::Recorded(_)) = at.and_then(|at| self.past.get_mut(at)) {
            *past = Past::Recorded(Some(crc));
        }
    }

    /// How many packets a number is ahead; `None`: behind, too far, or between two steps.
    fn ahead(&self, number: u64) -> Option<u64> {
        let ahead = number.wrapping_sub(self.number) & self.mask;
        let packets = ahead / self.step;
        (ahead <= self.mask / 2 && packets < self.gap_max && ahead.is_multiple_of(self.step))
            .then_some(packets)
    }

    /// Packets within which numbers are neighbors; fewer with a narrow counter.
    fn neighbors(&self) -> u64 {
        (self.window as u64).max(NEIGHBORS_MIN).min(self.mask / 8 / self.step).max(1)
    }

    /// Distance of a number from the first one set aside, in steps.
    fn distance(&self, number: u64) -> Option<i64> {
        let first = self.aside.first()?.number;
        let shift = self.mask.leading_zeros();
        let distance = (number.wrapping_sub(first) << shift).cast_signed() >> shift;
        let step = i64::try_from(self.step).ok()?;
        (distance % step == 0).then_some(distance / step)
    }

    /// Whether a number belongs to those set aside.
    fn is_beside(&self, number: u64) -> bool {
        let neighbors = self.neighbors() as i64;
        let (low, high) = (self.span.0.saturating_sub(neighbors), self.span.1.saturating_add(neighbors));
        self.distance(number).is_some_and(|distance| (low..=high).contains(&distance))
    }

    /// What is known about a number that does not continue the stream.
    fn known(&self, number: u64, content: &[u8]) -> Known {
        let ahead = number.wrapping_sub(self.number) & self.mask;
        let back = ahead.wrapping_neg() & self.mask;
        if !ahead.min(back).is_multiple_of(self.step) {
            return Known::OffStep;
        }
        if ahead <= self.mask / 2 {
            return Known::Far;
        }
        let at = usize::try_from(back / self.step).ok().and_then(|back| self.past.len().checked_sub(back));
        match at.and_then(|at| self.past.get(at)) {
            Some(Past::Recorded(Some(crc))) if *crc == crc32(content) => Known::Same,
            Some(Past::Recorded(Some(_))) => Known::Other,
            Some(_) => Known::Late,
            None => Known::Older,
        }
    }

    /// What the packets set aside are; `is_caught_up`: the next packet continues both them and the stream.
    fn outcome(&self, is_caught_up: bool) -> Outcome {
        let Some(first) = self.aside.first() else { return Outcome::Copies };
        if self.span.0 == self.span.1 {
            return Outcome::Copies;
        }
        let is_full = self.aside.len() >= self.aside_max && !is_caught_up;
        let is_new = |held: &Held| match self.known(held.number, &held.bytes) {
            Known::Older | Known::Far | Known::OffStep => true,
            Known::Other => !is_caught_up,
            Known::Same | Known::Late => false,
        };
        match is_full || first.number == self.first || self.aside.iter().any(is_new) {
            true => Outcome::Restart,
            false => Outcome::Copies,
        }
    }

    /// What the packets set aside are, as nothing follows that could decide it.
    pub(super) fn final_outcome(&self) -> Outcome {
        self.outcome(false)
    }

    /// Settles the packets that were set aside. Copies are returned with what becomes of each; after a
    /// restart, all are to be judged again once nothing held is due.
    pub(super) fn settle(&mut self, outcome: Outcome) -> Vec<(Held, Verdict)> {
        let aside = std::mem::take(&mut self.aside);
        let Some(first) = aside.first().map(|held| held.number) else { return Vec::new() };
        if outcome == Outcome::Restart {
            let low = self.span.0.unsigned_abs().wrapping_mul(self.step);
            self.restart = Some(first.wrapping_sub(low) & self.mask);
        }
        let copy = |held: &Held| match self.known(held.number, &held.bytes) {
            Known::Same => Verdict::Duplicate,
            Known::Other => Verdict::Rejected(RejectReason::Conflicting),
            Known::Late | Known::Older => Verdict::Rejected(RejectReason::Late),
            Known::Far | Known::OffStep => Verdict::Rejected(RejectReason::Malformed),
        };
        let judged = aside.into_iter().map(|held| match outcome {
            Outcome::Copies => (copy(&held), held),
            Outcome::Restart => (Verdict::Early, held),
        });
        judged.map(|(verdict, held)| (held, verdict)).collect()
    }

    /// Cause of a gap before a packet, by what the kernel had dropped when that packet arrived.
    fn cause(&self, drops: u32) -> LossCause {
        match drops.wrapping_sub(self.drops) {
            1..=0x7FFF_FFFF => LossCause::SocketBuffer,
            _ => LossCause::SequenceGap,
        }
    }

    /// Number of the packet that is expected next.
    pub(super) fn expected(&self) -> u64 {
        self.number
    }

    /// Packets from the expected one to before `number`; `None` if that is behind or far ahead.
    pub(super) fn until(&self, number: u64) -> Option<u64> {
        self.ahead(number).filter(|packets| *packets < NEAR_MAX)
    }

    /// Sequence number of the packet that is expected next.
    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Holds a packet that was judged [`Verdict::Early`].
    pub(super) fn hold(&mut self, packet: Held) {
        let packets = (packet.number.wrapping_sub(self.number) & self.mask) / self.step;
        self.held.insert(self.sequence.saturating_add(packets), packet);
    }

    /// Sets a packet aside that was judged [`Verdict::Aside`].
    pub(super) fn set_aside(&mut self, packet: Held) {
        let distance = self.distance(packet.number).unwrap_or(0);
        self.span = match self.aside.is_empty() {
            true => (0, 0),
            false => (self.span.0.min(distance), self.span.1.max(distance)),
        };
        self.aside.push(packet);
    }

    /// Next held packet that is due: the next of the stream, or the first of too many, or any at the end.
    /// With its sequence number, and the cause of the gap before it. `awaits` says whether a packet with a
    /// number from the first to before the second one is still arriving.
    pub(super) fn next_due(
        &mut self,
        is_end: bool,
        awaits: &dyn Fn(u64, u64) -> bool,
    ) -> Option<(u64, Option<LossCause>, Held)> {
        let is_over = is_end || self.restart.is_some();
        let (number, is_full) = (self.number, self.held.len() > self.window);
        let is_due = |sequence: u64, held: &Held| {
            sequence == self.sequence || is_over || is_full && !awaits(number, held.number)
        };
        let due = self.held.first_key_value().filter(|(at, held)| is_due(**at, held)).map(|(at, _)| *at);
        let Some((sequence, packet)) = due.and_then(|due| self.held.remove_entry(&due)) else {
            if let Some(number) = self.restart.take_if(|_| self.held.is_empty()) {
                self.restart_at(number);
            }
            return None;
        };
        let lost = sequence - self.sequence;
        let cause = self.cause(packet.drops);
        self.go_on(lost.saturating_add(1), packet.drops);
        let is_after_gap = std::mem::take(&mut self.is_after_gap) || lost > 0;
        Some((sequence, is_after_gap.then_some(cause), packet))
    }

    /// Continues with packets that confirm each other: behind a long gap, or with a counter that has started
    /// again.
    fn restart_at(&mut self, number: u64) {
        match self.ahead(number).filter(|packets| *packets <= SEQUENCE_MAX - self.sequence.min(SEQUENCE_MAX))
        {
            Some(packets) => {
                self.sequence += packets;
                self.is_after_gap = packets > 0;
            }
            None => (self.restarts, self.first) = (self.restarts.saturating_add(1), number),
        }
        self.number = number;
        self.past.clear();
    }

    fn go_on(&mut self, packets: u64, drops: u32) {
        let most = HISTORY_MIN.max(2 * self.window);
        let missing = usize::try_from(packets - 1).unwrap_or(usize::MAX).min(most);
        self.past.extend(std::iter::repeat_n(Past::Missing, missing).chain([Past::Recorded(None)]));
        let surplus = self.past.len().saturating_sub(most);
        self.past.drain(..surplus);
        self.sequence = self.sequence.saturating_add(packets);
        self.number = self.number.wrapping_add(packets.wrapping_mul(self.step)) & self.mask;
        self.drops = drops;
    }
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
