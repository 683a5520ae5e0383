//! Schedule of events: due time and stream of each. Pure.
//!
//! Invariant: `due_ns` depends only on the event's number and the plan, and never decreases.

use super::plan::{Burst, Rate};
use crate::wire::HEADER_BYTES;

/// Events due within this time share a system call. It is the most that coalescing adds to an
/// event's lateness, ns.
const COALESCE_NS_MAX: u64 = 100_000;

/// Clock of the detector.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule {
    events_per_second: f64,
    /// Length of a burst and of a burst with its pause, ns.
    burst_ns: Option<(u64, u64)>,
}

impl Schedule {
    /// Schedule of a plan; `None` for a closed loop.
    pub(super) fn new(rate: Rate, burst: Option<Burst>) -> Option<Schedule> {
        let Rate::EventsPerSecond(events_per_second) = rate else {
            return None;
        };
        let burst_ns = burst.map(|burst| {
            let on_ns = duration_ns(burst.on);
            (on_ns.max(1), on_ns.saturating_add(duration_ns(burst.off)))
        });
        Some(Schedule { events_per_second, burst_ns })
    }

    /// Due time of event `n` (of all streams), ns from the start: n / rate, plus the pauses
    /// between bursts. Exact to about 1 ns for 100 days.
    pub(super) fn due_ns(&self, n: u64) -> u64 {
        let active_ns = (n as f64 / self.events_per_second * 1e9) as u64;
        match self.burst_ns {
            None => active_ns,
            Some((on_ns, period_ns)) => {
                (active_ns / on_ns).saturating_mul(period_ns).saturating_add(active_ns % on_ns)
            }
        }
    }

    /// Coalescing time of one connection, ns: never long enough to fill a quarter of its buffer.
    pub(super) fn coalesce_ns(&self, connections: u32, mean_event_bytes: u64, buffer_bytes: u64) -> u64 {
        let event_bytes = mean_event_bytes.saturating_add(HEADER_BYTES as u64) as f64;
        let bytes_per_second = self.events_per_second / f64::from(connections) * event_bytes;
        let quarter_ns = buffer_bytes as f64 / 4.0 / bytes_per_second * 1e9;
        COALESCE_NS_MAX.min(quarter_ns as u64)
    }
}

/// Length in whole ns, saturating.
pub(super) fn duration_ns(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Assignment of events to connections: event `n` belongs to stream `n % streams`, and stream `s`
/// to connection `s % connections`.
#[derive(Debug, Clone, Copy)]
pub(super) struct RoundRobin {
    streams: u64,
    connections: u64,
    connection: u64,
    /// Number of streams of this connection.
    slots: u64,
}

/// Position of one of a connection's events among all events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventPosition {
    /// Number among the events of all streams.
    pub(super) number: u64,
    /// Index of its stream among the connection's streams.
    pub(super) slot: usize,
    /// Number of the event within its stream, from 0.
    pub(super) round: u64,
}

impl RoundRobin {
    pub(super) fn new(streams: u32, connections: u32, connection: u32) -> RoundRobin {
        let (streams, connections, connection) =
            (u64::from(streams), u64::from(connections), u64::from(connection));
        RoundRobin { streams, connections, connection, slots: (streams - connection).div_ceil(connections) }
    }

    /// Number of streams of this connection.
    pub(super) fn slots(&self) -> usize {
        self.slots as usize
    }

    /// Position of the `k`-th event of this connection.
    pub(super) fn position_of(&self, k: u64) -> EventPosition {
        let (round, slot) = (k / self.slots, k % self.slots);
        let stream = self.connection + slot * self.connections;
        let number = round.saturating_mul(self.streams).saturating_add(stream);
        EventPosition { number, slot: slot as usize, round }
    }
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
