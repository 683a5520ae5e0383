//! Numbers of VDIF frames across seconds.
//!
//! Frames are numbered within their second, so numbers that increase need the frames per second: those that
//! the user states, or those that the stream shows when its second changes. Until then, a sample rate in the
//! headers is an assumption. Frames of the next second wait until the last ones of the first have had time to
//! arrive. Invariant: frames are never rejected for their rate; a number of frames per second that turns out
//! to be too small is raised, and the frames that were missing before it count as missing then.
use super::order::Held;
use super::vdif::Frame;

/// Frames that are counted in a frame number; the seconds are above them.
const IN_SECOND_BITS: u32 = 24;
/// Number of the first frame where the frames per second are not known.
const BASE: u64 = 1 << 40;

/// A longer step of the time, s, shows that a clock was set.
pub(super) const DAY_S: u64 = 86_400;

/// A frame of a later second that waits for the frames per second.
#[derive(Debug)]
struct Waiting {
    elapsed_s: u64,
    in_second: u64,
    held: Held,
}

/// Correction of the seconds of a reference epoch.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    number: u32,
    shift_s: i64,
}

/// Seconds of one stream.
#[derive(Debug)]
pub(super) struct Seconds {
    /// Frames per second that are used, and whether the stream or the user has confirmed them.
    per_second: Option<u64>,
    is_settled: bool,
    /// Frames per second that were stated at first.
    stated: Option<u64>,
    /// A second, and the number of its first frame.
    second: u64,
    base: u64,
    /// Changes of the second since the frames per second were settled.
    changes: u64,
    /// Frames that were missing at the ends of earlier seconds and are not counted before the next one.
    owed: u64,
    /// Highest frame number within a second, plus 1.
    shown: u64,
    epoch: Epoch,
    before: Option<Epoch>,
    /// Latest frame: whether its second is the last of its epoch, and that second.
    last: (bool, u64),
    waiting: Vec<Waiting>,
}

impl Seconds {
    /// Seconds of a stream that starts with `frame`; `given` are the frames per second that the user states.
    /// Numbers of second starts are multiples of `group`.
    pub(super) fn new(frame: &Frame, given: Option<u64>, group: u64) -> Self {
        let stated = given.or(frame.stated);
        let second = frame.elapsed_s();
        let base = match stated {
            Some(stated) => u64::from(frame.second).saturating_mul(stated),
            None => BASE - BASE % group.max(1),
        };
        Self {
            per_second: stated,
            is_settled: given.is_some(),
            stated,
            second,
            base,
            changes: 0,
            owed: 0,
            shown: 0,
            epoch: Epoch { number: frame.epoch, shift_s: 0 },
            before: None,
            last: (frame.is_last_of_epoch(), second),
            waiting: Vec::new(),
        }
    }

    /// Seconds of a frame, counted without a step where the reference epoch changes.
    fn elapsed_s(&mut self, frame: &Frame) -> u64 {
        let raw_s = frame.elapsed_s();
        let known = [Some(self.epoch), self.before].into_iter().flatten();
        if let Some(epoch) = known.into_iter().find(|epoch| epoch.number == frame.epoch) {
            return raw_s.saturating_add_signed(epoch.shift_s);
        }
        let shifted_s = raw_s.saturating_add_signed(self.epoch.shift_s);
        if frame.epoch != self.epoch.number.saturating_add(1) {
            return shifted_s;
        }
        // A leap second that is not known here, or that the sender has left out, is no loss.
        let step_s = shifted_s.checked_sub(self.last.1);
        let correction_s = match step_s {
            Some(0) if frame.second == 0 && self.last.0 => 1,
            Some(2) if frame.second == 0 && self.last.0 => -1,
            _ => 0,
        };
        let shift_s = self.epoch.shift_s.saturating_add(correction_s);
        self.before = Some(std::mem::replace(&mut self.epoch, Epoch { number: frame.epoch, shift_s }));
        raw_s.saturating_add_signed(shift_s)
    }

    /// Number of a frame, and the word that names its second; no number: it must wait.
    pub(super) fn number(&mut self, frame: &Frame) -> (Option<u64>, u64) {
        let elapsed_s = self.elapsed_s(frame);
        if elapsed_s >= self.last.1 {
            self.last = (frame.is_last_of_epoch(), elapsed_s);
        }
        let is_later = elapsed_s > self.second && !self.is_settled;
        let number = (!is_later).then(|| self.numbered(elapsed_s, frame.in_second));
        (number, elapsed_s << IN_SECOND_BITS | frame.in_second)
    }

