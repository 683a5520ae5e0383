//! The kernel of this machine.
use super::*;

/// The kernel limits the error to 16 s, at which the clock counts as not synchronised.
#[test]
fn a_synchronised_clock_has_a_small_error() {
    let found = match clock_discipline() {
        Ok(found) => found,
        Err(why) => return println!("SKIPPED: a_synchronised_clock_has_a_small_error: {why}"),
    };
    assert!(found.error_ns_max <= 16_000_000_000, "{found:?}");
    assert!(!found.is_synchronised || found.error_ns_max < 16_000_000_000, "{found:?}");
}
