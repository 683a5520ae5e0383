//! Sizes follow rate, events and free space.
use super::*;

const GIB: u64 = 1 << 30;

/// Sizes of the segments of a volume that is written at this rate.
fn sizes(bytes_per_second: f64, free_bytes: u64) -> Vec<u64> {
    let (mut sizes, mut now_ns, mut before) = (SegmentSizes::new(GIB, true), 0, None);
    (0..8)
        .map(|_| {
            let next = sizes.next_bytes(Some(free_bytes));
            sizes.activated(before.map(|bytes| (bytes, bytes)), now_ns);
            now_ns += (next as f64 / bytes_per_second * 1e9) as u64;
            before = Some(next);
            next / GIB
        })
        .collect()
}

#[test]
fn a_segment_lasts_four_seconds_at_the_rate_of_the_last_one() {
    assert_eq!(sizes(0.2e9, 1 << 50), [1; 8]);
    assert_eq!(sizes(1e9, 1 << 50), [1, 1, 4, 4, 4, 4, 4, 4], "the next one is prepared ahead of time");
    assert_eq!(sizes(10e9, 1 << 50), [1, 1, 16, 16, 16, 16, 16, 16], "the largest");
}

#[test]
fn a_segment_takes_an_eighth_of_the_free_space_but_is_never_small() {
    assert_eq!(sizes(10e9, 24 * GIB), [1, 1, 3, 3, 3, 3, 3, 3]);
    assert_eq!(sizes(10e9, GIB / 2), [1; 8]);
    let mut sizes = SegmentSizes::new(GIB, true);
    sizes.activated(None, 0);
    sizes.activated(Some((GIB, GIB)), 1);
    assert_eq!(sizes.next_bytes(None), GIB, "the free space is unknown");
}

#[test]
fn a_segment_that_is_full_of_events_does_not_grow() {
    let mut sizes = SegmentSizes::new(GIB, true);
    sizes.activated(None, 0);
    sizes.activated(Some((GIB / 3, GIB)), 100_000_000);
    assert_eq!(sizes.next_bytes(Some(1 << 50)), GIB);
}

#[test]
fn sizes_fall_with_the_rate_and_stay_when_fixed() {
    let mut sizes = SegmentSizes::new(GIB, true);
    sizes.activated(None, 0);
    sizes.activated(Some((GIB, GIB)), 200_000_000);
    assert_eq!(sizes.next_bytes(Some(1 << 50)), 16 * GIB);
    sizes.activated(Some((16 * GIB, 16 * GIB)), 60_200_000_000);
    assert_eq!(sizes.next_bytes(Some(1 << 50)), 2 * GIB);
    let mut fixed = SegmentSizes::new(GIB, false);
    fixed.activated(None, 0);
    fixed.activated(Some((GIB, GIB)), 1);
    assert_eq!(fixed.next_bytes(Some(1 << 50)), GIB);
}
