//! What a target does wrong on purpose.
use std::time::Duration;

/// Faults of a target. Each number says that every nth is concerned, none with 0; the seed chooses with which
/// each begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Datagrams to the target that are dropped.
    pub drop_requests: u32,
    /// Datagrams from the target that are dropped.
    pub drop_replies: u32,
    /// Datagrams, either way, that come twice.
    pub duplicate: u32,
    /// Datagrams, either way, that the next one overtakes.
    pub reorder: u32,
    /// Every datagram from the target is so late.
    pub delay: Duration,
    /// An address whose word can neither be read nor written.
    pub bus_error: Option<u32>,
    /// Replies that have the number of another packet.
    pub wrong_id: u32,
    /// Where the counting begins.
    pub seed: u64,
}

/// Every nth of something.
pub(super) struct Nth {
    every: u32,
    left: u32,
}

impl Nth {
    /// Every nth, none with 0; which is the first is left to chance.
    pub(super) fn new(every: u32, random: &mut fastrand::Rng) -> Self {
        Self { every, left: random.u32(0..every.max(1)) }
    }

    /// Whether it is this one.
    pub(super) fn is_now(&mut self) -> bool {
        if self.every == 0 {
            return false;
        }
        if self.left == 0 {
            self.left = self.every - 1;
            return true;
        }
        self.left -= 1;
        false
    }
}
