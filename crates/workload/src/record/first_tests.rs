//! Detection of the first received and durable events.
use std::sync::atomic::{AtomicU64, Ordering};

use keepup_recorder::counters::{IntakeCounters, VolumeCounters};

use super::*;

fn counters(received: u64, durable: [u64; 2]) -> Counters {
    let intake = IntakeCounters::new(2);
    intake.received_events.store(received, Ordering::Relaxed);
    intake.received_bytes.store(received * 100, Ordering::Relaxed);
    let volume = |events: u64| VolumeCounters {
        durable_events: AtomicU64::new(events),
        durable_payload_bytes: AtomicU64::new(events * 100),
        ..VolumeCounters::default()
    };
    Counters { intakes: vec![intake], volumes: durable.map(volume).into(), ..Counters::default() }
}

#[test]
fn the_first_look_that_saw_enough_counts_and_no_later_one() {
    let mut first = First { events: 10, ..First::default() };
    first.look(&counters(9, [0, 0]), 1);
    assert_eq!((first.received, first.durable), (None, None), "one is missing");
    first.look(&counters(12, [4, 5]), 2);
    assert_eq!(first.received, Some(Moment { t_ns: 2, events: 12, bytes: 1200 }));
    assert_eq!(first.durable, None, "nine on two volumes");
    first.look(&counters(20, [4, 6]), 3);
    first.look(&counters(30, [30, 0]), 4);
    assert_eq!(first.received, Some(Moment { t_ns: 2, events: 12, bytes: 1200 }), "stays");
    assert_eq!(first.durable, Some(Moment { t_ns: 3, events: 10, bytes: 1000 }));
}

#[test]
fn a_watch_looks_once_more_at_the_end() {
    let counters = Arc::new(counters(0, [0, 0]));
    let clock = Arc::new(keepup_measure::clock::SystemClock);
    let begin_ns = clock.now_ns();
    let watch = Watch::start(5, Arc::clone(&counters), clock, begin_ns).unwrap();
    counters.intakes[0].received_events.store(5, Ordering::Release);
    let first = watch.end().unwrap();
    assert_eq!(first.received.map(|moment| moment.events), Some(5));
    assert_eq!(first.durable, None);
    assert!(first.cpu_ns > 0);
}
