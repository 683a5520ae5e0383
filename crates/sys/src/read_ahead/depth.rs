//! How many pieces are read ahead: as many as the disk gains from.
use std::time::Instant;

/// Most pieces.
pub(super) const MOST: usize = 16;
/// Pieces at first: a virtual disk reads fastest with 1 to 8, disk arrays need more.
const FIRST: usize = 4;
/// Pieces after which a rate is taken.
const SAMPLE: u64 = 128;
/// Rate by which a greater depth must be faster to be kept.
const GAIN: f64 = 1.08;

/// The depth, and the search for a better one.
#[derive(Debug)]
pub(super) struct Depth {
    pieces: usize,
    /// Rate at half the depth, which is tried now; bytes per second.
    before: Option<f64>,
    is_found: bool,
    sample: Sample,
}

/// What was read since a moment.
#[derive(Debug, Default)]
struct Sample {
    since: Option<Instant>,
    pieces: u64,
    waits: u64,
    bytes: u64,
}

impl Default for Depth {
    fn default() -> Self {
        Self { pieces: FIRST, before: None, is_found: false, sample: Sample::default() }
    }
}

impl Depth {
    /// A depth that stays.
    pub(super) fn fixed(pieces: usize) -> Self {
        Self { pieces, is_found: true, ..Self::default() }
    }

    pub(super) fn pieces(&self) -> usize {
        self.pieces
    }

    /// Another file begins: the time between the files does not count.
    pub(super) fn begin(&mut self) {
        self.sample = Sample::default();
    }

    /// A piece of `bytes` was handed out, for which the reader had to wait or not.
    pub(super) fn note(&mut self, bytes: usize, has_waited: bool) {
        if self.is_found {
            return;
        }
        let sample = &mut self.sample;
        let Some(since) = sample.since else {
            // The first piece starts the clock.
            sample.since = Some(Instant::now());
            return;
        };
        sample.pieces += 1;
        sample.waits += u64::from(has_waited);
        sample.bytes += bytes as u64;
        if sample.pieces >= SAMPLE {
            let rate = sample.bytes as f64 / since.elapsed().as_secs_f64().max(1e-9);
            let is_disk = 2 * sample.waits > sample.pieces;
            self.sample = Sample { since: Some(Instant::now()), ..Sample::default() };
            self.judge(rate, is_disk);
        }
    }

    /// Doubles the depth while that helps. A reader that is slower than the disk needs no more.
    fn judge(&mut self, rate: f64, is_disk: bool) {
        match self.before {
            _ if self.is_found => {}
            Some(before) if rate < GAIN * before => {
                self.pieces /= 2;
                self.is_found = true;
            }
            _ if !is_disk || self.pieces >= MOST => self.is_found = self.before.is_some(),
            _ => {
                self.before = Some(rate);
                self.pieces *= 2;
            }
        }
    }
}

#[cfg(test)]
#[path = "depth_tests.rs"]
mod tests;
