//! Classification of a flow's sequence numbers as new, duplicate, reordered or late. Pure.
//!
//! Invariant: fixed memory; every number counts once, as new, duplicate or too late to classify.

/// Distance behind the highest number within which duplicates are recognized.
const WINDOW: u64 = 1 << 16;
const WORDS: usize = (WINDOW / 64) as usize;

/// Sequence numbers seen so far.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// Ring of one bit for each of the last [`WINDOW`] numbers.
    seen: Box<[u64; WORDS]>,
    /// Highest number seen, plus one.
    next: u64,
    /// Distinct numbers.
    pub unique: u64,
    /// Duplicates.
    pub duplicates: u64,
    /// New numbers after a higher one.
    pub reordered: u64,
    /// Numbers too far behind to classify.
    pub too_late: u64,
}

impl Sequence {
    /// An empty sequence.
    pub fn new() -> Self {
        let seen = Box::new([0; WORDS]);
        Self { seen, next: 0, unique: 0, duplicates: 0, reordered: 0, too_late: 0 }
    }

    /// Records the arrival of a number.
    pub fn came(&mut self, number: u64) {
        if number >= self.next {
            self.forget(number);
            self.next = number.saturating_add(1);
        } else if self.next - number > WINDOW {
            self.too_late += 1;
            return;
        } else if self.is_seen(number) {
            self.duplicates += 1;
            return;
        } else {
            self.reordered += 1;
        }
        self.unique += 1;
        self.seen[word(number)] |= 1 << (number % 64);
    }

    /// Clears the ring entries from the highest number to `number`.
    fn forget(&mut self, number: u64) {
        if number - self.next >= WINDOW {
            self.seen.fill(0);
            return;
        }
        for number in self.next..=number {
            self.seen[word(number)] &= !(1 << (number % 64));
        }
    }

    fn is_seen(&self, number: u64) -> bool {
        self.seen[word(number)] & (1 << (number % 64)) != 0
    }
}

impl Default for Sequence {
    fn default() -> Self {
        Self::new()
    }
}

fn word(number: u64) -> usize {
    (number / 64) as usize % WORDS
}

#[cfg(test)]
#[path = "sequence_tests.rs"]
mod tests;
