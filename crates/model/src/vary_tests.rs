//! Properties of the distribution and of any ranges.
use proptest::prelude::*;

use super::*;

type Figures<'a> = dyn FnMut(f64, f64, f64) -> f64 + 'a;

#[test]
fn one_figure_has_the_quantiles_of_its_distribution() {
    // Peak at an end: the share up to x is (x / 10)^2, so 2.5 %, 50 % and 97.5 % lie at the roots of these.
    let spread = interval(100_000, 1, |figure: &mut Figures| figure(0.0, 10.0, 10.0)).unwrap();
    for (found, share) in [(spread.low, 0.025f64), (spread.median, 0.5), (spread.high, 0.975)] {
        assert!((found - 10.0 * share.sqrt()).abs() < 0.05, "{found} for {share}");
    }
    // The mean of any: a third of low, value and high together. Error: 2.36 / sqrt(100000) = 0.0075.
    assert!((spread.mean - 20.0 / 3.0).abs() < 0.03, "{}", spread.mean);
    let middle = interval(100_000, 2, |figure: &mut Figures| figure(1.0, 2.0, 9.0)).unwrap();
    assert!((middle.mean - 4.0).abs() < 0.03, "{}", middle.mean);
    // Below the peak lie (2 - 1) / (9 - 1) of all.
    let below = interval(100_000, 3, |figure: &mut Figures| f64::from(figure(1.0, 2.0, 9.0) < 2.0)).unwrap();
    assert!((below.mean - 0.125).abs() < 0.005, "{}", below.mean);
}

#[test]
fn a_figure_without_a_range_stays_as_it_is() {
    let spread = interval(40, 1, |figure: &mut Figures| figure(3.0, 3.0, 3.0)).unwrap();
    assert_eq!(spread, Spread { median: 3.0, low: 3.0, high: 3.0, mean: 3.0, samples: 40 });
    let influences = sensitivity(|figure: &mut Figures| figure(3.0, 3.0, 3.0)).unwrap();
    assert_eq!(influences, [Influence { figure: 0, share: 0.0, at_low: 3.0, at_high: 3.0 }]);
}

#[test]
fn the_figure_that_matters_comes_first() {
    // Variances of equal shapes are as the squares of the widths: 1, 4 and 0 of 5.
    let influences = sensitivity(|figure: &mut Figures| {
        figure(0.0, 1.0, 2.0) - figure(1.0, 3.0, 5.0) + figure(7.0, 7.0, 7.0)
    });
    let influences = influences.unwrap();
    assert_eq!(influences.iter().map(|one| one.figure).collect::<Vec<_>>(), [1, 0, 2]);
    assert!((influences[0].share - 0.8).abs() < 1e-9, "{influences:?}");
    assert!((influences[1].share - 0.2).abs() < 1e-9, "{influences:?}");
    assert_eq!((influences[0].at_low, influences[0].at_high), (7.0, 3.0));
    // A resource that is never the slowest has no share.
    let influences = sensitivity(|figure: &mut Figures| figure(1.0, 2.0, 3.0).min(figure(4.0, 5.0, 6.0)));
    assert_eq!(influences.unwrap()[0].share, 1.0);
}

#[test]
fn a_range_that_closes_leaves_the_other_draws_alone() {
    let sum = |high: f64| {
        let mut drawn = Vec::new();
        interval(50, 9, |figure: &mut Figures| {
            figure(1.0, 1.0, high);
            drawn.push(figure(0.0, 5.0, 10.0));
            1.0
        })
        .unwrap();
        drawn
    };
    assert_eq!(sum(1.0), sum(4.0));
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let refused = |low, value, high| {
        let why = interval(40, 1, |figure: &mut Figures| figure(1.0, 2.0, 3.0) + figure(low, value, high));
        why.unwrap_err().to_string()
    };
    assert_eq!(
        refused(3.0, 2.0, 1.0),
        "cannot compute a range of \"figure 2\": 2 is not a value between the lowest and the highest of its \
         range"
    );
    assert!(refused(1.0, 4.0, 3.0).contains("4 is not a value"));
    assert!(refused(1.0, f64::NAN, 3.0).contains("NaN"));
    assert!(refused(1.0, 2.0, f64::INFINITY).contains("figure 2"));
    assert!(
        interval(39, 1, |_: &mut Figures| 1.0)
            .unwrap_err()
            .to_string()
            .contains("39 is not a number from 40")
    );
    assert!(interval(40, 1, |_: &mut Figures| f64::NAN).unwrap_err().to_string().contains("the result"));
    assert!(sensitivity(|figure: &mut Figures| figure(2.0, 1.0, 3.0)).is_err());
}

proptest! {
    #[test]
    fn a_rising_result_lies_between_its_ends(
        ranges in prop::collection::vec((0.0..1e9f64, 0.0..1.0f64, 0.0..1e9f64), 1..10), seed in any::<u64>(),
    ) {
        let result = |figure: &mut Figures| -> f64 {
            ranges.iter().map(|(low, at, width)| figure(*low, low + at * width, low + width)).sum()
        };
        let lowest: f64 = ranges.iter().map(|(low, ..)| low).sum();
        let highest: f64 = ranges.iter().map(|(low, _, width)| low + width).sum();
        let spread = interval(200, seed, result).unwrap();
        prop_assert!(spread.low >= lowest * (1.0 - 1e-12) && spread.high <= highest * (1.0 + 1e-12));
        prop_assert!(spread.low <= spread.median && spread.median <= spread.high);
        prop_assert_eq!(spread, interval(200, seed, result).unwrap());
        let influences = sensitivity(result).unwrap();
        prop_assert!((influences.iter().map(|one| one.share).sum::<f64>() - 1.0).abs() < 1e-9);
        prop_assert!(influences.windows(2).all(|pair| pair[0].share >= pair[1].share));
    }
}
