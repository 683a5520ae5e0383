//! Heaps of several senders, from their packets to events.
use keepup_measure::sum::Sums;
use keepup_stream::wire::crc32;

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
        pointer(0x1600 + part, 1000 + part),
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

/// Item pointer of a stop.
const STOP: u64 = 1 << 63 | 6 << 48 | 2;

/// A packet of a heap of `length` bytes, with `payload` at `offset`, and more item pointers.
fn part(heap: u64, (length, offset): (u64, u64), payload: &[u8], more: &[u64]) -> Vec<u8> {
    let pointer = |id: u64, value: u64| 1 << 63 | id << 48 | value;
    let head = 0x5304_0206_0000_0004 + more.len() as u64;
    let words =
        [head, pointer(1, heap), pointer(2, length), pointer(3, offset), pointer(4, payload.len() as u64)];
    let mut packet: Vec<u8> = words.iter().chain(more).flat_map(|word| word.to_be_bytes()).collect();
    packet.extend(payload);
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
            assert!(batch.put(data, (([10, 0, 0, *sender], 7).into(), None), 2000));
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
                assert!(event.payload.iter().all(|byte| *byte == event.payload[0]));
                format!("{}:{} of {}{missing}", event.stream, event.sequence, event.payload[0])
            }
            Item::End { events, .. } => format!("end {events}"),
            other => format!("{other:?}"),
        });
        let crc = match decoder.item().unwrap() {
            Some(Item::Event(event)) => Some(crc32(event.payload)),
            _ => None,
        };
        crc.into_iter().for_each(|crc| decoder.completed(crc));
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
        "10.0.0.1:7/item_0x1600=1000",
        "10.0.0.1:7/item_0x1601=1001",
        "10.0.0.2:7/first_heap=5",
        "10.0.0.2:7/item_0x1600=1000",
        "10.0.0.2:7/item_0x1601=1001",
    ];
    assert_eq!(metadata, expected);
    // Both must stop.
    assert_eq!(receive(&mut decoder, &[(1, stop(3))]), [""; 0]);
    assert_eq!(
        receive(&mut decoder, &[(2, half(6, 0)), (2, half(6, 1)), (2, stop(7))]),
        ["1:1 of 6", "end 0"]
    );
    assert!(decoder.rejected().is_empty());
    assert_eq!(receive(&mut decoder, &whole([8])), [""; 0], "nothing follows the end");
    assert_eq!(reasons(&mut decoder), [(RejectReason::OutsideSeries, 2)]);
}

/// Reasons and counts of what was rejected.
fn reasons(decoder: &mut Packets) -> Vec<(RejectReason, u64)> {
    decoder.rejected().iter().map(|row| (row.reason, row.count)).collect()
}

