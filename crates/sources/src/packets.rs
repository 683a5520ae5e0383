//! Detectors that send numbered packets over UDP, and neither wait for a receiver nor repeat a packet.
//!
//! Each packet is an event; with SPEAD, each heap. A stream is what one sender sends to one destination, or
//! one VDIF thread of that. It is declared when its sender is admitted and its first packet or heap has
//! arrived; its sequence numbers count from there. What arrives out of order is held until what is missing
//! has arrived or [`Options::window`] packets of the stream wait for it. Invariants: the events of a stream
//! are handed out in order, each once; what is not handed out is a duplicate, missing or rejected, and
//! counted.
mod admission;
mod counter;
mod group;
mod heaps;
mod options;
mod order;
mod seconds;
mod senders;
mod spead;
mod tally;
mod vdif;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use keepup_measure::sum::Sums;
use keepup_stream::ledger::LossCause;
use keepup_stream::rejected::{RejectReason, RejectUnit, Rejection};
use keepup_stream::wire::{ElementType, METADATA_MAX, StreamInfo, crc32};
use keepup_sys::datagram::{Batch, DATAGRAM_BYTES_MAX, DatagramReceiver};

pub use self::admission::Senders as NamedSenders;
use self::admission::{Admission, Admissions, Flow, GivenUp, Key, Packet};
pub use self::counter::Counter;
use self::group::{Group, Grouped, Groups, Ordered};
pub use self::options::{Format, Options};
use self::order::{Held, Order, Outcome, Verdict};
use self::seconds::{DAY_S, Seconds};
use self::senders::Senders;
pub use self::spead::Spead;
use self::tally::{Subject, Tally};
pub use self::vdif::Vdif;
use crate::{Decoder, DetectorError, Event, Input, Item, Limits};

/// Packets of all streams that are held: with more, the missing ones are given up early, in bytes.
const HELD_BYTES_MAX: usize = 64 << 20;
/// Messages per system call. The kernel joins up to 64 packets of one sender in a message.
const MESSAGES: usize = 16;
/// Packets that are set aside until it is clear what they are.
const ASIDE_MAX: usize = 256;
/// Heaps that are set aside, at least.
const HEAPS_ASIDE_MIN: usize = 8;
/// Most lengths of packets that are compared with those of a sender that is not known.
const LENGTHS_MAX: usize = 16;

/// Place of a packet in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbered {
    number: u64,
    /// Number of the frame to which it belongs, where packets state one.
    frame: u64,
    /// The header, if it is one of VDIF.
    vdif: Option<vdif::Frame>,
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
    /// Events that are missing at the end of a stream, up to this one.
    Lost {
        stream: usize,
        sequence: u64,
        cause: LossCause,
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

/// A packet of a stream, with its payload in the current message or in memory of its own.
struct Placed {
    number: u64,
    frame: u64,
    timestamp_ns: u64,
    drops: u32,
    payload: Payload,
}

enum Payload {
    InMessage(Range<usize>),
    Owned(Vec<u8>),
}

/// Steps of the end, each done once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    #[default]
    Open,
    /// Unknown senders are admitted or given up.
    Admitted,
    /// What is left of the streams was accounted for.
    Closed,
    /// Remarks were returned.
    Remarked,
}

