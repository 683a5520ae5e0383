//! The system clock fulfils the trait's guarantees.

use std::time::{SystemTime, UNIX_EPOCH};

use super::*;

#[test]
fn sleeping_never_ends_before_the_deadline() {
    let clock = SystemClock;
    let deadline = clock.now_ns() + 3_000_000;
    clock.sleep_until_ns(deadline);
    assert!(clock.now_ns() >= deadline);
}

#[test]
fn a_deadline_in_the_past_returns() {
    SystemClock.sleep_until_ns(0);
}

#[test]
fn wall_time_lies_between_two_readings_of_the_standard_library() {
    let unix_ns = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let before = unix_ns();
    let now = SystemClock.unix_ns();
    assert!(before <= now && now <= unix_ns());
}
