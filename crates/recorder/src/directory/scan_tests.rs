//! Times of files.
use super::time_ns;

#[test]
fn times_are_those_of_the_file_within_what_an_event_can_have() {
    assert_eq!(time_ns(1_i64, 5_u64), 1_000_000_005);
    assert_eq!(time_ns(0_i64, 0_u64), 0);
    // Half a second before 1970.
    assert_eq!(time_ns(-1_i64, 500_000_000_u64), 0);
    assert_eq!(time_ns((i64::MAX as u64 / 1_000_000_000) as i64 + 1, 0_u64), 9_223_372_037_000_000_000);
    assert_eq!(time_ns(i64::MAX, 999_999_999_u64), u64::MAX);
}
