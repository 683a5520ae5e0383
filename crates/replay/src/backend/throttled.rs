//! A disk of a known rate, made up: requests are served one after another.
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_trace::{Operation, Record};

use super::{Done, Target};
use crate::error::ReplayError;

/// What a request costs besides its bytes, ns; a choice of ours, about that of a fast disk.
const REQUEST_NS: u64 = 20_000;

/// Serves requests in their order at a constant rate.
pub(crate) struct ThrottledTarget {
    clock: Arc<dyn Clock>,
    bytes_per_second: f64,
    /// When the last request will have been served.
    free_ns: u64,
    queue: VecDeque<(u64, usize)>,
}

impl ThrottledTarget {
    /// A disk of so many bytes per second.
    pub(crate) fn new(clock: Arc<dyn Clock>, bytes_per_second: f64) -> Self {
        Self { clock, bytes_per_second, free_ns: 0, queue: VecDeque::new() }
    }
}

impl Target for ThrottledTarget {
    fn start(&mut self, record: &Record, _index: usize, token: usize) -> Result<bool, ReplayError> {
        // A discard moves no data.
        let bytes = if record.operation == Operation::Discard { 0 } else { record.bytes };
        let service_ns = REQUEST_NS + (f64::from(bytes) * 1e9 / self.bytes_per_second) as u64;
        self.free_ns = self.free_ns.max(self.clock.now_ns()) + service_ns;
        self.queue.push_back((self.free_ns, token));
        Ok(true)
    }

    fn wait(&mut self, timeout: Duration, done: &mut Vec<Done>) -> Result<(), ReplayError> {
        let now_ns = self.clock.now_ns();
        let until_ns = now_ns + timeout.as_nanos() as u64;
        let first_ns = self.queue.front().map_or(until_ns, |(end_ns, _)| *end_ns);
        if first_ns.min(until_ns) > now_ns {
            self.clock.sleep_until_ns(first_ns.min(until_ns));
        }
        let now_ns = self.clock.now_ns();
        let served = self.queue.iter().take_while(|(end_ns, _)| *end_ns <= now_ns).count();
        done.extend(self.queue.drain(..served).map(|(_, token)| Done { token, result: Ok(()) }));
        Ok(())
    }
}
