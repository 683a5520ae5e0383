//! Capture files (pcap and pcapng): their UDP packets, to be decoded like packets that arrive at a socket.
//!
//! A file may be damaged or written to mislead. Invariants: memory is bounded by `BUFFER_BYTES` and
//! `CHUNK_BYTES`, whatever the lengths in the file; every packet that is not handed out is counted.
mod frame;

use std::borrow::Cow;
use std::io::{Cursor, Read};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use keepup_error::{Diagnostic, ErrorClass};
use keepup_stream::rejected::{RejectReason, RejectUnit, Rejection};
use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{
    Block, InterfaceDescriptionBlock, OptionCode, PcapBlockOwned, PcapError, PcapNGOption, create_reader,
};

use self::frame::{Link, Unused};

/// Longest record of a file that is read, bytes. Programs capture at most 256 KiB of a packet. Longer blocks
/// of other kinds are passed over.
const BUFFER_BYTES: usize = 1 << 20;
/// Packets that are handed over at once, bytes and number.
const CHUNK_BYTES: usize = 1 << 20;
const CHUNK_PACKETS: usize = 4096;
/// Bytes of the file after which [`Capture::read`] returns, even if they contained no packet.
const READ_BYTES: usize = 16 << 20;
/// Size of an empty pcapng block, bytes: its type and two lengths.
const BLOCK_BYTES_MIN: u32 = 12;
/// Size of the length at the end of a block, bytes.
const LENGTH_BYTES: usize = 4;
/// Kinds of pcapng blocks on which later ones depend: section header, interface.
const SECTION_BLOCK: u32 = 0x0A0D_0D0A;
const INTERFACE_BLOCK: u32 = 1;
/// Obsolete kind of a block with a packet, which programs still write.
const PACKET_BLOCK: u32 = 2;
/// All kinds of blocks with a packet.
const PACKET_BLOCKS: [u32; 3] = [PACKET_BLOCK, 3, 6];
/// Options: offset of the times of an interface; packets dropped since the one before; packets that an
/// interface and the operating system dropped.
const TIME_OFFSET: OptionCode = OptionCode::IfTsoffset;
const DROPPED_BEFORE: OptionCode = OptionCode(4);
const DROPPED_BY: [OptionCode; 2] = [OptionCode::IsbIfDrop, OptionCode::IsbOsDrop];
/// Most interfaces in a section of a pcapng file.
const INTERFACES_MAX: usize = 1024;

/// Why a capture file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The kernel's answer.
    #[error("cannot read capture file: {0}")]
    Read(std::io::Error),
    /// Another format.
    #[error("cannot read capture file: it is neither pcap nor pcapng")]
    Format,
    /// A compressed file.
    #[error("cannot read capture file: it is compressed by {0}")]
    Compressed(&'static str),
    /// The format of a version of libpcap that no program writes any more.
    #[error("cannot read capture file: modified pcap format (a1b2cd34) is not supported")]
    Modified,
    /// The link layer is not known.
    #[error("cannot read capture file: link type {0} is not supported")]
    Link(u32),
    /// A record contradicts the format.
    #[error("cannot read capture file beyond byte {at}: damaged record, or longer than {BUFFER_BYTES} bytes")]
    Record {
        /// Where the record starts, bytes.
        at: u64,
    },
}

impl Diagnostic for CaptureError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Read(_) => ErrorClass::Environment,
            Self::Format | Self::Compressed(_) | Self::Modified | Self::Link(_) => ErrorClass::Usage,
            Self::Record { .. } => ErrorClass::Failed,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Link(_) => Some(
                "supported: Ethernet (1), raw IP (12, 14, 101, 228, 229), loopback (0, 108), Linux cooked \
                 captures (113, 276)"
                    .into(),
            ),
            Self::Compressed(program) => {
                Some(format!("{program} -dc FILE | keepup record --from pcap:/dev/stdin ...").into())
            }
            Self::Modified => Some("convert it: editcap -F pcap FILE NEW".into()),
            Self::Read(_) | Self::Format | Self::Record { .. } => None,
        }
    }
}

/// UDP packets of a file, with their senders and times.
#[derive(Debug, Default)]
pub struct Chunk {
    bytes: Vec<u8>,
    packets: Vec<Packet>,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    end: usize,
    sender: SocketAddr,
    destination: SocketAddr,
    captured_ns: u64,
}

