//! What `keepup replay` found: every pass of every trace on every place, and how places compare.
//!
//! Times of requests: *service* is from the moment when a request was made to its end; *response* is from the
//! moment when it was due, so that what waited is not left out; *lateness* lies between them. MB = 10^6
//! bytes. `None` means "not measured" and is written as null.
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::LatencyFigures;
use crate::load::LoadResult;
use crate::summary::Kind;
use crate::test::test_summary;

mod figures;
mod index;

pub use index::{ReplayIndex, ReplayMetric, ReplayPlace, ReplayRatio};

test_summary! {
    /// What a replay found.
    pub struct ReplaySummary: Kind::Replay, version 2 {
        /// The traces as they were replayed.
        pub traces: Vec<ReplayTrace>,
        /// Every pass, in the order in which they were made.
        pub passes: Vec<ReplayPass>,
        /// How places compare, where one was named as the baseline.
        pub index: Option<ReplayIndex>,
    }
}

/// A trace, and what became of it before it was replayed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayTrace {
    /// Its name: the file without its directory.
    pub trace: String,
    /// Whether it was captured, or made up and how.
    pub origin: String,
    /// Where in the machine its requests were seen.
    pub level: String,
    /// Whether it has times at all.
    pub has_times: bool,
    /// Requests that are replayed.
    pub records: u64,
    /// Of those, reads.
    pub reads: u64,
    /// Of those, writes.
    pub writes: u64,
    /// Of those, flushes.
    pub flushes: u64,
    /// Bytes that one pass reads.
    pub bytes_read: u64,
    /// Bytes that one pass writes.
    pub bytes_written: u64,
    /// From its first request to its last, seconds.
    pub span_seconds: f64,
    /// Whether a part of it only was asked for.
    pub is_cut: bool,
    /// How much was taken away from pauses, seconds.
    pub shortened_seconds: f64,
    /// Discards: none is made, for what is discarded could not be read again.
    pub discards_left_out: u64,
    /// Writes and flushes that were left out because only reads were to be made.
    pub writes_left_out: u64,
    /// Requests that are longer than can be made as one.
    pub too_long_left_out: u64,
    /// Writes that were to be durable before or after others: they are made as ordinary ones.
    pub orders_not_kept: u64,
    /// What was put right or left out while it was read: how many of what.
    pub corrected: BTreeMap<String, u64>,
    /// What became of its addresses.
    pub map: ReplayMap,
}

/// What became of addresses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayMap {
    /// How they were placed: `identity`, `clip`, `wrap` or `scale`.
    pub policy: String,
    /// Size of the trace's address space, all its devices one behind the other, bytes.
    pub source_bytes: u64,
    /// Size of the target, bytes.
    pub target_bytes: u64,
    /// The smallest piece that the target takes, bytes.
    pub block_bytes: u64,
    /// Requests that were placed elsewhere.
    pub moved: u64,
    /// Requests that were left out, for the target has no room for them.
    pub left_out: u64,
    /// Requests that became longer, so that they are whole blocks.
    pub aligned: u64,
    /// By how much, all of them, bytes.
    pub aligned_bytes: u64,
    /// Share of requests that begin where the one before ended, in the trace.
    pub sequential_before: Option<f64>,
    /// The same on the target.
    pub sequential_after: Option<f64>,
}

