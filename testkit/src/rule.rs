//! Rules by which a measured test decides, each with its two error rates.
//!
//! On a shared machine any measurement can be disturbed, so one of them decides nothing. "The first good one
//! of three" is no rule either: with every try, luck gets more likely to pass a broken build. A [`Rule`] asks
//! for several good measurements; how often it errs follows from two assumptions, both stated with the rule:
//! how often a disturbance spoils a measurement of a correct build, and how often a build with the stated
//! defect gives a good one by luck. The tests of this module compute both rates from every possible sequence.
use std::fmt::Debug;

/// Passes when `needed` of at most `most` measurements are good, and stops as soon as that is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    needed: usize,
    most: usize,
}

/// For measurements of a few seconds. While a disturbance spoils at most 30 % of them, a correct build fails
/// in less than 1 of 1,000 runs; while a defect leaves at most 10 % good, it passes in less than 5 of 100.
pub const FOUR_OF_FOURTEEN: Rule = Rule { needed: 4, most: 14 };

/// For measurements that take long. The same error rates while a disturbance spoils at most 20 %, and a
/// defect leaves at most 5 % good.
pub const TWO_OF_SEVEN: Rule = Rule { needed: 2, most: 7 };

impl Rule {
    /// Repeats `measure`, which gives a good measurement as `Ok` and any other as `Err`.
    ///
    /// # Panics
    /// When too few are good; every measurement is shown.
    pub fn check<T: Debug>(self, what: &str, measure: impl FnMut() -> Result<T, T>) {
        if let Err(seen) = self.decide(measure) {
            panic!("{what}: fewer than {} of {} measurements are good: {seen:#?}", self.needed, self.most);
        }
    }

    fn decide<T>(self, mut measure: impl FnMut() -> Result<T, T>) -> Result<(), Vec<Result<T, T>>> {
        let (mut seen, mut good) = (Vec::new(), 0);
        while good < self.needed {
            if self.most - seen.len() < self.needed - good {
                return Err(seen);
            }
            seen.push(measure());
            good += usize::from(seen.last().is_some_and(Result::is_ok));
        }
        Ok(())
    }
}

/// A measurement with whether it is good, for [`Rule::check`].
///
/// # Errors
/// The measurement, when it is not good.
pub fn good_if<T>(is_good: bool, measurement: T) -> Result<T, T> {
    if is_good { Ok(measurement) } else { Err(measurement) }
}

#[cfg(test)]
#[path = "rule_tests.rs"]
mod tests;
