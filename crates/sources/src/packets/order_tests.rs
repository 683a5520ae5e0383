//! Order, gaps and restarts of numbered packets.
use proptest::prelude::*;

use super::*;
use crate::packets::RUN_MIN;

const U64: (u64, u64) = (1, u64::MAX);

fn held(number: u64, drops: u32) -> Held {
    Held { timestamp_ns: 0, drops, number, frame: 0, bytes: Vec::new() }
}

/// Sequence numbers and causes of gaps, in the order in which packets are handed out.
fn order(order: &mut Order, numbers: &[u64]) -> Vec<(u64, Option<LossCause>)> {
    let mut out = Vec::new();
    for &number in numbers {
        loop {
            match order.judge(number, 0) {
                Verdict::Next(sequence, cause) => out.push((sequence, cause)),
                Verdict::Early => order.hold(held(number, 0)),
                Verdict::Late | Verdict::OffStep => {}
                Verdict::Restart => {
                    out.extend(due(order, false));
                    continue;
                }
            }
            break;
        }
        out.extend(due(order, false));
    }
    out
}

fn due(order: &mut Order, is_end: bool) -> Vec<(u64, Option<LossCause>)> {
    std::iter::from_fn(|| order.next_due(is_end)).map(|(sequence, cause, _)| (sequence, cause)).collect()
}

#[test]
fn packets_that_change_places_are_put_in_order() {
    let mut stream = Order::new(U64, (4, RUN_MIN), 100, 0);
    let out = order(&mut stream, &[100, 102, 103, 101, 105, 104, 102]);
    assert_eq!(out, (0..6).map(|sequence| (sequence, None)).collect::<Vec<_>>());
    assert!(!stream.has_held());
}

#[test]
fn a_missing_packet_is_given_up_when_too_many_wait_for_it() {
    let mut stream = Order::new(U64, (2, RUN_MIN), 0, 0);
    assert_eq!(order(&mut stream, &[0, 2, 3]), [(0, None)]);
    let gap = Some(LossCause::SequenceGap);
    assert_eq!(order(&mut stream, &[4]), [(2, gap), (3, None), (4, None)]);
    assert_eq!(stream.judge(1, 0), Verdict::Late);
}

#[test]
fn what_is_held_is_due_at_the_end() {
    let mut stream = Order::new(U64, (64, RUN_MIN), 0, 0);
    assert_eq!(order(&mut stream, &[0, 2, 5]), [(0, None)]);
    let gap = Some(LossCause::SequenceGap);
    assert_eq!(due(&mut stream, true), [(2, gap), (5, gap)]);
}

#[test]
fn a_gap_is_the_sockets_if_the_kernel_has_dropped_since() {
    let mut stream = Order::new(U64, (0, RUN_MIN), 0, 7);
    assert_eq!(stream.judge(0, 7), Verdict::Next(0, None));
    for (number, drops, cause) in
        [(3, 9, LossCause::SocketBuffer), (5, 9, LossCause::SequenceGap), (9, 10, LossCause::SocketBuffer)]
    {
        assert_eq!(stream.judge(number, drops), Verdict::Early);
        stream.hold(held(number, drops));
        let (sequence, found, _) = stream.next_due(false).unwrap();
        assert_eq!((sequence, found), (number, Some(cause)));
    }
}

#[test]
fn a_narrow_counter_wraps_around() {
    let mut stream = Order::new((1, 0xFFFF), (4, RUN_MIN), 0xFFFE, 0);
    let out = order(&mut stream, &[0xFFFE, 0, 0xFFFF, 1]);
    assert_eq!(out, (0..4).map(|sequence| (sequence, None)).collect::<Vec<_>>());
}

#[test]
fn numbers_in_steps() {
    let mut stream = Order::new((4096, u64::MAX), (0, RUN_MIN), 8192, 0);
    assert_eq!(stream.judge(8192, 0), Verdict::Next(0, None));
    assert_eq!(stream.judge(12289, 0), Verdict::OffStep);
    assert_eq!(stream.judge(4096, 0), Verdict::Late);
    let gap = Some(LossCause::SequenceGap);
    assert_eq!(order(&mut stream, &[12288, 20480]), [(1, None), (3, gap)]);
}

