//! Gaps, restarts and the wrap of the counter.
use super::*;

fn sequences(ids: &[i32]) -> (Vec<u64>, Numbers) {
    let mut numbers = Numbers::default();
    let mut next = |id: &i32| {
        let (sequence, with) = numbers.with(*id);
        numbers = with;
        sequence
    };
    (ids.iter().map(&mut next).collect(), numbers)
}

#[test]
fn a_jump_forwards_is_a_gap() {
    assert_eq!(sequences(&[100, 101, 104, 105]).0, [0, 1, 4, 5]);
}

#[test]
fn the_counter_wraps_around() {
    let (found, numbers) = sequences(&[i32::MAX - 1, i32::MAX, i32::MIN, i32::MIN + 2]);
    assert_eq!((found, numbers.restarts), (vec![0, 1, 2, 4], 0));
}

#[test]
fn a_jump_backwards_is_a_restart() {
    let (found, numbers) = sequences(&[7, 8, 1, 2, 4]);
    assert_eq!((found, numbers.restarts, numbers.repeats), (vec![0, 1, 2, 3, 5], 1, 0));
}

#[test]
fn a_counter_that_stands_still_numbers_the_images_one_by_one() {
    let (found, numbers) = sequences(&[0, 0, 0]);
    assert_eq!((found, numbers.repeats), (vec![0, 1, 2], 2));
}
