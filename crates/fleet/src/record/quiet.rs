//! When a recording ends by itself.
use crate::message::Counters;

/// Time without a connected stream after which the recording ends, ns. Streams of a lost recorder need part
/// of it to reach another one.
const QUIET_NS: u64 = 5_000_000_000;

/// Watches whether clients are connected to any recorder.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet {
    since_ns: Option<u64>,
}

impl Quiet {
    /// Takes the counters of all recorders; returns whether the recording is over: some streams have ended,
    /// and none has been connected for 5 s.
    pub fn is_over(&mut self, now_ns: u64, recorders: impl IntoIterator<Item = Counters>) -> bool {
        let (mut connected, mut ended) = (0u64, 0u64);
        for counters in recorders {
            connected += u64::from(counters.connected_streams);
            ended += u64::from(counters.ended_streams);
        }
        if connected > 0 || ended == 0 {
            self.since_ns = None;
            return false;
        }
        now_ns.saturating_sub(*self.since_ns.get_or_insert(now_ns)) >= QUIET_NS
    }
}

#[cfg(test)]
#[path = "quiet_tests.rs"]
mod tests;
