//! Cost model of transfers, T(n) = set-up + n * each, and the break-even length of two methods.
//!
//! The line minimizes the sum of absolute relative deviations: a single word and half a million
//! words have equal weight, and outliers have little influence. Such a line passes through two of
//! the points, so all pairs are tried.

use fastrand::Rng;

use crate::sum::Sums;

use super::{Interval, median, quantile_sorted, sorted};

/// Maximum number of lengths; all pairs of them are tried.
pub const LENGTHS_MAX: usize = 64;
/// Relative deviation of a point from the line above which it counts as a knee.
pub const KNEE_SHARE: f64 = 0.1;
/// Share of resamples that must agree.
const AGREEMENT: f64 = 0.95;

/// Measured times of one length.
#[derive(Debug, Clone, PartialEq)]
pub struct Timed {
    /// Words transferred, at least 1.
    pub words: u64,
    /// Time of each trial, s.
    pub seconds: Vec<f64>,
}

/// Cost of a transfer method.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Per transfer, s. May be negative if too small to resolve.
    pub set_up: f64,
    /// Per word, s.
    pub each: f64,
    /// Maximum transfer length in words; longer data is split into several transfers.
    pub words_max: Option<u64>,
}

impl Cost {
    /// Time of `words` words, s.
    pub fn at(&self, words: u64) -> f64 {
        self.transfers(words) * self.set_up + words as f64 * self.each
    }

    /// Length at which half of the maximum rate is reached (Hockney's n 1/2). `None` if the set-up
    /// or the cost per word cannot be resolved.
    pub fn half_rate_words(&self) -> Option<f64> {
        (self.set_up > 0.0 && self.each > 0.0).then(|| self.set_up / self.each)
    }

    /// Asymptotic rate in words per second (r inf).
    pub fn words_per_second(&self) -> Option<f64> {
        let each = self.each_of_many();
        (each > 0.0).then(|| 1.0 / each)
    }

    /// Cost per word of long data including its share of set-ups, s.
    fn each_of_many(&self) -> f64 {
        self.each + self.words_max.map_or(0.0, |most| self.set_up / most.max(1) as f64)
    }

    fn transfers(&self, words: u64) -> f64 {
        self.words_max.map_or(1, |most| words.div_ceil(most.max(1))).max(1) as f64
    }
}

/// Fits the line to the medians of `points`. `None` for fewer than two lengths, more than
/// [`LENGTHS_MAX`], or a time that is not finite and positive.
pub fn fit_cost(points: &[Timed], words_max: Option<u64>) -> Option<Cost> {
    let middle = |point: &Timed| median(&point.seconds).map(|seconds| (point.words, seconds));
    fit(&points.iter().map(middle).collect::<Option<Vec<_>>>()?, words_max)
}

fn fit(points: &[(u64, f64)], words_max: Option<u64>) -> Option<Cost> {
    let is_good = |&(words, seconds): &(u64, f64)| words > 0 && seconds.is_finite() && seconds > 0.0;
    if points.len() > LENGTHS_MAX || !points.iter().all(is_good) {
        return None;
    }
    let mut best: Option<(f64, Cost)> = None;
    for (index, one) in points.iter().enumerate() {
        for other in &points[index + 1..] {
            let Some(cost) = through(*one, *other, words_max) else { continue };
            let off: f64 = points.iter().map(|point| deviation(&cost, *point).abs()).float_sum();
            if best.is_none_or(|(least, _)| off < least) {
                best = Some((off, cost));
            }
        }
    }
    best.map(|(_, cost)| cost)
}

/// The line through two points.
fn through(one: (u64, f64), other: (u64, f64), words_max: Option<u64>) -> Option<Cost> {
    let counted = Cost { set_up: 0.0, each: 0.0, words_max };
    let (k1, n1, k2, n2) =
        (counted.transfers(one.0), one.0 as f64, counted.transfers(other.0), other.0 as f64);
    let determinant = k1 * n2 - k2 * n1;
    if determinant == 0.0 {
        return None;
    }
    let set_up = (one.1 * n2 - other.1 * n1) / determinant;
    let each = (k1 * other.1 - k2 * one.1) / determinant;
    Some(Cost { set_up, each, words_max })
}

/// Relative deviation of a point from the line.
fn deviation(cost: &Cost, (words, seconds): (u64, f64)) -> f64 {
    cost.at(words) / seconds - 1.0
}

/// Length with the largest deviation, if above [`KNEE_SHARE`], and the relative deviation: for
/// example a cache, a transfer limit, or an internal switch of methods.
pub fn knee(points: &[Timed], cost: &Cost) -> Option<(u64, f64)> {
    let off = points.iter().filter_map(|point| {
        let seconds = median(&point.seconds)?;
        Some((point.words, deviation(cost, (point.words, seconds))))
    });
    off.filter(|(_, off)| off.abs() > KNEE_SHARE).max_by(|one, other| one.1.abs().total_cmp(&other.1.abs()))
}

/// Range of lengths in which a method is faster than another, within the tried lengths.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BreakEven {
    /// At every length.
    Always,
    /// At no length, not even beyond the tried ones.
    Never,
    /// From this length on, with its 95 % interval.
    From {
        /// Words.
        words: Interval,
    },
    /// Only up to this length.
    UpTo {
        /// Words.
        words: Interval,
    },
    /// Not resolved, or beyond the tried lengths.
    NotResolved,
}

