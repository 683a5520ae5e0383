//! When the watchdog hears of a recorder, and when it does not.
use super::Pulse;

#[test]
fn the_watchdog_hears_of_it_three_times_within_its_limit() {
    let mut pulse = Pulse::new(30);
    let told: Vec<u64> = (0..40).filter(|now_ns| pulse.is_due(*now_ns, None)).collect();
    assert_eq!(told, [0, 10, 20, 30]);
}

#[test]
fn an_intake_that_stands_still_is_not_vouched_for() {
    let mut pulse = Pulse::new(30);
    assert!(pulse.is_due(0, Some(5)));
    assert!(!pulse.is_due(10, Some(5)) && !pulse.is_due(1000, Some(5)));
    assert!(pulse.is_due(1001, Some(6)), "it goes on");
    assert!(pulse.is_due(1011, None), "no recorder, nothing to vouch for");
}
