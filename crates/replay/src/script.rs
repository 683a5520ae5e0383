//! A trace prepared for a target: selected requests, their times and addresses.
use keepup_results::ReplayTrace;
use keepup_trace::{Flags, Level, Operation, Record, Trace, TraceClock, TraceError};

use crate::error::ReplayError;
use crate::map::{EXTENT_BYTES, Mapper, Policy};

/// Maximum number of requests in memory, 32 bytes each.
pub const RECORDS_MAX: u64 = 100_000_000;
/// Maximum request size, bytes; a target's buffers have this size.
pub const REQUEST_BYTES_MAX: u64 = 64 << 20;
/// Maximum address space, bytes: largest file of both ext4 and XFS (ext4: 2^32 blocks of 4 KiB).
pub const SPACE_BYTES_MAX: u64 = 16 << 40;
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
}

/// Requests in time order, mapped to a target.
#[derive(Debug)]
pub struct Script {
    /// The requests, from time 0, on a single device.
    pub(crate) records: Vec<Record>,
    /// Layer at which they were traced.
    pub level: Level,
    /// Size of the target, bytes.
    pub target_bytes: u64,
    /// Properties of the trace and counts of all changes.
    pub summary: ReplayTrace,
    extents: Extents,
}

/// Extents of the target that requests use.
#[derive(Debug, Default)]
struct Extents {
    /// Read or written.
    touched: Touched,
    /// Discarded.
    discarded: Touched,
}

impl Script {
    /// Loads the part of `trace` selected by `choice`; `name` is its name in results.
    ///
    /// # Errors
    /// The trace cannot be read, is too long, or its addresses do not fit the target.
    pub fn load(name: &str, mut trace: Trace, choice: &ScriptOptions) -> Result<Self, ReplayError> {
        let unfit =
            |what: String, hint: &str| ReplayError::Unfit { trace: name.into(), what, hint: hint.into() };
        let mut summary = ReplayTrace { trace: name.into(), ..ReplayTrace::default() };
        let mut records = read(&mut trace, choice, &mut summary).map_err(|fault| match fault {
            Fault::Trace(error) => error.into(),
            Fault::TooLong => unfit(
                format!("it has more than {RECORDS_MAX} requests"),
                "--max-records, or --window FROM..UNTIL for a part of it",
            ),
        })?;
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
            choice.gap_max_ns.map_or(0, |gap| shorten(&mut records, gap)) as f64 / 1e9;
        let source_bytes = join_devices(&mut records, choice.block_bytes).ok_or_else(|| {
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
        Ok(Self { records, level: trace.header().level, target_bytes, summary, extents })
    }

    /// Bytes of all extents that the requests touch.
    pub fn touched_bytes(&self) -> u64 {
        self.extents.touched.count() * EXTENT_BYTES
    }

    /// Bytes written per pass.
    pub fn written_bytes(&self) -> u64 {
        self.summary.bytes_written
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

    /// Bytes filled again before each pass but the first.
    pub(crate) fn refilled_bytes(&self) -> u64 {
        self.refilled().iter().map(|(_, bytes)| bytes).sum()
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

    /// Median inter-arrival time, ns.
    pub(crate) fn median_gap_ns(&self) -> u64 {
        let mut gaps: Vec<u64> = self.records.windows(2).map(|w| w[1].issue_ns - w[0].issue_ns).collect();
        if gaps.is_empty() {
            return 0;
        }
        let middle = gaps.len() / 2;
        *gaps.select_nth_unstable(middle).1
    }
}

enum Fault {
    Trace(TraceError),
    TooLong,
}

/// Reads the selected requests and counts those left out.
fn read(trace: &mut Trace, choice: &ScriptOptions, summary: &mut ReplayTrace) -> Result<Vec<Record>, Fault> {
    let (mut records, mut batch) = (Vec::new(), Vec::new());
    let limit = choice.records_max.unwrap_or(u64::MAX);
    let until_ns = choice.until_ns.unwrap_or(u64::MAX);
    'all: loop {
        batch.clear();
        let more = trace.fill(&mut batch).map_err(Fault::Trace)?;
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
            } else if records.len() as u64 >= RECORDS_MAX {
                return Err(Fault::TooLong);
            } else {
                records.push(record);
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
fn shorten(records: &mut [Record], gap_ns: u64) -> u64 {
    // Start times and cumulative lengths of the cuts.
    let mut cuts: Vec<(u64, u64)> = Vec::new();
    let mut total = 0;
    for pair in records.windows(2) {
        let gap = pair[1].issue_ns - pair[0].issue_ns;
        if gap > gap_ns {
            total += gap - gap_ns;
            cuts.push((pair[1].issue_ns, total));
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
    total
}

/// Concatenates the address spaces of several devices; returns the total size in bytes unless it
/// exceeds [`ADDRESSES_MAX`].
fn join_devices(records: &mut [Record], block_bytes: u64) -> Option<u64> {
    let mut ends: Vec<u64> = Vec::new();
    for record in records.iter() {
        let device = usize::from(record.device);
        ends.resize(ends.len().max(device + 1), 0);
        ends[device] = ends[device].max(record.end());
    }
    let unit = EXTENT_BYTES.max(block_bytes);
    let mut base = 0_u64;
    let mut bases = Vec::new();
    for end in ends {
        bases.push(base);
        base = base.checked_add(end.checked_next_multiple_of(unit)?).filter(|all| *all <= ADDRESSES_MAX)?;
    }
    for record in records {
        record.offset += bases[usize::from(record.device)];
        record.device = 0;
    }
    Some(base)
}

/// Maps all requests, counts them by kind, and returns the touched extents.
fn place(records: &mut Vec<Record>, mut mapper: Mapper, summary: &mut ReplayTrace) -> Extents {
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

/// Bitmap of touched extents.
#[derive(Debug, Default)]
struct Touched(Vec<u64>);

impl Touched {
    fn add(&mut self, offset: u64, bytes: u64) {
        let last = (offset + bytes.max(1) - 1) / EXTENT_BYTES;
        for extent in offset / EXTENT_BYTES..=last {
            let word = (extent / 64) as usize;
            if word >= self.0.len() {
                self.0.resize(word + 1, 0);
            }
            self.0[word] |= 1 << (extent % 64);
        }
    }

    fn and(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(one, other)| one & other).collect())
    }

    fn has(&self, extent: u64) -> bool {
        self.0.get((extent / 64) as usize).is_some_and(|word| word >> (extent % 64) & 1 == 1)
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    fn runs(&self, end: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let extents = self.0.len() as u64 * 64;
        let mut next = 0;
        std::iter::from_fn(move || {
            let first = (next..extents).find(|extent| self.has(*extent))?;
            next = (first..extents).find(|extent| !self.has(*extent)).unwrap_or(extents);
            let begin = first * EXTENT_BYTES;
            Some((begin, (next * EXTENT_BYTES).min(end) - begin))
        })
    }
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
