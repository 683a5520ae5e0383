//! Headers of SPEAD packets, among them some that spead2 has written.
use proptest::prelude::*;

use super::*;

/// The second packet of a heap of 1500 bytes, without its payload, by spead2 4.5.1.
const BY_SPEAD2: [u64; 5] = [
    0x5304_0206_0000_0004,
    0x8001_0000_0000_0002,
    0x8002_0000_0000_05DC,
    0x8003_0000_0000_03B0,
    0x8004_0000_0000_022C,
];

pub(crate) fn packet(words: &[u64], payload: &[u8]) -> Vec<u8> {
    let mut packet: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    packet.extend(payload);
    packet
}

#[test]
fn a_packet_of_spead2() {
    let bytes = packet(&BY_SPEAD2, &[7; 556]);
    let expected = HeapPacket {
        heap: 2,
        mask: (1 << 48) - 1,
        length: 1500,
        offset: 944,
        payload: 40..596,
        is_stop: false,
        has_values: false,
    };
    assert_eq!(read(&bytes), Ok(expected));
    assert_eq!(values(&bytes).count(), 0);
}

#[test]
fn shorter_addresses_values_and_the_end() {
    // SPEAD-64-40: ids have 23 bits.
    let pointer = |id: u64, value: u64| 1 << 63 | id << 40 | value;
    let mut words = vec![0x5304_0305_0000_0006];
    words.extend([(1, 9), (2, 3), (3, 0), (4, 3), (0x1600, 77)].map(|(id, value)| pointer(id, value)));
    // The address of an item is no value.
    words.push(0x3300 << 40);
    let bytes = packet(&words, &[1, 2, 3]);
    let header = read(&bytes).unwrap();
    assert_eq!((header.heap, header.mask, header.payload.clone()), (9, (1 << 40) - 1, 56..59));
    assert!(header.has_values);
    assert_eq!(values(&bytes).collect::<Vec<_>>(), [(0x1600, 77)]);
    words[5] = pointer(6, 2);
    let stop = read(&packet(&words, &[1, 2, 3])).unwrap();
    assert!(stop.is_stop && !stop.has_values && !stop.has_data());
    words[2] = pointer(2, 9);
    assert!(read(&packet(&words, &[1, 2, 3])).unwrap().has_data());
    let mut empty = words.clone();
    empty[4] = pointer(4, 0);
    assert!(!read(&packet(&empty, &[])).unwrap().has_data());
    words[2] = pointer(2, 3);
    words[5] = pointer(6, 0);
    assert!(!read(&packet(&words, &[1, 2, 3])).unwrap().is_stop);
}

#[test]
fn packets_that_are_refused() {
    let changed = |at: usize, word: u64| {
        let mut words = BY_SPEAD2;
        words[at] = word;
        read(&packet(&words, &[7; 556])).unwrap_err()
    };
    assert!(read(b"SPEAD").unwrap_err().contains("shorter than a SPEAD header"));
    assert!(changed(0, 0x5404_0206_0000_0004).contains("starts with 54 04"));
    assert!(changed(0, 0x5303_0206_0000_0004).contains("not SPEAD version 4"));
    assert!(changed(0, 0x5304_0404_0000_0004).contains("SPEAD-64-32 with item ids of 4 bytes"));
    assert!(changed(0, 0x5304_0206_0000_FFFF).contains("states 65535 items"));
    assert!(changed(2, 0x8000_0000_0000_0000).contains("without heap length"));
    // An address instead of a value.
    assert!(changed(1, 0x0001_0000_0000_0002).contains("without heap count"));
    assert!(changed(4, 0x8004_0000_0000_022D).contains("exceeds its packet or its heap"));
    assert!(changed(3, 0x8003_0000_0000_03B1).contains("exceeds its packet or its heap"));
    assert!(changed(3, 0x8003_FFFF_FFFF_FFFF).contains("exceeds its packet or its heap"));
}

proptest! {
    #[test]
    fn what_is_read_fits_the_packet(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..120),
        is_valid: bool,
    ) {
        if let (true, Some(head)) = (is_valid, bytes.first_chunk_mut()) {
            *head = [0x53, 4, 2, 6, 0, 0, 0];
        }
        let count = values(&bytes).count();
        prop_assert!(count <= bytes.len() / 8);
        if let Ok(header) = read(&bytes) {
            prop_assert!(header.payload.end <= bytes.len());
            prop_assert!(header.offset + header.payload.len() as u64 <= header.length);
        }
    }
}
