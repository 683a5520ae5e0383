//! Events of several packets, with and without losses.
use proptest::prelude::*;

use super::*;

const GAP: Option<LossCause> = Some(LossCause::SequenceGap);

/// Hands packets to a group: each has a number, a frame and the cause of a gap before it. Returns what
/// becomes of them: sequence number, cause of a gap, and the packets' numbers.
fn grouped(
    group: &mut Group,
    packets: &[(u64, u64, Option<LossCause>)],
) -> Vec<(u64, Option<LossCause>, Vec<u8>)> {
    let (step, _) = group.steps;
    let (mut sequence, mut before, mut spare) = (0, None, Vec::new());
    let mut found = Vec::new();
    for &(number, frame, missing) in packets {
        // A gap without a cause is a new start of the counter.
        let ahead = before.map_or(0, |before: u64| number.wrapping_sub(before) / step);
        sequence += if missing.is_some() { ahead } else { u64::from(before.is_some()) };
        before = Some(number);
        let payload = [number as u8];
        let packet = Ordered { sequence, number, frame, timestamp_ns: number, missing, payload: &payload };
        if let Some(whole) = group.add(packet, 100, &mut spare) {
            found.push((whole.sequence, whole.missing, whole.bytes));
        }
    }
    found
}

fn by_count(packets: u64) -> Group {
    Group::new(Rule::Count(packets), (1, u64::MAX))
}

fn numbers(numbers: std::ops::Range<u64>) -> Vec<(u64, u64, Option<LossCause>)> {
    numbers.map(|number| (number, 0, None)).collect()
}

#[test]
fn events_start_at_multiples() {
    let mut group = by_count(3);
    assert_eq!(grouped(&mut group, &numbers(7..14)), [(0, None, vec![9, 10, 11])]);
    assert_eq!(group.discarded(), 2 + 2);
    let mut group = by_count(3);
    assert_eq!(grouped(&mut group, &numbers(6..9)), [(0, None, vec![6, 7, 8])]);
    assert_eq!(group.discarded(), 0);
}

#[test]
fn an_event_beyond_a_smaller_share_of_memory_is_dropped() {
    let mut group = by_count(5);
    assert_eq!(grouped(&mut group, &numbers(5..8)), []);
    group.drop_larger(3);
    assert_eq!((group.too_large, group.discarded()), (0, 3));
    group.drop_larger(2);
    assert_eq!((group.too_large, group.discarded()), (3, 0));
}

#[test]
fn an_event_that_lacks_a_packet_is_lost() {
    let mut group = by_count(3);
    let here = Some(LossCause::SocketBuffer);
    let packets =
        [(0, 0, None), (2, 0, here), (3, 0, None), (5, 0, GAP), (6, 0, None), (7, 0, None), (8, 0, None)];
    assert_eq!(grouped(&mut group, &packets), [(2, here, vec![6, 7, 8])]);
    assert_eq!(group.discarded(), 4);
    // Whole events around a gap at the limit of an event, and within the next one.
    let mut packets = numbers(0..3);
    packets.extend([(7, 0, GAP), (8, 0, None), (9, 0, None), (10, 0, None), (11, 0, None)]);
    let found = grouped(&mut by_count(3), &packets);
    assert_eq!(found, [(0, None, vec![0, 1, 2]), (3, GAP, vec![9, 10, 11])]);
}

#[test]
fn a_counter_that_wraps_around_keeps_the_limits_and_one_that_starts_again_does_not() {
    let mut group = Group::new(Rule::Count(3), (2, 0xFF));
    let wrapping: Vec<_> = (0..6).map(|at| (250 + 2 * at) & 0xFF).map(|number| (number, 0, None)).collect();
    // 250 / 2 is 125, and 126 is a multiple of 3.
    assert_eq!(grouped(&mut group, &wrapping), [(0, None, vec![252, 254, 0])]);
    let mut group = by_count(3);
    let found = grouped(&mut group, &[numbers(0..5), numbers(1..6)].concat());
    assert_eq!(found, [(0, None, vec![0, 1, 2]), (2, GAP, vec![3, 4, 5])], "event 1 was received in part");
}

#[test]
fn large_events_are_lost() {
    let mut group = by_count(200);
    assert_eq!(grouped(&mut group, &numbers(0..200)), []);
    // Those up to the limit, and the rest.
    assert_eq!((group.too_large, group.discarded()), (101, 99));
}

fn by_frame() -> Group {
    Group::new(Rule::Frame(8), (1, u64::MAX))
}

#[test]
fn packets_of_a_frame_are_an_event() {
    let mut group = by_frame();
    // The frame number wraps around; frame 2 is not sent.
    let frames = [254, 255, 255, 0, 1, 1, 1, 3, 3];
    let packets: Vec<_> = (0..).zip(frames).map(|(number, frame)| (number, frame, None)).collect();
    let found = grouped(&mut group, &packets);
    // Whether the first and the last frame are whole is not known.
    assert_eq!(found, [(0, None, vec![1, 2]), (1, None, vec![3]), (2, None, vec![4, 5, 6])]);
    assert_eq!(group.discarded(), 1 + 2);
}

#[test]
fn frames_beside_a_gap_are_lost() {
    let packets = [
        (0, 1, None),
        (1, 2, None),
        (2, 3, None),
        (3, 3, None),
        // Packet 4 belongs to frame 3 or 4.
        (5, 4, GAP),
        (6, 5, None),
        (8, 5, GAP),
        (9, 6, None),
        (10, 8, None),
        // The number starts again.
        (11, 1, None),
        (12, 2, None),
    ];
    let found = grouped(&mut by_frame(), &packets);
    assert_eq!(found, [(0, None, vec![1]), (4, GAP, vec![9]), (6, GAP, vec![10]), (7, None, vec![11])]);
}

proptest! {
    /// Events are exactly those that lost no packet.
    #[test]
    fn whole_events_are_handed_out(
        packets in 1u64..6,
        first in 0u64..40,
        lost in proptest::collection::btree_set(0u64..60, 0..10),
    ) {
        let mut sent = Vec::new();
        let mut before = None;
        for number in (first..first + 60).filter(|number| !lost.contains(&(number - first))) {
            let is_gap = before.is_some_and(|before| before + 1 < number);
            before = Some(number);
            sent.push((number, 0, is_gap.then_some(LossCause::SequenceGap)));
        }
        let first = sent[0].0;
        let start = first.div_ceil(packets);
        let is_sent = |number: &u64| sent.iter().any(|(sent, ..)| sent == number);
        let is_whole = |event: &u64| (event * packets..(event + 1) * packets).all(|n| is_sent(&n));
        let whole = (start..100).filter(is_whole);
        let mut next = 0;
        let expected: Vec<_> = whole
            .map(|event| {
                let sequence = event - start;
                let missing = (sequence > next).then_some(LossCause::SequenceGap);
                next = sequence + 1;
                (sequence, missing, (event * packets..(event + 1) * packets).map(|n| n as u8).collect())
            })
            .collect();
        let mut group = by_count(packets);
        let found = grouped(&mut group, &sent);
        let events: u64 = found.len() as u64;
        prop_assert_eq!(found, expected);
        prop_assert_eq!(group.discarded() + events * packets, sent.len() as u64);
    }
}
