//! Waits adapt to the reply times and grow up to the full timeout.
use super::*;

const TIMEOUT: Duration = Duration::from_millis(20);

/// Durations of the waits until `attempts` of them have lasted for the full timeout, in ms.
fn waits(mut reply_timeout: ReplyTimeout, attempts: u32) -> Vec<u128> {
    let mut all = Vec::new();
    while reply_timeout.attempts() < attempts {
        all.push(reply_timeout.limit().as_millis());
        reply_timeout.expired();
    }
    all
}

#[test]
fn fast_replies_shorten_the_timeout() {
    let mut reply_timeout = ReplyTimeout::new(TIMEOUT);
    assert_eq!(waits(reply_timeout, 2), [20, 20]);
    reply_timeout.record(50_000);
    assert_eq!(waits(reply_timeout, 2), [2, 4, 8, 16, 20, 20]);
    reply_timeout.record(1_000_000);
    assert_eq!(waits(reply_timeout, 1), [4, 8, 16, 20]);
    reply_timeout.record(30_000_000);
    assert_eq!(waits(reply_timeout, 1), [20]);
    // The effect of a slow reply decays.
    (0..100).for_each(|_| reply_timeout.record(50_000));
    assert_eq!(reply_timeout.limit().as_millis(), 2);
    reply_timeout.expired();
    assert_eq!(
        (reply_timeout.limit().as_millis(), reply_timeout.for_new_request().limit().as_millis()),
        (4, 2)
    );
    reply_timeout.reset();
    assert_eq!(reply_timeout.limit().as_millis(), 2);
    assert_eq!(waits(ReplyTimeout::new(Duration::MAX), 1).len(), 1);
}