/// State of one stream.
#[derive(Debug)]
struct Stream {
    key: Key,
    order: Order,
    /// VDIF: its seconds.
    seconds: Option<Seconds>,
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
    /// Packets that arrived before that.
    early: u64,
    admissions: Admissions,
    /// Packets of senders that have been admitted since, to be taken before the next ones.
    admitted: VecDeque<Packet>,
    /// Lengths of packets of admitted senders.
    lengths: BTreeSet<usize>,
    by_key: BTreeMap<Key, usize>,
    /// Stream of the last packet.
    last: Option<(Key, usize)>,
    streams: Vec<Stream>,
    infos: Vec<StreamInfo>,
    current: Option<Current>,
    /// Packets of streams that are to be placed before the next ones.
    pending: VecDeque<(usize, Held)>,
    /// Events that are missing at the end: stream, last sequence number, cause.
    lost: VecDeque<(usize, u64, LossCause)>,
    /// Stream with held packets that may be due.
    due: Option<usize>,
    held_bytes: usize,
    is_finishing: bool,
    /// Events of several packets in the making.
    groups: Groups,
    /// Heaps in the making.
    senders: Senders,
    metadata: BTreeMap<String, String>,
    tally: Tally,
    /// What the kernel had dropped when the last packet arrived.
    drops: u32,
    /// What it has dropped since then.
    dropped_at_end: u64,
    /// How far the account at the end is.
    end: End,
}

impl Packets {
    /// A decoder of packets that arrive after `opened_ns`, ns since the Unix epoch.
    pub fn new(options: Options, limits: Limits, opened_ns: u64) -> Self {
        Self {
            admissions: Admissions::new(options.from.clone()),
            options,
            event_bytes_max: limits.event_bytes_max,
            // A joined message may be as long as an IP packet, with its headers.
            batch: Batch::new(MESSAGES, DATAGRAM_BYTES_MAX + 28),
            messages: 0,
            message: 0,
            offset: 0,
            batch_ns: 0,
            opened_ns,
            early: 0,
            admitted: VecDeque::new(),
            lengths: BTreeSet::new(),
            by_key: BTreeMap::new(),
            last: None,
            streams: Vec::new(),
            infos: Vec::new(),
            current: None,
            pending: VecDeque::new(),
            lost: VecDeque::new(),
            due: None,
            held_bytes: 0,
            is_finishing: false,
            groups: Groups::default(),
            senders: Senders::default(),
            metadata: BTreeMap::new(),
            tally: Tally::default(),
            drops: 0,
            dropped_at_end: 0,
            end: End::default(),
        }
    }

    /// Finds the next item.
    fn advance(&mut self) {
        while self.current.is_none() {
            if let Some(stream) = self.due {
                let is_forced = self.is_everything_placed() || self.held_bytes > self.held_bytes_max();
                let senders = &self.senders;
                let awaits = |from, to| senders.awaits(stream, from, to);
                match self.streams[stream].order.next_due(is_forced, &awaits) {
                    Some((sequence, missing, held)) => {
                        self.held_bytes -= held.bytes.len();
                        let timestamp_ns = held.timestamp_ns;
                        let packet = Place { stream, sequence, timestamp_ns, missing };
                        self.hand_out(packet, held);
                    }
                    None => self.due = None,
                }
            } else if let Some((stream, held)) = self.pending.pop_front() {
                let Held { timestamp_ns, drops, number, frame, bytes } = held;
                let payload = Payload::Owned(bytes);
                self.place(stream, Placed { number, frame, timestamp_ns, drops, payload });
            } else if let Some(packet) = self.admitted.pop_front() {
                self.take_admitted(packet);
            } else if let Some((stream, sequence, cause)) = self.lost.pop_front() {
                self.current = Some(Current::Lost { stream, sequence, cause });
            } else if self.message < self.messages {
                self.take_packet();
            } else if self.is_finishing && self.finish_next() {
            } else if self.senders.take_end() {
                self.current = Some(Current::End);
            } else {
                return;
            }
        }
    }

    /// Whether nothing follows that what is held could wait for.
    fn is_everything_placed(&self) -> bool {
        let is_read = self.message >= self.messages && self.admitted.is_empty() && self.pending.is_empty();
        let waits = |stream: &Stream| stream.seconds.as_ref().is_some_and(Seconds::has_waiting);
        self.is_finishing && is_read && self.end > End::Open && !self.streams.iter().any(waits)
    }

