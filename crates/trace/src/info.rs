//! Analysis of a trace: operations, sizes, gaps, footprint, locality, outstanding requests; in total and per
//! device.
//!
//! Invariants: one pass; memory does not grow with the file: the footprint's pages grow instead, and only the
//! first [`DETAILED_MAX`] devices get full statistics; an unknown value is null, never 0.
mod flow;
mod footprint;
mod locality;

use keepup_measure::histogram::LatencySummary;
use keepup_measure::sum::Sums;
use serde::Serialize;

use self::flow::Flow;
use self::footprint::Footprint;
use self::locality::Locality;
use super::record::{Operation, Record};
use super::{Corrections, StageTimes, Trace, TraceError, TraceHeader};

/// Version of [`TraceInfo`] as JSON.
pub const INFO_VERSION: u32 = 1;
/// Largest number of devices with full statistics.
const DETAILED_MAX: usize = 64;

/// Analysis of a trace.
#[derive(Clone, Debug, Serialize)]
pub struct TraceInfo {
    /// Version of this format.
    pub version: u32,
    /// Header of the trace.
    pub header: TraceHeader,
    /// Corrections.
    pub corrections: Corrections,
    /// Times before and after the dispatch to the driver; null if the trace has no dispatches.
    pub stages: Option<StageTimes>,
    /// All devices together.
    pub whole: DeviceInfo,
    /// Each device.
    pub devices: Vec<DeviceInfo>,
}

/// Analysis of a device, or of all devices.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceInfo {
    /// Name; null for all devices together.
    pub name: Option<String>,
    /// Size in bytes, if the source contains it.
    pub size_bytes: Option<u64>,
    /// Largest end of a request, bytes.
    pub end_bytes: u64,
    /// Requests.
    pub records: u64,
    /// Bytes read, written or discarded.
    pub bytes: u64,
    /// Each operation that occurs.
    pub operations: Vec<OperationInfo>,
    /// Sizes, times and outstanding requests; null for devices beyond the first 64.
    pub detail: Option<DeviceDetail>,
    /// Distinct bytes read or written, in whole pages.
    pub footprint_bytes: u64,
    /// Size of these pages, bytes: 4096, or more to limit memory.
    pub footprint_page_bytes: u64,
    /// Distances between consecutive reads and writes; null without any.
    pub jumps: Option<Jumps>,
}

/// Totals of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OperationInfo {
    /// Operation.
    pub operation: Operation,
    /// Requests.
    pub records: u64,
    /// Bytes of the requests.
    pub bytes: u64,
}

/// Sizes, times and outstanding requests.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceDetail {
    /// Sizes of reads, writes and discards.
    pub sizes: Vec<SizeClass>,
    /// Issue of the first request, ns from the trace's first request.
    pub first_ns: u64,
    /// Issue of the last request.
    pub last_ns: u64,
    /// Requests per second between the two; null if they are equal.
    pub rate: Option<f64>,
    /// Bytes per second between the two.
    pub bytes_per_second: Option<f64>,
    /// Times between consecutive issues, capped at 100 s; null below two requests.
    pub gaps: Option<LatencySummary>,
    /// Longest gap, ns.
    pub gap_max_ns: u64,
    /// Times from issue to completion, if known.
    pub service: Option<LatencySummary>,
    /// Requests in flight, if completions are known.
    pub outstanding: Option<Outstanding>,
}

/// Requests of similar size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SizeClass {
    /// Smallest size of the class, bytes: a power of two.
    pub from_bytes: u64,
    /// Requests.
    pub records: u64,
    /// Bytes of the requests.
    pub bytes: u64,
}

/// Requests in flight.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outstanding {
    /// Peak.
    pub peak: u64,
    /// Mean from the first issue to the last completion, by Little's law: the sum of all service times
    /// divided by that time; null if that time is 0.
    pub mean: Option<f64>,
    /// Whether the peak is a lower bound, because more requests were in flight than are tracked.
    pub is_peak_bound: bool,
}

/// Distances between the start of a read or write and the ends of previous ones on its device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Jumps {
    /// Requests with a predecessor.
    pub records: u64,
    /// Requests that start at the end of the previous one.
    pub sequential: u64,
    /// Requests that start at the end of one of the last 32.
    pub in_streams: u64,
    /// Requests that start more than 128 KiB from the end of the previous one, and at the end of none of the
    /// last 32.
    pub random: u64,
    /// Median distance of requests that are not sequential, rounded up to a power of two, bytes; null without
    /// any.
    pub median_jump_bytes: Option<u64>,
}

/// Statistics of a device.
#[derive(Default)]
struct Counts {
    operations: [(u64, u64); 4],
    end_bytes: u64,
    locality: Locality,
}

