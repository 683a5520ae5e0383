//! The progress line has a share, amounts, a rate and the time left.
use super::*;

#[test]
fn the_line_states_share_rate_and_time_left() {
    let live = ArchiveCounters::default();
    live.total_bytes.store(28_000_000_000, Ordering::Relaxed);
    live.done_bytes.store(14_000_000_000, Ordering::Relaxed);
    let line = status("archived", &live, &mut 12_600_000_000, Duration::from_secs(1));
    assert_eq!(line, "archived 50 %, 14.0 of 28.0 GB, 1.40 GB/s, 10 s left");
    let stalled = status("archived", &live, &mut 14_000_000_000, Duration::from_secs(1));
    assert!(!stalled.contains("left"), "{stalled}");
}