/// One packet of a [`Chunk`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// IP address and port of the sender.
    pub sender: SocketAddr,
    /// IP address and port to which it was sent.
    pub destination: SocketAddr,
    /// Time of the capture, ns since the Unix epoch.
    pub captured_ns: u64,
    /// Payload of the packet.
    pub payload: &'a [u8],
}

impl Chunk {
    /// Packet `index`, counted from 0.
    #[must_use]
    pub fn packet(&self, index: usize) -> Option<Datagram<'_>> {
        let Packet { end, sender, destination, captured_ns } = *self.packets.get(index)?;
        let start = index.checked_sub(1).and_then(|before| self.packets.get(before)).map_or(0, |p| p.end);
        Some(Datagram { sender, destination, captured_ns, payload: self.bytes.get(start..end)? })
    }

    /// Whether it has no packets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Latest time of a packet, ns since the Unix epoch.
    #[must_use]
    pub fn last_ns(&self) -> Option<u64> {
        self.packets.last().map(|packet| packet.captured_ns)
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.packets.clear();
    }

    fn is_full(&self) -> bool {
        self.packets.len() == CHUNK_PACKETS || self.bytes.len() + usize::from(u16::MAX) > CHUNK_BYTES
    }

    /// Whether a packet of this time is more than `span_ns` later than the first one.
    fn is_beyond(&self, captured_ns: u64, span_ns: u64) -> bool {
        self.packets.first().is_some_and(|first| captured_ns.saturating_sub(first.captured_ns) > span_ns)
    }

    fn push(&mut self, packet: Datagram<'_>) {
        self.bytes.extend_from_slice(packet.payload);
        let Datagram { sender, destination, captured_ns, .. } = packet;
        self.packets.push(Packet { end: self.bytes.len(), sender, destination, captured_ns });
    }
}

/// Packets of a file that are not handed out.
#[derive(Debug, Default)]
struct Counts {
    foreign: u64,
    fragments: u64,
    cut: u64,
    other_ports: u64,
    link: u64,
    /// Lengths of IP and UDP that contradict each other or the record.
    odd_lengths: u64,
    is_cut_off: bool,
    /// Packets that were handed out, and how many of those have no valid time.
    taken: u64,
    untimed: u64,
    /// Packets that the capture program dropped, as packets state.
    dropped: u64,
}

/// Interface of a capture.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: Option<Link>,
    /// Time units per second.
    units: u128,
    offset_s: i64,
    /// Packets that were dropped by the interface and by the operating system, as its statistics state.
    dropped: [u64; 2],
}

/// Record of a file.
struct Frame<'a> {
    link: Option<Link>,
    /// Time of the capture, or of the packet before if it has no valid one, ns since the Unix epoch.
    captured_ns: u64,
    has_time: bool,
    data: &'a [u8],
    /// Only the first part of the packet was captured.
    is_cut: bool,
    /// Packets that the capture program dropped before it.
    dropped: u64,
}

/// Why the parser returns no block.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The file has ended.
    End,
    /// More is to be read.
    Incomplete,
    Other,
}

/// A block that is passed over.
#[derive(Clone, Copy, Debug)]
struct Passing {
    /// Its first byte in the file.
    at: u64,
    /// Its length, and what is left of that, bytes.
    length: u32,
    left: usize,
}

/// Reader of a capture file.
pub struct Capture {
    reader: Box<dyn PcapReaderIterator + Send>,
    /// What the last read said, if it failed: the parser does not keep it.
    failure: Arc<Mutex<Option<std::io::Error>>>,
    port: Option<u16>,
    is_pcapng: bool,
    state: State,
    counts: Counts,
    passing: Option<Passing>,
}

/// What the records before say about the next ones.
#[derive(Default)]
struct State {
    /// A pcap file has one for all packets, a section of a pcapng file any number.
    interfaces: Vec<Interface>,
    /// Byte order of the section.
    is_big_endian: bool,
    /// Packets that were dropped by the interfaces of earlier sections and by the operating system.
    dropped: [u64; 2],
    /// Blocks with a packet that contradict themselves.
    damaged: u64,
    /// Time of the last packet, for those without one, ns since the Unix epoch.
    last_ns: u64,
    /// A section has more interfaces than [`INTERFACES_MAX`].
    has_too_many: bool,
}