    /// Takes the next packet of the batch.
    fn take_packet(&mut self) {
        let Some(received) = self.batch.received(self.message).filter(|got| self.offset < got.data.len())
        else {
            if self.offset == 0 {
                let flow = self.flow();
                self.refuse(flow, RejectReason::Malformed, || "0 bytes".to_owned());
            }
            (self.message, self.offset) = (self.message + 1, 0);
            return;
        };
        let end = (self.offset + received.segment_bytes).min(received.data.len());
        let range = std::mem::replace(&mut self.offset, end)..end;
        let (drops, arrived_ns) = (received.drops, received.arrived_ns.unwrap_or(self.batch_ns));
        let is_truncated = received.is_truncated;
        self.drops = drops;
        if arrived_ns < self.opened_ns {
            self.early = self.early.saturating_add(1);
            return;
        }
        self.opened_ns = 0;
        let flow = self.flow();
        if is_truncated {
            return self.refuse(flow, RejectReason::Incomplete, || "truncated by the kernel".to_owned());
        }
        self.take_from(flow, (arrived_ns, drops), Payload::InMessage(range));
    }

    /// Takes a packet that was held until its sender was admitted.
    fn take_admitted(&mut self, packet: Packet) {
        let Packet { key, arrived_ns, drops, bytes } = packet;
        self.take_from(key.flow, (arrived_ns, drops), Payload::Owned(bytes));
    }

    /// Sender and destination of the current message.
    fn flow(&self) -> Flow {
        Flow { sender: self.batch.peer(self.message), destination: self.batch.destination(self.message) }
    }

    /// Takes a packet with its headers.
    fn take_from(&mut self, flow: Flow, (arrived_ns, drops): (u64, u32), packet: Payload) {
        let data = match &packet {
            Payload::InMessage(range) => {
                let message = self.batch.received(self.message).map_or(&[][..], |received| received.data);
                message.get(range.clone()).unwrap_or(&[])
            }
            Payload::Owned(bytes) => bytes,
        };
        if let Format::Spead(options) = self.options.format {
            let header = match spead::read(data) {
                Ok(header) => header,
                Err(why) => return self.refuse(flow, RejectReason::Malformed, || why),
            };
            // A header of SPEAD is enough to know a sender by.
            if !self.admissions.admit_at_once(flow) {
                return self.exclude(flow);
            }
            return self.take_part_of_heap(flow, (&header, &packet), (arrived_ns, drops), options);
        }
        let bytes = data.len().saturating_sub(self.options.skip) as u64;
        if bytes > self.event_bytes_max {
            let limit = self.event_bytes_max;
            let why = || format!("{bytes} bytes, limit {limit} bytes; raise --pool or --max-event");
            return self.refuse(flow, RejectReason::Unsupported, why);
        }
        let numbered = match self.options.read(data) {
            Ok(numbered) => numbered,
            Err(why) => return self.refuse(flow, RejectReason::Malformed, || why),
        };
        let thread = numbered.vdif.map(|frame| (frame.station, frame.thread));
        let key = Key { flow, thread };
        let known = match self.last {
            Some((last, stream)) if last == key => Some(stream),
            _ => {
                let stream = self.by_key.get(&key).copied();
                self.last = stream.map(|stream| (key, stream)).or(self.last);
                stream
            }
        };
        if known.is_none() && !self.admissions.has(&key) {
            let packet = Packet { key, arrived_ns, drops, bytes: data.to_vec() };
            let options = &self.options;
            match self.admissions.take(&packet, |earlier, later| options.are_of_one_stream(earlier, later)) {
                Admission::Held => return self.report_given_up(),
                Admission::Excluded => return self.exclude(flow),
                Admission::Admitted => {}
                Admission::New(mut earlier) => {
                    earlier.push(packet);
                    self.options.sort(&mut earlier);
                    self.admitted.extend(earlier);
                    return self.report_given_up();
                }
            }
        }
        if known.is_none() && self.lengths.len() < LENGTHS_MAX {
            self.lengths.insert(data.len());
        }
        let Some(stream) = known.or_else(|| self.new_stream(key, &numbered, drops)) else { return };
        let skip = self.options.skip;
        let payload = match packet {
            Payload::InMessage(range) => Payload::InMessage(range.start + skip..range.end),
            Payload::Owned(mut bytes) => {
                bytes.drain(..skip.min(bytes.len()));
                Payload::Owned(bytes)
            }
        };
        let state = &mut self.streams[stream];
        let Some((frame, seconds)) = numbered.vdif.as_ref().zip(state.seconds.as_mut()) else {
            let number = self.options.number(&numbered, Some(state.order.expected()));
            let placed = Placed { number, frame: numbered.frame, timestamp_ns: arrived_ns, drops, payload };
            return self.place_next(stream, placed);
        };
        let (number, word) = seconds.number(frame);
        let start_ns = frame.unix_s().saturating_mul(1_000_000_000);
        let Some(number) = number else {
            let bytes = self.owned(payload);
            self.held_bytes += bytes.len();
            let held = Held { timestamp_ns: start_ns, drops, number: 0, frame: word, bytes };
            let state = &mut self.streams[stream];
            let waiting = state.seconds.as_mut().map_or(0, |seconds| seconds.wait(held));
            if waiting > self.options.window.max(1) || self.held_bytes > self.held_bytes_max() {
                self.settle_seconds(stream);
            }
            return;
        };
        let timestamp_ns = start_ns.saturating_add(seconds.within_ns(frame.in_second));
        self.place_next(stream, Placed { number, frame: word, timestamp_ns, drops, payload });
    }

