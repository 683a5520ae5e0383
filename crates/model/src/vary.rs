//! Uncertainty of a result with ranged figures: an interval, and the influence of each range.
//!
//! A figure is drawn from the triangular distribution over its range with the mode at its value,
//! the simplest distribution with this information. Figures are independent. Invariant: the same
//! seed and figures give the same draws, so that points of a sweep differ by the sweep alone.

use fastrand::Rng;
use keepup_measure::stats::quantile;
use keepup_measure::sum::Sums;

use crate::engine_error::EngineError;

/// Minimum number of draws for a 95 % interval.
pub const SAMPLES_MIN: u32 = 40;
/// Maximum number of draws.
pub const SAMPLES_MAX: u32 = 1_000_000;
/// Sample points on the range of a figure for its influence.
const POINTS: u32 = 32;
const WHAT: &str = "a range";

/// Distribution of a result over all draws.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// 2.5 % quantile.
    pub low: f64,
    /// 97.5 % quantile.
    pub high: f64,
    /// Mean.
    pub mean: f64,
    /// Number of draws.
    pub samples: u32,
}

/// Influence of one figure's range, with all others at their values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Influence {
    /// Figure, by index of its draw in an evaluation, from 0.
    pub figure: usize,
    /// Share of the total variance when figures are varied alone, 0 to 1.
    pub share: f64,
    /// Result at the figure's minimum.
    pub at_low: f64,
    /// Result at the figure's maximum.
    pub at_high: f64,
}

/// Interval of a result with ranged figures.
///
/// `evaluate` calls the given function for each figure with its minimum, most likely and maximum
/// value, and returns the result. It must use the same figures in the same order each time.
///
/// # Errors
/// An inverted or infinite range, a NaN result, too few or too many draws.
pub fn interval(
    samples: u32,
    seed: u64,
    mut evaluate: impl FnMut(&mut dyn FnMut(f64, f64, f64) -> f64) -> f64,
) -> Result<Spread, EngineError> {
    if !(SAMPLES_MIN..=SAMPLES_MAX).contains(&samples) {
        return Err(bad("draws", f64::from(samples), "number from 40 to 1000000"));
    }
    let mut random = Rng::with_seed(seed);
    let mut results: Vec<f64> = (0..samples)
        .map(|_| evaluate_with(&mut evaluate, |_| Some(random.f64())))
        .collect::<Result<_, _>>()?;
    // The third sort is fast because the data is already sorted.
    results.sort_unstable_by(f64::total_cmp);
    let at = |share| quantile(&results, share).ok_or(EngineError::Nothing { what: WHAT });
    Ok(Spread {
        median: at(0.5)?,
        low: at(0.025)?,
        high: at(0.975)?,
        mean: results.iter().float_sum() / f64::from(samples),
        samples,
    })
}

/// Influence of each range: figures are varied alone, at evenly spaced quantiles. Largest first; a
/// figure without a range has no share. Interactions are not covered.
///
/// # Errors
/// An inverted or infinite range, or a NaN result.
pub(crate) fn sensitivity(
    mut evaluate: impl FnMut(&mut dyn FnMut(f64, f64, f64) -> f64) -> f64,
) -> Result<Vec<Influence>, EngineError> {
    let mut figures = 0;
    evaluate_with(&mut evaluate, |figure| {
        figures = figure + 1;
        None
    })?;
    let mut influences = Vec::with_capacity(figures);
    for figure in 0..figures {
        let mut at = |share: f64| evaluate_with(&mut evaluate, |other| (other == figure).then_some(share));
        let points = (0..POINTS).map(|point| at((f64::from(point) + 0.5) / f64::from(POINTS)));
        let results = points.collect::<Result<Vec<f64>, _>>()?;
        let mean = results.iter().float_sum() / f64::from(POINTS);
        let variance = results.iter().map(|result| (result - mean).powi(2)).float_sum() / f64::from(POINTS);
        influences.push(Influence { figure, share: variance, at_low: at(0.0)?, at_high: at(1.0)? });
    }
    let all: f64 = influences.iter().map(|influence| influence.share).float_sum();
    if all > 0.0 {
        influences.iter_mut().for_each(|influence| influence.share /= all);
    }
    influences.sort_by(|a, b| b.share.total_cmp(&a.share));
    Ok(influences)
}

/// One result. `chance` gives the quantile of each figure; `None` uses its value.
fn evaluate_with(
    evaluate: &mut impl FnMut(&mut dyn FnMut(f64, f64, f64) -> f64) -> f64,
    mut chance: impl FnMut(usize) -> Option<f64>,
) -> Result<f64, EngineError> {
    let mut upside_down = None;
    let mut figure = 0;
    let result = evaluate(&mut |low, value, high| {
        // A number is drawn for every figure, so that a range reduced to a single value leaves the
        // others' draws unchanged.
        let share = chance(figure);
        figure += 1;
        if !(low.is_finite() && high.is_finite() && low <= value && value <= high) {
            upside_down = upside_down.or(Some((figure, value)));
            return value;
        }
        share.map_or(value, |share| triangular(low, value, high, share))
    });
    if let Some((figure, value)) = upside_down {
        let name = format!("figure {figure}");
        return Err(bad(&name, value, "value between the lowest and the highest of its range"));
    }
    if result.is_finite() { Ok(result) } else { Err(bad("the result", result, "number")) }
}

/// Quantile of a triangular distribution.
fn triangular(low: f64, value: f64, high: f64, share: f64) -> f64 {
    let range = high - low;
    if range <= 0.0 {
        return value;
    }
    if share * range < value - low {
        low + (share * range * (value - low)).sqrt()
    } else {
        high - ((1.0 - share) * range * (high - value)).sqrt()
    }
}

fn bad(name: &str, value: f64, wanted: &'static str) -> EngineError {
    EngineError::BadFigure { what: WHAT, name: name.to_owned(), value, wanted }
}

#[cfg(test)]
#[path = "vary_tests.rs"]
mod tests;