impl Capture {
    /// Starts to read `file`; hands out the packets to UDP port `port`, or to any port.
    ///
    /// # Errors
    /// The file cannot be read, or is no capture file that is supported.
    pub fn open(file: impl Read + Send + 'static, port: Option<u16>) -> Result<Self, CaptureError> {
        let failure = Arc::default();
        let mut file = Watched { file, failure: Arc::clone(&failure) };
        // As much as the parser reads at once: it looks no further for the format.
        let mut first = vec![0; BUFFER_BYTES];
        let bytes = file.read(&mut first).unwrap_or(0);
        first.truncate(bytes);
        if let Some(refusal) = take_failure(&failure).or_else(|| CaptureError::of_start(&first)) {
            return Err(refusal);
        }
        let reader = create_reader(BUFFER_BYTES, Cursor::new(first).chain(file))
            .map_err(|_| take_failure(&failure).unwrap_or(CaptureError::Format))?;
        let (state, counts) = (State::default(), Counts::default());
        let mut capture = Self { reader, failure, port, is_pcapng: true, state, counts, passing: None };
        // The header of a pcap file says at once whether its packets can be read.
        if let Ok((bytes, PcapBlockOwned::LegacyHeader(header))) = capture.reader.next() {
            let number = header.network.0 as u32 & 0xFFFF;
            let link = Some(Link::of(number).ok_or(CaptureError::Link(number))?);
            let units = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
            capture.state.interfaces.push(Interface { link, units, offset_s: 0, dropped: [0; 2] });
            capture.reader.consume(bytes);
            capture.is_pcapng = false;
        }
        Ok(capture)
    }

    /// Replaces the packets of `chunk` by the next ones, which span at most `span_ns` of the capture's time.
    /// Returns whether there may be more; `chunk` may be empty even so.
    ///
    /// # Errors
    /// The file cannot be read any further. `chunk` has the packets before.
    pub fn read(&mut self, chunk: &mut Chunk, span_ns: u64) -> Result<bool, CaptureError> {
        chunk.clear();
        let start = self.reader.consumed();
        while !chunk.is_full() && self.reader.consumed() - start < READ_BYTES {
            if let Some(passing) = self.passing {
                self.pass(passing)?;
                continue;
            }
            if self.is_pcapng && is_too_short(self.reader.data()) {
                return Err(CaptureError::Record { at: self.reader.consumed() as u64 });
            }
            let fault = match self.reader.next() {
                Ok((bytes, block)) => {
                    if let Some(frame) = self.state.frame(&block) {
                        if chunk.is_beyond(frame.captured_ns, span_ns) {
                            // It is parsed once more, for the next chunk.
                            return Ok(true);
                        }
                        self.state.last_ns = frame.captured_ns;
                        self.counts.dropped = self.counts.dropped.saturating_add(frame.dropped);
                        self.counts.take(&frame, self.port, chunk);
                    }
                    if self.state.has_too_many {
                        return Err(CaptureError::Record { at: self.reader.consumed() as u64 });
                    }
                    self.reader.consume(bytes);
                    continue;
                }
                Err(PcapError::Eof) => return Ok(false),
                Err(PcapError::UnexpectedEof) => Fault::End,
                Err(PcapError::Incomplete(_)) => Fault::Incomplete,
                Err(_) => Fault::Other,
            };
            if self.leave_block(fault)? {
                continue;
            }
            match fault {
                Fault::End => {
                    self.counts.is_cut_off = true;
                    return Ok(false);
                }
                Fault::Incomplete => self.refill()?,
                Fault::Other => return Err(CaptureError::Record { at: self.reader.consumed() as u64 }),
            }
        }
        Ok(true)
    }

    fn refill(&mut self) -> Result<(), CaptureError> {
        if self.reader.refill().is_ok() {
            return Ok(());
        }
        let at = self.reader.consumed() as u64;
        Err(take_failure(&self.failure).unwrap_or(CaptureError::Record { at }))
    }

    /// Leaves out the pcapng block that cannot be parsed, if no later one depends on it: counts a whole one
    /// that contradicts itself, and starts to pass over a long one without a packet. Returns whether it did.
    fn leave_block(&mut self, fault: Fault) -> Result<bool, CaptureError> {
        let (data, at) = (self.reader.data(), self.reader.consumed() as u64);
        let number = |at: usize| Some(self.state.number(*data.get(at..)?.first_chunk()?));
        let (Some(kind), Some(length), true) = (number(0), number(4), self.is_pcapng) else {
            return Ok(false);
        };
        if kind == SECTION_BLOCK {
            return Ok(false);
        }
        let (has_packet, bytes) = (PACKET_BLOCKS.contains(&kind), length as usize);
        if bytes > data.len() {
            let is_passed = matches!(fault, Fault::Other) && !has_packet && kind != INTERFACE_BLOCK;
            self.passing = is_passed.then_some(Passing { at, length, left: bytes });
            return Ok(is_passed);
        }
        // If the lengths at both ends agree, what follows is the next block.
        if kind == INTERFACE_BLOCK || number(bytes - LENGTH_BYTES) != Some(length) {
            return Err(CaptureError::Record { at });
        }
        self.state.damaged += u64::from(has_packet);
        self.reader.consume(bytes);
        Ok(true)
    }

