//! Heaps of the simulated source, as a socket receives them.
use std::net::UdpSocket;

use super::super::super::plan::{EventSize, Protocol, Rate};
use super::*;

/// Item values of a packet by id, and its payload.
type Parsed = (Vec<(u64, u64)>, Vec<u8>);

fn parsed(packet: &[u8]) -> Parsed {
    let word = |at: usize| u64::from_be_bytes(*packet[8 * at..].first_chunk().unwrap());
    assert_eq!(word(0), HEADER);
    let items = (1..WORDS).map(|at| (word(at) >> 48, word(at) & ((1 << 48) - 1))).collect();
    (items, packet[HEADER_BYTES..].to_vec())
}

#[test]
fn heaps_are_sent_in_packets_whatever_the_slices() {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let plan = SourcePlan::new(EventSize::Fixed(20_000), Rate::Max).in_protocol(Protocol::Spead);
    let to = receiver.local_addr().unwrap().to_string().parse().unwrap();
    let mut link = Spead::open(&plan, 0, &to).unwrap();
    let payload: Vec<u8> = (0..20_000).map(|at| at as u8).collect();
    let event = |sequence, bytes| {
        let mut header = Vec::new();
        header.extend(u64::to_be_bytes(sequence));
        header.extend(u64::to_be_bytes(bytes));
        header
    };
    let (first, second) = (event(7, 20_000), event(8, 0));
    // A large event comes in pieces.
    let mut slices = [&first[..], &payload[..12_000], &payload[12_000..], &second, &[]].map(IoSlice::new);
    let sent = link.send(&mut &mut slices[..], &mut || ControlFlow::Continue(())).unwrap();
    assert!(matches!(sent, Sent::All));
    Box::new(link).finish(&[], Duration::from_secs(20)).unwrap();
    let mut packets: Vec<Parsed> = Vec::new();
    let mut buffer = vec![0; 65_536];
    while packets.last().is_none_or(|(items, _)| items[4].0 != 1 << 15 | STREAM_CONTROL) {
        let bytes = receiver.recv(&mut buffer).unwrap();
        packets.push(parsed(&buffer[..bytes]));
    }
    let mut found: Vec<u8> = Vec::new();
    for (at, (items, bytes)) in packets[..packets.len() - 2].iter().enumerate() {
        let expected = [7, 20_000, found.len() as u64, bytes.len() as u64];
        let of_heap: Vec<_> = (1..).zip(expected).map(|(id, value)| (1 << 15 | id, value)).collect();
        assert_eq!((&items[..4], items[4]), (&of_heap[..], (if at == 0 { DATA } else { 0 }, 0)));
        assert!(bytes.len() <= PAYLOAD_BYTES);
        found.extend(bytes);
    }
    assert_eq!(found, payload);
    let ends: Vec<_> =
        packets[packets.len() - 2..].iter().map(|(items, _)| (items[0].1, items[1].1)).collect();
    assert_eq!(ends, [(8, 0), (9, 1)]);
}
