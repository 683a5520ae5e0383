//! A trace prepared for a target: selected requests, their times and addresses.
use std::ops::Range;

use keepup_measure::sum::Sums;
use keepup_results::ReplayTrace;
use keepup_sys::SysError;
use keepup_sys::spill::{SpillLimit, SpillVec};
use keepup_trace::{Flags, Level, Operation, Record, Trace, TraceClock, TraceDevice};

use crate::error::ReplayError;
use crate::extents::Extents;
use crate::map::{EXTENT_BYTES, Mapper, Policy};

/// Number of requests, 32 bytes each, above which they are kept in a temporary file instead of in memory.
pub const RECORDS_IN_MEMORY: usize = 4_000_000;
/// Maximum request size, bytes; a target's buffers have this size.
pub const REQUEST_BYTES_MAX: u64 = 64 << 20;
/// Maximum address space, bytes: largest file of both ext4 and XFS (ext4: 2^32 blocks of 4 KiB).
pub const SPACE_BYTES_MAX: u64 = 16 << 40;
/// Largest number of gaps for the median.
const GAPS_MAX: usize = 1 << 22;
/// Maximum sum of the address spaces of a trace's devices, bytes; prevents overflow.
const ADDRESSES_MAX: u64 = 1 << 62;

/// Selection of requests, and the target's properties.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptOptions {
    /// Start of the window, ns in trace time.
    pub from_ns: u64,
    /// End of the window, ns in trace time.
    pub until_ns: Option<u64>,
    /// Maximum number of requests.
    pub records_max: Option<u64>,
    /// Maximum pause, ns; longer ones are shortened.
    pub gap_max_ns: Option<u64>,
    /// Address mapping policy.
    pub policy: Policy,
    /// Size of the target, bytes; default: as large as the trace needs.
    pub target_bytes: Option<u64>,
    /// Smallest request of the target, bytes; a power of two.
    pub block_bytes: u64,
    /// Skip writes.
    pub reads_only: bool,
    /// Limit of requests in memory; [`RECORDS_IN_MEMORY`] if none.
    pub in_memory: Option<SpillLimit>,
}

/// Requests in time order, mapped to a target.
#[derive(Debug)]
pub struct Script {
    /// The requests, from time 0, with addresses of the target; their device is a part of `parts`.
    pub(crate) records: SpillVec<Record>,
    /// The devices of the trace and their addresses on the target, ascending.
    pub(crate) parts: Vec<DevicePart>,
    /// Layer at which they were traced.
    pub level: Level,
    /// Size of the target, bytes.
    pub target_bytes: u64,
    /// Properties of the trace and counts of all changes.
    pub summary: ReplayTrace,
    extents: Extents,
}

/// Bytes written to a range of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Before the first pass, so that reads find data.
    pub(crate) filled: u64,
    /// By the writes of each pass.
    pub(crate) written: u64,
    /// Before each pass but the first, where the pass before discarded.
    pub(crate) refilled: u64,
}

/// Addresses of one of the trace's devices, before mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DevicePart {
    /// Name in the trace.
    pub(crate) device: String,
    /// First address, bytes.
    pub(crate) begin: u64,
    /// Length, bytes: a multiple of [`EXTENT_BYTES`] and of the target's block.
    pub(crate) bytes: u64,
}

impl Script {
    /// Loads the part of `trace` selected by `choice`; `name` is its name in results.
    ///
    /// # Errors
    /// The trace cannot be read, its addresses do not fit the target, or there is no space for a temporary
    /// file with its requests.
    pub fn load(name: &str, mut trace: Trace, choice: &ScriptOptions) -> Result<Self, ReplayError> {
        let unfit =
            |what: String, hint: &str| ReplayError::Unfit { trace: name.into(), what, hint: hint.into() };
        let mut summary = ReplayTrace { trace: name.into(), ..ReplayTrace::default() };
        let mut records = read(&mut trace, choice, &mut summary)?;
        if records.is_empty() {
            return Err(unfit(
                "no request is left".into(),
                "change --window; `keepup trace info` shows the trace's time span",
            ));
        }
        summary.has_times = trace.header().clock != TraceClock::None;
        summary.origin = trace.header().origin.describe();
        summary.level = trace.header().level.name().into();
        summary.corrected =
            trace.corrections().describe().into_iter().map(|(n, what)| (what.into(), n)).collect();
        rebase(&mut records);
        summary.shortened_seconds =
            choice.gap_max_ns.map_or(Ok(0), |gap| shorten(&mut records, gap, choice))? as f64 / 1e9;
        let joined = join_devices(&mut records, trace.devices(), choice.block_bytes);
        let (parts, source_bytes) = joined.ok_or_else(|| {
            let what = format!("the addresses of all its devices span more than {ADDRESSES_MAX} bytes");
            unfit(what, "--device NAME, one at a time")
        })?;
        let target_bytes = choice.target_bytes.unwrap_or(source_bytes);
        if target_bytes > SPACE_BYTES_MAX {
            let what = format!("its target would need {:.1} TB", target_bytes as f64 / 1e12);
            return Err(unfit(what, "--map wrap or --map scale, with --size for the target"));
        }
        let target_bytes = target_bytes / choice.block_bytes * choice.block_bytes;
        if choice.policy == Policy::Identity && source_bytes > target_bytes {
            let what = format!("it needs {source_bytes} bytes, the target has {target_bytes}");
            return Err(unfit(what, "use --map clip, wrap or scale, or a larger target"));
        }
        let mapper = Mapper::new(choice.policy, source_bytes, target_bytes, choice.block_bytes);
        let extents = place(&mut records, mapper, &mut summary);
        if records.is_empty() {
            return Err(unfit("no request fits on the target".into(), "--map wrap or --map scale"));
        }
        summary.span_seconds = records.last().map_or(0, |r| r.issue_ns) as f64 / 1e9;
        summary.records = records.len() as u64;
        records.settle()?;
        Ok(Self { records, parts, level: trace.header().level, target_bytes, summary, extents })
    }

