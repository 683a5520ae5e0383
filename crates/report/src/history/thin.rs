//! Downsampled line: merges neighbouring points and keeps their minimum and maximum.

/// Most buckets. Each is drawn as two points.
const BUCKETS_MAX: usize = 1000;

/// Merged consecutive points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bucket {
    /// Time in seconds and value of the minimum.
    pub(crate) low: (f64, f64),
    /// Time in seconds and value of the maximum.
    pub(crate) high: (f64, f64),
    /// Sum and number of the values, for the mean.
    pub(crate) sum: f64,
    pub(crate) points: u64,
    /// Whether the line breaks after this bucket.
    pub(crate) is_cut: bool,
}

/// Line with a bounded number of points.
#[derive(Clone, Debug)]
pub(crate) struct Thin {
    buckets: Vec<Bucket>,
    /// Points per bucket. Doubles when there are too many buckets.
    width: u64,
}

impl Default for Thin {
    fn default() -> Self {
        Self { buckets: Vec::new(), width: 1 }
    }
}

impl Bucket {
    fn of(at: f64, value: f64) -> Self {
        Self { low: (at, value), high: (at, value), sum: value, points: 1, is_cut: false }
    }

    fn join(&mut self, other: &Self) {
        if other.low.1 < self.low.1 {
            self.low = other.low;
        }
        if other.high.1 > self.high.1 {
            self.high = other.high;
        }
        self.sum += other.sum;
        self.points += other.points;
        self.is_cut |= other.is_cut;
    }
}

impl Thin {
    /// Adds a point. Ignores values that are not finite.
    pub(crate) fn push(&mut self, at: f64, value: f64) {
        if !value.is_finite() {
            return;
        }
        let point = Bucket::of(at, value);
        match self.buckets.last_mut().filter(|last| last.points < self.width && !last.is_cut) {
            Some(last) => last.join(&point),
            None => self.buckets.push(point),
        }
        if self.buckets.len() > BUCKETS_MAX {
            self.halve();
        }
    }

    /// Breaks the line after its last point.
    pub(crate) fn cut(&mut self) {
        if let Some(last) = self.buckets.last_mut() {
            last.is_cut = true;
        }
    }

    /// Merges pairs of buckets. A break within a pair is dropped: it would be narrower than a pixel.
    fn halve(&mut self) {
        self.width *= 2;
        let joined = self.buckets.chunks(2).filter_map(|pair| {
            let (first, rest) = pair.split_first()?;
            let mut bucket = Bucket { is_cut: false, ..*first };
            rest.iter().for_each(|other| bucket.join(other));
            bucket.is_cut = pair.last()?.is_cut;
            Some(bucket)
        });
        self.buckets = joined.collect();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    pub(crate) fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// Maximum, 0 if empty.
    pub(crate) fn most(&self) -> f64 {
        self.buckets.iter().map(|bucket| bucket.high.1).fold(0.0, f64::max)
    }

    /// Points in order of time, divided by `divisor`; `None` where the line breaks.
    pub(crate) fn points(&self, divisor: f64) -> Vec<(f64, Option<f64>)> {
        let mut points = Vec::with_capacity(2 * self.buckets.len());
        for bucket in &self.buckets {
            let (low, high) = (bucket.low, bucket.high);
            let (first, second) = if low.0 <= high.0 { (low, high) } else { (high, low) };
            points.push((first.0, Some(first.1 / divisor)));
            if second != first {
                points.push((second.0, Some(second.1 / divisor)));
            }
            if bucket.is_cut {
                points.push((second.0, None));
            }
        }
        if points.last().is_some_and(|last| last.1.is_none()) {
            points.pop();
        }
        points
    }
}

#[cfg(test)]
#[path = "thin_tests.rs"]
mod tests;
