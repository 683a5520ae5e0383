//! Numbers of packets, and the replies that are kept to be sent again.
use std::collections::VecDeque;
use std::net::SocketAddr;

use crate::ipbus::packet::following;

/// What a target remembers of its packets.
pub(super) struct Sequence {
    next: u16,
    /// The last replies and who got them, oldest first.
    kept: VecDeque<(SocketAddr, u16, Vec<u8>)>,
    most: usize,
}

impl Sequence {
    /// Begins with packet 1; keeps so many replies.
    pub(super) fn new(most: usize) -> Self {
        Self { next: 1, kept: VecDeque::with_capacity(most), most }
    }

    /// Number of the packet that is expected.
    pub(super) fn next(&self) -> u16 {
        self.next
    }

    /// Whether the packet is to be done; then the one after it is expected.
    pub(super) fn accepts(&mut self, id: u16) -> bool {
        if id == 0 {
            return true;
        }
        let is_next = id == self.next;
        if is_next {
            self.next = following(id);
        }
        is_next
    }

    /// Keeps a reply to `peer`, and forgets the oldest when there are too many.
    pub(super) fn keep(&mut self, peer: SocketAddr, id: u16, reply: &[u8]) {
        let oldest = if self.kept.len() >= self.most { self.kept.pop_front() } else { None };
        // Its memory serves again.
        let mut memory = oldest.map(|(.., memory)| memory).unwrap_or_default();
        memory.clear();
        memory.extend_from_slice(reply);
        self.kept.push_back((peer, id, memory));
    }

    /// The reply to a packet of `peer`, if it is still kept. Nobody gets the reply to another's packet.
    pub(super) fn kept(&self, peer: SocketAddr, id: u16) -> Option<&[u8]> {
        // After 65535 packets a number comes again: the later one counts.
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
