//! Encoding of IPbus 2.0: headers of packets and transactions, status, requests and replies.
//!
//! Invariants: no I/O; no panic on any input; every length in a packet is checked against its bytes.
use std::fmt;

mod status;

pub(super) use status::push_header;
pub use status::{STATUS_BYTES, Status};

/// Protocol version in every header.
pub const VERSION: u32 = 2;
/// Largest transaction, in words. The field in its header has eight bits.
pub const TRANSACTION_WORDS_MAX: usize = 255;
/// Bytes of a word.
pub const WORD_BYTES: usize = 4;
/// IPv4 and UDP headers, in bytes.
pub const IP_UDP_BYTES: usize = 28;
/// Number of transaction identifiers, which have twelve bits.
pub const TRANSACTION_IDS: u16 = 1 << 12;

/// Byte order of a packet's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// Most significant byte first.
    Big,
    /// Least significant byte first.
    Little,
}

impl ByteOrder {
    /// Byte order of this machine.
    pub const NATIVE: Self = if cfg!(target_endian = "big") { Self::Big } else { Self::Little };

    /// Decodes a word.
    pub fn word(self, bytes: [u8; WORD_BYTES]) -> u32 {
        match self {
            Self::Big => u32::from_be_bytes(bytes),
            Self::Little => u32::from_le_bytes(bytes),
        }
    }

    /// Encodes a word.
    pub fn bytes(self, word: u32) -> [u8; WORD_BYTES] {
        match self {
            Self::Big => word.to_be_bytes(),
            Self::Little => word.to_le_bytes(),
        }
    }
}

/// Error in an IPbus 2.0 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// Not a whole number of words, or empty.
    #[error("a datagram of {0} bytes, not a packet")]
    Length(usize),
    /// Another version of the protocol.
    #[error("IPbus version {0} instead of {VERSION}")]
    Version(u8),
    /// Invalid packet header.
    #[error("a datagram with the invalid packet header {0:#010x}")]
    Header(u32),
    /// Invalid transaction header.
    #[error("the invalid transaction header {0:#010x}")]
    Transaction(u32),
    /// A transaction beyond the end of its packet.
    #[error("a truncated transaction")]
    Short,
}

/// Kind of packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// Transactions.
    Control,
    /// Limits of the target, and the packet number that it expects.
    Status,
    /// Request to send a reply again.
    Resend,
}

/// First word of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHeader {
    /// Packet number; 0 is not checked.
    pub id: u16,
    /// Kind of packet.
    pub kind: PacketKind,
}

/// Header bits that indicate the byte order.
const QUALIFIER: u32 = 0xF0;

impl PacketHeader {
    /// Header of a transaction packet.
    pub fn control(id: u16) -> Self {
        Self { id, kind: PacketKind::Control }
    }

    /// Encodes the header.
    pub fn word(self) -> u32 {
        let kind = match self.kind {
            PacketKind::Control => 0,
            PacketKind::Status => 1,
            PacketKind::Resend => 2,
        };
        VERSION << 28 | u32::from(self.id) << 8 | QUALIFIER | kind
    }

    /// Decodes a header. The word must be in native order.
    ///
    /// # Errors
    /// Not a header of this version.
    pub fn from_word(word: u32) -> Result<Self, PacketError> {
        let kind = match word & 0xF {
            0 => PacketKind::Control,
            1 => PacketKind::Status,
            2 => PacketKind::Resend,
            _ => return Err(PacketError::Header(word)),
        };
        if word & 0x0F00_00F0 != QUALIFIER {
            return Err(PacketError::Header(word));
        }
        match word >> 28 {
            VERSION => Ok(Self { id: (word >> 8) as u16, kind }),
            version => Err(PacketError::Version(version as u8)),
        }
    }

    /// Decodes the header of a datagram. Returns its byte order too: only transactions may be little-endian.
    ///
    /// # Errors
    /// Not a packet of this version.
    pub fn parse(datagram: &[u8]) -> Result<(Self, ByteOrder), PacketError> {
        let length = PacketError::Length(datagram.len());
        let first = datagram.first_chunk().ok_or(length)?;
        if !datagram.len().is_multiple_of(WORD_BYTES) {
            return Err(length);
        }
        let big = Self::from_word(ByteOrder::Big.word(*first));
        let little = Self::from_word(ByteOrder::Little.word(*first));
        match (big, little) {
            (Ok(header), _) => Ok((header, ByteOrder::Big)),
            (_, Ok(header)) if header.kind == PacketKind::Control => Ok((header, ByteOrder::Little)),
            (_, Err(version @ PacketError::Version(_))) => Err(version),
            (Err(why), _) => Err(why),
        }
    }

    /// A packet that requests the reply to `id` again.
    pub fn resend(id: u16) -> [u8; WORD_BYTES] {
        Self { id, kind: PacketKind::Resend }.word().to_be_bytes()
    }
}

