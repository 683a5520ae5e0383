//! The schedule never runs ahead and never bursts.
use proptest::prelude::*;

use super::*;

const S: u64 = 1_000_000_000;

/// Start times of pieces whose delays cycle through `late_ns`.
fn begins(mut pacer: Pacer, end_ns: u64, late_ns: &[u64]) -> Vec<u64> {
    let mut now_ns = 0;
    let mut begun = Vec::new();
    for late_ns in late_ns.iter().cycle() {
        now_ns = pacer.due_ns().max(now_ns) + late_ns;
        if now_ns >= end_ns {
            return begun;
        }
        pacer.begin(now_ns);
        begun.push(now_ns);
    }
    begun
}

#[test]
fn without_delays_the_rate_is_that_asked_for() {
    for (piece, rate) in [(262_144.0, 25e6), (1.0, 3.0), (1000.0, 1e6)] {
        let begun = begins(Pacer::new(piece, rate, 0), 100 * S, &[0]).len() as f64;
        assert!((begun - 100.0 * rate / piece).abs() <= 1.0, "{begun} pieces of {piece} at {rate}");
    }
}

#[test]
fn a_short_stall_is_caught_up_and_a_long_one_is_left_out() {
    // 1000 pieces per second, one of which is late.
    let run = |stall_ns: u64| {
        let mut late = vec![0; 100_000];
        late[500] = stall_ns;
        begins(Pacer::new(1.0, 1000.0, 0), 20 * S, &late).len()
    };
    assert_eq!(run(S / 2), 20_000);
    let long = run(5 * S);
    assert!((15_990..=16_010).contains(&long), "all but one second of five is left out: {long}");
}

proptest! {
    #[test]
    fn it_never_runs_ahead_and_never_rushes(
        rate in 1.0..1e5f64,
        late in proptest::collection::vec(prop_oneof![4 => 0..10_000u64, 1 => 0..2 * S], 1..60),
    ) {
        let begun = begins(Pacer::new(1.0, rate, 0), 3 * S, &late);
        let period_ns = 1e9 / rate;
        for (n, at_ns) in begun.iter().enumerate() {
            prop_assert!(*at_ns as f64 + 1.0 >= n as f64 * period_ns, "piece {n} at {at_ns}");
        }
        for pair in begun.windows(2) {
            prop_assert!((pair[1] - pair[0]) as f64 + 2.0 >= period_ns / 2.0, "{pair:?}");
        }
    }
}
