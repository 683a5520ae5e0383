//! Capture files (pcap and pcapng): their UDP packets, to be decoded like packets that arrive at a socket.
//!
//! A file may be damaged or written to mislead. Invariants: memory is bounded by `BUFFER_BYTES` and
//! `CHUNK_BYTES`, whatever the lengths in the file; every packet that is not handed out is counted.
mod frame;

use std::borrow::Cow;
use std::io::Read;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use keepup_error::{Diagnostic, ErrorClass};
use keepup_stream::rejected::{RejectReason, RejectUnit, Rejection};
use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{Block, InterfaceDescriptionBlock, PcapBlockOwned, PcapError, create_reader};

use self::frame::{Link, Unused};

/// Longest record of a file, bytes. Programs capture at most 256 KiB of a packet.
const BUFFER_BYTES: usize = 1 << 20;
/// Packets that are handed over at once, bytes and number.
const CHUNK_BYTES: usize = 1 << 20;
const CHUNK_PACKETS: usize = 4096;
/// Bytes of the file after which [`Capture::read`] returns, even if they contained no packet.
const READ_BYTES: usize = 16 << 20;
/// Size of an empty pcapng block, bytes: its type and two lengths.
const BLOCK_BYTES_MIN: u32 = 12;
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
            Self::Format | Self::Link(_) => ErrorClass::Usage,
            Self::Record { .. } => ErrorClass::Failed,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Link(_) => Some(
                "supported: Ethernet (1), raw IP (101, 228, 229), Linux cooked captures (113, 276)".into(),
            ),
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
    is_cut_off: bool,
}

/// Interface of a capture.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: Option<Link>,
    /// Time units per second.
    units: u128,
    offset_s: i64,
}

/// Record of a file.
struct Frame<'a> {
    link: Option<Link>,
    captured_ns: u64,
    data: &'a [u8],
    /// Only the first part of the packet was captured.
    is_cut: bool,
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
}

