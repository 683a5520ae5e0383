//! Text of the progress line.
use super::*;

#[test]
fn the_time_left_follows_from_what_was_read_now() {
    let at = |done_bytes, known_bytes| Progress { done_bytes, known_bytes, total_bytes: 28_000_000_000 };
    assert_eq!(reading(at(4_000_000_000, 0), 2.0), "read 4.0 of 28.0 GB, 2.00 GB/s, 12 s left");
    // What an interrupted run had read is no rate.
    assert_eq!(reading(at(24_000_000_000, 20_000_000_000), 2.0), "read 24.0 of 28.0 GB, 2.00 GB/s, 2 s left");
    assert_eq!(reading(at(0, 0), 1.0), "read 0.0 of 28.0 GB, 0.00 B/s");
}
