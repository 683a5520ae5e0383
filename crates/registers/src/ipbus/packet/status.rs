//! Status of a target: its limits, and the packet number that it expects next.
use super::{ByteOrder, PacketError, PacketHeader, PacketKind, WORD_BYTES, Words};

/// Length of a status request and of its reply, in bytes.
pub const STATUS_BYTES: usize = 64;
/// Number of packet headers in a status, in each direction.
const HEADERS: usize = 4;

/// Status of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Largest packet in bytes, with IP and UDP headers.
    pub mtu_bytes: u32,
    /// Number of replies that it keeps, and thus of packets that may be in flight.
    pub buffers: u32,
    /// Packet number that it expects next.
    pub next_id: u16,
    /// Headers of the last packets received, oldest first.
    pub received: [u32; HEADERS],
    /// Headers of the last packets sent, oldest first.
    pub sent: [u32; HEADERS],
}

impl Status {
    /// A status request.
    pub fn request() -> [u8; STATUS_BYTES] {
        let mut bytes = [0; STATUS_BYTES];
        bytes[..WORD_BYTES].copy_from_slice(&HEADER.word().to_be_bytes());
        bytes
    }

    /// Encodes the status as a packet. The four words of the event history, for debugging, are zero.
    pub fn reply(&self) -> [u8; STATUS_BYTES] {
        let head = [HEADER.word(), self.mtu_bytes, self.buffers, PacketHeader::control(self.next_id).word()];
        let words = head.into_iter().chain([0; 4]).chain(self.received).chain(self.sent);
        let mut bytes = [0; STATUS_BYTES];
        let places = bytes.as_chunks_mut::<WORD_BYTES>().0;
        places.iter_mut().zip(words).for_each(|(place, word)| *place = word.to_be_bytes());
        bytes
    }

    /// Decodes a status packet. The caller checks its packet header.
    ///
    /// # Errors
    /// Another length, or an invalid header in place of the next expected one.
    pub fn from_reply(datagram: &[u8]) -> Result<Self, PacketError> {
        if datagram.len() != STATUS_BYTES {
            return Err(PacketError::Length(datagram.len()));
        }
        let mut words = Words::after_header(datagram, ByteOrder::Big);
        let mut word = || words.next().ok_or(PacketError::Short);
        let (mtu_bytes, buffers, next) = (word()?, word()?, word()?);
        let header = PacketHeader::from_word(next)?;
        if header.kind != PacketKind::Control {
            return Err(PacketError::Header(next));
        }
        words.split_first_words(4).ok_or(PacketError::Short)?;
        let mut status = Self { mtu_bytes, buffers, next_id: header.id, ..Self::default() };
        words.split_first_words(HEADERS).ok_or(PacketError::Short)?.copy_to(&mut status.received);
        words.copy_to(&mut status.sent);
        Ok(status)
    }
}

const HEADER: PacketHeader = PacketHeader { id: 0, kind: PacketKind::Status };

/// Appends a header and drops the oldest one.
pub(in crate::ipbus) fn push_header(headers: &mut [u32], word: u32) {
    headers.rotate_left(1);
    if let Some(last) = headers.last_mut() {
        *last = word;
    }
}
