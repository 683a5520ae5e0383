//! State of a target, without its network: turns request bytes into reply bytes.
//!
//! Invariants: for any input, no reply exceeds the MTU, and no packet is executed twice.
use std::net::SocketAddr;

use super::TargetCounters;
use super::registers::Registers;
use super::sequence::Sequence;
use crate::ipbus::packet::{
    IP_UDP_BYTES, Info, PacketError, PacketHeader, PacketKind, PacketWriter, Request, STATUS_BYTES, Status,
    TransactionHeader, WORD_BYTES, Words, push_header,
};

/// Registers, kept replies and counters of a target.
pub struct TargetState {
    registers: Registers,
    sequence: Sequence,
    mtu_bytes: usize,
    buffers: usize,
    received: [u32; 4],
    sent: [u32; 4],
    counters: TargetCounters,
}

impl TargetState {
    /// Creates a target with `words` words of memory that keeps `buffers` replies. `mtu_bytes` includes
    /// IP and UDP headers. Accesses to the word at `bad` fail.
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

    /// Counters so far.
    pub fn counters(&self) -> TargetCounters {
        self.counters
    }

    /// Appends the reply to a datagram from `peer` to `reply`, which must be empty. Returns whether
    /// there is a reply: a target ignores malformed and unexpected packets.
    pub fn answer(&mut self, peer: SocketAddr, datagram: &[u8], reply: &mut Vec<u8>) -> bool {
        let found = PacketHeader::parse(datagram).ok().filter(|_| datagram.len() <= self.payload_bytes());
        let Some((header, order)) = found else {
            self.counters.foreign += 1;
            return false;
        };
        push_header(&mut self.received, header.word());
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
            PacketKind::Resend => match self.sequence.kept_reply(peer, id) {
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
        push_header(&mut self.sent, header.word());
        true
    }

    /// Executes the transactions of a packet up to the first failure.
    fn execute(&mut self, mut requests: Words<'_>, mut reply: PacketWriter<'_>) {
        while let Some(request) = Request::next(&mut requests) {
            let request = match request {
                Ok(request) => request,
                Err(why) => {
                    self.counters.failed += 1;
                    let fits = reply.position() + WORD_BYTES <= self.payload_bytes();
                    if let PacketError::Transaction(word) = why
                        && fits
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
                // A request for more than a packet can hold counts as a bad header.
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
#[path = "state_tests.rs"]
mod tests;
