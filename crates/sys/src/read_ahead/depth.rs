//! How many pieces are read ahead: as many as the disk gains from.
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
    /// Rate at half the depth, which is tried now; bytes per ns.
    before: Option<f64>,
    is_found: bool,
    sample: Sample,
}

/// What was read since a moment.
#[derive(Debug, Default)]
struct Sample {
    since_ns: Option<u64>,
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

    /// A piece of `bytes` was handed out at the time `now_ns`, and the reader had to wait for it or not.
    pub(super) fn note(&mut self, now_ns: impl Fn() -> u64, bytes: usize, has_waited: bool) {
        if self.is_found {
            return;
        }
        let sample = &mut self.sample;
        let Some(since_ns) = sample.since_ns else {
            // The first piece starts the clock.
            sample.since_ns = Some(now_ns());
            return;
        };
        sample.pieces += 1;
        sample.waits += u64::from(has_waited);
        sample.bytes += bytes as u64;
        if sample.pieces >= SAMPLE {
            let now_ns = now_ns();
            let rate = sample.bytes as f64 / now_ns.saturating_sub(since_ns).max(1) as f64;
            let is_disk = 2 * sample.waits > sample.pieces;
            self.sample = Sample { since_ns: Some(now_ns), ..Sample::default() };
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
