//! Account of a pass: request counts and times.
use std::io;

use keepup_measure::histogram::Latency;
use keepup_results::{LatencyFigures, ReplayTimes};
use keepup_trace::{Operation, Record};

/// Times of one kind of request.
#[derive(Debug, Default)]
struct Times {
    service: Latency,
    response: Latency,
}

impl Times {
    fn summary(&self) -> Option<ReplayTimes> {
        let requests = self.service.summary().count;
        (requests > 0).then(|| ReplayTimes {
            requests,
            service: LatencyFigures::from(&self.service),
            service_p95_ns: self.service.quantile_ns(0.95),
            response: LatencyFigures::from(&self.response),
            response_p95_ns: self.response.quantile_ns(0.95),
        })
    }
}

/// Account of a pass; times in ns since its start.
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// Issued requests.
    pub(crate) begun: u64,
    /// Successful requests.
    pub(crate) requests: u64,
    /// Bytes read.
    pub(crate) bytes_read: u64,
    /// Bytes written.
    pub(crate) bytes_written: u64,
    /// Failed requests.
    pub(crate) failed: u64,
    /// Error of the first failure.
    pub(crate) failure: Option<String>,
    /// Maximum number of in-flight requests.
    pub(crate) outstanding_max: usize,
    /// Due requests that found no free slot.
    pub(crate) blocked: u64,
    /// Requests that completed after a later-issued one.
    pub(crate) reordered: u64,
    /// Issue time of the first request.
    pub(crate) first_ns: u64,
    /// Issue time of the last request.
    pub(crate) last_ns: u64,
    /// Completion time of the last request.
    pub(crate) end_ns: u64,
    busy_ns: u64,
    busy_since_ns: u64,
    waited_ns: u128,
    in_flight: usize,
    lateness: Latency,
    times: [Times; 4],
    /// Times by device of the trace, if it has several.
    devices: Vec<Times>,
    /// Highest sequence number of the completed requests.
    highest: u64,
}

/// Largest number of devices with times of their own.
const DEVICES_MAX: usize = 64;

impl Account {
    /// An account of a trace with this number of devices.
    pub(super) fn new(devices: usize) -> Self {
        let count = if devices > 1 { devices.min(DEVICES_MAX) } else { 0 };
        Self { devices: (0..count).map(|_| Times::default()).collect(), ..Self::default() }
    }

    /// In-flight requests.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Records the issue of a request due at `due_ns`; returns its sequence number.
    pub(super) fn begun(&mut self, due_ns: u64, now_ns: u64) -> u64 {
        if self.in_flight == 0 {
            self.busy_since_ns = now_ns;
        }
        if self.begun == 0 {
            self.first_ns = now_ns;
        }
        self.last_ns = now_ns;
        self.in_flight += 1;
        self.outstanding_max = self.outstanding_max.max(self.in_flight);
        self.begun += 1;
        self.lateness.record_ns(now_ns - due_ns);
        self.begun
    }

    /// Records a due request without a free slot, for the first time or again.
    pub(super) fn blocked(&mut self, is_first: bool) {
        self.blocked += u64::from(is_first);
    }

    /// Records the completion of request `order`; times are its due, issue and completion time.
    pub(super) fn ended(
        &mut self,
        record: &Record,
        order: u64,
        (due_ns, begun_ns, now_ns): (u64, u64, u64),
        result: &io::Result<()>,
    ) {
        self.in_flight -= 1;
        self.end_ns = now_ns;
        self.waited_ns += u128::from(now_ns - begun_ns);
        if self.in_flight == 0 {
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
            Operation::Flush => &mut self.times[2],
            Operation::Discard => &mut self.times[3],
        };
        for times in self.devices.get_mut(usize::from(record.device)).into_iter().chain([times]) {
            times.service.record_ns(now_ns - begun_ns);
            times.response.record_ns(now_ns - due_ns);
        }
    }

    /// Time with at least one in-flight request, seconds.
    pub(crate) fn busy_seconds(&self) -> f64 {
        self.busy_ns as f64 / 1e9
    }

    /// Mean number of in-flight requests until the last completion.
    pub(crate) fn outstanding_mean(&self) -> f64 {
        if self.end_ns == 0 { 0.0 } else { self.waited_ns as f64 / self.end_ns as f64 }
    }

    /// Issue lateness.
    pub(crate) fn lateness(&self) -> Option<LatencyFigures> {
        (self.begun > 0).then(|| LatencyFigures::from(&self.lateness))
    }

    /// Times of all successful requests.
    pub(crate) fn all(&self) -> Option<ReplayTimes> {
        let mut all = Times::default();
        for times in &self.times {
            all.service.merge(&times.service);
            all.response.merge(&times.response);
        }
        all.summary()
    }

    /// Times of each device of a trace with several.
    pub(crate) fn devices(&self) -> impl Iterator<Item = Option<ReplayTimes>> + '_ {
        self.devices.iter().map(Times::summary)
    }

    /// Times of reads, writes, flushes and discards.
    pub(crate) fn kinds(&self) -> [Option<ReplayTimes>; 4] {
        self.times.each_ref().map(Times::summary)
    }
}
