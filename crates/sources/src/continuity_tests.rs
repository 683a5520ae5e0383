//! Orders in which images arrive.
use super::*;

/// Hands out everything that is due; returns the numbers.
fn due(order: &mut Continuity<()>) -> Vec<u64> {
    let mut numbers = Vec::new();
    while let Some((number, ())) = order.take_due() {
        order.handed_out(number, number);
        numbers.push(number);
    }
    numbers
}

/// Passes images of `bytes` to `order`; returns the numbers in the order in which they are handed out.
fn passed(order: &mut Continuity<()>, bytes: usize, numbers: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let mut out = Vec::new();
    for number in numbers {
        match order.place(number) {
            Place::Next => {
                order.handed_out(number, number);
                out.push(number);
            }
            Place::Early => order.hold(number, bytes, ()),
            _ => {}
        }
        out.extend(due(order));
    }
    out
}

#[test]
fn late_images_get_their_place() {
    let mut order = Continuity::new();
    assert_eq!(passed(&mut order, 1, [1, 0, 2, 5, 4, 3, 6]), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(order.next(), 7);
}

#[test]
fn too_many_images_do_not_wait() {
    let (many, mut order) = (HELD_MAX as u64, Continuity::new());
    assert_eq!(passed(&mut order, 1, [0]), [0]);
    // Image 1 is missing.
    assert!(passed(&mut order, 1, 2..2 + many).is_empty());
    let expected: Vec<u64> = (2..3 + many).collect();
    assert_eq!(passed(&mut order, 1, [2 + many]), expected);
    assert_eq!(order.place(1), Place::Late);
    let mut order = Continuity::new();
    assert_eq!(passed(&mut order, HELD_BYTES_MAX / 2, [2, 3, 4]), [2, 3, 4], "too many bytes");
}

#[test]
fn the_wait_for_an_image_ends() {
    let mut order = Continuity::new();
    assert!(passed(&mut order, 1, [3, 5]).is_empty());
    order.tick(100);
    order.tick(99 + WAIT_NS);
    assert!(due(&mut order).is_empty());
    order.tick(100 + WAIT_NS);
    assert_eq!(due(&mut order), [3, 5]);
    // What arrives afterwards waits again.
    assert!(passed(&mut order, 1, [9]).is_empty());
    order.release();
    assert_eq!(due(&mut order), [9]);
}

#[test]
fn a_loss_that_is_known_is_not_waited_for() {
    let mut order = Continuity::new();
    assert_eq!(passed(&mut order, 1, [0]), [0]);
    order.after_loss();
    assert_eq!(passed(&mut order, 1, [7, 8, 6]), [7, 8]);
    // What waits was before the loss.
    assert!(passed(&mut order, 1, [10]).is_empty());
    order.release();
    order.after_loss();
    assert_eq!(due(&mut order), [10]);
    assert_eq!(passed(&mut order, 1, [20]), [20]);
}

#[test]
fn what_arrived_before_is_known() {
    let mut order = Continuity::new();
    passed(&mut order, 1, [0, 1, 2, 4]);
    assert_eq!((order.place(1), order.place(4)), (Place::Known(1), Place::Held));
    let many = KNOWN_MAX as u64;
    passed(&mut order, 1, 3..many + 1);
    assert_eq!((order.place(0), order.place(1)), (Place::Late, Place::Known(1)));
}

#[test]
fn numbers_of_every_width_have_a_next_one() {
    for width in [8, 16, 31, 32, 48, 63, 64] {
        let last = u64::MAX >> (64 - width);
        let mut order = Continuity::new();
        order.after_loss();
        assert_eq!(passed(&mut order, 1, [last - 2, last, last - 1]), [last - 2, last - 1, last]);
        assert_eq!(order.next(), last.saturating_add(1));
    }
}

#[test]
fn digests_of_other_images_differ() {
    let whole = mix(mix(0, 0, 7, 100), 1, 9, 100);
    assert_eq!(mix(mix(0, 1, 9, 100), 0, 7, 100), whole);
    for other in [mix(mix(0, 0, 9, 100), 1, 7, 100), mix(mix(0, 0, 7, 99), 1, 9, 100), mix(0, 0, 7, 100)] {
        assert_ne!(other, whole);
    }
}
