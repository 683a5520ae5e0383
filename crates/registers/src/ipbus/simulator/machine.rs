//! The target without its network: bytes in, bytes out.
//!
//! Invariant: whatever comes in, no reply is longer than the MTU allows, and nothing is done twice.
use std::net::SocketAddr;

use super::TargetCounters;
use super::registers::Registers;
use super::sequence::Sequence;
use crate::ipbus::packet::{
    IP_UDP_BYTES, Info, PacketError, PacketHeader, PacketKind, PacketWriter, Request, STATUS_BYTES, Status,
    TransactionHeader, WORD_BYTES, Words, remember,
};

/// A target's registers, and what it remembers of its packets.
pub struct Machine {
    registers: Registers,
    sequence: Sequence,
    mtu_bytes: usize,
    buffers: usize,
    received: [u32; 4],
    sent: [u32; 4],
    counters: TargetCounters,
}

impl Machine {
    /// `words` words of memory; replies for `buffers` packets are kept; no packet is longer than
    /// `mtu_bytes`, the headers of IP and UDP included; nothing can be done with the word at `bad`.
    pub fn new(mtu_bytes: usize, buffers: usize, words: usize, bad: Option<u32>) -> Self {
        Self {
            registers: Registers::new(words, bad, mtu_bytes as u32, buffers as u32),
            sequence: Sequence::new(buffers),
            mtu_bytes,
            buffers,
            received: [0; 4],
            sent: [0; 4],
            counters: TargetCounters::default(),
        }
    }

    /// What it saw and did.
    pub fn counters(&self) -> TargetCounters {
        self.counters
    }

    /// Puts the reply to a datagram from `peer` into `reply`, which is empty. Returns whether there is one: a
    /// target does not answer malformed or unexpected packets.
    pub fn answer(&mut self, peer: SocketAddr, datagram: &[u8], reply: &mut Vec<u8>) -> bool {
        let found = PacketHeader::of(datagram).ok().filter(|_| datagram.len() <= self.payload_bytes());
        let Some((header, order)) = found else {
            self.counters.foreign += 1;
            return false;
        };
        remember(&mut self.received, header.word());
        let id = header.id;
        match header.kind {
            PacketKind::Status if datagram.len() != STATUS_BYTES => {
                self.counters.foreign += 1;
                return false;
            }
            PacketKind::Status => {
                self.counters.status += 1;
                reply.extend(self.status().reply());
            }
            PacketKind::Resend => match self.sequence.kept(peer, id) {
                Some(kept) => {
                    self.counters.resent += 1;
                    reply.extend_from_slice(kept);
                }
                None => {
                    self.counters.unknown += 1;
                    return false;
                }
            },
            PacketKind::Control if !self.sequence.accepts(id) => {
                self.counters.out_of_sequence += 1;
                return false;
            }
            PacketKind::Control => {
                self.counters.packets += 1;
                let writer = PacketWriter::control(reply, order, id);
                self.execute(Words::after_header(datagram, order), writer);
                if id != 0 {
                    self.sequence.keep(peer, id, reply);
                }
            }
        }
        remember(&mut self.sent, header.word());
        true
    }

    /// Does the transactions of a packet, up to the first that cannot be done.
    fn execute(&mut self, mut requests: Words<'_>, mut reply: PacketWriter<'_>) {
        while let Some(request) = Request::next(&mut requests) {
            let request = match request {
                Ok(request) => request,
                Err(why) => {
                    self.counters.failed += 1;
                    let has_room = reply.position() + WORD_BYTES <= self.payload_bytes();
                    if let PacketError::Transaction(word) = why
                        && has_room
                    {
                        reply.word(word & !0xF | u32::from(Info::BAD_HEADER.0));
                    }
                    return;
                }
            };
            let header = request.header;
            let body = header.kind.reply_words(header.words.into());
            if reply.position() + (1 + body) * WORD_BYTES > self.payload_bytes() {
                self.counters.failed += 1;
                // Whoever asks for more than a packet holds has made a mistake in the header.
                if reply.position() + WORD_BYTES <= self.payload_bytes() {
                    reply.transaction(TransactionHeader { words: 0, info: Info::BAD_HEADER, ..header });
                }
                return;
            }
            if !self.registers.execute(&request, &mut reply, &mut self.counters) {
                return;
            }
        }
    }

    fn payload_bytes(&self) -> usize {
        self.mtu_bytes.saturating_sub(IP_UDP_BYTES)
    }

    fn status(&self) -> Status {
        Status {
            mtu_bytes: self.mtu_bytes as u32,
            buffers: self.buffers as u32,
            next_id: self.sequence.next(),
            received: self.received,
            sent: self.sent,
        }
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