/// The packet number after `id`, which is never 0.
pub fn next_packet_id(id: u16) -> u16 {
    if id == u16::MAX { 1 } else { id + 1 }
}

/// Number of steps from packet `from` to packet `to`, neither of them 0.
pub fn packet_distance(from: u16, to: u16) -> usize {
    if to >= from { usize::from(to - from) } else { usize::from(u16::MAX) - usize::from(from - to) }
}

/// Kind of transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionKind {
    /// Reads consecutive words.
    Read,
    /// Writes consecutive words.
    Write,
    /// Reads the same word repeatedly.
    ReadFifo,
    /// Writes the same word repeatedly.
    WriteFifo,
    /// Masks and sets bits of a word, and returns its old value.
    RmwBits,
    /// Adds to a word, and returns its old value.
    RmwSum,
    /// Reads words of the configuration space.
    ReadConfiguration,
}

impl TransactionKind {
    const ALL: [Self; 7] = [
        Self::Read,
        Self::Write,
        Self::ReadFifo,
        Self::WriteFifo,
        Self::RmwBits,
        Self::RmwSum,
        Self::ReadConfiguration,
    ];

    fn from_number(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }

    /// Words after the header of a request for `words`: the address and the data.
    pub fn request_words(self, words: usize) -> usize {
        match self {
            Self::Read | Self::ReadFifo | Self::ReadConfiguration => 1,
            Self::Write | Self::WriteFifo => 1 + words,
            Self::RmwBits => 3,
            Self::RmwSum => 2,
        }
    }

    /// Words after the header of a successful reply to a request for `words`.
    pub fn reply_words(self, words: usize) -> usize {
        match self {
            Self::Read | Self::ReadFifo | Self::ReadConfiguration => words,
            Self::Write | Self::WriteFifo => 0,
            Self::RmwBits | Self::RmwSum => 1,
        }
    }

    /// Whether the transaction writes nothing.
    pub fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::ReadFifo | Self::ReadConfiguration)
    }

    /// Whether the words have consecutive addresses.
    pub fn is_incrementing(self) -> bool {
        !matches!(self, Self::ReadFifo | Self::WriteFifo)
    }
}

impl fmt::Display for TransactionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::ReadFifo => "read without increment",
            Self::WriteFifo => "write without increment",
            Self::RmwBits => "change bits",
            Self::RmwSum => "add",
            Self::ReadConfiguration => "read the configuration",
        })
    }
}

/// Info code of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info(pub u8);

impl Info {
    /// Success.
    pub const DONE: Self = Self(0);
    /// Invalid header.
    pub const BAD_HEADER: Self = Self(1);
    /// Bus error on read.
    pub const READ_ERROR: Self = Self(4);
    /// Bus error on write.
    pub const WRITE_ERROR: Self = Self(5);
    /// Bus timeout on read.
    pub const READ_TIMEOUT: Self = Self(6);
    /// Bus timeout on write.
    pub const WRITE_TIMEOUT: Self = Self(7);
    /// Request.
    pub const REQUEST: Self = Self(0xF);
}

impl fmt::Display for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::DONE => f.write_str("done"),
            Self::BAD_HEADER => f.write_str("bad header"),
            Self::READ_ERROR => f.write_str("bus error on read"),
            Self::WRITE_ERROR => f.write_str("bus error on write"),
            Self::READ_TIMEOUT => f.write_str("bus timeout on read"),
            Self::WRITE_TIMEOUT => f.write_str("bus timeout on write"),
            Self(code) => write!(f, "code {code:#x}"),
        }
    }
}

/// First word of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionHeader {
    /// Transaction number, chosen by the client; below [`TRANSACTION_IDS`].
    pub id: u16,
    /// Number of words.
    pub words: u8,
    /// Kind of transaction.
    pub kind: TransactionKind,
    /// Info code.
    pub info: Info,
}

impl TransactionHeader {
    /// Encodes the header.
    pub fn word(self) -> u32 {
        VERSION << 28
            | u32::from(self.id % TRANSACTION_IDS) << 16
            | u32::from(self.words) << 8
            | (self.kind as u32) << 4
            | u32::from(self.info.0 & 0xF)
    }

    /// Decodes a header.
    ///
    /// # Errors
    /// Not a transaction header.
    pub fn from_word(word: u32) -> Result<Self, PacketError> {
        let bad = PacketError::Transaction(word);
        let kind = TransactionKind::from_number(word >> 4 & 0xF).ok_or(bad)?;
        if word >> 28 != VERSION {
            return Err(bad);
        }
        let id = (word >> 16) as u16 % TRANSACTION_IDS;
        Ok(Self { id, words: (word >> 8) as u8, kind, info: Info((word & 0xF) as u8) })
    }
}

/// Remaining words of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words<'a> {
    bytes: &'a [u8],
    order: ByteOrder,
}

