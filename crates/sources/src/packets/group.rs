//! Events of several packets, such as the packets of a camera frame, from packets in order.
//!
//! An event is handed out only if all its packets have arrived. Invariant: events are numbered from the first
//! one of which the start was seen, and an event that is not handed out leaves a gap.
use keepup_stream::ledger::LossCause;

use super::Place;
use super::counter::unwrapped;

/// Bytes of events that are assembled at once; each stream has an equal share.
const BYTES_MAX: usize = 512 << 20;
/// A jump of more frames than this is no loss: the frame number has started again.
const FRAMES_MAX: u64 = 1 << 20;

/// Which packets make an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// This many packets, from one whose number divided by the step is a multiple of it.
    Count(u64),
    /// Packets with the same frame number, which has so many bits.
    Frame(u32),
}

/// A packet in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ordered<'a> {
    /// Sequence number of the packet in its stream.
    pub(super) sequence: u64,
    pub(super) number: u64,
    pub(super) frame: u64,
    pub(super) timestamp_ns: u64,
    /// Why packets before it are missing, if any are.
    pub(super) missing: Option<LossCause>,
    pub(super) payload: &'a [u8],
}

impl<'a> Ordered<'a> {
    /// A packet with its number and that of its frame.
    pub(super) fn new(packet: &Place, (number, frame): (u64, u64), payload: &'a [u8]) -> Self {
        let Place { sequence, timestamp_ns, missing, .. } = *packet;
        Self { sequence, number, frame, timestamp_ns, missing, payload }
    }
}

/// A whole event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grouped {
    pub(super) sequence: u64,
    pub(super) timestamp_ns: u64,
    pub(super) missing: Option<LossCause>,
    pub(super) bytes: Vec<u8>,
}

/// The packet before.
#[derive(Clone, Copy, Debug)]
struct Last {
    sequence: u64,
    number: u64,
    frame: u64,
    /// Event to which it belongs, counted from the one of the first packet, and its place there.
    event: u64,
    index: u64,
}

/// An event in the making: everything since its first packet has arrived.
#[derive(Debug)]
struct Open {
    bytes: Vec<u8>,
    packets: u64,
    timestamp_ns: u64,
}

/// Events of all streams.
#[derive(Debug, Default)]
pub(super) struct Groups {
    all: Vec<Group>,
    /// Memory for the next event.
    spare: Vec<u8>,
}

impl Groups {
    /// Adds a stream; the others drop events beyond their new share of memory.
    pub(super) fn push(&mut self, group: Group) {
        self.all.push(group);
        let share = self.share();
        self.all.iter_mut().for_each(|group| group.drop_larger(share));
    }

    /// Bytes of the event of one stream.
    fn share(&self) -> u64 {
        (BYTES_MAX / self.all.len().max(1)) as u64
    }

    /// Whether each packet is an event.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Adds a packet of a stream; returns the event that it completes, which has at most `bytes_max`.
    pub(super) fn add(&mut self, stream: usize, packet: Ordered<'_>, bytes_max: u64) -> Option<Grouped> {
        let share = self.share();
        self.all.get_mut(stream)?.add(packet, bytes_max.min(share), &mut self.spare)
    }

    /// Takes back the memory of an event.
    pub(super) fn put_back(&mut self, bytes: Vec<u8>) {
        self.spare = bytes;
    }

    /// For each stream, packets of events that were not whole, and of events that were too large; drops all.
    pub(super) fn take_counts(&mut self) -> (Vec<u64>, Vec<u64>) {
        let all = std::mem::take(&mut self.all);
        (all.iter().map(Group::discarded).collect(), all.iter().map(|group| group.too_large).collect())
    }
}

/// Events of one stream.
#[derive(Debug)]
pub(super) struct Group {
    rule: Rule,
    /// Step of packet numbers, and the mask of their bits.
    steps: (u64, u64),
    last: Option<Last>,
    open: Option<Open>,
    /// Event with sequence number 0.
    first: u64,
    /// Next sequence number without a loss, and the cause of losses before it.
    next: u64,
    cause: Option<LossCause>,
    /// Packets of events that were not whole.
    discarded: u64,
    /// Packets of events that were too large.
    too_large: u64,
}

impl Group {
    pub(super) fn new(rule: Rule, steps: (u64, u64)) -> Self {
        let (last, open, cause) = (None, None, None);
        Self { rule, steps, last, open, first: 0, next: 0, cause, discarded: 0, too_large: 0 }
    }

