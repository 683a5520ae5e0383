//! Detectors that send numbered packets over UDP, and neither wait for a receiver nor repeat a packet.
//!
//! Each packet is an event; with SPEAD, each heap. Every sender, or thread of a VDIF stream, is a stream,
//! declared when its first packet or heap has arrived; its sequence numbers count from there. What arrives
//! out of order is held until what is missing has arrived or [`Options::window`] packets of the stream wait
//! for it. Invariants: the events of a stream are handed out in order, each once; what cannot be placed is
//! counted and reported, never recorded.
mod counter;
mod group;
mod heaps;
mod options;
mod order;
mod senders;
mod spead;
mod vdif;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;

use keepup_stream::ledger::LossCause;
use keepup_stream::wire::{ElementType, StreamInfo};
use keepup_sys::datagram::{Batch, DATAGRAM_BYTES_MAX, DatagramReceiver};

pub use self::counter::Counter;
use self::group::{Group, Grouped, Groups, Ordered};
pub use self::options::{Format, Options};
use self::order::{Held, Order, Verdict};
use self::senders::Senders;
pub use self::spead::Spead;
pub use self::vdif::Vdif;
use crate::{Decoder, DetectorError, Event, Input, Item, Limits, STREAMS_MAX};

/// Packets of all streams that are held: with more, the missing ones are given up early, in bytes.
const HELD_BYTES_MAX: usize = 64 << 20;
/// Messages per system call. The kernel joins up to 64 packets of one sender in a message.
const MESSAGES: usize = 16;
/// Packets that confirm a jump of a counter.
const RUN_MIN: u64 = 256;

/// Place of a packet in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbered {
    /// VDIF: station and thread. Other formats tell streams apart by their sender.
    thread: Option<(u16, u16)>,
    number: u64,
    /// Number of the frame to which it belongs, where packets state one.
    frame: u64,
    /// Time of the packet, ns since the Unix epoch; `None`: its arrival.
    timestamp_ns: Option<u64>,
}

/// What tells streams apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Sender(Option<SocketAddr>),
    Thread(u16, u16),
}

/// Packets that are not recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Refused {
    /// Packets that are not of the format, and the first reason.
    foreign: u64,
    why: Option<String>,
    /// Packets that arrived twice, or after the stream had gone on without them.
    late: u64,
    /// Packets of streams beyond the limit.
    surplus: u64,
    /// Packets that the kernel received only in part.
    cut: u64,
    /// What the kernel dropped after the last packet that arrived.
    dropped: u64,
    /// Packets that arrived before the start.
    early: u64,
    /// Whole heaps that were late.
    late_heaps: u64,
}

impl Refused {
    /// Whether a packet arrived as a whole and after the start, at `opened_ns`; otherwise it is counted.
    fn admits(&mut self, arrived_ns: u64, opened_ns: &mut u64, is_truncated: bool) -> bool {
        if arrived_ns < *opened_ns {
            self.early += 1;
            return false;
        }
        *opened_ns = 0;
        self.cut += u64::from(is_truncated);
        !is_truncated
    }
}

/// The item that is handed out.
#[derive(Debug)]
enum Current {
    Streams,
    /// A packet of the current message.
    Arrived {
        packet: Place,
        range: Range<usize>,
    },
    Held {
        packet: Place,
        held: Held,
    },
    /// Every sender has sent all its heaps.
    End,
}

impl Current {
    fn whole(stream: usize, event: Grouped) -> Self {
        let Grouped { sequence, timestamp_ns, missing, bytes } = event;
        let packet = Place { stream, sequence, timestamp_ns, missing };
        Self::Held { packet, held: Held { timestamp_ns, drops: 0, number: 0, frame: 0, bytes } }
    }
}

/// Place of an event in the recording.
#[derive(Clone, Copy, Debug)]
struct Place {
    stream: usize,
    sequence: u64,
    timestamp_ns: u64,
    missing: Option<LossCause>,
}

