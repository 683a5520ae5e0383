//! The anchor, also if the process does not run for a while between two readings.
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

/// Difference of the clocks, ns.
const ANCHOR_NS: u64 = 1_000_000_000;

/// Each reading takes 10 ns; some of the first take a second.
struct Preempted {
    readings: AtomicU64,
    time_ns: AtomicU64,
}

impl Preempted {
    fn read(&self) -> u64 {
        let reading = self.readings.fetch_add(1, Ordering::Relaxed);
        let took_ns = if reading < 9 && reading.is_multiple_of(2) { 1_000_000_000 } else { 10 };
        self.time_ns.fetch_add(took_ns, Ordering::Relaxed) + took_ns
    }
}

impl Clock for Preempted {
    fn now_ns(&self) -> u64 {
        self.read()
    }

    fn unix_ns(&self) -> u64 {
        self.read() + ANCHOR_NS
    }

    fn sleep_until_ns(&self, _deadline_ns: u64) {}
}

#[test]
fn the_quickest_readings_count() {
    let clock = AnchoredClock::new(Preempted { readings: AtomicU64::new(0), time_ns: AtomicU64::new(0) });
    assert!(clock.anchor_ns.abs_diff(ANCHOR_NS) <= 10, "{}", clock.anchor_ns);
    assert_eq!(clock.monotonic_ns(clock.anchor_ns + 7), 7);
    assert_eq!(clock.now_ns(), clock.clock.time_ns.load(Ordering::Relaxed) + clock.anchor_ns);
}
