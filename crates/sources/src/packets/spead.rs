//! SPEAD (Streaming Protocol for Exchanging Astronomical Data) version 4, flavours SPEAD-64-48 and
//! SPEAD-64-40, as [spead2](https://spead2.readthedocs.io/en/latest/py-protocol.html) sends it: the header of
//! a packet.
//!
//! A heap is sent in packets. Each states the heap's number and length, and which part of the payload it has.
use std::ops::Range;

/// First bytes of a packet: magic number and version.
const MAGIC: [u8; 2] = [0x53, 4];
/// Bytes of the header, and of each item pointer behind it.
const WORD_BYTES: usize = 8;

/// Ids of items that every packet has, of the control item, and the highest id of the protocol's own items.
const HEAP_COUNT: u64 = 1;
const HEAP_LENGTH: u64 = 2;
const PAYLOAD_OFFSET: u64 = 3;
const PAYLOAD_LENGTH: u64 = 4;
const STREAM_CONTROL: u64 = 6;
const RESERVED_MAX: u64 = 6;
/// Longest payload of a heap with nothing but a null item, bytes.
const NULL_BYTES_MAX: u64 = 8;
/// Value of the control item: the sender has sent all heaps.
const STOP: u64 = 2;

/// SPEAD heaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spead {
    /// What heap numbers grow by from heap to heap of a sender; at least 1.
    pub step: u64,
    /// Senders that must have stopped before the source ends; at least 1.
    pub senders: usize,
}

impl Default for Spead {
    fn default() -> Self {
        Self { step: 1, senders: 1 }
    }
}

/// A packet of a heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HeapPacket {
    /// Number of the heap, modulo `mask` + 1.
    pub(super) heap: u64,
    pub(super) mask: u64,
    /// Length of the heap's payload, and place of this part in it, bytes.
    pub(super) length: u64,
    pub(super) offset: u64,
    /// Where this part is in the packet.
    pub(super) payload: Range<usize>,
    /// The sender has sent all heaps, this one included if [`HeapPacket::has_data`].
    pub(super) is_stop: bool,
    /// Whether it has immediate values that are not the protocol's own.
    pub(super) has_values: bool,
}

impl HeapPacket {
    /// Whether a heap with a stop has data: senders put one null item into a heap that has none.
    pub(super) fn has_data(&self) -> bool {
        self.length > NULL_BYTES_MAX && !self.payload.is_empty()
    }
}

/// Item pointers of a packet: whether the value is immediate, id, and value or address.
fn items(packet: &[u8], address_bits: u32) -> impl Iterator<Item = (bool, u64, u64)> {
    let count = packet.get(6..8).and_then(|bytes| bytes.first_chunk()).map_or(0, |n| u16::from_be_bytes(*n));
    let pointers = packet.get(WORD_BYTES..).unwrap_or(&[]).chunks_exact(WORD_BYTES).take(count.into());
    pointers.filter_map(|bytes| bytes.first_chunk()).map(move |bytes| {
        let pointer = u64::from_be_bytes(*bytes);
        let id = (pointer & i64::MAX as u64) >> address_bits;
        (pointer >> 63 == 1, id, pointer & mask(address_bits))
    })
}

fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// Bits of an address, by the header.
fn address_bits(packet: &[u8]) -> Result<u32, String> {
    let Some(header) = packet.get(..WORD_BYTES) else {
        return Err(format!("{} bytes, shorter than a SPEAD header", packet.len()));
    };
    if header[..2] != MAGIC {
        return Err(format!("not SPEAD version 4: it starts with {:02x} {:02x}", header[0], header[1]));
    }
    match header[2..4] {
        [2, 6] => Ok(48),
        [3, 5] => Ok(40),
        [id, address] => {
            Err(format!("SPEAD-64-{} with item ids of {id} bytes is not supported", u32::from(address) * 8))
        }
        _ => Err("no SPEAD header".to_owned()),
    }
}

/// Reads the header of a packet.
pub(super) fn read(packet: &[u8]) -> Result<HeapPacket, String> {
    let bits = address_bits(packet)?;
    let count = usize::from(packet[6]) << 8 | usize::from(packet[7]);
    let start = WORD_BYTES + WORD_BYTES * count;
    if packet.len() < start {
        return Err(format!("{} bytes, but its SPEAD header states {count} items", packet.len()));
    }
    let (mut fields, mut has_values) = ([None; RESERVED_MAX as usize + 1], false);
    for (_, id, value) in items(packet, bits).filter(|(is_immediate, ..)| *is_immediate) {
        match fields.get_mut(id as usize) {
            Some(field) => *field = Some(value),
            None => has_values = true,
        }
    }
    let field =
        |id: u64, name: &str| fields[id as usize].ok_or_else(|| format!("SPEAD packet without {name}"));
    let (heap, length) = (field(HEAP_COUNT, "heap count")?, field(HEAP_LENGTH, "heap length")?);
    let (offset, bytes) = (field(PAYLOAD_OFFSET, "offset")?, field(PAYLOAD_LENGTH, "payload length")?);
    if bytes > (packet.len() - start) as u64 || bytes > length || offset > length - bytes {
        return Err(format!("SPEAD payload of {bytes} bytes at {offset} exceeds its packet or its heap"));
    }
    let payload = start..start + bytes as usize;
    let is_stop = fields[STREAM_CONTROL as usize] == Some(STOP);
    Ok(HeapPacket { heap, mask: mask(bits), length, offset, payload, is_stop, has_values })
}

/// Immediate values of a packet that are not the protocol's own, with their ids.
pub(super) fn values(packet: &[u8]) -> impl Iterator<Item = (u64, u64)> {
    let items = address_bits(packet).ok().map(|bits| items(packet, bits));
    let values =
        items.into_iter().flatten().filter(|(is_immediate, id, _)| *is_immediate && *id > RESERVED_MAX);
    values.map(|(_, id, value)| (id, value))
}

#[cfg(test)]
#[path = "spead_tests.rs"]
mod tests;
