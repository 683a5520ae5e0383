//! Packet numbers, and replies kept for resending.
use std::collections::VecDeque;
use std::net::SocketAddr;

use crate::ipbus::packet::next_packet_id;

/// Expected packet number and kept replies of a target.
pub(super) struct Sequence {
    next: u16,
    /// Address, packet number and bytes of the last replies, oldest first.
    kept: VecDeque<(SocketAddr, u16, Vec<u8>)>,
    most: usize,
}

impl Sequence {
    /// Starts with packet 1, and keeps up to `most` replies.
    pub(super) fn new(most: usize) -> Self {
        Self { next: 1, kept: VecDeque::with_capacity(most), most }
    }

    /// The expected packet number.
    pub(super) fn next(&self) -> u16 {
        self.next
    }

    /// Whether to execute the packet. If so, the next one is expected from then on.
    pub(super) fn accepts(&mut self, id: u16) -> bool {
        if id == 0 {
            return true;
        }
        let is_next = id == self.next;
        if is_next {
            self.next = next_packet_id(id);
        }
        is_next
    }

    /// Keeps a reply to `peer`, in place of the oldest one if there are too many.
    pub(super) fn keep(&mut self, peer: SocketAddr, id: u16, reply: &[u8]) {
        let oldest = if self.kept.len() >= self.most { self.kept.pop_front() } else { None };
        // Reuse its memory.
        let mut memory = oldest.map(|(.., memory)| memory).unwrap_or_default();
        memory.clear();
        memory.extend_from_slice(reply);
        self.kept.push_back((peer, id, memory));
    }

    /// The kept reply to a packet of `peer`. A client never gets the reply to another client's packet.
    pub(super) fn kept_reply(&self, peer: SocketAddr, id: u16) -> Option<&[u8]> {
        // Packet numbers repeat after 65535 packets: the latest one is meant.
        self.kept
            .iter()
            .rev()
            .find(|(to, kept, _)| *to == peer && *kept == id)
            .map(|(.., reply)| reply.as_slice())
    }
}

#[cfg(test)]
#[path = "sequence_tests.rs"]
mod tests;