    /// Places a packet that has just arrived: its stream's declaration precedes it.
    fn place_next(&mut self, stream: usize, packet: Placed) {
        if self.current.is_none() {
            return self.place(stream, packet);
        }
        let Placed { number, frame, timestamp_ns, drops, payload } = packet;
        let bytes = self.owned(payload);
        self.pending.push_back((stream, Held { timestamp_ns, drops, number, frame, bytes }));
    }

    fn owned(&self, payload: Payload) -> Vec<u8> {
        match payload {
            Payload::InMessage(range) => {
                let received = self.batch.received(self.message);
                received.and_then(|received| received.data.get(range)).unwrap_or(&[]).to_vec()
            }
            Payload::Owned(bytes) => bytes,
        }
    }

    /// Places a packet in its stream.
    fn place(&mut self, stream: usize, packet: Placed) {
        let Placed { number, frame, timestamp_ns, drops, payload } = packet;
        let content = match &payload {
            Payload::InMessage(range) => {
                let received = self.batch.received(self.message);
                received.and_then(|received| received.data.get(range.clone())).unwrap_or(&[])
            }
            Payload::Owned(bytes) => bytes,
        };
        let state = &mut self.streams[stream];
        let verdict = state.order.judge(number, drops, content);
        match verdict {
            Verdict::Next(sequence, missing) => {
                if let Some(seconds) = &mut state.seconds {
                    seconds.accept(frame);
                }
                self.due = state.order.has_held().then_some(stream);
                let packet = Place { stream, sequence, timestamp_ns, missing };
                if !self.groups.is_empty() {
                    state.order.note(sequence, crc32(content));
                    let ordered = Ordered::new(&packet, (number, frame), content);
                    let whole = self.groups.add(stream, ordered, self.event_bytes_max);
                    self.current = whole.map(|whole| Current::whole(stream, whole));
                    return;
                }
                self.current = Some(match payload {
                    Payload::InMessage(range) => Current::Arrived { packet, range },
                    Payload::Owned(bytes) => {
                        Current::Held { packet, held: Held { timestamp_ns, drops, number, frame, bytes } }
                    }
                });
            }
            Verdict::Early | Verdict::Aside => {
                let bytes = self.owned(payload);
                self.held_bytes += bytes.len();
                let held = Held { timestamp_ns, drops, number, frame, bytes };
                let is_over = self.held_bytes > self.held_bytes_max();
                let order = &mut self.streams[stream].order;
                if verdict == Verdict::Early {
                    order.hold(held);
                    self.due = Some(stream);
                } else {
                    order.set_aside(held);
                    if is_over {
                        let outcome = order.final_outcome();
                        self.settle(stream, outcome);
                    }
                }
            }
            Verdict::Duplicate | Verdict::Rejected(_) => {
                let bytes = match payload {
                    Payload::InMessage(_) => Vec::new(),
                    Payload::Owned(bytes) => bytes,
                };
                self.leave_out(stream, verdict, number);
                self.senders.recycle(bytes);
            }
            Verdict::Settle(outcome) => {
                let bytes = self.owned(payload);
                self.pending.push_front((stream, Held { timestamp_ns, drops, number, frame, bytes }));
                self.settle(stream, outcome);
            }
        }
    }

