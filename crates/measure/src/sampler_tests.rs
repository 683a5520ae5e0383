//! Schedule arithmetic, and the thread's life cycle.

use std::panic::AssertUnwindSafe;
use std::sync::mpsc::channel;

use super::*;

#[test]
fn the_schedule_neither_drifts_nor_bunches() {
    assert_eq!(next_due_ns(1_000, 1_000, 100), 1_100);
    assert_eq!(next_due_ns(1_000, 1_099, 100), 1_100);
    // Exactly at the next tick: that tick is served late, so the following one is next.
    assert_eq!(next_due_ns(1_000, 1_100, 100), 1_200);
    assert_eq!(next_due_ns(1_000, 1_450, 100), 1_500);
    // A clock before the due time (impossible if monotonic) still advances.
    assert_eq!(next_due_ns(1_000, 900, 100), 1_100);
    assert_eq!(next_due_ns(u64::MAX - 5, u64::MAX, 10), u64::MAX);
}

#[test]
fn samples_come_in_order_until_stopped() {
    let (sender, receiver) = channel();
    let sampler = Sampler::start(Duration::from_millis(1), move |now_ns| {
        let _ = sender.send(());
        now_ns
    })
    .unwrap();
    for _ in 0..5 {
        receiver.recv().unwrap();
    }
    let before_stop_ns = SystemClock.now_ns();
    let samples = sampler.stop();
    assert!(samples.len() >= 6, "five were seen, one more is taken at the stop: {}", samples.len());
    assert!(samples.is_sorted());
    assert!(
        samples[samples.len() - 1] >= before_stop_ns,
        "the last sample is taken after the stop was asked"
    );
}

#[test]
fn stopping_does_not_wait_for_the_period() {
    let sampler =
        Sampler::start(Duration::from_secs(3600), |_| std::thread::current().name().map(str::to_owned));
    let names = sampler.unwrap().stop();
    assert!((1..=2).contains(&names.len()));
    assert!(names.iter().all(|name| name.as_deref() == Some("ku-sampler")));
}

#[test]
fn a_panic_in_the_closure_reaches_the_caller() {
    let sampler = Sampler::start(Duration::from_secs(3600), |_| -> u8 { panic!("on purpose") }).unwrap();
    assert!(std::panic::catch_unwind(AssertUnwindSafe(|| sampler.stop())).is_err());
}
