//! A line of any number of points in bounded memory: neighbours are joined, their extremes kept.

/// Stretches kept at most. Two points are drawn of each, so a line has at most 2000.
const BUCKETS_MAX: usize = 1000;

/// Points that follow each other, joined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bucket {
    /// When its lowest and highest value were, in seconds.
    pub(crate) low: (f64, f64),
    /// The highest, after the time it was at.
    pub(crate) high: (f64, f64),
    /// Sum of its values, and how many.
    pub(crate) sum: f64,
    pub(crate) points: u64,
    /// Whether the line is broken behind it.
    pub(crate) is_cut: bool,
}

/// A line.
#[derive(Clone, Debug)]
pub(crate) struct Thin {
    buckets: Vec<Bucket>,
    /// Points that make one bucket; doubles whenever there are too many buckets.
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
    /// A further point; one that is not a number is left out.
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

    /// Breaks the line behind its last point.
    pub(crate) fn cut(&mut self) {
        if let Some(last) = self.buckets.last_mut() {
            last.is_cut = true;
        }
    }

    /// Joins every two neighbours. A break between them is not kept: it would be drawn narrower than a pixel.
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

    /// The highest value; 0 without any.
    pub(crate) fn most(&self) -> f64 {
        self.buckets.iter().map(|bucket| bucket.high.1).fold(0.0, f64::max)
    }

    /// The line as points in order of time, each value divided; `None` where it is broken.
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
