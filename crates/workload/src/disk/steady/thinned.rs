//! Bounded list: when it is full, neighbouring items are merged, and later items are merged in
//! groups of twice the size.
use keepup_results::{SteadyFile, SteadySample};

/// Adjacent items that can be merged.
pub(super) trait Join: Copy {
    /// Merges with `later`, which directly follows `self`.
    fn join(self, later: Self) -> Self;
}

/// Bounded list of merged items.
#[derive(Clone, Debug)]
pub(super) struct Thinned<T> {
    items: Vec<T>,
    items_max: usize,
    /// Number of pushed items per list item.
    each: u64,
    /// Pending partial item and the number of items in it.
    waiting: Option<(T, u64)>,
}

impl<T: Join> Thinned<T> {
    /// An empty list of at most `items_max` items (rounded up to even).
    pub(super) fn new(items_max: usize) -> Self {
        Self { items: Vec::new(), items_max: items_max.next_multiple_of(2).max(2), each: 1, waiting: None }
    }

    /// Appends an item.
    pub(super) fn push(&mut self, item: T) {
        let (joined, count) = match self.waiting.take() {
            Some((before, count)) => (before.join(item), count + 1),
            None => (item, 1),
        };
        if count < self.each {
            self.waiting = Some((joined, count));
            return;
        }
        if self.items.len() == self.items_max {
            self.items = self.items.chunks_exact(2).map(|pair| pair[0].join(pair[1])).collect();
            self.each *= 2;
            // Pushed items are now half of a list item.
            self.waiting = Some((joined, count));
            return;
        }
        self.items.push(joined);
    }

    /// All items in order, including the pending one.
    pub(super) fn items(&self) -> Vec<T> {
        self.items.iter().copied().chain(self.waiting.map(|(item, _)| item)).collect()
    }
}

impl Join for SteadySample {
    fn join(self, later: Self) -> Self {
        Self {
            seconds: self.seconds + later.seconds,
            bytes: self.bytes + later.bytes,
            lowest_bytes_per_second: self.lowest_bytes_per_second.min(later.lowest_bytes_per_second),
            ..later
        }
    }
}

impl Join for SteadyFile {
    fn join(self, later: Self) -> Self {
        Self {
            first: self.first,
            files: self.files + later.files,
            bytes: self.bytes + later.bytes,
            seconds: self.seconds + later.seconds,
            lowest_bytes_per_second: self.lowest_bytes_per_second.min(later.lowest_bytes_per_second),
            ..later
        }
    }
}

#[cfg(test)]
#[path = "thinned_tests.rs"]
mod tests;
