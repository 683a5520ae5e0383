//! What a pass did: counts and times of its requests.
use std::io;

use keepup_measure::histogram::Latency;
use keepup_results::{LatencyFigures, ReplayTimes};

use crate::replay::trace::{Operation, Record};
use crate::spent::told;

/// Times of one kind of request.
#[derive(Debug, Default)]
struct Times {
    service: Latency,
    response: Latency,
}

impl Times {
    fn told(&self) -> Option<ReplayTimes> {
        let requests = self.service.summary().count;
        (requests > 0).then(|| ReplayTimes {
            requests,
            service: told(&self.service),
            service_p95_ns: self.service.quantile_ns(0.95),
            response: told(&self.response),
            response_p95_ns: self.response.quantile_ns(0.95),
        })
    }
}

/// The account of a pass; times in ns from its begin.
#[derive(Debug, Default)]
pub(in crate::replay) struct Account {
    /// Requests that were made.
    pub(in crate::replay) begun: u64,
    /// Requests that ended well.
    pub(in crate::replay) requests: u64,
    /// Bytes read.
    pub(in crate::replay) bytes_read: u64,
    /// Bytes written.
    pub(in crate::replay) bytes_written: u64,
    /// Requests that failed.
    pub(in crate::replay) failed: u64,
    /// Why the first did.
    pub(in crate::replay) failure: Option<String>,
    /// Most requests under way.
    pub(in crate::replay) outstanding_max: usize,
    /// Requests that were due and found no room.
    pub(in crate::replay) blocked: u64,
    /// Requests that ended after one that was made later.
    pub(in crate::replay) reordered: u64,
    /// When the first was made.
    pub(in crate::replay) first_ns: u64,
    /// When the last was made.
    pub(in crate::replay) last_ns: u64,
    /// When the last ended.
    pub(in crate::replay) end_ns: u64,
    busy_ns: u64,
    busy_since_ns: u64,
    waited_ns: u128,
    under_way: usize,
    lateness: Latency,
    times: [Times; 3],
    /// Order in which requests were made: the highest of those that have ended.
    highest: u64,
}

impl Account {
    /// Requests under way.
    pub(in crate::replay) fn under_way(&self) -> usize {
        self.under_way
    }

    /// A request that was due at `due_ns` is made; gives its number in the order of making.
    pub(super) fn begun(&mut self, due_ns: u64, now_ns: u64) -> u64 {
        if self.under_way == 0 {
            self.busy_since_ns = now_ns;
        }
        if self.begun == 0 {
            self.first_ns = now_ns;
        }
        self.last_ns = now_ns;
        self.under_way += 1;
        self.outstanding_max = self.outstanding_max.max(self.under_way);
        self.begun += 1;
        self.lateness.record_ns(now_ns - due_ns);
        self.begun
    }

    /// A request is due and finds no room, for the first time or again.
    pub(super) fn blocked(&mut self, is_first: bool) {
        self.blocked += u64::from(is_first);
    }

    /// A request ended, made as number `order`; times are when it was due, made and ended.
    pub(super) fn ended(
        &mut self,
        record: &Record,
        order: u64,
        (due_ns, begun_ns, now_ns): (u64, u64, u64),
        result: &io::Result<()>,
    ) {
        self.under_way -= 1;
        self.end_ns = now_ns;
        self.waited_ns += u128::from(now_ns - begun_ns);
        if self.under_way == 0 {
            self.busy_ns += now_ns - self.busy_since_ns;
        }
        self.reordered += u64::from(order < self.highest);
        self.highest = self.highest.max(order);
        if let Err(why) = result {
            self.failed += 1;
            self.failure.get_or_insert_with(|| {
                format!("{} of {} bytes at {}: {why}", record.operation.name(), record.bytes, record.offset)
            });
            return;
        }
        self.requests += 1;
        let bytes = u64::from(record.bytes);
        let times = match record.operation {
            Operation::Read => {
                self.bytes_read += bytes;
                &mut self.times[0]
            }
            Operation::Write => {
                self.bytes_written += bytes;
                &mut self.times[1]
            }
            Operation::Flush | Operation::Discard => &mut self.times[2],
        };
        times.service.record_ns(now_ns - begun_ns);
        times.response.record_ns(now_ns - due_ns);
    }

    /// Time in which something was under way, seconds.
    pub(in crate::replay) fn busy_seconds(&self) -> f64 {
        self.busy_ns as f64 / 1e9
    }

    /// Requests under way, mean until the last end.
    pub(in crate::replay) fn outstanding_mean(&self) -> f64 {
        if self.end_ns == 0 { 0.0 } else { self.waited_ns as f64 / self.end_ns as f64 }
    }

    /// How late requests were made.
    pub(in crate::replay) fn lateness(&self) -> Option<LatencyFigures> {
        (self.begun > 0).then(|| told(&self.lateness))
    }

    /// Times of all requests that ended well.
    pub(in crate::replay) fn all(&self) -> Option<ReplayTimes> {
        let mut all = Times::default();
        for times in &self.times {
            all.service.merge(&times.service);
            all.response.merge(&times.response);
        }
        all.told()
    }

    /// Times of reads, writes and flushes.
    pub(in crate::replay) fn kinds(&self) -> [Option<ReplayTimes>; 3] {
        [self.times[0].told(), self.times[1].told(), self.times[2].told()]
    }
}