#[test]
fn heaps_that_lack_at_the_stop_of_several_senders_are_lost() {
    let mut decoder = decoder(Spead { step: 1, senders: 2 });
    let other = [(2, half(7, 0)), (2, half(7, 1)), (2, half(8, 0))];
    let packets = [&whole([1])[..], &other, &[(1, stop(2)), (2, stop(9))]].concat();
    let lost = Item::Lost { stream: 1, sequence: 1, cause: LossCause::SequenceGap };
    let found = receive(&mut decoder, &packets);
    assert_eq!(found, ["1 streams", "0:0 of 1", "2 streams", "1:0 of 7", &format!("{lost:?}"), "end 0"]);
    assert_eq!(reasons(&mut decoder), [(RejectReason::Incomplete, 1)]);
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
fn a_stop_before_the_first_heap_is_that_of_another_series() {
    let mut decoder = decoder(Spead::default());
    assert_eq!(receive(&mut decoder, &[(1, stop(900)), (2, stop(7))]), [""; 0]);
    // The first sender must stop again. The other one has no heaps.
    let packets = [&whole([1, 2])[..], &[(1, stop(3))]].concat();
    assert_eq!(receive(&mut decoder, &packets), ["1 streams", "0:0 of 1", "0:1 of 2", "end 0"]);
    assert_eq!(decoder.remarks(), ["2 stops before the first heap of a sender"]);
    assert!(decoder.rejected().is_empty());
}

#[test]
fn the_heap_of_a_stop_is_recorded() {
    let halves = |stops: [bool; 2]| {
        [0, 1].map(|at| {
            let more: &[u64] = if stops[at] { &[STOP] } else { &[] };
            (1, part(3, (16, 8 * at as u64), &[3; 8], more))
        })
    };
    for stops in [[true, true], [true, false], [false, true]] {
        let mut decoder = decoder(Spead::default());
        let packets = [&whole([1, 2])[..], &halves(stops)].concat();
        let found = receive(&mut decoder, &packets);
        assert_eq!(found, ["1 streams", "0:0 of 1", "0:1 of 2", "0:2 of 3", "end 3"], "{stops:?}");
        assert!(decoder.rejected().is_empty());
    }
    // A sender of nothing but that heap.
    let mut only = decoder(Spead::default());
    assert_eq!(receive(&mut only, &halves([true; 2])), ["1 streams", "0:0 of 3", "end 1"]);
    // If it stays incomplete, the end is not waited for longer than a second.
    let mut decoder = decoder(Spead::default());
    let packets = [&whole([1, 2])[..], &halves([true; 2])[..1]].concat();
    assert_eq!(receive(&mut decoder, &packets), ["1 streams", "0:0 of 1", "0:1 of 2"]);
    decoder.tick(5_000_000_000);
    decoder.tick(5_999_999_999);
    assert!(!decoder.has_due() && items(&mut decoder).is_empty());
    decoder.tick(6_000_000_000);
    assert!(decoder.has_due());
    assert_eq!(items(&mut decoder), ["end 3"]);
    assert_eq!(reasons(&mut decoder), [(RejectReason::Incomplete, 1)]);
}

#[test]
fn packets_without_payload_are_no_duplicates() {
    let mut decoder = decoder(Spead::default());
    let item = 1 << 63 | 0x1700 << 48 | 77;
    let packets = [
        (1, part(1, (8, 0), &[], &[item])),
        (1, half(1, 0)),
        (1, half(1, 1)),
        (1, part(1, (8, 8), &[], &[])),
    ];
    assert_eq!(receive(&mut decoder, &packets), ["1 streams", "0:0 of 1"]);
    assert_eq!(decoder.metadata()["10.0.0.1:7/item_0x1700"], "77");
    decoder.finish(0);
    assert_eq!(items(&mut decoder), [""; 0]);
    assert!(decoder.rejected().is_empty() && decoder.remarks().is_empty());
}

#[test]
fn values_that_are_not_recorded_are_reported_once() {
    let mut decoder = decoder(Spead::default());
    let time = |heap: u64| 1 << 63 | 0x1600 << 48 | heap;
    let constant = 1 << 63 | 0x1601 << 48 | 5;
    let packets = [1, 2, 3].map(|heap| (1, part(heap, (8, 0), &[1; 8], &[time(heap), constant])));
    assert_eq!(receive(&mut decoder, &packets).len(), 4);
    let expected =
        "values of item 0x1600 differ from those of the first heap of a sender; they are not recorded";
    assert_eq!(decoder.remarks(), [expected]);
    assert_eq!(decoder.metadata()["10.0.0.1:7/item_0x1600"], "1");
    let many: Vec<u64> = (0..VALUES_MAX as u64 + 6).map(|at| 1 << 63 | (0x100 + at) << 48).collect();
    assert_eq!(receive(&mut decoder, &[(2, part(1, (8, 0), &[1; 8], &many))]).len(), 2);
    let expected = "10.0.0.2:7: 64 immediate values are recorded, the others are not";
    assert_eq!(decoder.remarks(), [expected]);
}

#[test]
fn heaps_of_all_senders_share_their_memory() {
    let limits = Limits { event_bytes_max: 1 << 30, ..LIMITS };
    let mut decoder = Packets::new(Options::new(Format::Spead(Spead::default())), limits, 0);
    for sender in 1..=4u8 {
        let share = OPEN_BYTES_MAX as u64 / u64::from(sender);
        receive(&mut decoder, &[(sender, part(1, (share, 0), &[1; 8], &[]))]);
        let open = decoder.senders.all.iter().map(|sender| usize::from(sender.heaps.has(1)));
        assert_eq!(open.saturating_sum(), 1, "only that of the last sender is within its share");
    }
    assert_eq!(reasons(&mut decoder), [(RejectReason::Incomplete, 1); 3]);
}

#[test]
fn heaps_that_lack_a_packet_are_lost() {
    let mut decoder = decoder(Spead { step: 2, senders: 1 });
    let mut packets = whole([10]);
    packets.push((1, half(12, 0)));
    packets.extend(whole([14, 16, 18, 20]));
    // The fourth whole heap behind it gives it up, and the fifth gives up the wait for it.
    assert_eq!(receive(&mut decoder, &packets), ["1 streams", "0:0 of 10"]);
    let found = receive(&mut decoder, &whole([22]));
    assert_eq!(found[0], "0:2 of 14 behind a sequence gap");
    assert_eq!(found.len(), 5);
    assert_eq!(reasons(&mut decoder), [(RejectReason::Incomplete, 1)]);
    // Late, off the step, and lost at the end.
    let packets = [whole([12, 24, 27]), vec![(1, half(26, 0)), (1, stop(28))]].concat();
    assert_eq!(receive(&mut decoder, &packets), ["0:7 of 24", "end 9"]);
    let rows = decoder.rejected();
    let expected = [(RejectReason::Malformed, 1), (RejectReason::Incomplete, 1), (RejectReason::Late, 1)];
    assert_eq!(rows.iter().map(|row| (row.reason, row.count)).collect::<Vec<_>>(), expected);
    assert!(rows[0].detail.contains("heap 27"), "{rows:?}");
    assert!(rows[1].detail.contains("4 of 8 bytes of heap 26"), "{rows:?}");
}

#[test]
fn any_number_of_heaps_may_be_sent_at_the_same_time() {
    for count in [6, 40, 200] {
        let first = (1..=count).map(|heap| (1, half(heap, 0)));
        let rest = (1..=count).map(|heap| (1, half(heap, 1)));
        let packets: Vec<_> = first.chain(rest).chain([(1, stop(count + 1))]).collect();
        let mut decoder = decoder(Spead::default());
        let found = receive(&mut decoder, &packets);
        let expected = (0..count).map(|at| format!("0:{at} of {}", (at + 1) as u8));
        let expected: Vec<_> = ["1 streams".to_owned()].into_iter().chain(expected).collect();
        assert_eq!(found[..found.len() - 1], expected);
        assert_eq!(found.last().unwrap(), &format!("end {count}"));
        assert!(decoder.rejected().is_empty());
    }
}

#[test]
fn heaps_may_be_sent_at_the_same_time() {
    let mut decoder = decoder(Spead::default());
    let packets: Vec<_> =
        [(1, 0), (2, 0), (3, 0), (3, 1), (2, 1), (1, 1)].map(|(h, p)| (1, half(h, p))).into();
    assert_eq!(receive(&mut decoder, &packets), ["1 streams", "0:0 of 1", "0:1 of 2", "0:2 of 3"]);
}

#[test]
fn numbers_that_start_again_lose_no_heap() {
    for count in [2, 6, 12, 40] {
        let mut decoder = decoder(Spead::default());
        let heaps = (0..3).flat_map(|_| 1..=count).chain([count + 1]);
        let packets = [whole(heaps), vec![(1, half(count + 2, 0))]].concat();
        let mut found = receive(&mut decoder, &packets);
        decoder.finish(0);
        found.extend(items(&mut decoder));
        let events: Vec<_> = (0..3 * count + 1).map(|at| format!("0:{at} of {}", at % count + 1)).collect();
        let last = format!("0:{} of {}", 3 * count, count + 1);
        assert_eq!(found[1..3 * count as usize + 1], events[..3 * count as usize], "{count}");
        assert_eq!(found.last().unwrap(), &last);
        assert_eq!(reasons(&mut decoder), [(RejectReason::Incomplete, 1)]);
        assert_eq!(decoder.remarks(), ["counter restarts: 2; losses at a restart are unknown"]);
    }
}

#[test]
fn packets_of_a_whole_heap_that_arrive_again_are_duplicates() {
    let mut decoder = decoder(Spead::default());
    let twice = [(1, half(2, 1)), (1, half(2, 0)), (1, half(1, 1))];
    let packets = [&whole([1, 2])[..], &twice, &whole([3])].concat();
    let found = receive(&mut decoder, &packets);
    assert_eq!(found, ["1 streams", "0:0 of 1", "0:1 of 2", "0:2 of 3"]);
    decoder.finish(0);
    assert_eq!(items(&mut decoder), [""; 0]);
    assert!(decoder.rejected().is_empty());
    assert_eq!(decoder.remarks(), ["1 duplicate packet", "1 duplicate heap"]);
}

#[test]
fn large_heaps_are_rejected() {
    let mut decoder = decoder(Spead::default());
    let mut packet = half(1, 0);
    packet[16..24].copy_from_slice(&(1 << 63 | 2 << 48 | 101u64).to_be_bytes());
    assert_eq!(receive(&mut decoder, &[(1, packet)]), [""; 0]);
    let rows = decoder.rejected();
    assert_eq!(rows[0].reason, RejectReason::Unsupported);
    assert!(rows[0].detail.contains("heap of 101 bytes, limit 100 bytes"), "{rows:?}");
}

#[test]
fn heaps_are_not_completed_from_packets_of_two_senders() {
    let mut decoder = decoder(Spead::default());
    let packets = [(1, half(1, 0)), (2, half(1, 1)), (1, half(2, 1)), (2, half(2, 0))];
    assert_eq!(receive(&mut decoder, &packets), [""; 0]);
    decoder.finish(0);
    assert_eq!(items(&mut decoder), [""; 0]);
    assert_eq!(reasons(&mut decoder), [(RejectReason::Incomplete, 2), (RejectReason::Incomplete, 2)]);
}
