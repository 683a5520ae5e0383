//! Soak times that are refused.
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
        let amount = hint.split('\'').nth(1).unwrap().trim_end_matches(" GB").parse::<f64>().unwrap();
        request.check_write_limit((amount * 1e9) as u64).unwrap();
        assert!(request.check_write_limit(((amount - 0.1) * 1e9) as u64).is_err(), "{hint} is the lowest");
    }
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
