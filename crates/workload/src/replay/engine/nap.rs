//! How long to sleep before a time that is to be met: shorter than until then by what sleeps last too long.

/// The shortest time before a deadline that is spent looking at the clock instead of sleeping, ns.
const MARGIN_NS_MIN: u64 = 10_000;
/// The longest, ns: what takes longer is a processor that was taken away, which no looking brings back.
const MARGIN_NS_MAX: u64 = 300_000;

/// Learns how much longer than asked sleeps last.
#[derive(Debug)]
pub(super) struct Nap {
    margin_ns: u64,
}

impl Default for Nap {
    fn default() -> Self {
        Self { margin_ns: MARGIN_NS_MAX }
    }
}

impl Nap {
    /// How long to sleep where `left_ns` are left; 0 is to look again at once.
    pub(super) fn sleep_ns(&self, left_ns: u64) -> u64 {
        left_ns.saturating_sub(self.margin_ns)
    }

    /// A sleep of `asked_ns` lasted `lasted_ns`.
    pub(super) fn slept(&mut self, asked_ns: u64, lasted_ns: u64) {
        let longer_ns = lasted_ns.saturating_sub(asked_ns);
        // Up at once and with some air, down slowly.
        let wanted_ns = longer_ns + longer_ns / 2;
        let next_ns = wanted_ns.max(self.margin_ns - self.margin_ns / 32);
        self.margin_ns = next_ns.clamp(MARGIN_NS_MIN, MARGIN_NS_MAX);
    }
}

#[cfg(test)]
#[path = "nap_tests.rs"]
mod tests;
