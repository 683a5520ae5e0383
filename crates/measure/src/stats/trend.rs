//! Slope of a series.

use crate::sum::Sums;

/// The slope of the least squares line through points (x, y). Sensitive to outliers.
/// `None` for fewer than two points, one that is not finite, or all at the same x.
pub fn least_squares_slope(points: &[(f64, f64)]) -> Option<f64> {
    if points.len() < 2 || !all_finite(points) {
        return None;
    }
    let n = points.len() as f64;
    let x_mean = points.iter().map(|(x, _)| x).float_sum() / n;
    let y_mean = points.iter().map(|(_, y)| y).float_sum() / n;
    let xy: f64 = points.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).float_sum();
    let xx: f64 = points.iter().map(|(x, _)| (x - x_mean).powi(2)).float_sum();
    let slope = xy / xx;
    (xx > 0.0 && slope.is_finite()).then_some(slope)
}

fn all_finite(points: &[(f64, f64)]) -> bool {
    points.iter().all(|(x, y)| x.is_finite() && y.is_finite())
}

#[cfg(test)]
#[path = "trend_tests.rs"]
mod tests;