    /// Goes on within a block that is passed over.
    fn pass(&mut self, Passing { at, length, left }: Passing) -> Result<(), CaptureError> {
        let data = self.reader.data();
        let Some(first) = data.first_chunk() else {
            return match self.reader.reader_exhausted() {
                true => Err(CaptureError::Record { at }),
                false => self.refill(),
            };
        };
        let bytes = match left - LENGTH_BYTES {
            0 if self.state.number(*first) != length => return Err(CaptureError::Record { at }),
            0 => LENGTH_BYTES,
            before => before.min(data.len()),
        };
        self.reader.consume(bytes);
        self.passing = (left > bytes).then(|| Passing { at, length, left: left - bytes });
        Ok(())
    }

    /// Sentences about packets of the file that were not handed out.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let counted = |count: u64| match count {
            1 => "1 packet".to_owned(),
            _ => format!("{count} packets"),
        };
        let Counts { other_ports, untimed, dropped, .. } = self.counts;
        let [by_interface, by_system] = self.state.dropped();
        let remarks = [
            (other_ports, "of the file not recorded: sent to another port"),
            (untimed, "of the file without a valid time: they have the time of the packet before"),
            (by_interface, "dropped by the network interface of the capture, as the file states"),
            (by_system, "dropped by the operating system of the capture, as the file states"),
            (dropped, "dropped between packets of the capture, as the file states"),
        ];
        let remarks = remarks.into_iter().filter(|(count, _)| *count > 0);
        let mut remarks: Vec<String> =
            remarks.map(|(count, what)| format!("{} {what}", counted(count))).collect();
        if self.counts.is_empty() && self.state.damaged == 0 {
            remarks.push("the file has no packets".to_owned());
        }
        remarks
    }

    /// Packets of the file that were not handed out, and that no setting excludes.
    #[must_use]
    pub fn rejected(&self) -> Vec<Rejection> {
        let Counts { foreign, fragments, cut, link, odd_lengths, is_cut_off, .. } = self.counts;
        let causes = [
            (foreign, RejectReason::Unsupported, "not UDP over IP"),
            (fragments, RejectReason::Unsupported, "IP fragments"),
            (cut, RejectReason::Incomplete, "captured only in part"),
            (link, RejectReason::Unsupported, "unsupported link type"),
            (odd_lengths, RejectReason::Malformed, "contradictory lengths of IP or UDP"),
            (self.state.damaged, RejectReason::Malformed, "damaged record"),
            (u64::from(is_cut_off), RejectReason::Incomplete, "the file ends within a record"),
        ];
        let rejection = |(at, (count, reason, why)): (usize, (u64, RejectReason, &str))| Rejection {
            sender: None,
            reason,
            unit: RejectUnit::Packet,
            count,
            // Every network has packets of other protocols.
            is_foreign: at == 0,
            detail: why.to_owned(),
        };
        let causes = causes.into_iter().enumerate().filter(|(_, (count, ..))| *count > 0);
        causes.map(rejection).collect()
    }
}

/// Whether the block at the start of `data` claims fewer than [`BLOCK_BYTES_MIN`] bytes, which the parser
/// subtracts without a check. Both byte orders are tested: the swapped value of a length from 1 to 11 exceeds
/// [`BUFFER_BYTES`].
fn is_too_short(data: &[u8]) -> bool {
    let Some(length) = data.get(4..8).and_then(|bytes| bytes.try_into().ok()) else { return false };
    u32::from_le_bytes(length).min(u32::from_be_bytes(length)) < BLOCK_BYTES_MIN
}