/// Decoder of packets.
pub struct Packets {
    options: Options,
    event_bytes_max: u64,
    batch: Batch,
    /// Messages of the batch, the current one and the first byte of its next packet.
    messages: usize,
    message: usize,
    offset: usize,
    /// Time of the batch, for packets without one of their own.
    batch_ns: u64,
    /// Packets that arrived earlier are not recorded. 0 once one has arrived later: the clock may be set.
    opened_ns: u64,
    keys: Vec<Key>,
    orders: Vec<Order>,
    infos: Vec<StreamInfo>,
    current: Option<Current>,
    /// Stream with held packets that may be due.
    due: Option<usize>,
    held_bytes: usize,
    is_finishing: bool,
    /// Events of several packets in the making.
    groups: Groups,
    /// Heaps in the making.
    senders: Senders,
    metadata: BTreeMap<String, String>,
    refused: Refused,
    /// What the kernel had dropped when the last packet arrived.
    drops: u32,
}

impl Packets {
    /// A decoder of packets that arrive after `opened_ns`, ns since the Unix epoch.
    pub fn new(options: Options, limits: Limits, opened_ns: u64) -> Self {
        Self {
            options,
            event_bytes_max: limits.event_bytes_max,
            // A joined message may be as long as an IP packet, with its headers.
            batch: Batch::new(MESSAGES, DATAGRAM_BYTES_MAX + 28),
            messages: 0,
            message: 0,
            offset: 0,
            batch_ns: 0,
            opened_ns,
            keys: Vec::new(),
            orders: Vec::new(),
            infos: Vec::new(),
            current: None,
            due: None,
            held_bytes: 0,
            is_finishing: false,
            groups: Groups::default(),
            senders: Senders::default(),
            metadata: BTreeMap::new(),
            refused: Refused::default(),
            drops: 0,
        }
    }

    /// Finds the next item.
    fn advance(&mut self) {
        while self.current.is_none() {
            if let Some(stream) = self.due {
                let is_forced = self.is_finishing || self.held_bytes > self.held_bytes_max();
                match self.orders[stream].next_due(is_forced) {
                    Some((sequence, missing, held)) => {
                        self.held_bytes -= held.bytes.len();
                        let timestamp_ns = held.timestamp_ns;
                        let packet = Place { stream, sequence, timestamp_ns, missing };
                        self.hand_out(packet, held);
                    }
                    None if self.is_finishing && stream + 1 < self.orders.len() => {
                        self.due = Some(stream + 1);
                    }
                    None => self.due = None,
                }
                continue;
            }
            if self.place_waiting_heap() {
                continue;
            }
            if self.senders.take_end() {
                self.current = Some(Current::End);
                return;
            }
            if self.message >= self.messages {
                return;
            }
            self.take_packet();
        }
    }

