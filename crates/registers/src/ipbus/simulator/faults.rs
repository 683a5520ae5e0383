//! Simulated faults of a target.
use std::time::Duration;

/// Simulated faults of a target. A value of N affects every Nth item, 0 none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Lost requests.
    pub drop_requests: u32,
    /// Lost replies.
    pub drop_replies: u32,
    /// Requests and replies that arrive twice.
    pub duplicate: u32,
    /// Requests and replies that the next one overtakes.
    pub reorder: u32,
    /// Delay of every reply.
    pub delay: Duration,
    /// Address of a word that can be neither read nor written.
    pub bus_error: Option<u32>,
    /// Replies with the number of another packet.
    pub wrong_id: u32,
    /// Seed that selects the first item of each fault.
    pub seed: u64,
}

/// Selection of every nth item.
pub(super) struct EveryNth {
    every: u32,
    left: u32,
}

impl EveryNth {
    /// Selects every nth item, none with 0. The first one is random.
    pub(super) fn new(every: u32, random: &mut fastrand::Rng) -> Self {
        Self { every, left: random.u32(0..every.max(1)) }
    }

    /// Whether the current item is selected. Advances to the next one.
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
