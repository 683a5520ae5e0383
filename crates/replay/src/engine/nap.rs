//! Sleep duration before a deadline, corrected for the typical oversleep.

/// Minimum busy-wait before a deadline, ns.
const MARGIN_NS_MIN: u64 = 10_000;
/// Maximum busy-wait, ns: longer oversleeps are preemptions, which busy-waiting cannot avoid.
const MARGIN_NS_MAX: u64 = 300_000;

/// Estimator of the oversleep.
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
    /// Sleep duration when `left_ns` are left; 0 means busy-wait.
    pub(super) fn sleep_ns(&self, left_ns: u64) -> u64 {
        left_ns.saturating_sub(self.margin_ns)
    }

    /// Records that a sleep of `asked_ns` took `lasted_ns`.
    pub(super) fn slept(&mut self, asked_ns: u64, lasted_ns: u64) {
        let longer_ns = lasted_ns.saturating_sub(asked_ns);
        // Increases immediately with a margin, decreases slowly.
        let wanted_ns = longer_ns + longer_ns / 2;
        let next_ns = wanted_ns.max(self.margin_ns - self.margin_ns / 32);
        self.margin_ns = next_ns.clamp(MARGIN_NS_MIN, MARGIN_NS_MAX);
    }
}

#[cfg(test)]
#[path = "nap_tests.rs"]
mod tests;