impl CaptureError {
    /// Why a file that starts with these bytes is not read, if another program can convert it.
    fn of_start(start: &[u8]) -> Option<Self> {
        match start {
            [0x1F, 0x8B, ..] => Some(Self::Compressed("gzip")),
            [0x28, 0xB5, 0x2F, 0xFD, ..] => Some(Self::Compressed("zstd")),
            [0xFD, b'7', b'z', b'X', b'Z', ..] => Some(Self::Compressed("xz")),
            [b'B', b'Z', b'h', ..] => Some(Self::Compressed("bzip2")),
            [0x04, 0x22, 0x4D, 0x18, ..] => Some(Self::Compressed("lz4")),
            [0x34, 0xCD, 0xB2, 0xA1, ..] | [0xA1, 0xB2, 0xCD, 0x34, ..] => Some(Self::Modified),
            _ => None,
        }
    }
}

impl Counts {
    /// Whether the file has no packets.
    fn is_empty(&self) -> bool {
        let Self { foreign, fragments, cut, other_ports, link, odd_lengths, taken, .. } = self;
        let counts = [foreign, fragments, cut, other_ports, link, odd_lengths, taken];
        counts.iter().all(|count| **count == 0) && !self.is_cut_off
    }

    /// Adds the UDP packet of a frame to `chunk`, or counts why there is none.
    fn take(&mut self, frame: &Frame<'_>, port: Option<u16>, chunk: &mut Chunk) {
        let Some(link) = frame.link else { return self.link += 1 };
        match frame::udp_packet(link, frame.data) {
            Ok(udp) if port.is_some_and(|port| port != udp.destination.port()) => self.other_ports += 1,
            Ok(udp) => {
                let frame::Udp { sender, destination, payload } = udp;
                chunk.push(Datagram { sender, destination, captured_ns: frame.captured_ns, payload });
                self.taken += 1;
                self.untimed += u64::from(!frame.has_time);
            }
            Err(Unused::Damaged(to)) if port.is_some_and(|port| port != to) => self.other_ports += 1,
            Err(Unused::Fragment) => self.fragments += 1,
            Err(Unused::Short | Unused::Damaged(_)) if frame.is_cut => self.cut += 1,
            Err(Unused::Damaged(_)) => self.odd_lengths += 1,
            Err(Unused::Short | Unused::Foreign) => self.foreign += 1,
        }
    }
}

