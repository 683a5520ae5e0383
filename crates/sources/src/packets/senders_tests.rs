//! Heaps of several senders, from their packets to events.
use super::super::{Item, Options};
use super::*;
use crate::{Decoder, Input, Limits};

const LIMITS: Limits = Limits { message_bytes_max: 0, event_bytes_max: 100 };

/// A packet of a heap of 8 bytes, which has one half of it.
fn half(heap: u64, part: u64) -> Vec<u8> {
    let pointer = |id: u64, value: u64| 1 << 63 | id << 48 | value;
    let words = [
        0x5304_0206_0000_0005,
        pointer(1, heap),
        pointer(2, 8),
        pointer(3, 4 * part),
        pointer(4, 4),
        pointer(0x1600 + part, 1000 + heap),
    ];
    let mut packet: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    packet.extend([heap as u8; 4]);
    packet
}

fn stop(heap: u64) -> Vec<u8> {
    let pointer = |id: u64, value: u64| 1 << 63 | id << 48 | value;
    let words =
        [0x5304_0206_0000_0005, pointer(1, heap), pointer(2, 1), pointer(3, 0), pointer(4, 1), pointer(6, 2)];
    let mut packet: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    packet.push(0);
    packet
}

fn decoder(spead: Spead) -> Packets {
    Packets::new(Options::new(Format::Spead(spead)), LIMITS, 0)
}

fn receive(decoder: &mut Packets, packets: &[(u8, Vec<u8>)]) -> Vec<String> {
    let mut found = Vec::new();
    for packets in packets.chunks(16) {
        let Input::Datagrams(batch) = decoder.input() else { panic!("it receives packets") };
        batch.clear();
        for (sender, data) in packets {
            assert!(batch.put(data, ([10, 0, 0, *sender], 7).into(), 2000));
        }
        decoder.received(packets.len(), 0);
        found.extend(items(decoder));
    }
    found
}

fn items(decoder: &mut Packets) -> Vec<String> {
    let mut found = Vec::new();
    while let Some(item) = decoder.item().unwrap() {
        found.push(match item {
            Item::Streams(streams) => format!("{} streams", streams.len()),
            Item::Event(event) => {
                let missing = event.missing.map_or(String::new(), |cause| format!(" behind a {cause}"));
                assert_eq!(event.payload, [event.payload[0]; 8]);
                format!("{}:{} of {}{missing}", event.stream, event.sequence, event.payload[0])
            }
            Item::End { events, .. } => format!("end {events}"),
            other => format!("{other:?}"),
        });
        decoder.take();
    }
    found
}

fn whole(heaps: impl IntoIterator<Item = u64>) -> Vec<(u8, Vec<u8>)> {
    heaps.into_iter().flat_map(|heap| [(1, half(heap, 0)), (1, half(heap, 1))]).collect()
}

#[test]
fn heaps_of_every_sender_are_a_stream() {
    let mut decoder = decoder(Spead::default());
    let packets = [
        (2, half(5, 0)),
        (1, half(1, 1)),
        (1, half(1, 0)),
        (2, half(5, 1)),
        (1, half(2, 0)),
        (1, half(2, 1)),
    ];
    assert_eq!(
        receive(&mut decoder, &packets),
        ["1 streams", "0:0 of 1", "2 streams", "1:0 of 5", "0:1 of 2"]
    );
    let metadata: Vec<_> = decoder.metadata().iter().map(|(name, value)| format!("{name}={value}")).collect();
    let expected = [
        "10.0.0.1:7/first_heap=1",
        "10.0.0.1:7/item_0x1600=1001",
        "10.0.0.1:7/item_0x1601=1001",
        "10.0.0.2:7/first_heap=5",
        "10.0.0.2:7/item_0x1600=1005",
        "10.0.0.2:7/item_0x1601=1005",
    ];
    assert_eq!(metadata, expected);
    // Both must stop.
    assert_eq!(receive(&mut decoder, &[(1, stop(3))]), [""; 0]);
    assert_eq!(
        receive(&mut decoder, &[(2, half(6, 0)), (2, half(6, 1)), (2, stop(7))]),
        ["1:1 of 6", "end 0"]
    );
    assert_eq!(receive(&mut decoder, &whole([8])), [""; 0], "nothing follows the end");
    assert!(decoder.remarks().is_empty());
}