    /// Bytes of all extents that the requests read or write.
    pub fn touched_bytes(&self) -> u64 {
        self.touched().map(|(_, bytes)| bytes).saturating_sum()
    }

    /// What the requests write to these addresses of the target.
    pub(crate) fn cost(&self, addresses: Range<u64>) -> Cost {
        let within = |(begin, bytes): (u64, u64)| {
            (begin + bytes).min(addresses.end).saturating_sub(begin.max(addresses.start))
        };
        let writes = self.records.iter().filter(|record| record.operation == Operation::Write);
        let writes = writes.filter(|record| addresses.contains(&record.offset));
        Cost {
            filled: self.touched().map(within).saturating_sum(),
            written: writes.map(|record| u64::from(record.bytes)).saturating_sum(),
            refilled: self.refilled().into_iter().map(within).saturating_sum(),
        }
    }

    /// Touched ranges, merged from extents: offset and length, bytes.
    pub(crate) fn touched(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.extents.touched.runs(self.target_bytes)
    }

    /// Touched ranges that a pass discards, which are filled again before the next one: offset and length,
    /// bytes.
    pub(crate) fn refilled(&self) -> Vec<(u64, u64)> {
        self.extents.discarded.and(&self.extents.touched).runs(self.target_bytes).collect()
    }

    /// Unit of generated data, bytes: the target's block, or a default.
    pub(crate) fn unit(&self) -> usize {
        if self.summary.map.block_bytes >= 512 { self.summary.map.block_bytes as usize } else { 4096 }
    }

    /// Longest request, bytes.
    pub(crate) fn longest(&self) -> usize {
        let transfers = self.records.iter().filter(|record| record.operation != Operation::Discard);
        transfers.map(|record| record.bytes as usize).max().unwrap_or(0)
    }

    /// Median inter-arrival time, ns: of every n-th request, if there are more than [`GAPS_MAX`].
    pub(crate) fn median_gap_ns(&self) -> u64 {
        let gaps = self.records.windows(2).step_by(self.records.len().div_ceil(GAPS_MAX).max(1));
        let mut gaps: Vec<u64> = gaps.map(|w| w[1].issue_ns - w[0].issue_ns).collect();
        if gaps.is_empty() {
            return 0;
        }
        let middle = gaps.len() / 2;
        *gaps.select_nth_unstable(middle).1
    }
}

/// An empty list with the limit of `choice`.
fn list<T: Copy + 'static>(choice: &ScriptOptions) -> SpillVec<T> {
    let usual = SpillLimit { elements: RECORDS_IN_MEMORY, directory: None };
    SpillVec::new(choice.in_memory.clone().unwrap_or(usual))
}

/// Reads the selected requests and counts those left out.
fn read(
    trace: &mut Trace,
    choice: &ScriptOptions,
    summary: &mut ReplayTrace,
) -> Result<SpillVec<Record>, ReplayError> {
    let (mut records, mut batch) = (list(choice), Vec::new());
    let limit = choice.records_max.unwrap_or(u64::MAX);
    let until_ns = choice.until_ns.unwrap_or(u64::MAX);
    'all: loop {
        batch.clear();
        let more = trace.fill(&mut batch)?;
        for record in batch.drain(..) {
            if record.issue_ns >= until_ns || records.len() as u64 >= limit {
                summary.is_cut = true;
                break 'all;
            }
            if record.issue_ns < choice.from_ns {
                summary.is_cut = true;
            } else if choice.reads_only && record.operation == Operation::Discard {
                summary.discards_left_out += 1;
            } else if choice.reads_only && record.operation != Operation::Read {
                summary.writes_left_out += 1;
            } else if record.operation != Operation::Discard
                && u64::from(record.bytes) + 2 * choice.block_bytes > REQUEST_BYTES_MAX
            {
                summary.too_long_left_out += 1;
            } else {
                records.push(record)?;
            }
        }
        if !more {
            break;
        }
    }
    Ok(records)
}

