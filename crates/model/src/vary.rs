//! What a result comes to when the figures behind it are only known as ranges: an interval, and which of the
//! ranges matters.
//!
//! A figure is drawn from the triangular distribution between its lowest and its highest value with the peak
//! at the value itself: all that a range says is where the figure cannot be and where it most likely is, and
//! this is the plainest distribution that says the same. Figures are drawn independently of each other.
//! Invariant: the same seed and the same figures give the same draws, so that points of a sweep differ by the
//! sweep alone.

use fastrand::Rng;
use keepup_measure::stats::quantile;

use crate::engine_error::EngineError;

/// Fewest draws of which an interval of 95 % means anything.
pub const SAMPLES_MIN: u32 = 40;
/// Most draws.
pub const SAMPLES_MAX: u32 = 1_000_000;
/// Points on the range of a figure whose influence is looked at.
const POINTS: u32 = 32;
const WHAT: &str = "a range";

/// What a result comes to over all draws.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Half of the draws are not above this.
    pub median: f64,
    /// 2.5 % are not above this.
    pub low: f64,
    /// 97.5 % are not above this.
    pub high: f64,
    /// Their mean.
    pub mean: f64,
    /// Number of draws.
    pub samples: u32,
}

/// What the range of one figure does to the result, all others at their value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Influence {
    /// Which figure: the place of its draw in an evaluation, from 0.
    pub figure: usize,
    /// Its part of the variance of all figures, each varied alone, 0 to 1.
    pub share: f64,
    /// The result with the figure at its lowest value.
    pub at_low: f64,
    /// The result with the figure at its highest value.
    pub at_high: f64,
}

/// The interval of a result whose figures are ranges.
///
/// `evaluate` asks the function that it is given for each figure, with its lowest, most likely and highest
/// value, and returns the result for these. It asks for the same figures in the same order each time.
///
/// # Errors
/// A range upside down or without an end, a result that is no number, too few or too many draws.
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
    // Three times sorted is quick when it is sorted already.
    results.sort_unstable_by(f64::total_cmp);
    let at = |share| quantile(&results, share).ok_or(EngineError::Nothing { what: WHAT });
    Ok(Spread {
        median: at(0.5)?,
        low: at(0.025)?,
        high: at(0.975)?,
        mean: results.iter().sum::<f64>() / f64::from(samples),
        samples,
    })
}

/// Which figure's range matters most: each is varied alone, over points evenly spread by its distribution.
/// Most first; a figure without a range has no share. What two figures do only together is not seen.
///
/// # Errors
/// A range upside down or without an end, a result that is no number.
pub fn sensitivity(
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
        let mean = results.iter().sum::<f64>() / f64::from(POINTS);
        let variance = results.iter().map(|result| (result - mean).powi(2)).sum::<f64>() / f64::from(POINTS);
        influences.push(Influence { figure, share: variance, at_low: at(0.0)?, at_high: at(1.0)? });
    }
    let all: f64 = influences.iter().map(|influence| influence.share).sum();
    if all > 0.0 {
        influences.iter_mut().for_each(|influence| influence.share /= all);
    }
    influences.sort_by(|a, b| b.share.total_cmp(&a.share));
    Ok(influences)
}

/// One result. `chance` says for each figure at which share of its distribution it is taken; at its value for
/// none.
fn evaluate_with(
    evaluate: &mut impl FnMut(&mut dyn FnMut(f64, f64, f64) -> f64) -> f64,
    mut chance: impl FnMut(usize) -> Option<f64>,
) -> Result<f64, EngineError> {
    let mut upside_down = None;
    let mut figure = 0;
    let result = evaluate(&mut |low, value, high| {
        // Drawn for each figure, so that a range that becomes a single value leaves the others' draws as they
        // are.
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

/// What the given share of a triangular distribution is not above.
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
