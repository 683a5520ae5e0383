//! Two samples of two threads.
use super::*;

#[test]
fn rates_are_averages_between_two_samples() {
    assert_eq!(Reduction::default().sample(&[], 1.0), None, "without reducer threads there are no figures");
    let threads = [ReducerCounters::default(), ReducerCounters::default()];
    threads[0].busy_ns.store(1_000_000_000, Relaxed);
    let mut reduction = Reduction::default();
    reduction.sample(&threads, 2.0).unwrap();
    for (thread, busy_ns) in threads.iter().zip([2_000_000_000, 500_000_000]) {
        thread.handed_bytes.store(1000, Relaxed);
        thread.input_bytes.store(800, Relaxed);
        thread.output_bytes.store(200, Relaxed);
        thread.events.store(4, Relaxed);
        thread.busy_ns.store(busy_ns, Relaxed);
    }
    let expected = ReductionNow {
        events: 8,
        input_bytes: 1600,
        output_bytes: 400,
        waiting_bytes: 400,
        input_bytes_per_second: 800.0,
        output_bytes_per_second: 200.0,
        busy: vec![0.5, 0.25],
    };
    assert_eq!(reduction.sample(&threads, 2.0), Some(expected));
}
