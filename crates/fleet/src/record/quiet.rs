//! When a recording ends by itself.
use crate::message::Counters;

/// Time without a connected stream after which the recording ends, ns.
const QUIET_NS: u64 = 5_000_000_000;
/// Time that clients have to reach another recorder when one is lost, ns: they may wait for time limits of
/// their own, such as 10 s, more than once.
const MOVE_NS: u64 = 40_000_000_000;

/// Watches whether clients are connected to any recorder.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet {
    since_ns: Option<u64>,
    /// Most streams so far: connected or ended.
    most: u64,
    /// Streams before some of them moved; waits for as many until the time below, ns.
    expected: u64,
    not_before_ns: u64,
}

impl Quiet {
    /// Takes the sum of the counters of all recorders; returns whether the recording is over: some streams
    /// have ended, and none has been connected for 5 s.
    pub fn is_over(&mut self, now_ns: u64, counters: &Total) -> bool {
        let Total { connected, ended, .. } = *counters;
        let present = connected.saturating_add(ended);
        self.most = self.most.max(present);
        if connected > 0 || ended == 0 {
            self.since_ns = None;
            return false;
        }
        let quiet_ns = now_ns.saturating_sub(*self.since_ns.get_or_insert(now_ns));
        quiet_ns >= QUIET_NS && (present >= self.expected || now_ns >= self.not_before_ns)
    }

    /// Streams of a lost recorder move to others.
    pub const fn moved(&mut self, now_ns: u64) {
        self.expected = self.most;
        self.not_before_ns = now_ns.saturating_add(MOVE_NS);
    }

    /// The controller itself did not run, or hears no host: what it knows is old.
    pub const fn paused(&mut self) {
        self.since_ns = None;
    }
}

/// Sum over all recorders of a recording, also those that were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Events received.
    pub events: u64,
    /// Their payload, bytes.
    pub bytes: u64,
    /// Events on stable storage.
    pub durable_events: u64,
    /// Streams whose client is connected.
    pub connected: u64,
    /// Streams that have ended.
    pub ended: u64,
}

impl Total {
    /// Sums up. Clients of a recorder that has no streams any more are not connected.
    pub fn of(recorders: impl IntoIterator<Item = (Counters, bool)>) -> Self {
        let mut total = Self::default();
        for (counters, has_streams) in recorders {
            total.events = total.events.saturating_add(counters.events);
            total.bytes = total.bytes.saturating_add(counters.bytes);
            total.durable_events = total.durable_events.saturating_add(counters.durable_events);
            total.ended += u64::from(counters.ended_streams);
            total.connected += if has_streams { u64::from(counters.connected_streams) } else { 0 };
        }
        total
    }
}

#[cfg(test)]
#[path = "quiet_tests.rs"]
mod tests;
