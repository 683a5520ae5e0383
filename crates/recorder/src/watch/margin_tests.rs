//! What is said about a rate below, between and above the ends of a qualification.
use keepup_results::FailedRate;

use super::*;

/// Qualified for 1.43 GB/s; `lost` events were lost at 1.61 GB/s, or nothing failed.
fn margin(current: f64, lost: Option<u64>) -> Margin {
    let failed = |lost_events| FailedRate {
        bytes_per_second: 1.61e9,
        seconds: 30.0,
        lost_events,
        condition: "events were lost".into(),
    };
    Margin {
        qualified_bytes_per_second: 1.43e9,
        used: current / 1.43e9,
        failed_above: lost.map(failed),
        ..Margin::default()
    }
}

#[test]
fn the_range_of_a_rate_follows_from_both_ends() {
    let range = |current| RateRange::of(&margin(current, Some(51)));
    assert_eq!(range(0.0), RateRange::Qualified);
    assert_eq!(range(1.2e9), RateRange::Qualified);
    assert_eq!(range(1.4e9), RateRange::NearLimit);
    assert_eq!(range(1.43e9), RateRange::NearLimit);
    assert_eq!(range(1.5e9), RateRange::NotProven);
    assert_eq!(range(1.609e9), RateRange::NotProven);
    assert_eq!(range(1.611e9), RateRange::Failed);
    // Without a rate that failed everything above the qualified one is not proven.
    assert_eq!(RateRange::of(&margin(9e9, None)), RateRange::NotProven);
}

#[test]
fn a_rate_between_the_ends_is_not_proven_and_names_the_one_that_failed() {
    let said = |current| warning(&margin(current, Some(51)));
    assert_eq!(said(1.2e9), None);
    assert_eq!(
        said(1.4e9).unwrap(),
        "the rate is 98 % of the 1.43 GB/s that this machine was qualified for; 1.61 GB/s lost 51 events"
    );
    assert_eq!(
        said(1.5e9).unwrap(),
        "the rate of 1.50 GB/s is above the qualified 1.43 GB/s and not proven; 1.61 GB/s lost 51 events in \
         the qualification"
    );
    assert_eq!(
        said(1.7e9).unwrap(),
        "the rate of 1.70 GB/s is in the range in which this machine failed: 1.61 GB/s lost 51 events in the \
         qualification (qualified: 1.43 GB/s)"
    );
}

#[test]
fn a_rate_that_failed_without_loss_is_not_said_to_have_lost_events() {
    let said = warning(&margin(1.5e9, Some(0))).unwrap();
    assert!(said.ends_with("1.61 GB/s failed in the qualification") && !said.contains("lost"), "{said}");
}

#[test]
fn without_a_rate_that_failed_none_is_named() {
    assert_eq!(
        warning(&margin(1.4e9, None)).unwrap(),
        "the rate is 98 % of the 1.43 GB/s that this machine was qualified for"
    );
    assert_eq!(
        warning(&margin(1.5e9, None)).unwrap(),
        "the rate of 1.50 GB/s is above the qualified 1.43 GB/s and not proven"
    );
}
