//! Slopes: does a backlog grow?

use serde::{Deserialize, Serialize};

/// More points than this are thinned evenly before the pairs are looked at: their number grows as its square.
pub const TREND_POINTS_MAX: usize = 1000;
/// One-sided 95 % quantile of the normal distribution.
const Z_95: f64 = 1.645;

/// A robust slope and how sure its sign is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trend {
    /// Theil-Sen slope, in units of y per unit of x: the median of the slopes of all pairs of points
    /// (Sen, 1968). Up to 29 % of the points may be anywhere without spoiling it.
    pub slope: f64,
    /// Mann-Kendall statistic, corrected for ties and continuity (Kendall, 1975): how many standard
    /// deviations the balance of rising over falling pairs lies from none. Normal from about ten points on;
    /// readings that follow each other closely are not independent, which makes it too sure.
    pub z: f64,
}

impl Trend {
    /// It rises, with 95 % confidence.
    pub fn rises(&self) -> bool {
        self.z > Z_95
    }

    /// It falls, with 95 % confidence.
    pub fn falls(&self) -> bool {
        self.z < -Z_95
    }
}

/// The trend of points (x, y); the order given does not matter. `None` for fewer than three points, one that
/// is not finite, or all at the same x.
pub fn trend(points: &[(f64, f64)]) -> Option<Trend> {
    let stride = points.len().div_ceil(TREND_POINTS_MAX).max(1);
    if points.len() < 3 || !all_finite(points) {
        return None;
    }
    let mut points = points.to_vec();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let points: Vec<(f64, f64)> = points.into_iter().step_by(stride).collect();
    let mut slopes = Vec::with_capacity(points.len() * points.len() / 2);
    let mut balance = 0i64;
    for (index, (x0, y0)) in points.iter().enumerate() {
        for (x1, y1) in &points[index + 1..] {
            if x1 > x0 {
                slopes.push((y1 - y0) / (x1 - x0));
                balance += i64::from(y1 > y0) - i64::from(y1 < y0);
            }
        }
    }
    let slope = middle(&mut slopes).filter(|slope| slope.is_finite())?;
    Some(Trend { slope, z: mann_kendall_z(balance, &points) })
}

/// The slope of the least squares line through points (x, y). Sensitive to outliers, unlike [`trend`].
/// `None` for fewer than two points, one that is not finite, or all at the same x.
pub fn least_squares_slope(points: &[(f64, f64)]) -> Option<f64> {
    if points.len() < 2 || !all_finite(points) {
        return None;
    }
    let n = points.len() as f64;
    let x_mean = points.iter().map(|(x, _)| x).sum::<f64>() / n;
    let y_mean = points.iter().map(|(_, y)| y).sum::<f64>() / n;
    let xy: f64 = points.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
    let xx: f64 = points.iter().map(|(x, _)| (x - x_mean).powi(2)).sum();
    let slope = xy / xx;
    (xx > 0.0 && slope.is_finite()).then_some(slope)
}

fn all_finite(points: &[(f64, f64)]) -> bool {
    points.iter().all(|(x, y)| x.is_finite() && y.is_finite())
}

/// The median by selection, in linear time: there may be half a million slopes.
fn middle(values: &mut [f64]) -> Option<f64> {
    let half = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    let even = values.len().is_multiple_of(2);
    let (below, upper, _) = values.select_nth_unstable_by(half, f64::total_cmp);
    let upper = *upper;
    if !even {
        return Some(upper);
    }
    let lower = below.iter().copied().max_by(f64::total_cmp)?;
    Some(lower + (upper - lower) / 2.0)
}

/// The balance of rising over falling pairs in standard deviations, groups of equal y taken out of the
/// variance.
fn mann_kendall_z(balance: i64, points: &[(f64, f64)]) -> f64 {
    let weight = |n: usize| (n * (n - 1) * (2 * n + 5)) as f64;
    let mut levels: Vec<f64> = points.iter().map(|(_, y)| *y).collect();
    levels.sort_by(f64::total_cmp);
    let ties: f64 = levels.chunk_by(|a, b| a == b).map(|group| weight(group.len())).sum();
    let variance = (weight(points.len()) - ties) / 18.0;
    if variance <= 0.0 { 0.0 } else { (balance - balance.signum()) as f64 / variance.sqrt() }
}

#[cfg(test)]
#[path = "trend_tests.rs"]
mod tests;
