//! Order, gaps, copies and restarts of numbered packets.
use proptest::prelude::*;

use super::*;

const U64: (u64, u64) = (1, u64::MAX);
const ASIDE_MAX: usize = 256;
const GAP: Option<LossCause> = Some(LossCause::SequenceGap);

/// Content of a packet: its number and a version.
type Sent = (u64, u8);

/// What became of packets: sequence numbers and causes in the order in which they are handed out, and
/// verdicts about the others.
#[derive(Debug, Default, PartialEq)]
struct Out {
    events: Vec<(u64, Option<LossCause>)>,
    duplicates: usize,
    rejected: Vec<RejectReason>,
}

impl Out {
    fn due(&mut self, order: &mut Order, is_end: bool) {
        while let Some((sequence, cause, held)) = order.next_due(is_end, &|_, _| false) {
            order.note(sequence, crc32(&held.bytes));
            self.events.push((sequence, cause));
        }
    }

    fn settle(&mut self, order: &mut Order, outcome: Outcome) {
        let settled = order.settle(outcome);
        if outcome == Outcome::Restart {
            self.due(order, false);
            settled.into_iter().for_each(|(held, _)| self.take(order, held));
            return;
        }
        settled.into_iter().for_each(|(_, verdict)| self.leave_out(verdict));
    }

    fn leave_out(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Duplicate => self.duplicates += 1,
            Verdict::Rejected(reason) => self.rejected.push(reason),
            other => panic!("{other:?}"),
        }
    }

    fn take(&mut self, order: &mut Order, packet: Held) {
        loop {
            match order.judge(packet.number, packet.drops, &packet.bytes) {
                Verdict::Next(sequence, cause) => {
                    order.note(sequence, crc32(&packet.bytes));
                    self.events.push((sequence, cause));
                }
                Verdict::Early => order.hold(packet),
                Verdict::Aside => order.set_aside(packet),
                Verdict::Settle(outcome) => {
                    self.settle(order, outcome);
                    continue;
                }
                verdict => self.leave_out(verdict),
            }
            break self.due(order, false);
        }
    }

    fn finish(&mut self, order: &mut Order) {
        loop {
            self.due(order, true);
            if !order.has_aside() {
                return;
            }
            let outcome = order.final_outcome();
            self.settle(order, outcome);
        }
    }
}

fn held((number, version): Sent) -> Held {
    Held { timestamp_ns: 0, drops: 0, number, frame: 0, bytes: vec![number as u8, version] }
}

fn run(order: &mut Order, sent: impl IntoIterator<Item = Sent>) -> Out {
    let mut out = Out::default();
    sent.into_iter().for_each(|sent| out.take(order, held(sent)));
    out
}

fn ended(order: &mut Order, sent: impl IntoIterator<Item = Sent>) -> Out {
    let mut out = run(order, sent);
    out.finish(order);
    out
}

fn same(numbers: impl IntoIterator<Item = u64>) -> Vec<Sent> {
    numbers.into_iter().map(|number| (number, 0)).collect()
}

fn whole(count: u64) -> Vec<(u64, Option<LossCause>)> {
    (0..count).map(|sequence| (sequence, None)).collect()
}

#[test]
fn packets_that_change_places_are_put_in_order() {
    let mut stream = Order::new(U64, (4, ASIDE_MAX), 100, 0);
    let out = ended(&mut stream, same([100, 102, 103, 101, 105, 104, 102]));
    assert_eq!(out, Out { events: whole(6), duplicates: 1, rejected: vec![] });
}

#[test]
fn a_missing_packet_is_given_up_when_too_many_wait_for_it() {
    let mut stream = Order::new(U64, (2, ASIDE_MAX), 0, 0);
    assert_eq!(run(&mut stream, same([0, 2, 3])).events, [(0, None)]);
    assert_eq!(run(&mut stream, same([4])).events, [(2, GAP), (3, None), (4, None)]);
    // It arrives when the stream has gone on.
    let out = run(&mut stream, same([1, 5]));
    assert_eq!(out, Out { events: vec![(5, None)], duplicates: 0, rejected: vec![RejectReason::Late] });
}

