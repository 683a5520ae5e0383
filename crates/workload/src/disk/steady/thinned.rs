//! A list that never grows beyond a bound: when it is full, neighbours are joined, and from then on twice as
//! many come together before they are entered.
use keepup_results::{SteadyFile, SteadySample};

/// Two things that follow each other and may become one.
pub(super) trait Join: Copy {
    /// Both, `later` directly after `self`.
    fn join(self, later: Self) -> Self;
}

/// The list.
#[derive(Clone, Debug)]
pub(super) struct Thinned<T> {
    items: Vec<T>,
    items_max: usize,
    /// How many of what came make one item.
    each: u64,
    /// What waits for more to come, and how many it is joined from.
    waiting: Option<(T, u64)>,
}

impl<T: Join> Thinned<T> {
    /// An empty list of at most `items_max` items (rounded up to an even number).
    pub(super) fn new(items_max: usize) -> Self {
        Self { items: Vec::new(), items_max: items_max.next_multiple_of(2).max(2), each: 1, waiting: None }
    }

    /// Adds what comes next.
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
            // What has come is half of an item now.
            self.waiting = Some((joined, count));
            return;
        }
        self.items.push(joined);
    }

    /// All of it, in order, with what waits.
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
