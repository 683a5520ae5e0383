//! The status of a target: what it can take, and which packet it expects next.
use super::{ByteOrder, PacketError, PacketHeader, PacketKind, WORD_BYTES, Words};

/// Length of a status request and of its reply, in bytes.
pub const STATUS_BYTES: usize = 64;
/// Headers of packets that a status remembers, each way.
const REMEMBERED: usize = 4;

/// What a target says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Largest packet of IP that it takes, in bytes, with the headers of IP and UDP.
    pub mtu_bytes: u32,
    /// Replies that it keeps, and so packets that may be under way.
    pub buffers: u32,
    /// Number of the packet that it expects next.
    pub next_id: u16,
    /// Headers of the last packets that came, oldest first.
    pub received: [u32; REMEMBERED],
    /// Headers of the last packets that were sent, oldest first.
    pub sent: [u32; REMEMBERED],
}

impl Status {
    /// The packet that asks for it.
    pub fn request() -> [u8; STATUS_BYTES] {
        let mut bytes = [0; STATUS_BYTES];
        bytes[..WORD_BYTES].copy_from_slice(&HEADER.word().to_be_bytes());
        bytes
    }

    /// As a packet. The history of events, four words for debugging, is left empty.
    pub fn reply(&self) -> [u8; STATUS_BYTES] {
        let head = [HEADER.word(), self.mtu_bytes, self.buffers, PacketHeader::control(self.next_id).word()];
        let words = head.into_iter().chain([0; 4]).chain(self.received).chain(self.sent);
        let mut bytes = [0; STATUS_BYTES];
        let places = bytes.as_chunks_mut::<WORD_BYTES>().0;
        places.iter_mut().zip(words).for_each(|(place, word)| *place = word.to_be_bytes());
        bytes
    }

    /// From a packet whose header says that it is one.
    ///
    /// # Errors
    /// A packet of another length, or one whose next packet is none of transactions.
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
        words.split_first_words(REMEMBERED).ok_or(PacketError::Short)?.copy_to(&mut status.received);
        words.copy_to(&mut status.sent);
        Ok(status)
    }
}

const HEADER: PacketHeader = PacketHeader { id: 0, kind: PacketKind::Status };

/// Remembers one more header, and forgets the oldest.
pub(in crate::ipbus) fn remember(headers: &mut [u32], word: u32) {
    headers.rotate_left(1);
    if let Some(last) = headers.last_mut() {
        *last = word;
    }
}
