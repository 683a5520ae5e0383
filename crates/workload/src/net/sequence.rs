//! Which datagrams of a flow have come: new ones, repeated ones, late ones. Pure.
//!
//! Invariant: memory is fixed; every number counts once, as new, repeated, or too late to tell.

/// How far behind the highest number one can be told from a repeated one.
const WINDOW: u64 = 1 << 16;
const WORDS: usize = (WINDOW / 64) as usize;

/// The numbers seen so far.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// One bit for each of the last [`WINDOW`] numbers, in a circle.
    seen: Box<[u64; WORDS]>,
    /// One above the highest number seen.
    next: u64,
    /// Different ones.
    pub unique: u64,
    /// Seen before.
    pub duplicates: u64,
    /// New ones that came after a higher one.
    pub reordered: u64,
    /// So far behind that nobody knows whether they had come.
    pub too_late: u64,
}

impl Sequence {
    /// None so far.
    pub fn new() -> Self {
        let seen = Box::new([0; WORDS]);
        Self { seen, next: 0, unique: 0, duplicates: 0, reordered: 0, too_late: 0 }
    }

    /// A datagram with this number came.
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

    /// Makes room for the numbers from the highest to `number`.
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
