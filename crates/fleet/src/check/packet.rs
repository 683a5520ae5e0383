//! Packets that measure how large a packet may be on a path.
//!
//! A request asks for an answer of a size. Both have the size under test, filled with zeros, and an
//! authentication code: a source answers only hosts of its fleet, so it cannot be used to send large packets
//! to others.
use keepup_peer::Token;

/// First bytes of requests and answers.
const REQUEST: [u8; 8] = *b"KUPATH1?";
const ANSWER: [u8; 8] = *b"KUPATH1!";
/// Bytes before the code: first bytes, id, two numbers.
const FIELDS_BYTES: usize = 24;
/// Bytes of a packet without filling.
pub(super) const PACKET_BYTES_MIN: usize = FIELDS_BYTES + blake3::OUT_LEN;
/// Largest payload of a UDP packet over IPv4, bytes.
pub(super) const PACKET_BYTES_MAX: usize = 65_507;

/// A request of a recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// Repeated in the answer.
    pub(super) id: u64,
    /// Payload of the answer, bytes.
    pub(super) answer_bytes: usize,
}

/// The answer of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// Id of the request.
    pub(super) id: u64,
    /// Payload of the request, bytes.
    pub(super) request_bytes: usize,
    /// MTU of the source's route to the recorder, bytes; 0 if unknown.
    pub(super) mtu: u32,
}

/// Key of a fleet for these packets.
#[derive(Clone)]
pub(super) struct PathKey([u8; blake3::KEY_LEN]);

impl PathKey {
    /// Derives the key from the token that all hosts share.
    pub(super) fn new(shared: &Token) -> Self {
        Self(blake3::derive_key("keepup fleet 1: packets on a path", shared.reveal().as_bytes()))
    }

    /// A request with a payload of `bytes`, at least [`PACKET_BYTES_MIN`].
    pub(super) fn request(&self, request: Request, bytes: usize) -> Vec<u8> {
        self.encode(REQUEST, (request.id, number(request.answer_bytes), 0), bytes)
    }

    /// An answer with a payload of `bytes`, at least [`PACKET_BYTES_MIN`].
    pub(super) fn answer(&self, answer: Answer, bytes: usize) -> Vec<u8> {
        self.encode(ANSWER, (answer.id, number(answer.request_bytes), answer.mtu), bytes)
    }

    /// Reads a request; none if it is something else or its code is wrong.
    pub(super) fn read_request(&self, packet: &[u8]) -> Option<Request> {
        let (id, answer_bytes, _) = self.decode(REQUEST, packet)?;
        Some(Request { id, answer_bytes: answer_bytes as usize })
    }

    /// Reads an answer; none if it is something else or its code is wrong.
    pub(super) fn read_answer(&self, packet: &[u8]) -> Option<Answer> {
        let (id, request_bytes, mtu) = self.decode(ANSWER, packet)?;
        Some(Answer { id, request_bytes: request_bytes as usize, mtu })
    }

    fn encode(&self, magic: [u8; 8], (id, first, second): (u64, u32, u32), bytes: usize) -> Vec<u8> {
        let bytes = bytes.clamp(PACKET_BYTES_MIN, PACKET_BYTES_MAX);
        let mut packet = Vec::with_capacity(bytes);
        packet.extend(magic);
        packet.extend(id.to_le_bytes());
        packet.extend(first.to_le_bytes());
        packet.extend(second.to_le_bytes());
        let code = blake3::keyed_hash(&self.0, &packet);
        packet.extend(code.as_bytes());
        packet.resize(bytes, 0);
        packet
    }

    fn decode(&self, magic: [u8; 8], packet: &[u8]) -> Option<(u64, u32, u32)> {
        let (fields, rest) = packet.split_at_checked(FIELDS_BYTES)?;
        let code: [u8; blake3::OUT_LEN] = rest.get(..blake3::OUT_LEN)?.try_into().ok()?;
        // The comparison of hashes takes the same time wherever they differ.
        if !fields.starts_with(&magic) || blake3::keyed_hash(&self.0, fields) != blake3::Hash::from(code) {
            return None;
        }
        let id = u64::from_le_bytes(fields.get(8..16)?.try_into().ok()?);
        let number = |at: usize| Some(u32::from_le_bytes(fields.get(at..at + 4)?.try_into().ok()?));
        Some((id, number(16)?, number(20)?))
    }
}

fn number(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[path = "packet_tests.rs"]
mod tests;
