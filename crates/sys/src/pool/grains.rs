//! Which grains of a pool are free: first fit at the lowest place, without a search from the start. Pure.
//!
//! Invariant: no run of `size` free grains begins below the mark of that size. Streams use few sizes, so that
//! almost every search begins where it ends; a pool of 64 GiB has four million grains.
use std::ops::Range;

/// Sizes with a mark.
const MARKS_MAX: usize = 8;
/// Grains in one word of the map.
const WORD: usize = 64;

/// Map of a range of grains.
#[derive(Debug)]
pub(super) struct Grains {
    /// First grain of the range.
    first: usize,
    count: usize,
    free: usize,
    /// One bit for each grain; set when it is taken.
    taken: Vec<u64>,
    /// A run of grains never crosses a multiple of this number.
    region: usize,
    /// Marks of the sizes used last, the latest first.
    marks: Vec<Mark>,
}

/// No run of `size` free grains begins below `lowest`.
#[derive(Clone, Copy, Debug)]
struct Mark {
    size: usize,
    lowest: usize,
}

impl Grains {
    /// All grains of `range` are free; no run will cross a multiple of `region`.
    pub(super) fn new(range: Range<usize>, region: usize) -> Self {
        let count = range.len();
        let taken = vec![0; count.div_ceil(WORD)];
        let marks = Vec::with_capacity(MARKS_MAX);
        Self { first: range.start, count, free: count, taken, region, marks }
    }

    /// The grains.
    pub(super) fn range(&self) -> Range<usize> {
        self.first..self.first + self.count
    }

    /// Number of grains.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Number of free grains.
    pub(super) fn free(&self) -> usize {
        self.free
    }

    /// Whether the run of `count` grains from `start` on lies in the range.
    pub(super) fn has(&self, start: usize, count: usize) -> bool {
        start >= self.first && start + count <= self.first + self.count
    }

    /// Takes the lowest run of `want` free grains (at least 1); returns its first grain.
    pub(super) fn take(&mut self, want: usize) -> Option<usize> {
        if want > self.free {
            return None;
        }
        let at = self.mark_of(want);
        let found = self.find(self.marks[at].lowest, want);
        self.marks[at].lowest = found.map_or(self.count, |start| start + want);
        let start = found?;
        self.set(start, want, true);
        self.free -= want;
        Some(self.first + start)
    }

    /// Takes all grains from the `from`th on. All are free, and none was taken before.
    pub(super) fn withhold(&mut self, from: usize) {
        self.set(from, self.count - from, true);
        self.free = from;
    }

    /// Takes a run back.
    pub(super) fn give_back(&mut self, start: usize, count: usize) {
        let start = start - self.first;
        self.set(start, count, false);
        self.free += count;
        for mark in &mut self.marks {
            // The run may continue free grains before it.
            mark.lowest = mark.lowest.min(start.saturating_sub(mark.size - 1));
        }
    }

    /// Index of the mark of a size; made if there is none.
    fn mark_of(&mut self, size: usize) -> usize {
        if let Some(at) = self.marks.iter().position(|mark| mark.size == size) {
            return at;
        }
        if self.marks.len() == MARKS_MAX {
            self.marks.pop();
        }
        // Where no smaller run begins, no larger one does.
        let smaller = self.marks.iter().filter(|mark| mark.size < size);
        let lowest = smaller.map(|mark| mark.lowest).max().unwrap_or(0);
        self.marks.insert(0, Mark { size, lowest });
        0
    }

    /// First run of `want` free grains from `from` on.
    fn find(&self, from: usize, want: usize) -> Option<usize> {
        let (mut start, mut at) = (from, from);
        while at < self.count {
            if (self.first + at).is_multiple_of(self.region) {
                start = at;
            }
            let word = self.taken[at / WORD] >> (at % WORD);
            let in_word = WORD - at % WORD;
            if word & 1 != 0 {
                at += in_word.min(word.trailing_ones() as usize);
                start = at;
                continue;
            }
            let in_region = self.region - (self.first + at) % self.region;
            let run = in_word.min(word.trailing_zeros() as usize).min(in_region).min(self.count - at);
            at += run;
            if at - start >= want {
                return Some(start);
            }
        }
        None
    }

    fn set(&mut self, start: usize, count: usize, is_taken: bool) {
        let (mut at, end) = (start, start + count);
        while at < end {
            let bits = (WORD - at % WORD).min(end - at);
            let mask = (u64::MAX >> (WORD - bits)) << (at % WORD);
            let word = &mut self.taken[at / WORD];
            debug_assert_eq!(*word & mask, if is_taken { 0 } else { mask }, "a grain has two owners");
            if is_taken {
                *word |= mask;
            } else {
                *word &= !mask;
            }
            at += bits;
        }
    }
}

#[cfg(test)]
#[path = "grains_tests.rs"]
mod tests;
