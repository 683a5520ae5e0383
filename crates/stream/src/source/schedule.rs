//! When each event is due and which stream it belongs to. Pure.
//!
//! Invariant: `due_ns` depends on the number of the event and the plan alone, and never falls.

use super::plan::{Burst, Rate};
use crate::wire::HEADER_BYTES;

/// Events due within this time are sent together, so that a fast source does not make a system call for each.
/// It is the most that coalescing adds to an event's lateness, ns.
const COALESCE_NS_MAX: u64 = 100_000;

/// The detector's clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule {
    events_per_second: f64,
    /// Length of a burst and of a burst with its pause, ns.
    burst_ns: Option<(u64, u64)>,
}

impl Schedule {
    /// The schedule of a plan, `None` for a closed loop.
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

    /// When event `n` (of all streams together) is due, ns from the start: n / rate, with the pauses between
    /// bursts inserted. Exact to about 1 ns for 100 days.
    pub(super) fn due_ns(&self, n: u64) -> u64 {
        let active_ns = (n as f64 / self.events_per_second * 1e9) as u64;
        match self.burst_ns {
            None => active_ns,
            Some((on_ns, period_ns)) => {
                (active_ns / on_ns).saturating_mul(period_ns).saturating_add(active_ns % on_ns)
            }
        }
    }

    /// How long events of one connection may be gathered before they are sent, ns: never long enough to fill
    /// a quarter of its buffer.
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

/// How the events of all streams are dealt to connections: event `n` belongs to stream `n % streams`, and
/// stream `s` to connection `s % connections`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deal {
    streams: u64,
    connections: u64,
    connection: u64,
    /// Streams of this connection.
    slots: u64,
}

/// One event of a connection's own count, placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Number among the events of all streams.
    pub(super) number: u64,
    /// Position of its stream among the connection's streams.
    pub(super) slot: usize,
    /// Number of the event within its stream, from 0.
    pub(super) round: u64,
}

impl Deal {
    pub(super) fn new(streams: u32, connections: u32, connection: u32) -> Deal {
        let (streams, connections, connection) =
            (u64::from(streams), u64::from(connections), u64::from(connection));
        Deal { streams, connections, connection, slots: (streams - connection).div_ceil(connections) }
    }

    /// Streams of this connection.
    pub(super) fn slots(&self) -> usize {
        self.slots as usize
    }

    /// Where the `k`-th event of this connection belongs.
    pub(super) fn place(&self, k: u64) -> Place {
        let (round, slot) = (k / self.slots, k % self.slots);
        let stream = self.connection + slot * self.connections;
        let number = round.saturating_mul(self.streams).saturating_add(stream);
        Place { number, slot: slot as usize, round }
    }
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
