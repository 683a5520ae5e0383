//! What a trace has: operations, sizes, gaps, footprint, locality, requests outstanding; as a whole and by
//! device.
//!
//! One pass. Invariants: memory does not grow with the file: pages of the footprint grow instead, and only
//! the first [`DETAILED_MAX`] devices are described in full; what cannot be known is null, never 0.
mod flow;
mod footprint;
mod locality;

use keepup_measure::histogram::LatencySummary;
use serde::Serialize;

use self::flow::Flow;
use self::footprint::Footprint;
use self::locality::Locality;
use super::record::{Operation, Record};
use super::{Corrections, Trace, TraceError, TraceHeader};

/// Version of [`TraceInfo`] as JSON.
pub const INFO_VERSION: u32 = 1;
/// Devices that are described in full; of others it is only told what they did.
const DETAILED_MAX: usize = 64;

/// All that is told of a trace.
#[derive(Clone, Debug, Serialize)]
pub struct TraceInfo {
    /// Version of this description.
    pub version: u32,
    /// What the trace says of itself.
    pub header: TraceHeader,
    /// What was put right or left out.
    pub corrections: Corrections,
    /// All devices together.
    pub whole: DeviceInfo,
    /// Each device.
    pub devices: Vec<DeviceInfo>,
}

/// What was asked of a device, or of all.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceInfo {
    /// Its name; null for all together.
    pub name: Option<String>,
    /// Its size in bytes, where the source tells.
    pub size_bytes: Option<u64>,
    /// The highest byte that is touched, plus 1.
    pub end_bytes: u64,
    /// Requests.
    pub records: u64,
    /// Bytes that they read, write or discard.
    pub bytes: u64,
    /// Each operation that occurs.
    pub operations: Vec<OperationInfo>,
    /// The rest of the description; null for devices beyond the first 64.
    pub detail: Option<Mix>,
    /// Distinct bytes that are read or written, in whole pages.
    pub footprint_bytes: u64,
    /// Size of these pages, bytes: 4096, or more where that would have taken too much memory.
    pub footprint_page_bytes: u64,
    /// Where reads and writes begin; null when there are none that follow another.
    pub jumps: Option<Jumps>,
}

/// One operation's part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OperationInfo {
    /// Which.
    pub operation: Operation,
    /// Requests.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Sizes, times and what is outstanding.
#[derive(Clone, Debug, Serialize)]
pub struct Mix {
    /// Sizes of reads, writes and discards.
    pub sizes: Vec<SizeClass>,
    /// Issue of the first request, ns from the trace's first.
    pub first_ns: u64,
    /// Issue of the last one.
    pub last_ns: u64,
    /// Requests per second between the two; null when they are the same.
    pub rate: Option<f64>,
    /// Bytes per second between the two.
    pub bytes_per_second: Option<f64>,
    /// Times from one issue to the next; those above 100 s count as that. Null below two requests.
    pub gaps: Option<LatencySummary>,
    /// The longest gap, ns.
    pub gap_max_ns: u64,
    /// Times from issue to completion, where completions are known.
    pub service: Option<LatencySummary>,
    /// What was under way at a time, where completions are known.
    pub outstanding: Option<Outstanding>,
}

/// Requests of similar size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SizeClass {
    /// The smallest size of the class, bytes: a power of two.
    pub from_bytes: u64,
    /// Requests.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Requests under way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outstanding {
    /// Most at a time.
    pub peak: u64,
    /// Mean over the time from the first issue to the last completion (Little's law: the sum of all times
    /// from issue to completion, divided by that time); null when that is no time.
    pub mean: Option<f64>,
    /// Whether more were under way than can be remembered, so that the peak is a lower bound.
    pub is_peak_bound: bool,
}

/// Where a read or write begins, seen from those before it on its device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Jumps {
    /// Requests that have one before them.
    pub records: u64,
    /// Begin where the one before ended.
    pub sequential: u64,
    /// Begin where one of the last 32 ended, the one before among them.
    pub in_streams: u64,
    /// Begin more than 128 KiB away from where the one before ended, and where none of the last 32 did.
    pub random: u64,
    /// Median distance of those that are not sequential, as the power of two above it, bytes; null without
    /// any.
    pub median_jump_bytes: Option<u64>,
}

/// What is known of a device while its requests are read.
#[derive(Default)]
struct Counts {
    operations: [(u64, u64); 4],
    end_bytes: u64,
    locality: Locality,
}

struct Describer {
    whole: Flow,
    /// The only device so far, of which `whole` tells all.
    only: Option<u16>,
    flows: Vec<Option<Box<Flow>>>,
    counts: Vec<Counts>,
    footprint: Footprint,
}

/// Reads a trace to its end and tells what it has.
///
/// # Errors
/// At the first request that cannot be used.
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
        let goes_on = trace.fill(&mut records)?;
        records.iter().for_each(|record| describer.take(record));
        records.clear();
        if !goes_on {
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
            self.take_apart(record);
        }
        self.whole.take(record);
    }

    /// With more than one device each has its own account.
    fn take_apart(&mut self, record: &Record) {
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
            whole: whole.info(Some(&self.whole), pages.iter().sum(), page_bytes),
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
        let bytes = self.operations.iter().map(|(_, bytes)| bytes).sum();
        DeviceInfo {
            name: None,
            size_bytes: None,
            end_bytes: self.end_bytes,
            records: self.operations.iter().map(|(records, _)| records).sum(),
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
