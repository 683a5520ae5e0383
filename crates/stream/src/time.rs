//! Monotonic time, for waits and for the simulator's schedule.
use rustix::time::{ClockId, clock_gettime};

/// Time on the monotonic clock, ns.
pub(crate) fn monotonic_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
}

/// Time on a clock, ns.
pub(crate) fn clock_ns(id: ClockId) -> u64 {
    let time = clock_gettime(id);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
