//! Due times, and the assignment of events to connections.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn steady(rate: f64) -> Schedule {
    Schedule::new(Rate::EventsPerSecond(rate), None).unwrap()
}

fn bursts(rate: f64, on_ms: u64, off_ms: u64) -> Schedule {
    let burst = Burst { on: Duration::from_millis(on_ms), off: Duration::from_millis(off_ms) };
    Schedule::new(Rate::EventsPerSecond(rate), Some(burst)).unwrap()
}

#[test]
fn a_steady_rate_has_no_drift() {
    let day = steady(305.18);
    assert_eq!(day.due_ns(0), 0);
    let n = 305.18f64 * 86_400.0;
    assert!(day.due_ns(n as u64).abs_diff(86_400_000_000_000) < 4_000_000, "one period at most");
    assert_eq!(steady(1000.0).due_ns(3_600_000), 3_600_000_000_000);
}

#[test]
fn bursts_hold_the_rate_and_then_pause() {
    let schedule = bursts(1000.0, 5, 15);
    let due_ms: Vec<u64> = (0..12).map(|n| schedule.due_ns(n) / 1_000_000).collect();
    assert_eq!(due_ms, [0, 1, 2, 3, 4, 20, 21, 22, 23, 24, 40, 41]);
}

#[test]
fn a_closed_loop_has_no_schedule() {
    assert!(Schedule::new(Rate::Max, None).is_none());
}

#[test]
fn coalescing_never_fills_the_buffer() {
    let fast = steady(1e6);
    assert_eq!(fast.coalesce_ns(1, 64, 1 << 20), COALESCE_NS_MAX);
    // 1e6 events per second of 128 bytes each fill a quarter of 4096 bytes in 8 us.
    assert_eq!(fast.coalesce_ns(1, 64, 4096), 8_000);
    assert_eq!(fast.coalesce_ns(2, 64, 4096), 16_000);
}

proptest! {
    #[test]
    fn due_times_never_fall_and_lie_within_bursts(
        rate in 0.001f64..1e7, on_ms in 1u64..10_000, off_ms in 0u64..10_000, n in 0u64..1_000_000_000,
    ) {
        let schedule = bursts(rate, on_ms, off_ms);
        let due_ns = schedule.due_ns(n);
        prop_assert!(due_ns <= schedule.due_ns(n + 1));
        prop_assert!(due_ns % ((on_ms + off_ms) * 1_000_000) < on_ms * 1_000_000);
        prop_assert!(due_ns >= steady(rate).due_ns(n));
    }

    #[test]
    fn every_event_is_assigned_once(streams in 1u32..60, connections in 1u32..60) {
        let connections = connections.min(streams);
        let mut numbers = Vec::new();
        for connection in 0..connections {
            let round_robin = RoundRobin::new(streams, connections, connection);
            let mut last = None;
            for k in 0..3 * round_robin.slots() as u64 {
                let place = round_robin.position_of(k);
                let stream = u64::from(connection) + place.slot as u64 * u64::from(connections);
                prop_assert_eq!(place.number % u64::from(streams), stream);
                prop_assert_eq!(place.round, k / round_robin.slots() as u64);
                prop_assert!(last < Some(place.number));
                last = Some(place.number);
                numbers.push(place.number);
            }
        }
        numbers.sort_unstable();
        prop_assert_eq!(numbers, (0..3 * u64::from(streams)).collect::<Vec<_>>());
    }
}