impl<'a> Words<'a> {
    /// The words after the packet header, without an incomplete last word.
    pub fn after_header(datagram: &'a [u8], order: ByteOrder) -> Self {
        Self { bytes: datagram.get(WORD_BYTES..).unwrap_or_default(), order }
    }

    /// Number of words.
    pub fn len(&self) -> usize {
        self.bytes.len() / WORD_BYTES
    }

    /// Whether no words remain.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the first `count` words, if that many remain.
    pub fn split_first_words(&mut self, count: usize) -> Option<Self> {
        let (head, rest) = self.bytes.split_at_checked(count.checked_mul(WORD_BYTES)?)?;
        self.bytes = rest;
        Some(Self { bytes: head, order: self.order })
    }

    /// Copies words until either side ends.
    pub fn copy_to(self, words: &mut [u32]) {
        let order = self.order;
        let chunks = self.bytes.as_chunks().0;
        match order {
            ByteOrder::Little => {
                words.iter_mut().zip(chunks).for_each(|(word, bytes)| *word = u32::from_le_bytes(*bytes));
            }
            ByteOrder::Big => {
                words.iter_mut().zip(chunks).for_each(|(word, bytes)| *word = u32::from_be_bytes(*bytes));
            }
        }
    }
}

impl Iterator for Words<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let (bytes, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(self.order.word(*bytes))
    }
}

/// A requested transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Header.
    pub header: TransactionHeader,
    /// Address of the first word.
    pub address: u32,
    /// Words to write, or operands.
    pub data: Words<'a>,
}

impl<'a> Request<'a> {
    /// Decodes the next request of a packet; `None` at its end.
    ///
    /// # Errors
    /// Not a request. The rest of the packet cannot be decoded.
    pub fn next(words: &mut Words<'a>) -> Option<Result<Self, PacketError>> {
        let word = words.next()?;
        Some(Self::read(word, words))
    }

    fn read(word: u32, words: &mut Words<'a>) -> Result<Self, PacketError> {
        let header = TransactionHeader::from_word(word)?;
        if header.info != Info::REQUEST {
            return Err(PacketError::Transaction(word));
        }
        let body = header.kind.request_words(header.words.into());
        let mut data = words.split_first_words(body).ok_or(PacketError::Short)?;
        let address = data.next().ok_or(PacketError::Short)?;
        Ok(Self { header, address, data })
    }
}

/// A reply to a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// Header.
    pub header: TransactionHeader,
    /// Words read. A failed transaction may have fewer than its header indicates.
    pub data: Words<'a>,
}

impl<'a> Reply<'a> {
    /// Decodes the next reply of a packet; `None` at its end.
    ///
    /// # Errors
    /// Not a reply. The rest of the packet cannot be decoded.
    pub fn next(words: &mut Words<'a>) -> Option<Result<Self, PacketError>> {
        let word = words.next()?;
        Some(Self::read(word, words))
    }

    fn read(word: u32, words: &mut Words<'a>) -> Result<Self, PacketError> {
        let header = TransactionHeader::from_word(word)?;
        if header.info == Info::REQUEST {
            return Err(PacketError::Transaction(word));
        }
        let body = header.kind.reply_words(header.words.into());
        let there = if header.info == Info::DONE { body } else { body.min(words.len()) };
        let data = words.split_first_words(there).ok_or(PacketError::Short)?;
        Ok(Self { header, data })
    }
}

/// Encoder that appends a packet to a buffer.
pub struct PacketWriter<'a> {
    bytes: &'a mut Vec<u8>,
    order: ByteOrder,
}

impl<'a> PacketWriter<'a> {
    /// Starts a transaction packet.
    pub fn control(bytes: &'a mut Vec<u8>, order: ByteOrder, id: u16) -> Self {
        let mut writer = Self { bytes, order };
        writer.word(PacketHeader::control(id).word());
        writer
    }

    /// Appends a word.
    pub fn word(&mut self, word: u32) {
        self.bytes.extend_from_slice(&self.order.bytes(word));
    }

    /// Appends words.
    pub fn words(&mut self, words: &[u32]) {
        let begin = self.bytes.len();
        self.bytes.resize(begin + words.len() * WORD_BYTES, 0);
        let chunks = self.bytes[begin..].as_chunks_mut().0;
        match self.order {
            ByteOrder::Little => {
                chunks.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
            }
            ByteOrder::Big => {
                chunks.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word.to_be_bytes());
            }
        }
    }

    /// Appends a transaction header.
    pub fn transaction(&mut self, header: TransactionHeader) {
        self.word(header.word());
    }

    /// Offset of the next word in the buffer, in bytes.
    pub fn position(&self) -> usize {
        self.bytes.len()
    }

    /// Replaces a word at a position.
    pub fn overwrite(&mut self, position: usize, word: u32) {
        if let Some(place) = self.bytes.get_mut(position..position + WORD_BYTES) {
            place.copy_from_slice(&self.order.bytes(word));
        }
    }
}

#[cfg(test)]
#[path = "packet_tests.rs"]
mod tests;