#[test]
fn a_packet_that_is_still_arriving_is_awaited() {
    let mut stream = Order::new(U64, (1, ASIDE_MAX), 0, 0);
    [1, 2, 3].into_iter().for_each(|number| stream.hold(held((number, 0))));
    assert_eq!(stream.next_due(false, &|from, to| (from, to) == (0, 1)), None);
    assert_eq!(stream.next_due(true, &|_, _| true).unwrap().0, 1);
}

#[test]
fn a_gap_is_the_sockets_if_the_kernel_has_dropped_since() {
    let mut stream = Order::new(U64, (0, ASIDE_MAX), 0, 7);
    assert_eq!(stream.judge(0, 7, &[]), Verdict::Next(0, None));
    for (number, drops, cause) in
        [(3, 9, LossCause::SocketBuffer), (5, 9, LossCause::SequenceGap), (9, 10, LossCause::SocketBuffer)]
    {
        assert_eq!(stream.judge(number, drops, &[]), Verdict::Early);
        stream.hold(Held { drops, ..held((number, 0)) });
        let (sequence, found, _) = stream.next_due(false, &|_, _| false).unwrap();
        assert_eq!((sequence, found), (number, Some(cause)));
    }
}

#[test]
fn numbers_in_steps() {
    let mut stream = Order::new((4096, u64::MAX), (0, ASIDE_MAX), 8192, 0);
    let out = run(&mut stream, same([8192, 12289, 12288, 4096, 20480]));
    let rejected = vec![RejectReason::Malformed, RejectReason::Late];
    assert_eq!(out, Out { events: vec![(0, None), (1, None), (3, GAP)], duplicates: 0, rejected });
}

/// Steps and masks of counters of 8 to 64 bits.
fn counters() -> impl Iterator<Item = (u64, u64)> {
    (1..=8).map(|bytes| (1, u64::MAX >> (64 - 8 * bytes)))
}

#[test]
fn counters_of_every_width_wrap_around() {
    for steps in counters() {
        let mut stream = Order::new(steps, (4, ASIDE_MAX), steps.1 - 1, 0);
        let numbers = [steps.1 - 1, 0, steps.1, 1, 2];
        assert_eq!(ended(&mut stream, same(numbers)).events, whole(5), "{steps:x?}");
        assert_eq!(stream.restarts(), 0);
    }
}

#[test]
fn counters_of_every_width_restart_without_a_loss() {
    for steps in counters() {
        for length in [2, 20, 100] {
            // The same content, other content, and a first acquisition of which the start was missed.
            for (versions, missed) in [(0, 0), (1, 0), (0, 1)] {
                let mut stream = Order::new(steps, (64, ASIDE_MAX), missed, 0);
                let sent = (0..4).flat_map(|turn| (0..length).map(move |at| (at, turn * versions)));
                let out = ended(&mut stream, sent.skip(missed as usize));
                assert_eq!(out.events, whole(4 * length - missed), "{steps:x?} {length} {versions} {missed}");
                assert_eq!((stream.restarts(), out.duplicates, out.rejected), (3, 0, vec![]));
            }
        }
    }
}

#[test]
fn copies_of_every_width_are_no_restart() {
    for steps in counters() {
        let mut stream = Order::new(steps, (8, ASIDE_MAX), 0, 0);
        // Packets 10 to 14 arrive twice, 20 again with other content, and the stream goes on each time.
        let twice = [same(0..20), same(10..15), same(20..25), vec![(20, 1)], same(25..30)].concat();
        let out = ended(&mut stream, twice);
        let rejected = vec![RejectReason::Conflicting];
        assert_eq!(out, Out { events: whole(30), duplicates: 5, rejected }, "{steps:x?}");
        assert_eq!(stream.restarts(), 0);
    }
}