#[test]
fn more_senders_can_be_awaited() {
    let mut decoder = decoder(Spead { step: 1, senders: 2 });
    assert_eq!(
        receive(&mut decoder, &[&whole([1])[..], &[(1, stop(2))]].concat()),
        ["1 streams", "0:0 of 1"]
    );
    // A packet that arrives twice does not revive its sender; a new heap does.
    assert_eq!(receive(&mut decoder, &[(1, half(1, 0)), (1, half(3, 0)), (2, stop(2))]), [""; 0]);
    let found = receive(&mut decoder, &[(1, half(3, 1)), (1, stop(4)), (1, half(3, 0))]);
    assert_eq!(found, ["0:2 of 3 behind a sequence gap", "end 0"]);
}

#[test]
fn heaps_that_lack_a_packet_are_lost() {
    let mut decoder = decoder(Spead { step: 2, senders: 1 });
    let mut packets = whole([10]);
    packets.push((1, half(12, 0)));
    packets.extend(whole([14, 16, 18, 20]));
    // The fifth heap behind it, of which one is being assembled, gives it up.
    assert_eq!(receive(&mut decoder, &packets), ["1 streams", "0:0 of 10"]);
    let found = receive(&mut decoder, &whole([22]));
    assert_eq!(found[0], "0:2 of 14 behind a sequence gap");
    assert_eq!(found.len(), 5);
    // Late, off the step, and lost at the end.
    let packets = [whole([12, 23]), vec![(1, half(24, 0)), (1, stop(28))]].concat();
    assert_eq!(receive(&mut decoder, &packets), ["end 9"]);
    let remarks = decoder.remarks();
    assert!(remarks[0].contains("heap 23 is not a whole number of steps"), "{remarks:?}");
    // The first part of heap 12 arrived twice, and the heap was whole when the stream had gone on.
    assert_eq!(remarks[1], "1 packet not recorded: duplicate or too late");
    assert_eq!(remarks[2], "1 heap not recorded: duplicate or too late");
    assert_eq!(remarks[3], "1 heap not recorded: incomplete");
}

#[test]
fn heaps_may_be_sent_at_the_same_time() {
    let mut decoder = decoder(Spead::default());
    let packets: Vec<_> =
        [(1, 0), (2, 0), (3, 0), (3, 1), (2, 1), (1, 1)].map(|(h, p)| (1, half(h, p))).into();
    assert_eq!(receive(&mut decoder, &packets), ["1 streams", "0:0 of 1", "0:1 of 2", "0:2 of 3"]);
}

#[test]
fn numbers_that_start_again_are_confirmed_by_a_few_heaps() {
    let mut decoder = decoder(Spead::default());
    assert_eq!(receive(&mut decoder, &whole([100, 101])).len(), 3);
    let found = receive(&mut decoder, &whole(1..12));
    assert_eq!(found, ["0:2 of 9", "0:3 of 10", "0:4 of 11"]);
    assert!(decoder.remarks().is_empty());
    decoder.finish(0);
    assert_eq!(items(&mut decoder), [""; 0]);
    let remarks = decoder.remarks();
    assert_eq!(remarks[0], "8 heaps not recorded: duplicate or too late");
    assert_eq!(remarks[1], "counter restarts: 1; losses at a restart are unknown");
}

#[test]
fn large_heaps_are_refused() {
    let mut decoder = decoder(Spead::default());
    let mut packet = half(1, 0);
    packet[16..24].copy_from_slice(&(1 << 63 | 2 << 48 | 101u64).to_be_bytes());
    assert_eq!(receive(&mut decoder, &[(1, packet)]), [""; 0]);
    decoder.finish(0);
    assert!(decoder.remarks()[0].contains("heap of 101 bytes, limit 100 bytes"));
}