    /// Settles packets of a stream that were set aside.
    fn settle(&mut self, stream: usize, outcome: Outcome) {
        let settled = self.streams[stream].order.settle(outcome);
        let bytes: usize = settled.iter().map(|(held, _)| held.bytes.len()).saturating_sum();
        self.held_bytes -= bytes;
        if outcome == Outcome::Restart {
            // What is held comes before the new start.
            self.senders.restart(stream);
            self.due = Some(stream);
            settled.into_iter().rev().for_each(|(held, _)| self.pending.push_front((stream, held)));
            return;
        }
        for (held, verdict) in settled {
            self.leave_out(stream, verdict, held.number);
        }
    }

    /// Counts a packet or heap of a stream that is not recorded.
    fn leave_out(&mut self, stream: usize, verdict: Verdict, number: u64) {
        let unit = self.options.format.event_unit();
        let Verdict::Rejected(reason) = verdict else {
            match unit {
                RejectUnit::Heap => self.tally.duplicate_heaps += 1,
                _ => self.tally.duplicates += 1,
            }
            return;
        };
        let what = self.options.format.unit();
        let subject =
            Subject { sender: self.streams[stream].key.flow.sender, reason, unit, is_foreign: false };
        self.tally.reject(subject, 1, || match reason {
            RejectReason::Late => {
                format!("{what} {number} arrived after the stream had continued without it")
            }
            RejectReason::Conflicting => format!("{what} {number} arrived again with other content"),
            _ => format!("{what} {number} does not continue the stream"),
        });
    }

    /// Counts a packet that is not of the format.
    fn refuse(&mut self, flow: Flow, reason: RejectReason, why: impl FnOnce() -> String) {
        let is_foreign = !self.admissions.is_admitted(&flow) && !self.admissions.names(&flow);
        if is_foreign && self.options.from.is_empty() && self.end == End::Open {
            return self.tally.reject_undecided(flow, reason, why);
        }
        let subject = Subject { sender: flow.sender, reason, unit: RejectUnit::Packet, is_foreign };
        self.tally.reject(subject, 1, why);
    }

    /// Counts a packet of a sender that the source does not name.
    fn exclude(&mut self, flow: Flow) {
        self.reject_sender(flow, 1, true, || "not a sender that from= names".to_owned());
    }

    fn reject_sender(&mut self, flow: Flow, count: u64, is_foreign: bool, why: impl FnOnce() -> String) {
        let (reason, unit) = (RejectReason::NotAdmitted, RejectUnit::Packet);
        let subject = Subject { sender: flow.sender, reason, unit, is_foreign };
        self.tally.reject(subject, count, why);
    }