impl State {
    /// A number of the file.
    fn number(&self, bytes: [u8; 4]) -> u32 {
        if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    /// Value of an option of 8 bytes.
    fn option(&self, options: &[PcapNGOption<'_>], code: OptionCode) -> Option<u64> {
        let option = options.iter().find(|option| option.code == code)?;
        let bytes = *option.value().first_chunk().filter(|_| option.len == 8)?;
        Some(if self.is_big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    /// Packets that were dropped by interfaces and by the operating system.
    fn dropped(&self) -> [u64; 2] {
        let add = |sum: [u64; 2], other: [u64; 2]| [0, 1].map(|at| sum[at].saturating_add(other[at]));
        self.interfaces.iter().map(|interface| interface.dropped).fold(self.dropped, add)
    }

    /// Packet of a block.
    fn frame<'a>(&mut self, block: &PcapBlockOwned<'a>) -> Option<Frame<'a>> {
        match block {
            PcapBlockOwned::Legacy(record) => {
                let interface = self.interfaces.first()?;
                let fraction_ns = u64::from(record.ts_usec) * (1_000_000_000 / interface.units as u64);
                let captured_ns = u64::from(record.ts_sec) * 1_000_000_000 + fraction_ns;
                let is_cut = record.caplen < record.origlen;
                let (link, data) = (interface.link, record.data);
                Some(Frame { link, captured_ns, has_time: true, data, is_cut, dropped: 0 })
            }
            PcapBlockOwned::NG(Block::SectionHeader(header)) => {
                self.dropped = self.dropped();
                self.interfaces.clear();
                self.is_big_endian = header.big_endian();
                None
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
                self.has_too_many |= self.interfaces.len() == INTERFACES_MAX;
                if !self.has_too_many {
                    // The parser reads it as little endian in every section.
                    let offset_s = self.option(&description.options, TIME_OFFSET).unwrap_or(0);
                    self.interfaces.push(Interface::of(description, offset_s.cast_signed()));
                }
                None
            }
            PcapBlockOwned::NG(Block::InterfaceStatistics(statistics)) => {
                let stated = DROPPED_BY.map(|code| self.option(&statistics.options, code));
                let interface = self.interfaces.get_mut(statistics.if_id as usize)?;
                // Counts since the start of the capture: the last block is valid.
                interface.dropped = [0, 1].map(|at| stated[at].unwrap_or(interface.dropped[at]));
                None
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let data = packet.data.get(..packet.caplen as usize).unwrap_or(packet.data);
                let is_cut = packet.caplen < packet.origlen;
                let dropped = match &packet.options[..] {
                    [] => 0,
                    options => self.option(options, DROPPED_BEFORE).unwrap_or(0),
                };
                Some(self.timed((packet.if_id, packet.ts_high, packet.ts_low), (data, is_cut), dropped))
            }
            PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
                let link = self.interfaces.first().and_then(|interface| interface.link);
                let data = packet.data.get(..packet.origlen as usize).unwrap_or(packet.data);
                let is_cut = data.len() < packet.orig_len() as usize;
                let captured_ns = self.last_ns;
                Some(Frame { link, captured_ns, has_time: false, data, is_cut, dropped: 0 })
            }
            PcapBlockOwned::NG(Block::Unknown(block))
                if self.number(block.block_type.to_le_bytes()) == PACKET_BLOCK =>
            {
                let frame = self.packet_block(block.data);
                self.damaged += u64::from(frame.is_none());
                frame
            }
            PcapBlockOwned::LegacyHeader(_) | PcapBlockOwned::NG(_) => None,
        }
    }

    /// Packet of the body of an obsolete Packet Block; `None`: its lengths contradict each other.
    fn packet_block<'a>(&self, body: &'a [u8]) -> Option<Frame<'a>> {
        let short = |bytes: [u8; 2]| match self.is_big_endian {
            true => u16::from_be_bytes(bytes),
            false => u16::from_le_bytes(bytes),
        };
        let (interface, rest) = body.split_first_chunk()?;
        let (dropped, rest) = rest.split_first_chunk()?;
        let (numbers, data) = rest.split_first_chunk::<16>()?;
        let number = |at: usize| Some(self.number(*numbers.get(at..)?.first_chunk()?));
        let (captured, original) = (number(8)?, number(12)?);
        let data = data.get(..captured as usize)?;
        // All bits set: not known.
        let dropped = Some(short(*dropped)).filter(|dropped| *dropped < u16::MAX).unwrap_or(0);
        let time = (short(*interface).into(), number(0)?, number(4)?);
        Some(self.timed(time, (data, captured < original), dropped.into()))
    }

    /// Packet of an interface, with a time in the units of that.
    fn timed<'a>(
        &self,
        (interface, high, low): (u32, u32, u32),
        (data, is_cut): (&'a [u8], bool),
        dropped: u64,
    ) -> Frame<'a> {
        let interface = self.interfaces.get(interface as usize);
        let units = u64::from(high) << 32 | u64::from(low);
        let time_ns = interface.and_then(|interface| interface.time_ns(units));
        let (captured_ns, has_time) = (time_ns.unwrap_or(self.last_ns), time_ns.is_some());
        let link = interface.and_then(|interface| interface.link);
        Frame { link, captured_ns, has_time, data, is_cut, dropped }
    }
}

impl Interface {
    fn of(description: &InterfaceDescriptionBlock<'_>, offset_s: i64) -> Self {
        let exponent = u32::from(description.if_tsresol & 0x7F);
        let units = match description.if_tsresol & 0x80 {
            0 => 10u128.checked_pow(exponent),
            _ => 1u128.checked_shl(exponent),
        };
        let link = Link::of(description.linktype.0 as u32 & 0xFFFF);
        Self { link, units: units.unwrap_or(u128::MAX), offset_s, dropped: [0; 2] }
    }

    /// Time, ns since the Unix epoch, of a number of its time units; `None` outside 64 bits.
    fn time_ns(&self, units: u64) -> Option<u64> {
        let ns = i128::try_from(u128::from(units) * 1_000_000_000 / self.units).ok()?;
        u64::try_from(ns + i128::from(self.offset_s) * 1_000_000_000).ok()
    }
}

/// A file, and the error of its last read.
struct Watched<R> {
    file: R,
    failure: Arc<Mutex<Option<std::io::Error>>>,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, space: &mut [u8]) -> std::io::Result<usize> {
        loop {
            match self.file.read(space) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let kind = error.kind();
                    *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    return Err(kind.into());
                }
                read => return read,
            }
        }
    }
}

fn take_failure(failure: &Mutex<Option<std::io::Error>>) -> Option<CaptureError> {
    failure.lock().unwrap_or_else(PoisonError::into_inner).take().map(CaptureError::Read)
}

#[cfg(test)]
#[path = "capture_tests.rs"]
mod tests;