/// An answer without interval.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Answer {
    Always,
    Never,
    From(f64),
    UpTo(f64),
    /// Slower at all tried lengths but faster at longer ones, or faster only between two lengths.
    Neither,
}

/// Up to this number transfers are checked individually; from there on in steps of this share.
const TRANSFERS_EACH: u64 = 1024;

/// Where `way` is faster than `simple` between `shortest` and `longest`.
///
/// Both are piecewise linear between lengths at which either starts another transfer, so it
/// suffices to check the ends of the pieces.
fn compare(simple: &Cost, way: &Cost, (shortest, longest): (u64, u64)) -> Answer {
    let mut lengths = vec![shortest, longest];
    for most in [simple.words_max, way.words_max].into_iter().flatten() {
        let most = most.max(1);
        let next = |index: &u64| Some(index + (index / TRANSFERS_EACH).max(1));
        let transfers = std::iter::successors(Some(1), next).take_while(|index| *index <= longest / most);
        lengths.extend(transfers.flat_map(|index| [index * most, index * most + 1]));
    }
    lengths.retain(|words| (shortest..=longest).contains(words));
    lengths.sort_unstable();
    lengths.dedup();
    let saved = |words: u64| simple.at(words) - way.at(words);
    let first_pays = saved(shortest) >= 0.0;
    let mut turns = Vec::new();
    for pair in lengths.windows(2) {
        let (before, after) = (saved(pair[0]), saved(pair[1]));
        if (before >= 0.0) != (after >= 0.0) {
            let part = before / (before - after);
            turns.push(pair[0] as f64 + part * (pair[1] - pair[0]) as f64);
        }
    }
    let last_pays = first_pays == turns.len().is_multiple_of(2);
    match (first_pays, last_pays, &turns[..]) {
        (true, true, []) => Answer::Always,
        (false, false, []) if way.each_of_many() >= simple.each_of_many() => Answer::Never,
        (_, true, [.., last]) => Answer::From(*last),
        (true, false, [first, ..]) => Answer::UpTo(*first),
        _ => Answer::Neither,
    }
}

/// Length from which `way` is faster than `simple` according to the fitted lines, up to 2^24 words;
/// `None` if always, never, or only up to some length.
pub fn pays_from(simple: &Cost, way: &Cost) -> Option<f64> {
    match compare(simple, way, (1, 1 << 24)) {
        Answer::From(words) => Some(words),
        _ => None,
    }
}

/// Break-even of `way` against `simple` by bootstrap over the trials of each length, with
/// customarily 2000 `resamples`; reproducible by the seed. `tried` are the shortest and longest
/// length measured for both; results outside are not resolved. `None` if no line can be fitted.
pub fn break_even(
    simple: (&[Timed], Option<u64>),
    way: (&[Timed], Option<u64>),
    tried: (u64, u64),
    resamples: u32,
    seed: u64,
) -> Option<BreakEven> {
    let answer = compare(&fit_cost(simple.0, simple.1)?, &fit_cost(way.0, way.1)?, tried);
    let mut rng = Rng::with_seed(seed);
    let mut answers = Vec::new();
    for _ in 0..resamples {
        let (one, other) = (drawn(simple.0, &mut rng)?, drawn(way.0, &mut rng)?);
        answers.push(compare(&fit(&one, simple.1)?, &fit(&other, way.1)?, tried));
    }
    let agree = |same: &dyn Fn(&Answer) -> bool| {
        answers.iter().filter(|answer| same(answer)).count() as f64 >= AGREEMENT * answers.len() as f64
    };
    match answer {
        Answer::Always if agree(&|found| *found == answer) => return Some(BreakEven::Always),
        Answer::Never if agree(&|found| *found == answer) => return Some(BreakEven::Never),
        _ => {}
    }
    let within = |words: &dyn Fn(&Answer) -> Option<f64>| {
        let value = words(&answer)?;
        if !agree(&|answer| words(answer).is_some()) {
            return None;
        }
        let all = sorted(&answers.iter().filter_map(words).collect::<Vec<_>>())?;
        let (lower, upper) = (quantile_sorted(&all, 0.025)?, quantile_sorted(&all, 0.975)?);
        Some(Interval { value: value.clamp(lower, upper), lower, upper })
    };
    // If always faster, the break-even is the shortest length.
    let from = |answer: &Answer| match answer {
        Answer::Always => Some(tried.0 as f64),
        Answer::From(words) => Some(*words),
        _ => None,
    };
    let up_to = |answer: &Answer| if let Answer::UpTo(words) = answer { Some(*words) } else { None };
    let answer = within(&from).map(|words| BreakEven::From { words });
    let answer = answer.or_else(|| within(&up_to).map(|words| BreakEven::UpTo { words }));
    Some(answer.unwrap_or(BreakEven::NotResolved))
}

/// Medians of resampled trials, for each length.
fn drawn(points: &[Timed], rng: &mut Rng) -> Option<Vec<(u64, f64)>> {
    let mut drawing = Vec::new();
    let mut one = |point: &Timed| {
        let count = point.seconds.len();
        drawing.clear();
        drawing.extend((0..count).map(|_| point.seconds[rng.usize(..count)]));
        median(&drawing).map(|seconds| (point.words, seconds))
    };
    points.iter().map(&mut one).collect()
}

#[cfg(test)]
#[path = "cost_tests.rs"]
mod tests;
