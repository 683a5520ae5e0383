//! Order of the packets of one stream: which is the next event, which waits for another one, which is too
//! late.
use std::collections::BTreeMap;

use keepup_stream::ledger::LossCause;

/// A gap of more packets than this must be confirmed by further packets: the number may be wrong.
const NEAR_MAX: u64 = 1 << 20;
/// A gap of more packets than this is a new start of the counter, not a loss.
const GAP_MAX: u64 = 1 << 40;
/// Sequence numbers stay below this, whatever a sender counts.
const SEQUENCE_MAX: u64 = 1 << 60;

/// A packet that waits for an earlier one.
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
    /// It was handed out or held before, or its successors were.
    Late,
    /// Its number does not lie on a step.
    OffStep,
    /// The stream continues with this packet: ask again once nothing is due.
    Restart,
}

/// The order.
#[derive(Debug)]
pub(super) struct Order {
    step: u64,
    mask: u64,
    window: usize,
    /// Packets in a row that continue each other, but not the stream, after which the stream continues with
    /// them.
    run_min: u64,
    /// Number and sequence number of the next packet.
    number: u64,
    sequence: u64,
    /// What the kernel had dropped when the last event arrived.
    drops: u32,
    /// By sequence number.
    held: BTreeMap<u64, Held>,
    /// Number that would continue the last packets that did not continue the stream, and how many these were.
    odd: (u64, u64),
    /// Number with which the stream continues once nothing is held.
    restart: Option<u64>,
    restarts: u64,
    /// Whether events are missing before the next packet.
    is_after_gap: bool,
}

impl Order {
    /// Order of a stream whose packets are numbered in steps of `step`, modulo `mask` + 1, from `number` on.
    /// A jump must be confirmed by `run_min` packets: more than a burst that arrives twice or late.
    pub(super) fn new(
        (step, mask): (u64, u64),
        (window, run_min): (usize, u64),
        number: u64,
        drops: u32,
    ) -> Self {
        let (held, odd) = (BTreeMap::new(), (0, 0));
        Self {
            step,
            mask,
            window,
            run_min,
            number,
            sequence: 0,
            drops,
            held,
            odd,
            restart: None,
            restarts: 0,
            is_after_gap: false,
        }
    }

    /// Times that the counter started again.
    pub(super) fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Whether packets are held.
    pub(super) fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Judges a packet. After [`Verdict::Next`] the stream has gone on.
    pub(super) fn judge(&mut self, number: u64, drops: u32) -> Verdict {
        let ahead = self.ahead(number);
        let Some(packets) = ahead.filter(|packets| *packets < NEAR_MAX) else {
            let run = if self.odd.0 == number { self.odd.1 + 1 } else { 1 };
            self.odd = (number.wrapping_add(self.step) & self.mask, run);
            if run > self.run_min.max(2 * self.window as u64) {
                self.restart = Some(number);
                return Verdict::Restart;
            }
            let ahead = number.wrapping_sub(self.number) & self.mask;
            let distance = ahead.min(ahead.wrapping_neg() & self.mask);
            return if distance.is_multiple_of(self.step) { Verdict::Late } else { Verdict::OffStep };
        };
        self.odd.1 = 0;
        match packets {
            0 => {
                let (sequence, cause) = (self.sequence, self.cause(drops));
                self.go_on(1, drops);
                Verdict::Next(sequence, std::mem::take(&mut self.is_after_gap).then_some(cause))
            }
            packets if self.held.contains_key(&(self.sequence + packets)) => Verdict::Late,
            _ => Verdict::Early,
        }
    }

    /// How many packets a number is ahead; `None`: behind, too far, or between two steps.
    fn ahead(&self, number: u64) -> Option<u64> {
        let ahead = number.wrapping_sub(self.number) & self.mask;
        let packets = ahead / self.step;
        (ahead <= self.mask / 2 && packets < GAP_MAX && ahead.is_multiple_of(self.step)).then_some(packets)
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

    /// Holds a packet that was judged [`Verdict::Early`].
    pub(super) fn hold(&mut self, packet: Held) {
        let packets = (packet.number.wrapping_sub(self.number) & self.mask) / self.step;
        self.held.insert(self.sequence + packets, packet);
    }

    /// Next held packet that is due: the next of the stream, or the first of too many, or any at the end.
    /// With its sequence number, and the cause of the gap before it.
    pub(super) fn next_due(&mut self, is_end: bool) -> Option<(u64, Option<LossCause>, Held)> {
        let is_forced = is_end || self.restart.is_some() || self.held.len() > self.window;
        let first = self.held.first_entry().filter(|first| is_forced || *first.key() == self.sequence);
        let Some(first) = first else {
            if let Some(number) = self.restart.take() {
                self.restart_at(number);
            }
            return None;
        };
        let (sequence, packet) = first.remove_entry();
        let lost = sequence - self.sequence;
        let cause = self.cause(packet.drops);
        self.go_on(lost + 1, packet.drops);
        let is_after_gap = std::mem::take(&mut self.is_after_gap) || lost > 0;
        Some((sequence, is_after_gap.then_some(cause), packet))
    }

    /// Continues with a packet that enough others confirm: behind a long gap, or with a counter that has
    /// started again.
    fn restart_at(&mut self, number: u64) {
        match self.ahead(number).filter(|packets| *packets <= SEQUENCE_MAX - self.sequence.min(SEQUENCE_MAX))
        {
            Some(packets) => {
                self.sequence += packets;
                self.is_after_gap = packets > 0;
            }
            None => self.restarts += 1,
        }
        (self.number, self.odd.1) = (number, 0);
    }

    fn go_on(&mut self, packets: u64, drops: u32) {
        self.sequence += packets;
        self.number = self.number.wrapping_add(packets.wrapping_mul(self.step)) & self.mask;
        self.drops = drops;
    }
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