#[test]
fn a_counter_that_starts_anew_goes_on_after_some_packets() {
    let mut stream = Order::new(U64, (4, RUN_MIN), 1000, 0);
    assert_eq!(order(&mut stream, &[1000, 1002]), [(0, None)]);
    // Packets that come twice are no new start.
    let twice: Vec<u64> = (0..100).flat_map(|at| [1003 + at, 980 + at]).collect();
    assert_eq!(order(&mut stream, &twice).len(), 101);
    assert_eq!(stream.restarts(), 0);
    // Nor is a burst that comes twice.
    assert!(order(&mut stream, &(1003..1003 + RUN_MIN / 2).collect::<Vec<_>>()).len() < 100);
    assert_eq!(stream.restarts(), 0);
    let mut stream = Order::new(U64, (4, RUN_MIN), 1000, 0);
    assert_eq!(order(&mut stream, &[1000, 1002]), [(0, None)]);
    let out = order(&mut stream, &(0..RUN_MIN + 10).collect::<Vec<_>>());
    // With the packet that was held.
    assert_eq!((out.len(), stream.restarts()), (11, 1));
    assert_eq!(out[..2], [(2, Some(LossCause::SequenceGap)), (3, None)]);
}

#[test]
fn a_long_gap_is_confirmed_by_further_packets() {
    let far = 1 << 30;
    let mut stream = Order::new((2, u64::MAX), (4, RUN_MIN), 0, 0);
    assert_eq!(order(&mut stream, &[0, 2 * far, 2]), [(0, None), (1, None)]);
    let out = order(&mut stream, &(0..=RUN_MIN + 1).map(|at| 2 * (far + at)).collect::<Vec<_>>());
    let first = far + RUN_MIN;
    assert_eq!(out, [(first, Some(LossCause::SequenceGap)), (first + 1, None)]);
    assert_eq!(stream.restarts(), 0);
    // Too far to be a loss.
    let out = order(&mut stream, &(0..=RUN_MIN).map(|at| (1 << 50) + 2 * at).collect::<Vec<_>>());
    assert_eq!((out, stream.restarts()), (vec![(first + 2, None)], 1));
}

proptest! {
    /// Each packet that is not late is handed out once, in order, and what is missing is a gap.
    #[test]
    fn events_are_in_order_and_add_up(
        swaps in prop::collection::vec((0usize..200, 0usize..200), 0..60),
        lost in prop::collection::btree_set(1u64..200, 0..40),
        start in any::<u64>(),
        window in prop::sample::select(vec![0, 1, 7, 40, 200]),
    ) {
        let mut numbers: Vec<u64> = (0..200).filter(|number| !lost.contains(number)).collect();
        let count = numbers.len();
        for (a, b) in swaps {
            // The first packet numbers the stream.
            numbers.swap(a.clamp(1, count - 1), b.clamp(1, count - 1));
        }
        let numbers: Vec<u64> = numbers.into_iter().map(|number| start.wrapping_add(number)).collect();
        let mut stream = Order::new(U64, (window, RUN_MIN), start, 0);
        let mut out = order(&mut stream, &numbers);
        out.extend(due(&mut stream, true));
        // 200 packets are too few to confirm a new start.
        prop_assert_eq!(stream.restarts(), 0);
        if window >= 200 {
            prop_assert_eq!(out.len(), numbers.len());
        }
        {
            prop_assert!(out.windows(2).all(|two| two[0].0 < two[1].0));
            let mut next = 0;
            for (sequence, cause) in out {
                prop_assert_eq!(cause.is_some(), sequence > next);
                prop_assert!(!lost.contains(&sequence));
                next = sequence + 1;
            }
        }
    }
}