struct Describer {
    whole: Flow,
    /// The only device so far; its statistics are those of `whole`.
    only: Option<u16>,
    flows: Vec<Option<Box<Flow>>>,
    counts: Vec<Counts>,
    footprint: Footprint,
}

/// Reads a trace to its end and analyzes it.
///
/// # Errors
/// An invalid request.
pub fn describe(trace: &mut Trace) -> Result<TraceInfo, TraceError> {
    let mut describer = Describer {
        whole: Flow::new(),
        only: None,
        flows: Vec::new(),
        counts: Vec::new(),
        footprint: Footprint::new(),
    };
    let mut records = Vec::new();
    loop {
        let has_more = trace.fill(&mut records)?;
        records.iter().for_each(|record| describer.take(record));
        records.clear();
        if !has_more {
            break;
        }
    }
    Ok(describer.end(trace))
}

impl Describer {
    #[inline]
    fn take(&mut self, record: &Record) {
        let device = usize::from(record.device);
        if self.counts.len() <= device {
            self.counts.resize_with(device + 1, Counts::default);
        }
        let counts = &mut self.counts[device];
        let (requests, bytes) = &mut counts.operations[record.operation as usize];
        *requests += 1;
        *bytes += u64::from(record.bytes);
        if matches!(record.operation, Operation::Read | Operation::Write) {
            counts.locality.take(record.offset, record.end());
            self.footprint.mark(record.device, record.offset, record.end());
        }
        counts.end_bytes = counts.end_bytes.max(record.end());
        if *self.only.get_or_insert(record.device) != record.device || !self.flows.is_empty() {
            self.add_to_device(record);
        }
        self.whole.take(record);
    }

    /// Adds a request to its device's own statistics, which exist from the second device on.
    fn add_to_device(&mut self, record: &Record) {
        if self.flows.is_empty() {
            self.flows.resize_with(DETAILED_MAX, || None);
            let only = usize::from(self.only.unwrap_or_default());
            if let Some(place) = self.flows.get_mut(only) {
                *place = Some(Box::new(self.whole.clone()));
            }
        }
        if let Some(place) = self.flows.get_mut(usize::from(record.device)) {
            place.get_or_insert_with(|| Box::new(Flow::new())).take(record);
        }
    }

    fn end(mut self, trace: &Trace) -> TraceInfo {
        let devices = trace.devices();
        self.counts.resize_with(devices.len().max(self.counts.len()), Counts::default);
        let (page_bytes, pages) = (self.footprint.page_bytes(), self.footprint.pages(devices.len()));
        let mut whole = Counts::default();
        let mut all = Vec::new();
        for (number, (device, counts)) in devices.iter().zip(&self.counts).enumerate() {
            whole.add(counts);
            let flow = match &self.flows[..] {
                [] => Some(&self.whole).filter(|_| self.only.map(usize::from) == Some(number)),
                flows => flows.get(number).and_then(|flow| flow.as_deref()),
            };
            let mut info = counts.info(flow, pages[number], page_bytes);
            info.name = Some(device.name.clone());
            info.size_bytes = device.bytes;
            all.push(info);
        }
        TraceInfo {
            version: INFO_VERSION,
            header: trace.header().clone(),
            corrections: *trace.corrections(),
            stages: trace.stages(),
            whole: whole.info(Some(&self.whole), pages.iter().saturating_sum(), page_bytes),
            devices: all,
        }
    }
}

impl Counts {
    fn add(&mut self, other: &Self) {
        for ((requests, bytes), (more, more_bytes)) in self.operations.iter_mut().zip(other.operations) {
            *requests += more;
            *bytes += more_bytes;
        }
        self.end_bytes = self.end_bytes.max(other.end_bytes);
        self.locality.add(&other.locality);
    }

    fn info(&self, flow: Option<&Flow>, pages: u64, page_bytes: u64) -> DeviceInfo {
        let operations = Operation::ALL.into_iter().zip(self.operations);
        let operations = operations.filter(|(_, (records, _))| *records > 0);
        let bytes = self.operations.iter().map(|(_, bytes)| bytes).saturating_sum();
        DeviceInfo {
            name: None,
            size_bytes: None,
            end_bytes: self.end_bytes,
            records: self.operations.iter().map(|(records, _)| records).saturating_sum(),
            bytes,
            operations: operations
                .map(|(operation, (records, bytes))| OperationInfo { operation, records, bytes })
                .collect(),
            detail: flow.and_then(Flow::mix),
            footprint_bytes: pages.saturating_mul(page_bytes),
            footprint_page_bytes: page_bytes,
            jumps: self.locality.jumps(),
        }
    }
}

#[cfg(test)]
#[path = "info_tests.rs"]
mod tests;