/// Shifts times to start at 0.
fn rebase(records: &mut [Record]) {
    let first_ns = records.first().map_or(0, |record| record.issue_ns);
    for record in records {
        *record = record.at(record.issue_ns - first_ns, record.completion_ns().map(|ns| ns - first_ns));
    }
}

/// Shortens pauses between requests to `gap_ns` and returns the total removed time, ns. Completions
/// move with the surrounding requests, so the order of events is preserved.
fn shorten(records: &mut [Record], gap_ns: u64, choice: &ScriptOptions) -> Result<u64, SysError> {
    // Start times and cumulative lengths of the cuts.
    let mut cuts: SpillVec<(u64, u64)> = list(choice);
    let mut total = 0;
    for pair in records.windows(2) {
        let gap = pair[1].issue_ns - pair[0].issue_ns;
        if gap > gap_ns {
            total += gap - gap_ns;
            cuts.push((pair[1].issue_ns, total))?;
        }
    }
    let moved = |ns: u64| {
        let at = cuts.partition_point(|(from, _)| *from <= ns);
        let taken = if at == 0 { 0 } else { cuts[at - 1].1 };
        // A completion within a cut pause stays before the following request.
        let follows = cuts.get(at).map_or(u64::MAX, |(from, taken)| from - taken);
        (ns - taken).min(follows)
    };
    for record in records {
        *record = record.at(moved(record.issue_ns), record.completion_ns().map(moved));
    }
    Ok(total)
}

/// Concatenates the address spaces of the devices that have requests; returns them and the total size in
/// bytes unless it exceeds [`ADDRESSES_MAX`].
fn join_devices(
    records: &mut [Record],
    devices: &[TraceDevice],
    block_bytes: u64,
) -> Option<(Vec<DevicePart>, u64)> {
    let mut ends: Vec<Option<u64>> = vec![None; devices.len()];
    for record in records.iter() {
        let end = ends.get_mut(usize::from(record.device))?;
        *end = (*end).max(Some(record.end()));
    }
    let unit = EXTENT_BYTES.max(block_bytes);
    let (mut parts, mut numbers, mut begin) = (Vec::new(), vec![0; devices.len()], 0_u64);
    for (device, end) in ends.iter().enumerate() {
        let Some(end) = end else { continue };
        // A device with flushes only has a place too.
        let bytes = (*end).max(1).checked_next_multiple_of(unit)?;
        numbers[device] = parts.len() as u16;
        parts.push(DevicePart { device: devices[device].name.clone(), begin, bytes });
        begin = begin.checked_add(bytes).filter(|all| *all <= ADDRESSES_MAX)?;
    }
    for record in records {
        record.device = numbers[usize::from(record.device)];
        record.offset += parts[usize::from(record.device)].begin;
    }
    Some((parts, begin))
}

/// Maps all requests, counts them by kind, and returns the touched extents.
fn place(records: &mut SpillVec<Record>, mut mapper: Mapper, summary: &mut ReplayTrace) -> Extents {
    let mut extents = Extents::default();
    records.retain_mut(|record| {
        if record.operation == Operation::Flush {
            summary.flushes += 1;
            return true;
        }
        let Some((offset, bytes)) = mapper.place(record.offset, u64::from(record.bytes)) else {
            return false;
        };
        (record.offset, record.bytes) = (offset, bytes as u32);
        if record.operation == Operation::Discard {
            extents.discarded.add(offset, bytes);
            (summary.discards, summary.bytes_discarded) =
                (summary.discards + 1, summary.bytes_discarded + bytes);
            return true;
        }
        extents.touched.add(offset, bytes);
        if record.operation == Operation::Read {
            (summary.reads, summary.bytes_read) = (summary.reads + 1, summary.bytes_read + bytes);
        } else {
            (summary.writes, summary.bytes_written) = (summary.writes + 1, summary.bytes_written + bytes);
            let is_ordered = record.flags.has(Flags::FUA) || record.flags.has(Flags::PREFLUSH);
            summary.ordered_writes += u64::from(is_ordered);
        }
        true
    });
    summary.map = mapper.report();
    rebase(records);
    extents
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
