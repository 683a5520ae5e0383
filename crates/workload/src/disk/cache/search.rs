//! Which total to try next: doubled until the first file is gone, then the gap is halved. Pure.
//!
//! Doubling from one file never writes more than twice what is needed, however small the cache is (that of
//! a container, say), and believes nothing that the kernel says of its memory.

/// A gap of one file, or of this part of the size, is narrow enough.
const RESOLUTION: u64 = 16;

/// Where the search stands. All numbers are of files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    cached: u64,
    evicted: Option<u64>,
    limit: u64,
}

impl Search {
    /// Up to `limit` files.
    pub(super) fn new(limit: u64) -> Self {
        Self { cached: 0, evicted: None, limit }
    }

    /// Most files after which the first was still there.
    pub(super) fn cached(&self) -> u64 {
        self.cached
    }

    /// Fewest files after which it was not.
    pub(super) fn evicted(&self) -> Option<u64> {
        self.evicted
    }

    /// The next number to try; nothing when the answer is known, or lies beyond the limit.
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

    /// What came of trying `files`.
    pub(super) fn tell(&mut self, files: u64, is_cached: bool) {
        match is_cached {
            true => self.cached = self.cached.max(files),
            false => self.evicted = Some(files),
        }
    }

    /// Most files that a search up to `limit` writes in all: the doubled numbers are less than twice the last
    /// one of them, then there is the limit, and a gap of half the limit is halved as long as it is wide.
    pub(super) fn files_written_max(limit: u64) -> u64 {
        let halvings = u64::from(RESOLUTION.ilog2());
        limit.saturating_mul(3 + halvings)
    }
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