    /// Adds a packet; returns the event that it completes. `spare` is memory for the next event.
    fn add(&mut self, packet: Ordered<'_>, bytes_max: u64, spare: &mut Vec<u8>) -> Option<Grouped> {
        if let Some(cause) = packet.missing {
            // One lost packet suffices to lose an event: the cause in this machine is the one to remove.
            let is_here = self.cause == Some(LossCause::SocketBuffer);
            self.cause = if is_here { self.cause } else { Some(cause) };
        }
        let before = self.last;
        let (step, mask) = self.steps;
        let is_restart = before.is_some_and(|last| {
            let passed = packet.sequence - last.sequence;
            packet.number != last.number.wrapping_add(passed.wrapping_mul(step)) & mask
        });
        // Whether the packet before this one is the one before it in the stream.
        let is_behind = packet.missing.is_none() && !is_restart;
        let place = match self.rule {
            Rule::Count(packets) => {
                count(before, &packet, packets, packet.number / step % packets, is_restart)
            }
            Rule::Frame(bits) => frame(before, &packet, bits, is_behind),
        };
        self.last = Some(place);
        let Some(before) = before else {
            self.first = place.event + u64::from(place.index > 0);
            self.start_or_discard(place.index == 0, &packet, bytes_max, spare);
            return self.complete_by_count();
        };
        let ended = match self.rule {
            Rule::Frame(_) if is_behind && place.index == 0 => self.complete(before.event),
            _ => None,
        };
        match &self.open {
            Some(_) if is_behind && place.index > 0 => self.append(&packet, bytes_max),
            _ => self.start_or_discard(place.index == 0, &packet, bytes_max, spare),
        }
        ended.or_else(|| self.complete_by_count())
    }

    /// Packets that are not handed out because their event is not whole; with those of the event in the
    /// making.
    fn discarded(&self) -> u64 {
        self.discarded + self.open.as_ref().map_or(0, |open| open.packets)
    }

    fn append(&mut self, packet: &Ordered<'_>, bytes_max: u64) {
        let Some(open) = &mut self.open else { return };
        open.packets += 1;
        open.bytes.extend_from_slice(packet.payload);
        self.drop_larger(bytes_max);
    }

    /// Drops the event in the making if it is larger than `bytes_max`.
    fn drop_larger(&mut self, bytes_max: u64) {
        if let Some(open) = self.open.take_if(|open| open.bytes.len() as u64 > bytes_max) {
            self.too_large += open.packets;
        }
    }

    fn start_or_discard(
        &mut self,
        is_start: bool,
        packet: &Ordered<'_>,
        bytes_max: u64,
        spare: &mut Vec<u8>,
    ) {
        self.discard();
        if !is_start {
            self.discarded += 1;
            return;
        }
        let mut bytes = std::mem::take(spare);
        bytes.clear();
        self.open = Some(Open { bytes, packets: 0, timestamp_ns: packet.timestamp_ns });
        self.append(packet, bytes_max);
    }

    fn discard(&mut self) {
        self.discarded += self.open.take().map_or(0, |open| open.packets);
    }

    /// The event in the making, if it has all its packets.
    fn complete_by_count(&mut self) -> Option<Grouped> {
        let Rule::Count(packets) = self.rule else { return None };
        let event = self.last?.event;
        self.open.as_ref().filter(|open| open.packets == packets)?;
        self.complete(event)
    }

    fn complete(&mut self, event: u64) -> Option<Grouped> {
        let Open { bytes, timestamp_ns, .. } = self.open.take()?;
        let sequence = event - self.first;
        let cause = self.cause.take().unwrap_or(LossCause::SequenceGap);
        let missing = (sequence > self.next).then_some(cause);
        self.next = sequence + 1;
        Some(Grouped { sequence, timestamp_ns, missing, bytes })
    }
}

/// Place of a packet by its number, which gives its `index`.
fn count(before: Option<Last>, packet: &Ordered<'_>, packets: u64, index: u64, is_restart: bool) -> Last {
    let (event, index) = match before {
        None => (0, index),
        // The event in the making is lost.
        Some(last) if is_restart => (last.event + u64::from(index == 0), index),
        // Counted on, so a counter that wraps around keeps the limits of events.
        Some(last) => {
            let place = last.index + (packet.sequence - last.sequence);
            (last.event + place / packets, place % packets)
        }
    };
    Last { sequence: packet.sequence, number: packet.number, frame: packet.frame, event, index }
}

/// Place of a packet by its frame number. Index 0 is a known start: the packet before has another number.
fn frame(before: Option<Last>, packet: &Ordered<'_>, bits: u32, is_behind: bool) -> Last {
    let (event, index, frame) = match before {
        None => (0, 1, packet.frame),
        Some(last) => {
            let frame = unwrapped(packet.frame, bits, last.frame);
            match frame.wrapping_sub(last.frame) {
                0 => (last.event, last.index + 1, frame),
                ahead @ 1..=FRAMES_MAX => (last.event + ahead, u64::from(!is_behind), frame),
                _ => (last.event + 1, u64::from(!is_behind), frame),
            }
        }
    };
    Last { sequence: packet.sequence, number: packet.number, frame, event, index }
}

#[cfg(test)]
#[path = "group_tests.rs"]
mod tests;
