//! The criterion at its limits, and missing answers.
use proptest::prelude::*;

use super::*;

#[test]
fn a_level_line_is_steady() {
    let window = steady_window(&[7.0, 100.0, 100.0, 100.0, 100.0, 100.0]).unwrap();
    assert_eq!(window, SteadyWindow { average: 100.0, range_share: 0.0, drift_share: 0.0 });
    assert!(window.is_steady(), "only the last five count");
}

#[test]
fn scatter_of_a_fifth_and_drift_of_a_tenth_are_the_borders() {
    let scatter =
        |range: f64| steady_window(&[100.0, 100.0 + range / 2.0, 100.0, 100.0 - range / 2.0, 100.0]);
    assert!(!scatter(20.5).unwrap().is_steady());
    let narrow = scatter(19.5).unwrap();
    assert!(narrow.is_steady(), "{narrow:?}");
    assert!((narrow.range_share - 0.195).abs() < 1e-12);
    let drift = |whole: f64| {
        let round = |n: f64| 100.0 - whole / 2.0 + whole * n / 4.0;
        steady_window(&[round(0.0), round(1.0), round(2.0), round(3.0), round(4.0)]).unwrap()
    };
    for sign in [1.0, -1.0] {
        assert!(drift(sign * 9.9).is_steady());
        assert!(!drift(sign * 10.1).is_steady());
        assert!((drift(sign * 10.1).drift_share - sign * 0.101).abs() < 1e-12);
    }
}

#[test]
fn no_answer_where_there_is_none() {
    assert_eq!(steady_window(&[]), None);
    assert_eq!(steady_window(&[1.0; 4]), None);
    assert_eq!(steady_window(&[0.0; 5]), None);
    assert_eq!(steady_window(&[1.0, 1.0, f64::NAN, 1.0, 1.0]), None);
}

proptest! {
    #[test]
    fn the_unit_does_not_matter(rounds in prop::collection::vec(1.0f64..1e3, 5), unit in 1e-3f64..1e9) {
        let there = steady_window(&rounds).unwrap();
        let scaled: Vec<f64> = rounds.iter().map(|rate| rate * unit).collect();
        let here = steady_window(&scaled).unwrap();
        prop_assert!((there.range_share - here.range_share).abs() < 1e-9);
        prop_assert!((there.drift_share - here.drift_share).abs() < 1e-9);
    }
}
