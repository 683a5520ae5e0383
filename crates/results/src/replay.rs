//! Result of `keepup replay`: every pass of every trace on every target, and their comparison.
//!
//! Request times: *service* is from issue to completion; *response* is from the due time to
//! completion and includes waiting; *lateness* is the difference between due time and issue. MB =
//! 10^6 bytes. `None` means "not measured" and is written as null.
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::head::Kind;
use crate::latency::LatencyFigures;
use crate::load::LoadResult;
use crate::test::test_summary;

mod figures;
mod index;

pub use index::{ReplayIndex, ReplayMetric, ReplayPlace, ReplayRatio};

test_summary! {
    /// Result of a replay.
    pub struct ReplaySummary: Kind::Replay, version 2 {
        /// Traces as replayed.
        pub traces: Vec<ReplayTrace>,
        /// All passes, in order.
        pub passes: Vec<ReplayPass>,
        /// Comparison of targets, if a baseline was named.
        pub index: Option<ReplayIndex>,
    }
}

/// A trace and its preparation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayTrace {
    /// Name: the file without its directory.
    pub trace: String,
    /// Whether it was captured, or generated and how.
    pub origin: String,
    /// Layer at which its requests were traced.
    pub level: String,
    /// Whether it has times.
    pub has_times: bool,
    /// Replayed requests.
    pub records: u64,
    /// Number of reads.
    pub reads: u64,
    /// Number of writes.
    pub writes: u64,
    /// Number of flushes.
    pub flushes: u64,
    /// Bytes read per pass.
    pub bytes_read: u64,
    /// Bytes written per pass.
    pub bytes_written: u64,
    /// Time from the first to the last request, seconds.
    pub span_seconds: f64,
    /// Whether only a part was selected.
    pub is_cut: bool,
    /// Total time removed from pauses, seconds.
    pub shortened_seconds: f64,
    /// Discards. On a volume they free the range in the file.
    #[serde(default)]
    pub discards: u64,
    /// Bytes discarded per pass.
    #[serde(default)]
    pub bytes_discarded: u64,
    /// Discards skipped by a read-only replay.
    pub discards_left_out: u64,
    /// Writes and flushes skipped by a read-only replay.
    pub writes_left_out: u64,
    /// Requests skipped because they exceed the maximum size.
    pub too_long_left_out: u64,
    /// Writes with ordering flags that were replayed as ordinary writes; 0 since they are kept.
    pub orders_not_kept: u64,
    /// Writes with forced unit access or a flush before them. On a volume they are replayed as such.
    #[serde(default)]
    pub ordered_writes: u64,
    /// Corrections while reading the trace, with counts.
    pub corrected: BTreeMap<String, u64>,
    /// Mapping of addresses.
    pub map: ReplayMap,
}

/// Mapping of addresses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayMap {
    /// Policy: `identity`, `clip`, `wrap` or `scale`.
    pub policy: String,
    /// Address space of the trace, all devices concatenated, bytes.
    pub source_bytes: u64,
    /// Size of the target, bytes.
    pub target_bytes: u64,
    /// Smallest request of the target, bytes.
    pub block_bytes: u64,
    /// Relocated requests.
    pub moved: u64,
    /// Requests dropped because they do not fit on the target.
    pub left_out: u64,
    /// Requests extended to whole blocks.
    pub aligned: u64,
    /// Total extension, bytes.
    pub aligned_bytes: u64,
    /// Share of sequential requests in the trace.
    pub sequential_before: Option<f64>,
    /// Share of sequential requests on the target.
    pub sequential_after: Option<f64>,
}

