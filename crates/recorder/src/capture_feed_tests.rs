//! Pace of a capture, with steps of its clock.
use super::*;

const SECOND_NS: u64 = 1_000_000_000;

#[test]
fn pauses_are_kept_and_steps_of_the_clock_are_not() {
    let start_ns = 1_700_000_000 * SECOND_NS;
    let mut pace = Pace::default();
    assert_eq!(pace.due_ns((start_ns, start_ns), 7), 7);
    // An hour without packets.
    let hour_ns = start_ns + 3600 * SECOND_NS;
    assert_eq!(pace.due_ns((hour_ns, hour_ns + 5), 8), 7 + 3600 * SECOND_NS + 5);
    assert_eq!(pace.remark(), None);
    // The clock is set back by an hour, and the pace goes on from there.
    assert_eq!(pace.due_ns((start_ns, start_ns), 9), 9);
    assert_eq!(pace.due_ns((start_ns + SECOND_NS, start_ns + SECOND_NS), 10), 9 + SECOND_NS);
    let remark = pace.remark().unwrap();
    assert!(remark.contains("was set 1 times, first by -3600 s"), "{remark}");
}

#[test]
fn a_clock_that_starts_in_1970_is_not_waited_for() {
    let set_ns = 1_700_000_000 * SECOND_NS;
    let mut pace = Pace::default();
    assert_eq!(pace.due_ns((5 * SECOND_NS, 5 * SECOND_NS), 100), 100);
    assert_eq!(pace.due_ns((set_ns, set_ns), 200), 200);
    assert_eq!(pace.due_ns((set_ns + 3, set_ns + 3), 201), 203);
    // The step may be within what was read at once.
    let mut pace = Pace::default();
    assert_eq!(pace.due_ns((set_ns, 5 * SECOND_NS), 100), 100);
    assert!(pace.remark().unwrap().contains("-1699999995 s"));
}
