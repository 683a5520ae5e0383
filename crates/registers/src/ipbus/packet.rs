//! The bytes of IPbus 2.0: headers of packets and transactions, status, requests and replies.
//!
//! Invariant: nothing here does I/O or panics, whatever the bytes; no number of a packet is believed before
//! it was compared with the bytes there are.
use std::fmt;

mod status;

pub(super) use status::remember;
pub use status::{STATUS_BYTES, Status};

/// Version of the protocol, in every header.
pub const VERSION: u32 = 2;
/// Words of one transaction at most: its header has eight bits for them.
pub const TRANSACTION_WORDS_MAX: usize = 255;
/// Bytes of a word.
pub const WORD_BYTES: usize = 4;
/// What IPv4 and UDP take of an MTU, in bytes.
pub const IP_UDP_BYTES: usize = 28;
/// Identifiers of transactions have twelve bits.
pub const TRANSACTION_IDS: u16 = 1 << 12;

/// Order of the bytes of a packet's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// Most significant byte first.
    Big,
    /// Least significant byte first.
    Little,
}

impl ByteOrder {
    /// That of this machine.
    pub const NATIVE: Self = if cfg!(target_endian = "big") { Self::Big } else { Self::Little };

    /// A word from its bytes.
    pub fn word(self, bytes: [u8; WORD_BYTES]) -> u32 {
        match self {
            Self::Big => u32::from_be_bytes(bytes),
            Self::Little => u32::from_le_bytes(bytes),
        }
    }

    /// The bytes of a word.
    pub fn bytes(self, word: u32) -> [u8; WORD_BYTES] {
        match self {
            Self::Big => word.to_be_bytes(),
            Self::Little => word.to_le_bytes(),
        }
    }
}

/// Why bytes are no packet of IPbus 2.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// Not a whole number of words, or none.
    #[error("a datagram of {0} bytes, which is no packet")]
    Length(usize),
    /// Another version of the protocol.
    #[error("IPbus version {0} instead of {VERSION}")]
    Version(u8),
    /// A first word that no packet begins with.
    #[error("a datagram that begins with {0:#010x}, which is no header of a packet")]
    Header(u32),
    /// A word where the header of a transaction should be.
    #[error("{0:#010x}, which is no header of a transaction")]
    Transaction(u32),
    /// A transaction that goes beyond the end of its packet.
    #[error("a transaction that goes beyond the end of its packet")]
    Short,
}

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// Transactions.
    Control,
    /// What the target can do, and which packet it expects.
    Status,
    /// Asks for a reply once more.
    Resend,
}

/// First word of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHeader {
    /// Number of the packet; 0 is not checked.
    pub id: u16,
    /// What it is for.
    pub kind: PacketKind,
}

/// Bits of the first word that tell the order of bytes.
const QUALIFIER: u32 = 0xF0;

impl PacketHeader {
    /// A packet of transactions.
    pub fn control(id: u16) -> Self {
        Self { id, kind: PacketKind::Control }
    }

    /// As a word.
    pub fn word(self) -> u32 {
        let kind = match self.kind {
            PacketKind::Control => 0,
            PacketKind::Status => 1,
            PacketKind::Resend => 2,
        };
        VERSION << 28 | u32::from(self.id) << 8 | QUALIFIER | kind
    }

    /// From a word in the right order.
    ///
    /// # Errors
    /// A word that is no header of this version.
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

    /// The header of a datagram, and the order of its bytes: big-endian always but for transactions.
    ///
    /// # Errors
    /// A datagram that is no packet of this version.
    pub fn of(datagram: &[u8]) -> Result<(Self, ByteOrder), PacketError> {
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

    /// A packet that asks for the reply to `id` once more.
    pub fn resend(id: u16) -> [u8; WORD_BYTES] {
        Self { id, kind: PacketKind::Resend }.word().to_be_bytes()
    }
}

/// The number after `id`; 0 is left out.
pub fn following(id: u16) -> u16 {
    if id == u16::MAX { 1 } else { id + 1 }
}

/// How many steps of [`following`] lead from `from` to `to`, both not 0.
pub fn steps(from: u16, to: u16) -> usize {
    if to >= from { usize::from(to - from) } else { usize::from(u16::MAX) - usize::from(from - to) }
}

/// What a transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionKind {
    /// Reads words one after the other.
    Read,
    /// Writes words one after the other.
    Write,
    /// Reads the same word again and again.
    ReadFifo,
    /// Writes to the same word again and again.
    WriteFifo,
    /// Keeps some bits, sets others, and gives what was there before.
    RmwBits,
    /// Adds, and gives what was there before.
    RmwSum,
    /// Reads words that describe the target.
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