/// What the records before say about the next ones.
#[derive(Default)]
struct State {
    /// A pcap file has one for all packets, a section of a pcapng file any number.
    interfaces: Vec<Interface>,
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
        let file = Watched { file, failure: Arc::clone(&failure) };
        let reader = create_reader(BUFFER_BYTES, file)
            .map_err(|_| take_failure(&failure).unwrap_or(CaptureError::Format))?;
        let (state, counts) = (State::default(), Counts::default());
        let mut capture = Self { reader, failure, port, is_pcapng: true, state, counts };
        // The header of a pcap file says at once whether its packets can be read.
        if let Ok((bytes, PcapBlockOwned::LegacyHeader(header))) = capture.reader.next() {
            let number = header.network.0 as u32 & 0xFFFF;
            let link = Some(Link::of(number).ok_or(CaptureError::Link(number))?);
            let units = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
            capture.state.interfaces.push(Interface { link, units, offset_s: 0 });
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
            if self.is_pcapng && is_too_short(self.reader.data()) {
                return Err(CaptureError::Record { at: self.reader.consumed() as u64 });
            }
            match self.reader.next() {
                Ok((bytes, block)) => {
                    if let Some(frame) = self.state.frame(&block) {
                        if chunk.is_beyond(frame.captured_ns, span_ns) {
                            // It is parsed once more, for the next chunk.
                            return Ok(true);
                        }
                        self.state.last_ns = frame.captured_ns;
                        self.counts.take(&frame, self.port, chunk);
                    }
                    if self.state.has_too_many {
                        return Err(CaptureError::Record { at: self.reader.consumed() as u64 });
                    }
                    self.reader.consume(bytes);
                }
                Err(PcapError::Eof) => return Ok(false),
                Err(PcapError::UnexpectedEof) => {
                    self.counts.is_cut_off = true;
                    return Ok(false);
                }
                Err(PcapError::Incomplete(_)) => {
                    if self.reader.refill().is_err() {
                        let at = self.reader.consumed() as u64;
                        return Err(take_failure(&self.failure).unwrap_or(CaptureError::Record { at }));
                    }
                }
                Err(_) => return Err(CaptureError::Record { at: self.reader.consumed() as u64 }),
            }
        }
        Ok(true)
    }

    /// Sentences about packets of the file that were not handed out.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let count = self.counts.other_ports;
        let packets = if count == 1 { "packet" } else { "packets" };
        let remark = format!("{count} {packets} of the file not recorded: sent to another port");
        if count > 0 { vec![remark] } else { Vec::new() }
    }

    /// Packets of the file that were not handed out, and that no setting excludes.
    #[must_use]
    pub fn rejected(&self) -> Vec<Rejection> {
        let Counts { foreign, fragments, cut, link, is_cut_off, .. } = self.counts;
        let causes = [
            (foreign, RejectReason::Unsupported, "not UDP over IP"),
            (fragments, RejectReason::Unsupported, "IP fragments"),
            (cut, RejectReason::Incomplete, "captured only in part"),
            (link, RejectReason::Unsupported, "unsupported link type"),
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

impl Counts {
    /// Adds the UDP packet of a frame to `chunk`, or counts why there is none.
    fn take(&mut self, frame: &Frame<'_>, port: Option<u16>, chunk: &mut Chunk) {
        let Some(link) = frame.link else { return self.link += 1 };
        match frame::udp_packet(link, frame.data) {
            Ok(udp) if port.is_some_and(|port| port != udp.destination.port()) => self.other_ports += 1,
            Ok(udp) => {
                let frame::Udp { sender, destination, payload } = udp;
                chunk.push(Datagram { sender, destination, captured_ns: frame.captured_ns, payload });
            }
            Err(Unused::Fragment) => self.fragments += 1,
            Err(Unused::Short) if frame.is_cut => self.cut += 1,
            Err(Unused::Short | Unused::Foreign) => self.foreign += 1,
        }
    }
}

impl State {
    /// Packet of a block.
    fn frame<'a>(&mut self, block: &PcapBlockOwned<'a>) -> Option<Frame<'a>> {
        match block {
            PcapBlockOwned::Legacy(record) => {
                let interface = self.interfaces.first()?;
                let fraction_ns = u64::from(record.ts_usec) * (1_000_000_000 / interface.units as u64);
                let captured_ns = u64::from(record.ts_sec) * 1_000_000_000 + fraction_ns;
                let is_cut = record.caplen < record.origlen;
                Some(Frame { link: interface.link, captured_ns, data: record.data, is_cut })
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => {
                self.interfaces.clear();
                None
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
                self.has_too_many |= self.interfaces.len() == INTERFACES_MAX;
                if !self.has_too_many {
                    self.interfaces.push(Interface::of(description));
                }
                None
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let interface = self.interfaces.get(packet.if_id as usize);
                let units = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let captured_ns = interface.map_or(self.last_ns, |interface| interface.time_ns(units));
                let data = packet.data.get(..packet.caplen as usize).unwrap_or(packet.data);
                let is_cut = packet.caplen < packet.origlen;
                Some(Frame { link: interface.and_then(|found| found.link), captured_ns, data, is_cut })
            }
            PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
                let link = self.interfaces.first().and_then(|interface| interface.link);
                let data = packet.data.get(..packet.origlen as usize).unwrap_or(packet.data);
                let is_cut = data.len() < packet.orig_len() as usize;
                Some(Frame { link, captured_ns: self.last_ns, data, is_cut })
            }
            PcapBlockOwned::LegacyHeader(_) | PcapBlockOwned::NG(_) => None,
        }
    }
}

impl Interface {
    fn of(description: &InterfaceDescriptionBlock<'_>) -> Self {
        let exponent = u32::from(description.if_tsresol & 0x7F);
        let units = match description.if_tsresol & 0x80 {
            0 => 10u128.checked_pow(exponent),
            _ => 1u128.checked_shl(exponent),
        };
        let link = Link::of(description.linktype.0 as u32 & 0xFFFF);
        Self { link, units: units.unwrap_or(u128::MAX), offset_s: description.if_tsoffset }
    }

    /// Time, ns since the Unix epoch, of a number of its time units.
    fn time_ns(&self, units: u64) -> u64 {
        let ns = u128::from(units) * 1_000_000_000 / self.units;
        let ns =
            i128::try_from(ns).unwrap_or(i128::MAX).saturating_add(i128::from(self.offset_s) * 1_000_000_000);
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
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
