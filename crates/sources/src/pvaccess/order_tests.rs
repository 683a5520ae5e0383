//! Orders of `uniqueId` that servers send.
use super::*;

/// Sequence number and content of what is handed out, what is rejected, and the number of repetitions.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    recorded: Vec<(u64, u64)>,
    rejected: Vec<(RejectReason, i32)>,
    repeated: u64,
}

fn hand_out_due(order: &mut Order<u64>, out: &mut Outcome) {
    while let Some((number, content)) = order.images.take_due() {
        order.handed_out(number, content);
        out.recorded.push((number, content));
    }
    out.rejected.extend(order.take_refused());
}

/// Passes images with `uniqueId` and content to `order`.
fn pass(order: &mut Order<u64>, out: &mut Outcome, images: impl IntoIterator<Item = (i32, u64)>) {
    for (id, content) in images {
        let found = Candidate { id, has_time: true, digest: &|| content };
        match order.judge(&found, |held| *held) {
            Arrival::Next(number) => {
                order.handed_out(number, content);
                out.recorded.push((number, content));
            }
            Arrival::Early(number) => order.images.hold(number, 1, content),
            Arrival::Run(reason) => order.add_to_run(id, reason, 1, content),
            Arrival::Repeated => out.repeated += 1,
            Arrival::Rejected(reason) => out.rejected.push((reason, id)),
        }
        hand_out_due(order, out);
    }
}

fn outcome(images: impl IntoIterator<Item = (i32, u64)>) -> (Outcome, Order<u64>) {
    let (mut order, mut out) = (Order::new(), Outcome::default());
    pass(&mut order, &mut out, images);
    order.end();
    hand_out_due(&mut order, &mut out);
    (out, order)
}

/// Images that are all different.
fn different(ids: &[i32]) -> Vec<(i32, u64)> {
    ids.iter().zip(100..).map(|(id, content)| (*id, content)).collect()
}

fn numbers(ids: &[i32]) -> (Vec<u64>, Vec<(RejectReason, i32)>, u64) {
    let (out, order) = outcome(different(ids));
    (out.recorded.iter().map(|(number, _)| *number).collect(), out.rejected, order.restarts)
}

#[test]
fn a_jump_forwards_is_a_gap() {
    assert_eq!(numbers(&[100, 101, 104, 105]), (vec![0, 1, 4, 5], vec![], 0));
}

#[test]
fn images_out_of_order_get_their_place() {
    let ids = [1, 2, 5, 4, 3, 7, 6, 8];
    let (out, order) = outcome(ids.map(|id| (id, id as u64)));
    assert_eq!(out.recorded, (0..8).map(|number| (number, number + 1)).collect::<Vec<_>>());
    assert_eq!((out.rejected, out.repeated, order.restarts), (vec![], 0, 0));
}

#[test]
fn the_counter_wraps_around() {
    assert_eq!(numbers(&[i32::MAX - 1, i32::MAX, i32::MIN, i32::MIN + 2]), (vec![0, 1, 2, 4], vec![], 0));
    assert_eq!(numbers(&[-2, -1, 1, 0, 2]), (vec![0, 1, 2, 3, 4], vec![], 0));
}

#[test]
fn a_counter_of_fewer_bits_starts_again() {
    for bits in [8, 12, 16, 24, 31] {
        let last = i32::MAX >> (31 - bits);
        let found = numbers(&[last - 2, last - 1, last, 0, 1, 2, 3]);
        assert_eq!(found, ((0..7).collect(), vec![], 1), "{bits} bits");
    }
}

#[test]
fn a_counter_that_is_set_back_numbers_what_follows() {
    for first in [0, 1, 3, 10, -5] {
        let ids: Vec<i32> = (1..=20).chain(first..first + 5).collect();
        assert_eq!(numbers(&ids), ((0..25).collect(), vec![], 1), "{first}");
    }
    assert_eq!(numbers(&[7, 8, 1, 2, 4]), (vec![0, 1, 2, 3, 5], vec![], 1));
    // Acquisitions of two images each.
    assert_eq!(numbers(&[1, 2, 1, 2, 1, 2]), ((0..6).collect(), vec![], 2));
    // Far beyond the numbers that are known.
    let ids: Vec<i32> = (0..70_000).chain(0..5).collect();
    assert_eq!(numbers(&ids), ((0..70_005).collect(), vec![], 1));
}