/// One pass of a trace on one place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayPass {
    /// Name of the trace.
    pub trace: String,
    /// Name of the place: its target, and `+ loads` where `loads` ran beside it.
    pub place: String,
    /// How requests were timed: `timed`, `afap`, `dep` or `paced`.
    pub mode: String,
    /// Number of the pass, from 1.
    pub pass: u32,
    /// Whether it was the first, in which the disk and the machine may not know the data yet.
    pub is_cold: bool,
    /// From the first request's time to the last end, seconds.
    pub seconds: f64,
    /// Time in which at least one request was under way, seconds.
    pub busy_seconds: f64,
    /// Requests that ended well.
    pub requests: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Why the first of them did.
    pub failure: Option<String>,
    /// Requests under way, mean over `seconds`.
    pub outstanding_mean: f64,
    /// Requests under way, most.
    pub outstanding_max: u64,
    /// How many could be under way.
    pub outstanding_limit: u64,
    /// Requests that were due and had to wait, for so many were under way or their memory was taken.
    pub blocked: u64,
    /// Requests that ended after one which was made later (RFC 4737, type P reordered).
    pub reordered: u64,
    /// Of all requests.
    pub all: Option<ReplayTimes>,
    /// Of reads.
    pub reads: Option<ReplayTimes>,
    /// Of writes.
    pub writes: Option<ReplayTimes>,
    /// Of flushes.
    pub flushes: Option<ReplayTimes>,
    /// How late requests were made.
    pub lateness: Option<LatencyFigures>,
    /// Whether the pass kept the trace's time; only of modes that have one.
    pub fidelity: Option<ReplayFidelity>,
    /// What a check of the data found, where it was asked for.
    pub check: Option<ReplayCheck>,
    /// CPU of this process, its kernel workers included, seconds.
    pub cpu_seconds: f64,
    /// CPU of the whole machine, seconds.
    pub machine_cpu_seconds: Option<f64>,
    /// What the hypervisor gave to others, seconds.
    pub steal_seconds: Option<f64>,
    /// Share of the time in which some task waited for a disk, as the kernel tells it, per cent.
    pub io_pressure_percent: Option<f64>,
    /// Interrupts of the whole machine in that time, of devices and timers alike.
    pub interrupts: Option<u64>,
    /// What ran beside it on purpose.
    pub loads: Vec<LoadResult>,
}

/// Times of one kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayTimes {
    /// How many.
    pub requests: u64,
    /// From when it was made to its end.
    pub service: LatencyFigures,
    /// 95 of 100 took no longer from when they were made, ns.
    pub service_p95_ns: u64,
    /// From when it was due to its end; what it is about only in modes that keep time.
    pub response: LatencyFigures,
    /// 95 of 100 took no longer from when they were due, ns.
    pub response_p95_ns: u64,
}

/// Whether a pass kept the time that was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayFidelity {
    /// Whether all of the following holds; if not, response times say nothing.
    pub is_kept: bool,
    /// From the first request to the last as it should be, seconds.
    pub span_asked_seconds: f64,
    /// From the first request to the last as it was, seconds.
    pub span_seconds: f64,
    /// How much longer or shorter the span was; at most 0.01.
    pub span_error: f64,
    /// The lateness that 99 of 100 requests may have, ns: a tenth of the median time between requests, or
    /// 1 ms where that is more.
    pub lateness_allowed_ns: u64,
    /// Whether the target is the cause: requests had to wait for others to end. If not, this machine made
    /// them late.
    pub is_target: bool,
    /// What does not hold, for people.
    pub why: Vec<String>,
}

/// What was found when written data was read back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayCheck {
    /// Blocks of the target that were compared.
    pub blocks: u64,
    /// Blocks that were written by requests under way at the same time: any of them may have been the last.
    pub ambiguous: u64,
    /// Blocks that hold something else than what was written last.
    pub wrong: u64,
    /// The first of them.
    pub first_wrong: Option<String>,
}

impl ReplayPass {
    /// Bytes per second over the whole time; `None` when nothing was moved.
    #[must_use]
    pub fn bytes_per_second(&self) -> Option<f64> {
        let bytes = self.bytes_read + self.bytes_written;
        (self.seconds > 0.0 && bytes > 0).then(|| bytes as f64 / self.seconds)
    }

    /// Bytes per second over the time in which something was under way.
    #[must_use]
    pub fn busy_bytes_per_second(&self) -> Option<f64> {
        let bytes = self.bytes_read + self.bytes_written;
        (self.busy_seconds > 0.0 && bytes > 0).then(|| bytes as f64 / self.busy_seconds)
    }

    /// Requests per second over the whole time.
    #[must_use]
    pub fn requests_per_second(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.requests as f64 / self.seconds)
    }

    /// Whether its figures may be compared: nothing failed, and its time was kept where it has one.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.failed == 0 && self.fidelity.as_ref().is_none_or(|fidelity| fidelity.is_kept)
    }
}
