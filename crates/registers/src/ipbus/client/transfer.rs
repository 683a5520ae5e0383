//! What a call of the client wants, cut into packets, and put together from the replies.
//!
//! Invariant: the packet that begins with a word is the same each time it is made, so that none need be kept
//! to be sent again.
use crate::ipbus::packet::{
    ByteOrder, Info, PacketError, PacketWriter, Reply, TRANSACTION_WORDS_MAX, TransactionHeader,
    TransactionKind, Words,
};

/// Transactions of a packet at most: their numbers have four bits for the packet and eight for the place in
/// it, so that no reply to one packet under way passes for that to another.
pub(super) const TRANSACTIONS_MAX: usize = 256;

/// Where words come from or go to.
pub(super) enum Data<'a> {
    /// They are read.
    Read(&'a mut [u32]),
    /// They are written.
    Write(&'a [u32]),
    /// One word is changed with these operands; its old value goes to the last.
    Change(&'a [u32], &'a mut u32),
}

/// One call of the client.
pub(super) struct Transfer<'a> {
    pub(super) kind: TransactionKind,
    pub(super) address: u32,
    pub(super) data: Data<'a>,
    /// Words of a transaction at most.
    pub(super) each: usize,
    /// Words that a packet may have, its header included.
    pub(super) packet_words: usize,
    pub(super) order: ByteOrder,
}

/// What a datagram was to a packet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Its reply; all was done.
    Whole,
    /// Its reply, in which a transaction failed at this address.
    Failed(u32, Info),
    /// Not its reply.
    Foreign(Option<PacketError>),
}

impl Transfer<'_> {
    /// Words in all.
    pub(super) fn len(&self) -> usize {
        match &self.data {
            Data::Read(words) => words.len(),
            Data::Write(words) => words.len(),
            Data::Change(..) => 1,
        }
    }

    /// First word and length of each transaction of the packet that begins with word `first`.
    fn transactions(&self, first: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (kind, each, end) = (self.kind, self.each.clamp(1, TRANSACTION_WORDS_MAX), self.len());
        let (mut request, mut reply) = (self.packet_words - 1, self.packet_words - 1);
        let mut next = first;
        (0..TRANSACTIONS_MAX).map_while(move |_| {
            // Both its request and its reply must have room.
            let most = |room: usize, none: usize, one: usize| match one > none {
                true => room.saturating_sub(1 + none),
                false if room > none => usize::MAX,
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

    /// Makes the packet that begins with word `first`; returns how many words it moves.
    pub(super) fn write(&self, id: u16, first: usize, bytes: &mut Vec<u8>) -> usize {
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
                Data::Change(operands, _) => packet.words(operands),
            }
        }
        moved
    }

    /// Takes the reply to the packet that begins with word `first`.
    pub(super) fn take(&mut self, id: u16, first: usize, mut reply: Words<'_>) -> Taken {
        for (index, (begin, words)) in self.transactions(first).enumerate() {
            let answer = match Reply::next(&mut reply) {
                Some(Ok(answer)) => answer,
                Some(Err(why)) => return Taken::Foreign(Some(why)),
                None => return Taken::Foreign(Some(PacketError::Short)),
            };
            let header = answer.header;
            let is_ours = header.id == Self::number(id, index) && header.kind == self.kind;
            if !is_ours || usize::from(header.words) > words {
                return Taken::Foreign(None);
            }
            if header.info != Info::DONE {
                // A target that says how far it came tells which word it was.
                let done = usize::from(header.words) % words;
                return Taken::Failed(self.address_of(begin + done), header.info);
            }
            if usize::from(header.words) != words {
                return Taken::Foreign(None);
            }
            match &mut self.data {
                Data::Read(to) => answer.data.copy_to(&mut to[begin..begin + words]),
                Data::Write(_) => {}
                Data::Change(_, old) => answer.data.copy_to(std::slice::from_mut(*old)),
            }
        }
        if reply.is_empty() { Taken::Whole } else { Taken::Foreign(Some(PacketError::Short)) }
    }
}

#[cfg(test)]
#[path = "transfer_tests.rs"]
mod tests;