    /// Counts packets of senders that were given up.
    fn report_given_up(&mut self) {
        for GivenUp { key: Key { flow, thread }, packets } in self.admissions.take_given_up() {
            let is_foreign = !self.admissions.is_admitted(&flow) && !self.admissions.names(&flow);
            let why = || match thread {
                Some((station, thread)) => {
                    let station = vdif::station_name(station);
                    format!("no two frames of {station}-thread-{thread} fit together")
                }
                None => {
                    "no two packets of the sender fit together; name it with from= to record it".to_owned()
                }
            };
            self.reject_sender(flow, packets, is_foreign, why);
        }
    }

    /// Declares the stream of a packet; `None`: one stream too many.
    fn new_stream(&mut self, key: Key, packet: &Numbered, drops: u32) -> Option<usize> {
        if !self.has_place(key.flow) {
            return None;
        }
        let given = match self.options.format {
            Format::Vdif(vdif) => vdif.frames_per_second,
            _ => None,
        };
        let group = self.options.group.unwrap_or(1);
        let mut seconds = packet.vdif.as_ref().map(|frame| Seconds::new(frame, given, group));
        let number = match (packet.vdif.as_ref(), seconds.as_mut()) {
            (Some(frame), Some(seconds)) => seconds.number(frame).0.unwrap_or(0),
            _ => self.options.number(packet, None),
        };
        let steps = self.options.steps();
        let stated = match &packet.vdif {
            Some(frame) if given.or(frame.stated).is_none() => frame.in_second,
            Some(_) => number,
            None => packet.number,
        };
        self.declare(key, (stated, number), drops, steps, seconds);
        if let Some(rule) = self.options.rule() {
            self.groups.push(Group::new(rule, steps));
        }
        if self.options.frame.is_some() {
            let name = self.infos.last().map_or(String::new(), |info| info.name.clone());
            self.note_metadata(format!("{name}/first_frame"), packet.frame.to_string());
        }
        Some(self.streams.len() - 1)
    }

    /// Whether another stream may be declared; otherwise a packet is counted.
    fn has_place(&mut self, flow: Flow) -> bool {
        let most = self.options.streams;
        if self.streams.len() < most {
            return true;
        }
        let why = || format!("more than {most} streams; raise streams= of the source");
        self.reject_sender(flow, 1, false, why);
        false
    }

    /// Hands out a packet that was held, or the event that it completes.
    fn hand_out(&mut self, packet: Place, held: Held) {
        let state = &mut self.streams[packet.stream];
        if let Some(seconds) = &mut state.seconds {
            seconds.accept(held.frame);
        }
        if self.groups.is_empty() {
            self.current = Some(Current::Held { packet, held });
            return;
        }
        state.order.note(packet.sequence, crc32(&held.bytes));
        let ordered = Ordered::new(&packet, (held.number, held.frame), &held.bytes);
        let whole = self.groups.add(packet.stream, ordered, self.event_bytes_max);
        self.current = whole.map(|whole| Current::whole(packet.stream, whole));
    }

    /// Declares a stream, whose first packet states a number and has one in its order.
    fn declare(
        &mut self,
        key: Key,
        (stated, number): (u64, u64),
        drops: u32,
        steps: (u64, u64),
        seconds: Option<Seconds>,
    ) {
        let name = self.name(&key);
        self.note_metadata(format!("{name}/first_{}", self.options.format.unit()), stated.to_string());
        let id = self.streams.len() as u32;
        let (element, shape) = (ElementType::U8, Vec::new());
        self.infos.push(StreamInfo { id, name, element, shape, compression: None });
        let aside_max = match self.options.format {
            Format::Spead(_) => HEAPS_ASIDE_MIN.max(2 * self.options.window),
            _ => ASIDE_MAX.max(2 * self.options.window),
        };
        let order = Order::new(steps, (self.options.window, aside_max), number, drops);
        self.by_key.insert(key, self.streams.len());
        self.streams.push(Stream { key, order, seconds });
        self.limit_gap(self.streams.len() - 1);
        self.current = Some(Current::Streams);
    }

