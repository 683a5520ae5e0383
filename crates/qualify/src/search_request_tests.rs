//! Soak times and limits of bytes that are refused, and what is reserved for the target.
use keepup_error::{Diagnostic as _, ErrorClass};

use super::*;

#[test]
fn a_soak_that_proves_nothing_is_refused() {
    for seconds in [2.0, 30.0, 36_000.0] {
        let time = Duration::from_secs_f64(seconds);
        assert_eq!(check_soak(time).unwrap(), time);
    }
    for (seconds, said) in [(0.0, "0 s"), (0.5, "0.5 s"), (1.999, "1.999 s")] {
        let refused = check_soak(Duration::from_secs_f64(seconds)).unwrap_err();
        assert_eq!(refused.to_string(), format!("cannot soak for {said}: at least 2 s"));
        assert_eq!(refused.class(), ErrorClass::Usage);
        assert!(refused.hint().unwrap().contains("--soak"));
    }
}

#[test]
fn a_limit_of_bytes_that_cannot_hold_the_target_is_refused_with_the_lowest_useful_one() {
    let profile = keepup_plan::builtin("csl").unwrap();
    let request = |soak| SearchRequest { profile: &profile, quick: true, soak, counter_s: 0.0 };
    let target = profile.required_bytes_per_second() * profile.headroom;
    for seconds in [2, 10, 600] {
        let request = request(Some(Duration::from_secs(seconds)));
        let refused = request.check_write_limit((target * seconds as f64) as u64).unwrap_err();
        assert_eq!(refused.class(), ErrorClass::Environment);
        let hint = refused.hint().unwrap().into_owned();
        let amount = hint.split('\'').nth(1).unwrap().trim_end_matches(" MB").parse::<u64>().unwrap();
        request.check_write_limit(amount * 1_000_000).unwrap();
        assert!(request.check_write_limit((amount - 1) * 1_000_000).is_err(), "{hint} is the lowest");
    }
}

#[test]
fn the_lowest_useful_limit_permits_a_plan_on_any_machine() {
    let profile = keepup_plan::builtin("csl").unwrap();
    let target = profile.required_bytes_per_second() * profile.headroom;
    for (soak, quick) in [(None, true), (None, false), (Some(Duration::from_secs(60)), true)] {
        let request = SearchRequest { profile: &profile, quick, soak, counter_s: 6.0 };
        // Ceilings and the unthrottled trial have written up to half of it.
        let left = 0.5 * request.write_bytes_min() as f64;
        for speed in [1.1, 3.0, 100.0] {
            let bounds = Bounds {
                min_rate: target / 10.0,
                max_rate: speed * target,
                source_bound: false,
                write_rate: speed * target,
                usable_bytes: 1e15,
                bytes_left: left,
            };
            let plan = request.plan(&bounds).unwrap();
            assert_eq!(plan.soak, request.soak_planned());
            assert!(plan.bytes >= 0.999 * request.target_soak_bytes(), "{speed}: {plan:?}");
        }
    }
}

#[test]
fn without_a_limit_from_the_user_a_fast_detector_gets_what_it_needs() {
    let slow = keepup_plan::builtin("csl").unwrap();
    let request = |profile| SearchRequest { profile, quick: false, soak: None, counter_s: 6.0 };
    assert_eq!(request(&slow).write_bytes_default(), WRITE_BYTES_MAX);
    let mut fast = slow.clone();
    fast.headroom *= 1e3;
    let limit = request(&fast).write_bytes_default();
    assert!(limit > WRITE_BYTES_MAX, "{limit}");
    request(&fast).check_write_limit(limit).unwrap();
    // A long soak is a wish of the user, and so is its limit.
    let long = SearchRequest { soak: Some(Duration::from_secs(360_000)), ..request(&slow) };
    assert_eq!(long.write_bytes_default(), WRITE_BYTES_MAX);
    assert!(long.check_write_limit(long.write_bytes_default()).is_err());
}

#[test]
fn what_reductions_leave_is_not_known_beforehand() {
    let whole = keepup_plan::builtin("csl").unwrap();
    let mut reduced = whole.clone();
    reduced.reductions.push("lz4".parse().unwrap());
    let request = |profile| SearchRequest { profile, quick: true, soak: None, counter_s: 6.0 };
    assert!(request(&whole).check_write_limit(1).is_err());
    request(&reduced).check_write_limit(1).unwrap();
}

#[test]
fn the_soak_at_the_target_is_reserved_before_search_and_counter_trials() {
    let profile = keepup_plan::builtin("csl").unwrap();
    let request = SearchRequest { profile: &profile, quick: true, soak: None, counter_s: 60.0 };
    let target = profile.required_bytes_per_second() * profile.headroom;
    for spare in [0.9, 1.5, 20.0] {
        let bytes_left = request.target_soak_bytes() * (1.0 + spare);
        let bounds = Bounds {
            min_rate: target / 10.0,
            max_rate: 1.1 * target,
            source_bound: false,
            write_rate: 1.1 * target,
            usable_bytes: 1e15,
            bytes_left,
        };
        let plan = request.plan(&bounds).unwrap();
        assert!(plan.bytes - plan.search_bytes >= 0.999 * request.target_soak_bytes(), "{spare}: {plan:?}");
        assert!(plan.bytes <= bytes_left && plan.search_bytes > 0.0, "{spare}: {plan:?}");
    }
}
