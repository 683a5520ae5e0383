//! Loads on a logarithmic grid, so that neighbours differ by the same share of the rate everywhere.
//!
//! A load is an index: 0 is the lowest rate of the plan, `top()` the highest, both exactly. Neighbours
//! lie at most one width apart, so widths are whole numbers of steps and comparing loads is exact.

/// The rates a search may try.
#[derive(Debug, Clone)]
pub(super) struct Grid {
    min_rate: f64,
    max_rate: f64,
    top: usize,
}

impl Grid {
    /// Grid from `min_rate` to `max_rate` (bytes/s) in steps of at most the relative `width`.
    pub(super) fn new(min_rate: f64, max_rate: f64, width: f64) -> Self {
        // (upper - lower) / upper <= width means ln(upper / lower) <= -ln(1 - width).
        let steps = (max_rate / min_rate).ln() / -(-width).ln_1p();
        // The small allowance keeps a range of exactly n widths at n steps despite rounding.
        Self { min_rate, max_rate, top: (steps - 1e-9).ceil().max(0.0) as usize }
    }

    /// Index of the highest rate.
    pub(super) fn top(&self) -> usize {
        self.top
    }

    /// Rate of a load, bytes/s.
    pub(super) fn rate(&self, load: usize) -> f64 {
        if load >= self.top {
            return self.max_rate;
        }
        self.min_rate * (self.max_rate / self.min_rate).powf(load as f64 / self.top as f64)
    }

    /// Highest load whose rate is not above `rate`; none if even the lowest is.
    pub(super) fn at_most(&self, rate: f64) -> Option<usize> {
        (rate >= self.min_rate).then(|| self.position(rate).floor() as usize)
    }

    /// Lowest load whose rate is not below `rate`; the highest load if none is.
    pub(super) fn at_least(&self, rate: f64) -> usize {
        self.position(rate).ceil() as usize
    }

    /// Where `rate` lies on the grid, 0 to `top`; rates on a grid line come out as whole numbers.
    fn position(&self, rate: f64) -> f64 {
        if rate >= self.max_rate || self.top == 0 {
            return self.top as f64;
        }
        let exact = (rate / self.min_rate).ln() / (self.max_rate / self.min_rate).ln() * self.top as f64;
        let near = exact.round();
        let snapped = if (exact - near).abs() < 1e-6 { near } else { exact };
        snapped.clamp(0.0, self.top as f64)
    }
}

#[cfg(test)]
#[path = "grid_tests.rs"]
mod tests;