    /// Name of a new stream: that of its thread or sender, and where that is not enough, the rest of its key.
    fn name(&self, key: &Key) -> String {
        let sender = key.flow.sender.map_or_else(|| "unknown".to_owned(), |sender| sender.to_string());
        let mut name = match key.thread {
            Some((station, thread)) => format!("{}-thread-{thread}", vdif::station_name(station)),
            None => sender.clone(),
        };
        let is_taken = |name: &str| self.infos.iter().any(|info| info.name == name);
        if key.thread.is_some() && is_taken(&name) {
            name = format!("{name}-from-{sender}");
        }
        if let Some(destination) = key.flow.destination.filter(|_| is_taken(&name)) {
            name = format!("{name}-to-{destination}");
        }
        name
    }

    fn note_metadata(&mut self, name: String, value: String) {
        if self.metadata.len() < METADATA_MAX {
            self.metadata.insert(name, value);
        }
    }

    /// Takes a step of a stream's time by more than a day for a clock that was set, not for lost frames.
    fn limit_gap(&mut self, stream: usize) {
        let Stream { order, seconds, .. } = &mut self.streams[stream];
        if let Some(per_second) = seconds.as_ref().and_then(Seconds::per_second) {
            order.limit_gap(per_second.saturating_mul(DAY_S));
        }
    }

    /// Settles the frames per second of a stream, and places the frames that have waited for them.
    fn settle_seconds(&mut self, stream: usize) {
        let Some(seconds) = &mut self.streams[stream].seconds else { return };
        let waited = seconds.settle();
        self.limit_gap(stream);
        self.held_bytes -= waited.iter().map(|held| held.bytes.len()).saturating_sum();
        self.pending.extend(waited.into_iter().map(|held| (stream, held)));
    }

    /// After the last packet: the next step that hands out or accounts for what is left. Returns whether
    /// there was one.
    fn finish_next(&mut self) -> bool {
        if self.end == End::Open {
            self.end = End::Admitted;
            let (lengths, is_first) = (&self.lengths, !self.admissions.has_admitted());
            let (options, is_named) = (&self.options, !self.options.from.is_empty());
            let welcome = self.admissions.finish(|packet| {
                let is_alike = is_first || is_named || lengths.contains(&packet.bytes.len());
                is_alike && !options.is_marked_invalid(&packet.bytes)
            });
            self.report_given_up();
            self.admitted.extend(welcome);
            return true;
        }
        let waits = |stream: &Stream| stream.seconds.as_ref().is_some_and(Seconds::has_waiting);
        if let Some(stream) = self.streams.iter().position(waits) {
            self.settle_seconds(stream);
            return true;
        }
        for stream in 0..self.streams.len() {
            let state = &self.streams[stream];
            if state.order.has_held() {
                self.due = Some(stream);
                return true;
            }
            if state.order.has_aside() {
                let outcome = state.order.final_outcome();
                self.settle(stream, outcome);
                return true;
            }
        }
        if self.end != End::Admitted {
            return false;
        }
        self.close_streams();
        true
    }