    /// Takes the next packet of the batch.
    fn take_packet(&mut self) {
        let Some(received) = self.batch.received(self.message).filter(|got| self.offset < got.data.len())
        else {
            if self.offset == 0 {
                self.refuse("0 bytes".to_owned());
            }
            (self.message, self.offset) = (self.message + 1, 0);
            return;
        };
        let end = (self.offset + received.segment_bytes).min(received.data.len());
        let range = self.offset..end;
        let (drops, arrived_ns) = (received.drops, received.arrived_ns.unwrap_or(self.batch_ns));
        self.drops = drops;
        if !self.refused.admits(arrived_ns, &mut self.opened_ns, received.is_truncated) {
            self.offset = end;
            return;
        }
        if let Format::Spead(options) = self.options.format {
            self.offset = end;
            return self.take_part_of_heap(range, (arrived_ns, drops), options);
        }
        let numbered = match self.options.read(&received.data[range.clone()], self.event_bytes_max) {
            Ok(numbered) => numbered,
            Err(why) => {
                self.offset = end;
                return self.refuse(why);
            }
        };
        let key = match numbered.thread {
            Some((station, thread)) => Key::Thread(station, thread),
            None => Key::Sender(self.batch.peer(self.message)),
        };
        let Some(stream) = self.keys.iter().position(|known| *known == key) else {
            let number = self.options.number(&numbered, None);
            return self.add_stream(key, (numbered, number), drops, end);
        };
        self.offset = end;
        let (frame, expected) = (numbered.frame, self.orders[stream].expected());
        let number = self.options.number(&numbered, Some(expected));
        let payload = range.start + self.options.skip..range.end;
        let timestamp_ns = numbered.timestamp_ns.unwrap_or(arrived_ns);
        match self.orders[stream].judge(number, drops) {
            Verdict::Next(sequence, missing) => {
                self.due = self.orders[stream].has_held().then_some(stream);
                let packet = Place { stream, sequence, timestamp_ns, missing };
                if self.groups.is_empty() {
                    self.current = Some(Current::Arrived { packet, range: payload });
                    return;
                }
                let packet = Ordered::new(&packet, (number, frame), &received.data[payload]);
                let whole = self.groups.add(stream, packet, self.event_bytes_max);
                self.current = whole.map(|whole| Current::whole(stream, whole));
            }
            Verdict::Early => {
                let bytes = received.data[payload].to_vec();
                self.held_bytes += bytes.len();
                self.orders[stream].hold(Held { timestamp_ns, drops, number, frame, bytes });
                self.due = Some(stream);
            }
            Verdict::Late => self.refused.late += 1,
            Verdict::OffStep => self.refuse(format!(
                "counter {} is not a whole number of steps from the expected value",
                numbered.number
            )),
            Verdict::Restart => (self.offset, self.due) = (range.start, Some(stream)),
        }
    }

    fn refuse(&mut self, why: String) {
        self.refused.foreign += 1;
        self.refused.why.get_or_insert(why);
    }

    /// Declares the stream of a packet, which stays the next one; one stream too many is refused.
    fn add_stream(&mut self, key: Key, (packet, number): (Numbered, u64), drops: u32, end: usize) {
        if self.keys.len() == STREAMS_MAX {
            self.offset = end;
            self.refused.surplus += 1;
            return;
        }
        let steps = self.options.steps();
        self.declare(key, (packet.number, number), drops, steps);
        if let Some(rule) = self.options.rule() {
            self.groups.push(Group::new(rule, steps));
        }
        if self.options.frame.is_some() {
            let name = self.infos.last().map_or("", |info| &info.name);
            self.metadata.insert(format!("{name}/first_frame"), packet.frame.to_string());
        }
    }

    /// Hands out a packet that was held, or the event that it completes.
    fn hand_out(&mut self, packet: Place, held: Held) {
        if self.groups.is_empty() {
            self.current = Some(Current::Held { packet, held });
            return;
        }
        let ordered = Ordered::new(&packet, (held.number, held.frame), &held.bytes);
        let whole = self.groups.add(packet.stream, ordered, self.event_bytes_max);
        self.current = whole.map(|whole| Current::whole(packet.stream, whole));
    }

    /// Declares a stream, whose first packet states a number and has one in its order.
    fn declare(&mut self, key: Key, (stated, number): (u64, u64), drops: u32, steps: (u64, u64)) {
        let name = match key {
            Key::Sender(Some(sender)) => sender.to_string(),
            Key::Sender(None) => "unknown".to_owned(),
            Key::Thread(station, thread) => format!("{}-thread-{thread}", vdif::station_name(station)),
        };
        self.metadata.insert(format!("{name}/first_{}", self.options.format.unit()), stated.to_string());
        let id = self.keys.len() as u32;
        let (element, shape) = (ElementType::U8, Vec::new());
        self.infos.push(StreamInfo { id, name, element, shape, compression: None });
        self.keys.push(key);
        let run_min = if matches!(self.options.format, Format::Spead(_)) { 0 } else { RUN_MIN };
        self.orders.push(Order::new(steps, (self.options.window, run_min), number, drops));
        self.current = Some(Current::Streams);
    }
}

