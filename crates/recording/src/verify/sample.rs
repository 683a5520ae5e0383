//! Which segments are read, and in which order.

use fastrand::Rng;

/// Which segments are read.
#[derive(Clone, Copy)]
pub enum Selection<'a> {
    /// All.
    Whole,
    /// A share of them, 0 to 1: one at random of each of as many equal parts of the recording.
    Share(f64, Seed),
    /// At least one, until this is true, in an order in which any number of the first ones is spread evenly
    /// over the recording.
    Until(&'a (dyn Fn() -> bool + Sync)),
}

/// Seed of a random choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub u64);

impl Selection<'_> {
    /// The selected ones of `all`, which are in the order of time.
    pub(super) fn of<T>(self, all: Vec<T>) -> Vec<T> {
        match self {
            Self::Whole => all,
            Self::Share(share, seed) => stratified(all, share, &mut Rng::with_seed(seed.0)),
            Self::Until(_) => spread(all),
        }
    }
}

/// One at random of each of `share` of their number of equal parts, at least one.
fn stratified<T>(all: Vec<T>, share: f64, random: &mut Rng) -> Vec<T> {
    let count = all.len();
    let parts = ((count as f64 * share).ceil() as usize).clamp(1.min(count), count);
    let mut chosen = (0..parts).map(|part| random.usize(part * count / parts..(part + 1) * count / parts));
    let mut next = chosen.next();
    let is_chosen = |place: &usize| {
        let is_it = next == Some(*place);
        if is_it {
            next = chosen.next();
        }
        is_it
    };
    let places: Vec<usize> = (0..count).filter(is_chosen).collect();
    let mut places = places.into_iter().peekable();
    let numbered = all.into_iter().enumerate();
    numbered.filter_map(|(place, one)| places.next_if_eq(&place).map(|_| one)).collect()
}

/// The jobs in the order of the reversed bits of their places: the first half are every second one, the first
/// quarter every fourth.
fn spread<T>(jobs: Vec<T>) -> Vec<T> {
    let mut placed: Vec<(usize, T)> = jobs.into_iter().enumerate().collect();
    placed.sort_by_key(|(place, _)| place.reverse_bits());
    placed.into_iter().map(|(_, job)| job).collect()
}

/// Upper bound of the share of damaged segments, with 95 % confidence, if `read` of them chosen at random are
/// intact: the share at which that has a probability of 5 % (Clopper and Pearson, one-sided; for many
/// segments 3/`read`). Choosing one of each part of the recording does not make it larger.
pub fn damaged_share_max(read: u64) -> f64 {
    1.0 - 0.05_f64.powf(1.0 / read.max(1) as f64)
}

#[cfg(test)]
#[path = "sample_tests.rs"]
mod tests;