    /// Accounts for what is left once every packet is placed.
    fn close_streams(&mut self) {
        self.end = End::Closed;
        let is_grouped = !self.groups.is_empty();
        let (discarded, too_large) = self.groups.take_counts();
        let is_large = "their event is too large; raise --pool or --max-event, or record fewer streams";
        for (counts, reason, why) in [
            (discarded, RejectReason::Incomplete, "their event is incomplete"),
            (too_large, RejectReason::Unsupported, is_large),
        ] {
            for (stream, count) in counts.into_iter().enumerate() {
                let sender = self.streams.get(stream).and_then(|stream| stream.key.flow.sender);
                let subject = Subject { sender, reason, unit: RejectUnit::Packet, is_foreign: false };
                if count > 0 {
                    self.tally.reject(subject, count, || why.to_owned());
                }
            }
        }
        self.senders.close(&mut self.tally);
        self.count_heaps_before_stop();
        let dropped = std::mem::take(&mut self.dropped_at_end);
        if dropped == 0 {
            return;
        }
        if let ([stream], true) = (&self.streams[..], !is_grouped) {
            let sequence = stream.order.sequence().saturating_add(dropped - 1);
            self.lost.push_back((0, sequence, LossCause::SocketBuffer));
            return;
        }
        let (reason, unit) = (RejectReason::Incomplete, RejectUnit::Packet);
        let subject = Subject { sender: None, reason, unit, is_foreign: false };
        let why = "dropped by the kernel after the last received packet: socket buffer full";
        self.tally.reject(subject, dropped, || why.to_owned());
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
            Current::End => {
                Item::End { events: self.senders.announced(), streams: self.streams.len().max(1) }
            }
            Current::Lost { stream, sequence, cause } => {
                Item::Lost { stream: *stream, sequence: *sequence, cause: *cause }
            }
            Current::Held { packet, held } => event(packet, &held.bytes),
            Current::Arrived { packet, range } => {
                let data = self.batch.received(self.message).map_or(&[][..], |received| received.data);
                event(packet, data.get(range.clone()).unwrap_or(&[]))
            }
        }))
    }

    fn completed(&mut self, crc: u32) {
        if let Some(Current::Arrived { packet, .. } | Current::Held { packet, .. }) = &self.current
            && self.groups.is_empty()
            && let Some(stream) = self.streams.get_mut(packet.stream)
        {
            stream.order.note(packet.sequence, crc);
        }
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

    fn rejected(&mut self) -> Vec<Rejection> {
        let (admissions, is_end) = (&self.admissions, self.end > End::Open);
        self.tally.decide(|flow| admissions.is_admitted(flow), is_end);
        self.tally.take()
    }

    fn disconnected(&mut self) {
        self.finish(self.drops);
    }

    fn finish(&mut self, drops: u32) {
        let dropped = drops.wrapping_sub(self.drops);
        if !self.is_finishing && dropped <= u32::MAX / 2 {
            self.dropped_at_end = dropped.into();
        }
        self.is_finishing = true;
    }

    fn tick(&mut self, now_ns: u64) {
        self.limit_wait_for_stop(now_ns);
        self.tally.tick(now_ns);
    }

    fn has_due(&self) -> bool {
        self.senders.has_end() || self.tally.has_due()
    }

    fn remarks(&mut self) -> Vec<String> {
        let mut found = self.senders.take_remarks();
        if self.end != End::Closed {
            return found;
        }
        self.end = End::Remarked;
        let restarts: u64 = self.streams.iter().map(|stream| stream.order.restarts()).saturating_sum();
        let counted = |count: u64, what: &str| match count {
            1 => format!("1 {what}"),
            _ => format!("{count} {what}s"),
        };
        let early = counted(self.early, "packet");
        let early_stops = self.senders.early_stops;
        let remarks = [
            (self.early, format!("{early} not recorded: arrived before the start of the recording")),
            (self.tally.duplicates, counted(self.tally.duplicates, "duplicate packet")),
            (self.tally.duplicate_heaps, counted(self.tally.duplicate_heaps, "duplicate heap")),
            (restarts, format!("counter restarts: {restarts}; losses at a restart are unknown")),
            (early_stops, format!("{} before the first heap of a sender", counted(early_stops, "stop"))),
        ];
        found.extend(remarks.into_iter().filter(|(count, _)| *count > 0).map(|(_, remark)| remark));
        for (info, stream) in self.infos.iter().zip(&self.streams) {
            if let Some((stated, used)) = stream.seconds.as_ref().and_then(Seconds::contradiction) {
                let name = &info.name;
                found.push(format!("{name}: {used} frames per second in the stream, {stated} stated"));
            }
        }
        found
    }
}

#[cfg(test)]
#[path = "packets_tests.rs"]
mod tests;
