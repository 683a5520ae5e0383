//! Splits a call of the client into packets, and assembles the replies.
//!
//! Invariant: encoding the packet that begins with a given word always yields the same bytes, so packets
//! need not be stored for a resend.
use crate::ipbus::packet::{
    ByteOrder, Info, PacketError, PacketWriter, Reply, TRANSACTION_WORDS_MAX, TransactionHeader,
    TransactionKind, Words,
};

/// Largest number of transactions in a packet. A transaction number has four bits for the packet and eight
/// for the position in it, so replies to different packets in flight cannot be confused.
pub(super) const TRANSACTIONS_MAX: usize = 256;

/// Data of a transfer.
pub(super) enum Data<'a> {
    /// Words to read into.
    Read(&'a mut [u32]),
    /// Words to write.
    Write(&'a [u32]),
    /// Operands of a read-modify-write of one word, and a place for its old value.
    Modify(&'a [u32], &'a mut u32),
}

/// One call of the client.
pub(super) struct Transfer<'a> {
    pub(super) kind: TransactionKind,
    pub(super) address: u32,
    pub(super) data: Data<'a>,
    /// Largest transaction, in words.
    pub(super) each: usize,
    /// Largest packet with its header, in words.
    pub(super) packet_words: usize,
    pub(super) order: ByteOrder,
}

/// Result of matching a reply with a packet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReplyMatch {
    /// A reply to all transactions.
    Complete,
    /// A reply with a failed transaction, at this address.
    Failed(u32, Info),
    /// Not a reply to this packet.
    Mismatch(Option<PacketError>),
}

impl Transfer<'_> {
    /// Total number of words.
    pub(super) fn len(&self) -> usize {
        match &self.data {
            Data::Read(words) => words.len(),
            Data::Write(words) => words.len(),
            Data::Modify(..) => 1,
        }
    }

    /// First word and length of each transaction of the packet that begins with word `first`.
    fn transactions(&self, first: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (kind, each, end) = (self.kind, self.each.clamp(1, TRANSACTION_WORDS_MAX), self.len());
        let (mut request, mut reply) = (self.packet_words - 1, self.packet_words - 1);
        let mut next = first;
        (0..TRANSACTIONS_MAX).map_while(move |_| {
            // Both the request and the reply must fit into a packet.
            let most = |free: usize, none: usize, one: usize| match one > none {
                true => free.saturating_sub(1 + none),
                false if free > none => usize::MAX,
                false => 0,
            };
            let by_request = most(request, kind.request_words(0), kind.request_words(1));
            let by_reply = most(reply, kind.reply_words(0), kind.reply_words(1));
            let words = each.min(end - next).min(by_request).min(by_reply);
            if words == 0 {
                return None;
            }
            request -= 1 + kind.request_words(words);
            reply -= 1 + kind.reply_words(words);
            next += words;
            Some((next - words, words))
        })
    }

    /// Address of a word.
    fn address_of(&self, index: usize) -> u32 {
        if self.kind.is_incrementing() { self.address.wrapping_add(index as u32) } else { self.address }
    }

    /// Number of a transaction.
    fn number(id: u16, index: usize) -> u16 {
        (id & 0xF) << 8 | index as u16
    }

    /// Encodes the packet that begins with word `first`. Returns the number of words that it moves.
    pub(super) fn encode(&self, id: u16, first: usize, bytes: &mut Vec<u8>) -> usize {
        let mut packet = PacketWriter::control(bytes, self.order, id);
        let mut moved = 0;
        for (index, (begin, words)) in self.transactions(first).enumerate() {
            packet.transaction(TransactionHeader {
                id: Self::number(id, index),
                words: words as u8,
                kind: self.kind,
                info: Info::REQUEST,
            });
            packet.word(self.address_of(begin));
            moved += words;
            match &self.data {
                Data::Read(_) => {}
                Data::Write(from) => packet.words(&from[begin..begin + words]),
                Data::Modify(operands, _) => packet.words(operands),
            }
        }
        moved
    }

    /// Decodes the reply to the packet that begins with word `first`.
    pub(super) fn decode_reply(&mut self, id: u16, first: usize, mut reply: Words<'_>) -> ReplyMatch {
        for (index, (begin, words)) in self.transactions(first).enumerate() {
            let answer = match Reply::next(&mut reply) {
                Some(Ok(answer)) => answer,
                Some(Err(why)) => return ReplyMatch::Mismatch(Some(why)),
                None => return ReplyMatch::Mismatch(Some(PacketError::Short)),
            };
            let header = answer.header;
            let is_ours = header.id == Self::number(id, index) && header.kind == self.kind;
            if !is_ours || usize::from(header.words) > words {
                return ReplyMatch::Mismatch(None);
            }
            if header.info != Info::DONE {
                // The header of a failed transaction contains the number of completed words.
                let done = usize::from(header.words) % words;
                return ReplyMatch::Failed(self.address_of(begin + done), header.info);
            }
            if usize::from(header.words) != words {
                return ReplyMatch::Mismatch(None);
            }
            match &mut self.data {
                Data::Read(to) => answer.data.copy_to(&mut to[begin..begin + words]),
                Data::Write(_) => {}
                Data::Modify(_, old) => answer.data.copy_to(std::slice::from_mut(*old)),
            }
        }
        if reply.is_empty() { ReplyMatch::Complete } else { ReplyMatch::Mismatch(Some(PacketError::Short)) }
    }
}

#[cfg(test)]
#[path = "transfer_tests.rs"]
mod tests;
