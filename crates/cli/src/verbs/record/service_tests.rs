//! Schedule of watchdog keep-alives.
use super::Watchdog;

#[test]
fn three_keep_alives_are_sent_within_the_timeout() {
    let mut watchdog = Watchdog::new(30);
    let sent: Vec<u64> = (0..40).filter(|now_ns| watchdog.is_due(*now_ns, Vec::new())).collect();
    assert_eq!(sent, [0, 10, 20, 30]);
}

#[test]
fn a_stuck_intake_sends_no_keep_alive() {
    let mut watchdog = Watchdog::new(30);
    assert!(watchdog.is_due(0, vec![3, 5]));
    assert!(!watchdog.is_due(10, vec![4, 5]) && !watchdog.is_due(1000, vec![9, 5]));
    assert!(watchdog.is_due(1001, vec![9, 6]), "the intake works again");
    assert!(watchdog.is_due(1011, Vec::new()), "no recorder");
}