#[test]
fn a_counter_that_stands_still_numbers_the_images_one_by_one() {
    let (out, order) = outcome(different(&[0, 0, 0, 0]));
    assert_eq!((out.recorded.len(), out.rejected, order.repeats), (4, vec![], 3));
    // Without a time of their own, images of equal content are different ones.
    let mut order = Order::<u64>::new();
    for number in 0..3 {
        let found = Candidate { id: 0, has_time: false, digest: &|| 7 };
        assert_eq!(order.judge(&found, |held| *held), Arrival::Next(number));
        order.handed_out(number, 7);
    }
}

#[test]
fn repeated_images_are_counted_and_shift_nothing() {
    for repeated in [1, 2, 4, 5] {
        let ids = [1, 2, 3, 4, 5, repeated, 6, 7];
        let (out, order) = outcome(ids.map(|id| (id, id as u64)));
        assert_eq!(out.recorded, (0..7).map(|number| (number, number + 1)).collect::<Vec<_>>());
        assert_eq!((out.rejected, out.repeated, order.restarts), (vec![], 1, 0));
    }
    // All of them again.
    let ids: Vec<i32> = (1..=5).chain(1..=5).chain(6..=7).collect();
    let (out, _) = outcome(ids.iter().map(|id| (*id, *id as u64)));
    assert_eq!((out.recorded.len(), out.repeated), (7, 5));
    // While it waits.
    let (out, _) = outcome([1, 3, 3, 2].map(|id| (id, id as u64)));
    assert_eq!((out.recorded.len(), out.repeated), (3, 1));
}

#[test]
fn an_image_with_the_number_of_another_is_rejected() {
    for (other, after) in [(3, 6), (5, 6), (1, 6)] {
        let found = numbers(&[1, 2, 3, 4, 5, other, after, after + 1]);
        assert_eq!(found, ((0..7).collect(), vec![(Conflicting, other)], 0));
    }
    assert_eq!(numbers(&[1, 2, 3, 3]), ((0..3).collect(), vec![(Conflicting, 3)], 0));
}

#[test]
fn an_image_that_is_too_late_is_rejected() {
    let (mut order, mut out) = (Order::new(), Outcome::default());
    pass(&mut order, &mut out, different(&[1, 2, 4]));
    order.tick(1);
    order.tick(1 + WAIT_NS);
    hand_out_due(&mut order, &mut out);
    pass(&mut order, &mut out, [(3, 9), (5, 10), (6, 11)]);
    assert_eq!(out.recorded.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 1, 3, 4, 5]);
    assert_eq!(out.rejected, [(Late, 3)]);
}

#[test]
fn an_absurd_jump_is_rejected_unless_the_counter_goes_on_from_there() {
    for far in [3 + (1 << 21), i32::MAX, i32::MIN / 2] {
        assert_eq!(numbers(&[1, 2, far, 3, 4]).0, [0, 1, 2, 3]);
        assert_eq!(numbers(&[1, 2, far, 3, 4]).1.len(), 1);
    }
    let far = 1 << 21;
    assert_eq!(numbers(&[1, 2, far, far + 1, far + 2]), ((0..5).collect(), vec![], 1));
}

#[test]
fn after_a_lost_connection_the_counter_may_have_started_again() {
    let (mut order, mut out) = (Order::new(), Outcome::default());
    pass(&mut order, &mut out, different(&[100, 101, 103]));
    order.after_loss();
    hand_out_due(&mut order, &mut out);
    pass(&mut order, &mut out, [(110, 1), (111, 2)]);
    order.after_loss();
    pass(&mut order, &mut out, [(1, 3), (2, 4)]);
    let numbers: Vec<u64> = out.recorded.iter().map(|(number, _)| *number).collect();
    assert_eq!((numbers, order.restarts), (vec![0, 1, 3, 10, 11, 12, 13], 1));
}

#[test]
fn a_run_that_nothing_follows_is_recorded() {
    let (mut order, mut out) = (Order::new(), Outcome::default());
    pass(&mut order, &mut out, different(&[1, 2, 3, 1, 2]));
    assert_eq!(out.recorded.len(), 3);
    order.tick(5);
    order.tick(5 + WAIT_NS);
    hand_out_due(&mut order, &mut out);
    assert_eq!((out.recorded.len(), order.restarts, out.rejected), (5, 1, vec![]));
}