impl Decoder for Packets {
    fn input(&mut self) -> Input<'_> {
        Input::Datagrams(&mut self.batch)
    }

    fn received(&mut self, count: usize, unix_ns: u64) {
        (self.messages, self.message, self.offset, self.batch_ns) = (count, 0, 0, unix_ns);
    }

    fn item(&mut self) -> Result<Option<Item<'_>>, DetectorError> {
        self.advance();
        let event = |packet: &Place, payload| {
            let Place { stream, sequence, timestamp_ns, missing } = *packet;
            Item::Event(Event { stream, sequence, timestamp_ns, missing, payload })
        };
        Ok(self.current.as_ref().map(|current| match current {
            Current::Streams => Item::Streams(&self.infos),
            Current::End => Item::End { events: self.senders.announced(), streams: STREAMS_MAX },
            Current::Held { packet, held } => event(packet, &held.bytes),
            Current::Arrived { packet, range } => {
                let data = self.batch.received(self.message).map_or(&[][..], |received| received.data);
                event(packet, data.get(range.clone()).unwrap_or(&[]))
            }
        }))
    }

    fn take(&mut self) {
        if let Some(Current::Held { held, .. }) = self.current.take() {
            match self.options.format {
                Format::Spead(_) => self.senders.recycle(held.bytes),
                _ if !self.groups.is_empty() => self.groups.put_back(held.bytes),
                _ => {}
            }
        }
    }

    fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    fn finish(&mut self, drops: u32) {
        let dropped = drops.wrapping_sub(self.drops);
        self.refused.dropped = if dropped <= u32::MAX / 2 { dropped.into() } else { 0 };
        self.is_finishing = true;
        self.due = (!self.orders.is_empty()).then_some(0);
    }

    fn remarks(&mut self) -> Vec<String> {
        if !self.is_finishing {
            return Vec::new();
        }
        let Refused { foreign, why, late, surplus, cut, dropped, early, late_heaps } =
            std::mem::take(&mut self.refused);
        let incomplete = self.senders.take_unfinished();
        let (discarded, too_large) = self.groups.take_counts();
        let restarts: u64 = self.orders.iter().map(Order::restarts).sum();
        let counted = |count: u64, what: &str| match count {
            1 => format!("1 {what}"),
            _ => format!("{count} {what}s"),
        };
        let packets = |count| counted(count, "packet");
        let why = why.unwrap_or_default();
        let remarks = [
            (foreign, format!("{} not recorded: unexpected format (first: {why})", packets(foreign))),
            (late, format!("{} not recorded: duplicate or too late", packets(late))),
            (surplus, format!("{} not recorded: more than {STREAMS_MAX} streams", packets(surplus))),
            (early, format!("{} not recorded: arrived before the start of the recording", packets(early))),
            (
                dropped,
                format!(
                    "{} dropped by the kernel after the last received packet: socket buffer full",
                    packets(dropped)
                ),
            ),
            (discarded, format!("{} not recorded: event incomplete", packets(discarded))),
            (
                too_large,
                format!(
                    "{} not recorded: too large; raise --pool or --max-event",
                    counted(too_large, "event")
                ),
            ),
            (late_heaps, format!("{} not recorded: duplicate or too late", counted(late_heaps, "heap"))),
            (incomplete, format!("{} not recorded: incomplete", counted(incomplete, "heap"))),
            (cut, format!("{} not recorded: truncated by the kernel", packets(cut))),
            (restarts, format!("counter restarts: {restarts}; losses at a restart are unknown")),
        ];
        remarks.into_iter().filter(|(count, _)| *count > 0).map(|(_, remark)| remark).collect()
    }
}

#[cfg(test)]
#[path = "packets_tests.rs"]
mod tests;
