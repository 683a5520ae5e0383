//! Leases under clocks that differ in rate.
use proptest::prelude::*;

use super::*;

proptest! {
    /// A lease that both sides count from the same moment ends at the host first.
    #[test]
    fn the_lease_of_the_host_ends_first(fast in 0..=DRIFT_PPM, slow in 0..=DRIFT_PPM) {
        for timing in [Timing::recording(), Timing::trial()] {
            // True times: the host's clock is the slow one, the controller's the fast one.
            let host_ns = u128::from(timing.lease_of_host_ns()) * 1_000_000 / u128::from(1_000_000 - slow);
            let controller_ns =
                u128::from(timing.lease_of_controller_ns()) * 1_000_000 / u128::from(1_000_000 + fast);
            prop_assert!(host_ns <= controller_ns + 2, "{host_ns} {controller_ns}");
        }
    }
}

#[test]
fn a_trial_has_at_least_its_own_intervals() {
    let short = Timing { orphan_ns: 1_000_000_000, ..Timing::recording() };
    assert_eq!(short.of_trial(), Timing::trial());
    let long = Timing { lease_ns: 9_000_000_000, orphan_ns: 9_000_000_000, ..Timing::recording() };
    let trial = long.of_trial();
    assert_eq!((trial.lease_ns, trial.orphan_ns), (9_000_000_000, 9_000_000_000));
}