/// One pass of a trace on one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayPass {
    /// Name of the trace.
    pub trace: String,
    /// Name of the target, with `+ loads` if `loads` ran in the background.
    pub place: String,
    /// Timing mode: `timed`, `afap`, `dep` or `paced`.
    pub mode: String,
    /// Number of the pass, from 1.
    pub pass: u32,
    /// Whether it was the first, with cold caches.
    pub is_cold: bool,
    /// Time from the first due time to the last completion, seconds.
    pub seconds: f64,
    /// Time with at least one request in flight, seconds.
    pub busy_seconds: f64,
    /// Successful requests.
    pub requests: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Failed requests.
    pub failed: u64,
    /// Error of the first failure.
    pub failure: Option<String>,
    /// Mean number of requests in flight over `seconds`.
    pub outstanding_mean: f64,
    /// Maximum number of requests in flight.
    pub outstanding_max: u64,
    /// Limit of requests in flight.
    pub outstanding_limit: u64,
    /// Requests delayed at their due time by that limit or by buffer memory.
    pub blocked: u64,
    /// Requests completed after a later-issued one (RFC 4737, type P reordered).
    pub reordered: u64,
    /// Times of all requests.
    pub all: Option<ReplayTimes>,
    /// Times of reads.
    pub reads: Option<ReplayTimes>,
    /// Times of writes.
    pub writes: Option<ReplayTimes>,
    /// Times of flushes.
    pub flushes: Option<ReplayTimes>,
    /// Times of discards.
    #[serde(default)]
    pub discards: Option<ReplayTimes>,
    /// Times by device of the trace, if it has several; at most 64.
    #[serde(default)]
    pub devices: Vec<ReplayDevice>,
    /// Lateness of issue.
    pub lateness: Option<LatencyFigures>,
    /// Whether the pass kept its timing; only for modes with timing.
    pub fidelity: Option<ReplayFidelity>,
    /// Result of data verification, if requested.
    pub check: Option<ReplayCheck>,
    /// CPU time of this process including its kernel workers, seconds.
    pub cpu_seconds: f64,
    /// CPU time of the whole machine, seconds.
    pub machine_cpu_seconds: Option<f64>,
    /// Time stolen by the hypervisor, seconds.
    pub steal_seconds: Option<f64>,
    /// Share of time in which a task waited for a disk (I/O pressure), percent.
    pub io_pressure_percent: Option<f64>,
    /// Interrupts of the whole machine in that time, of devices and timers.
    pub interrupts: Option<u64>,
    /// Background loads.
    pub loads: Vec<LoadResult>,
}

/// Times of the requests to one device of the trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayDevice {
    /// Name in the trace.
    pub device: String,
    /// Times of its requests.
    pub times: ReplayTimes,
}

/// Times of one kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayTimes {
    /// Count.
    pub requests: u64,
    /// Service time: from issue to completion.
    pub service: LatencyFigures,
    /// 95th percentile of the service time, ns.
    pub service_p95_ns: u64,
    /// Response time: from the due time to completion; meaningful only in modes with timing.
    pub response: LatencyFigures,
    /// 95th percentile of the response time, ns.
    pub response_p95_ns: u64,
}

/// Whether a pass kept the requested timing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayFidelity {
    /// Whether all conditions hold; otherwise response times are meaningless.
    pub is_kept: bool,
    /// Requested time from the first to the last request, seconds.
    pub span_asked_seconds: f64,
    /// Actual time from the first to the last request, seconds.
    pub span_seconds: f64,
    /// Relative deviation of the span; at most 0.01.
    pub span_error: f64,
    /// Maximum 99th percentile of lateness, ns: a tenth of the median inter-arrival time, at least
    /// 1 ms.
    pub lateness_allowed_ns: u64,
    /// Whether the target is the cause (requests had to wait for completions) and not this machine.
    pub is_target: bool,
    /// Violated conditions, for people.
    pub why: Vec<String>,
}

/// Result of verifying written data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayCheck {
    /// Compared target blocks.
    pub blocks: u64,
    /// Blocks written by concurrent requests, where any could have been the last.
    pub ambiguous: u64,
    /// Blocks that differ from the last write.
    pub wrong: u64,
    /// First such block.
    pub first_wrong: Option<String>,
}

impl ReplayPass {
    /// Bytes per second over the whole time; `None` if nothing was transferred.
    #[must_use]
    pub fn bytes_per_second(&self) -> Option<f64> {
        let bytes = self.bytes_read + self.bytes_written;
        (self.seconds > 0.0 && bytes > 0).then(|| bytes as f64 / self.seconds)
    }

    /// Bytes per second over the busy time.
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

    /// Whether its figures may be compared: no failure, and timing kept if it has one.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.failed == 0 && self.fidelity.as_ref().is_none_or(|fidelity| fidelity.is_kept)
    }
}
