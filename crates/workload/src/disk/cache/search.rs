//! Search for the cache size: double until the first file is evicted, then bisect. Pure.
//!
//! Doubling from one file writes at most twice as much as needed even for a small cache (for
//! example of a container), and does not depend on memory sizes reported by the kernel.

/// The search ends at a gap of one file, or of this fraction of the size.
const RESOLUTION: u64 = 16;

/// State of the search, in numbers of files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    cached: u64,
    evicted: Option<u64>,
    limit: u64,
}

impl Search {
    /// A search up to `limit` files.
    pub(super) fn new(limit: u64) -> Self {
        Self { cached: 0, evicted: None, limit }
    }

    /// Largest number of files with which the first was still cached.
    pub(super) fn cached(&self) -> u64 {
        self.cached
    }

    /// Smallest number of files with which the first was evicted.
    pub(super) fn evicted(&self) -> Option<u64> {
        self.evicted
    }

    /// Next number to try; none when the result is known or beyond the limit.
    pub(super) fn next(&self) -> Option<u64> {
        match self.evicted {
            None if self.cached >= self.limit => None,
            None => Some(self.cached.saturating_mul(2).clamp(1, self.limit)),
            Some(evicted) => {
                let gap = evicted - self.cached;
                (gap > (evicted / RESOLUTION).max(1)).then(|| self.cached + gap / 2)
            }
        }
    }

    /// Records the outcome for `files`.
    pub(super) fn record(&mut self, files: u64, is_cached: bool) {
        match is_cached {
            true => self.cached = self.cached.max(files),
            false => self.evicted = Some(files),
        }
    }

    /// Upper bound of the files written by a search up to `limit`: the doubled numbers sum to less
    /// than twice the last one; then the limit itself; then the bisection of a gap of half the
    /// limit.
    pub(super) fn files_written_max(limit: u64) -> u64 {
        let halvings = u64::from(RESOLUTION.ilog2());
        limit.saturating_mul(3 + halvings)
    }
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
