//! Waits begin short where answers are quick, and end as long as is allowed.
use super::*;

const TIMEOUT: Duration = Duration::from_millis(20);

/// Waits in vain, until so many were as long as is allowed.
fn waits(mut patience: Patience, attempts: u32) -> Vec<u128> {
    let mut all = Vec::new();
    while patience.attempts() < attempts {
        all.push(patience.limit().as_millis());
        patience.waited();
    }
    all
}

#[test]
fn who_answers_quickly_is_asked_soon() {
    let mut patience = Patience::new(TIMEOUT);
    assert_eq!(waits(patience, 2), [20, 20]);
    patience.took(50_000);
    assert_eq!(waits(patience, 2), [2, 4, 8, 16, 20, 20]);
    patience.took(1_000_000);
    assert_eq!(waits(patience, 1), [4, 8, 16, 20]);
    patience.took(30_000_000);
    assert_eq!(waits(patience, 1), [20]);
    // A slow answer is forgotten in time.
    (0..100).for_each(|_| patience.took(50_000));
    assert_eq!(patience.limit().as_millis(), 2);
    patience.waited();
    assert_eq!((patience.limit().as_millis(), patience.anew().limit().as_millis()), (4, 2));
    patience.answered();
    assert_eq!(patience.limit().as_millis(), 2);
    assert_eq!(waits(Patience::new(Duration::MAX), 1).len(), 1);
}