#[test]
fn copies_at_the_end_are_duplicates() {
    let mut stream = Order::new(U64, (8, ASIDE_MAX), 0, 0);
    let out = ended(&mut stream, [same(0..20), same(12..20)].concat());
    assert_eq!(out, Out { events: whole(20), duplicates: 8, rejected: vec![] });
}

#[test]
fn a_stuck_counter_is_no_restart() {
    let mut stream = Order::new(U64, (8, ASIDE_MAX), 0, 0);
    let out = ended(&mut stream, (0..600).map(|at| (0, (at % 2) as u8)));
    assert_eq!((out.events, out.duplicates, out.rejected.len()), (whole(1), 299, 300));
}

#[test]
fn a_jump_far_ahead_must_be_confirmed() {
    let far = NEAR_MAX + 100;
    let mut stream = Order::new(U64, (4, ASIDE_MAX), 0, 0);
    // A single wrong number.
    let out = run(&mut stream, same([0, far, 1, 2]));
    assert_eq!(out, Out { events: whole(3), duplicates: 0, rejected: vec![RejectReason::Malformed] });
    // A loss, up to a limit.
    let out = ended(&mut stream, same(far..far + 3));
    assert_eq!(out.events, [(far, GAP), (far + 1, None), (far + 2, None)]);
    assert_eq!(stream.restarts(), 0);
    let out = ended(&mut stream, same((0..3).map(|at| (1 << 50) + at)));
    let next = far + 3;
    assert_eq!(out.events, [(next, None), (next + 1, None), (next + 2, None)]);
    assert_eq!(stream.restarts(), 1);
}

proptest! {
    /// Each packet is handed out once, in order, or has another verdict, and what is missing is a gap.
    #[test]
    fn events_are_in_order_and_add_up(
        swaps in prop::collection::vec((0usize..200, 0usize..20), 0..60),
        lost in prop::collection::btree_set(1u64..200, 0..40),
        start in any::<u64>(),
        window in prop::sample::select(vec![0, 1, 7, 40, 200]),
    ) {
        let mut numbers: Vec<u64> = (0..200).filter(|number| !lost.contains(number)).collect();
        let count = numbers.len();
        for (at, by) in swaps {
            // The first packet numbers the stream.
            numbers.swap(at.clamp(1, count - 1), (at + by).clamp(1, count - 1));
        }
        let numbers: Vec<u64> = numbers.into_iter().map(|number| start.wrapping_add(number)).collect();
        let mut stream = Order::new(U64, (window, ASIDE_MAX), start, 0);
        let out = ended(&mut stream, same(numbers.iter().copied()));
        prop_assert_eq!(out.events.len() + out.duplicates + out.rejected.len(), numbers.len());
        if window >= 200 {
            prop_assert_eq!(out.events.len(), numbers.len());
            prop_assert_eq!(stream.restarts(), 0);
        }
        let mut next = 0;
        for (sequence, cause) in out.events {
            prop_assert!(sequence >= next);
            prop_assert!(stream.restarts() > 0 || cause.is_some() == (sequence > next));
            next = sequence + 1;
        }
    }

    /// Whatever numbers arrive, every packet has one verdict, and little is set aside.
    #[test]
    fn any_numbers(
        numbers in prop::collection::vec(prop_oneof![any::<u64>(), 0u64..64], 0..600),
        bytes in 1u32..=8,
        step in prop::sample::select(vec![1u64, 3, 4096]),
    ) {
        let mask = u64::MAX >> (64 - 8 * bytes);
        let mut stream = Order::new((step, mask), (8, 16), numbers.first().map_or(0, |n| n & mask), 0);
        let mut out = Out::default();
        for number in &numbers {
            out.take(&mut stream, held((number & mask, 0)));
            prop_assert!(stream.aside.len() <= 16 && stream.held.len() <= 9 + 16);
        }
        out.finish(&mut stream);
        prop_assert_eq!(out.events.len() + out.duplicates + out.rejected.len(), numbers.len());
    }
}