    fn numbered(&self, elapsed_s: u64, in_second: u64) -> u64 {
        let per_second = self.per_second.unwrap_or(self.shown.max(1));
        let start = self.base.wrapping_add(elapsed_s.wrapping_sub(self.second).wrapping_mul(per_second));
        let owed = if elapsed_s > self.second { self.owed } else { 0 };
        start.wrapping_add(owed).wrapping_add(in_second)
    }

    /// Time of a frame within its second, ns; 0 while the frames per second are not known.
    pub(super) fn within_ns(&self, in_second: u64) -> u64 {
        let per_second = self.per_second.filter(|per_second| in_second < *per_second);
        per_second.map_or(0, |per_second| in_second * 1_000_000_000 / per_second)
    }

    /// Frames per second that are used, if they are known.
    pub(super) fn per_second(&self) -> Option<u64> {
        self.per_second
    }

    /// Lets a frame wait that has no number yet; returns how many wait.
    pub(super) fn wait(&mut self, held: Held) -> usize {
        let (elapsed_s, in_second) = parts(held.frame);
        self.waiting.push(Waiting { elapsed_s, in_second, held });
        self.waiting.len()
    }

    /// Whether frames wait.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes a frame that is in its place in the stream; `word` names its second.
    pub(super) fn accept(&mut self, word: u64) {
        let (elapsed_s, in_second) = parts(word);
        self.shown = self.shown.max(in_second.saturating_add(1));
        let Some(per_second) = self.per_second.filter(|_| self.is_settled) else { return };
        if let Some(passed @ 1..) = elapsed_s.checked_sub(self.second) {
            let owed = std::mem::take(&mut self.owed);
            self.base = self.base.wrapping_add(passed.wrapping_mul(per_second)).wrapping_add(owed);
            // Changes before a clock was set say nothing about the seconds that it passed over.
            let before = if passed > DAY_S { None } else { Some(self.changes) };
            (self.second, self.changes) =
                (elapsed_s, before.map_or(0, |before| before.saturating_add(passed)));
        }
        if elapsed_s == self.second && in_second >= per_second {
            let raised = self.stated.filter(|stated| *stated > in_second).unwrap_or(in_second + 1);
            let missed = self.changes.saturating_mul(raised - per_second);
            self.owed = self.owed.saturating_add(missed);
            self.per_second = Some(raised);
        }
    }

    /// Settles the frames per second by what has arrived; returns the frames that have waited, numbered.
    pub(super) fn settle(&mut self) -> Vec<Held> {
        let follows = |waiting: &&Waiting| {
            waiting.in_second == 0
                || self.waiting.iter().any(|before| {
                    (before.elapsed_s, before.in_second + 1) == (waiting.elapsed_s, waiting.in_second)
                })
        };
        let later = self.waiting.iter().filter(follows).map(|waiting| waiting.in_second + 1).max();
        let shown = self.shown.max(later.unwrap_or(0)).max(1);
        // Fewer than stated: lost at the end of the second, unless most are missing.
        self.per_second = Some(match self.stated {
            Some(stated) if shown <= stated && shown > stated / 2 => stated,
            _ => shown,
        });
        self.is_settled = true;
        let waiting = std::mem::take(&mut self.waiting);
        let number = |waiting: Waiting| {
            let Waiting { elapsed_s, in_second, mut held } = waiting;
            held.number = self.numbered(elapsed_s, in_second);
            held.timestamp_ns = held.timestamp_ns.saturating_add(self.within_ns(in_second));
            held
        };
        waiting.into_iter().map(number).collect()
    }

    /// What was stated, and what the stream shows instead.
    pub(super) fn contradiction(&self) -> Option<(u64, u64)> {
        let (stated, used) = (self.stated?, self.per_second?);
        (stated != used).then_some((stated, used))
    }
}

/// Second and frame number of a word.
fn parts(word: u64) -> (u64, u64) {
    (word >> IN_SECOND_BITS, word & ((1 << IN_SECOND_BITS) - 1))
}

#[cfg(test)]
#[path = "seconds_tests.rs"]
mod tests;