    /// Words that a request of `words` has after its header: the address and what belongs to it.
    pub fn request_words(self, words: usize) -> usize {
        match self {
            Self::Read | Self::ReadFifo | Self::ReadConfiguration => 1,
            Self::Write | Self::WriteFifo => 1 + words,
            Self::RmwBits => 3,
            Self::RmwSum => 2,
        }
    }

    /// Words that a good reply to `words` has after its header.
    pub fn reply_words(self, words: usize) -> usize {
        match self {
            Self::Read | Self::ReadFifo | Self::ReadConfiguration => words,
            Self::Write | Self::WriteFifo => 0,
            Self::RmwBits | Self::RmwSum => 1,
        }
    }

    /// Whether it leaves what it reads as it is.
    pub fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::ReadFifo | Self::ReadConfiguration)
    }

    /// Whether each word has an address of its own.
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

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info(pub u8);

impl Info {
    /// It was done.
    pub const DONE: Self = Self(0);
    /// Its header makes no sense.
    pub const BAD_HEADER: Self = Self(1);
    /// The bus of the target refused a read.
    pub const READ_ERROR: Self = Self(4);
    /// The bus of the target refused a write.
    pub const WRITE_ERROR: Self = Self(5);
    /// The bus of the target did not answer a read.
    pub const READ_TIMEOUT: Self = Self(6);
    /// The bus of the target did not answer a write.
    pub const WRITE_TIMEOUT: Self = Self(7);
    /// It is a request.
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
    /// Its number within the packet, as whoever asks likes; below [`TRANSACTION_IDS`].
    pub id: u16,
    /// Words that it moves.
    pub words: u8,
    /// What it does.
    pub kind: TransactionKind,
    /// How it ended.
    pub info: Info,
}

impl TransactionHeader {
    /// As a word.
    pub fn word(self) -> u32 {
        VERSION << 28
            | u32::from(self.id % TRANSACTION_IDS) << 16
            | u32::from(self.words) << 8
            | (self.kind as u32) << 4
            | u32::from(self.info.0 & 0xF)
    }

    /// From a word.
    ///
    /// # Errors
    /// A word that is no header of a transaction.
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

/// Words of a packet that have not been looked at yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words<'a> {
    bytes: &'a [u8],
    order: ByteOrder,
}

impl<'a> Words<'a> {
    /// The words after the header of a packet; a rest that is no whole word is not among them.
    pub fn after_header(datagram: &'a [u8], order: ByteOrder) -> Self {
        Self { bytes: datagram.get(WORD_BYTES..).unwrap_or_default(), order }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.bytes.len() / WORD_BYTES
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the first `count`, if there are so many.
    pub fn split_first_words(&mut self, count: usize) -> Option<Self> {
        let (head, rest) = self.bytes.split_at_checked(count.checked_mul(WORD_BYTES)?)?;
        self.bytes = rest;
        Some(Self { bytes: head, order: self.order })
    }

    /// Writes as many into `words` as both have.
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

/// One transaction that somebody asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Its header.
    pub header: TransactionHeader,
    /// Where.
    pub address: u32,
    /// What to write, or the operands.
    pub data: Words<'a>,
}

impl<'a> Request<'a> {
    /// Takes the next request of a packet; none when it has no more.
    ///
    /// # Errors
    /// What is no request, after which the rest of the packet means nothing.
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

/// One transaction that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// Its header.
    pub header: TransactionHeader,
    /// What was read; of one that failed, at most what its header says.
    pub data: Words<'a>,
}

impl<'a> Reply<'a> {
    /// Takes the next reply of a packet; none when it has no more.
    ///
    /// # Errors
    /// What is no reply, after which the rest of the packet means nothing.
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

/// Puts a packet behind what `bytes` has already.
pub struct PacketWriter<'a> {
    bytes: &'a mut Vec<u8>,
    order: ByteOrder,
}

impl<'a> PacketWriter<'a> {
    /// Begins a packet of transactions.
    pub fn control(bytes: &'a mut Vec<u8>, order: ByteOrder, id: u16) -> Self {
        let mut writer = Self { bytes, order };
        writer.word(PacketHeader::control(id).word());
        writer
    }

    /// One more word.
    pub fn word(&mut self, word: u32) {
        self.bytes.extend_from_slice(&self.order.bytes(word));
    }

    /// More words.
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

    /// The first word of a transaction.
    pub fn transaction(&mut self, header: TransactionHeader) {
        self.word(header.word());
    }

    /// Where the next word will be, in bytes from the beginning of the memory.
    pub fn position(&self) -> usize {
        self.bytes.len()
    }

    /// Writes another word over one that is there.
    pub fn overwrite(&mut self, position: usize, word: u32) {
        if let Some(place) = self.bytes.get_mut(position..position + WORD_BYTES) {
            place.copy_from_slice(&self.order.bytes(word));
        }
    }
}

#[cfg(test)]
#[path = "packet_tests.rs"]
mod tests;
