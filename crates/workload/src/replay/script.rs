//! A trace made ready for a target: which requests, when, and where to.
use keepup_results::ReplayTrace;

use super::error::ReplayError;
use super::map::{EXTENT_BYTES, Mapper, Policy};
use super::trace::{Flags, Level, Operation, Record, Trace, TraceClock};

/// The most requests that are held in memory, 32 bytes each.
pub const RECORDS_MAX: u64 = 100_000_000;
/// The longest request that is made as one, bytes; the memory of a target has room for it.
pub const REQUEST_BYTES_MAX: u64 = 64 << 20;
/// The largest address space, bytes: largest file of ext4 and XFS alike (ext4: 2^32 blocks of 4 KiB).
pub const SPACE_BYTES_MAX: u64 = 16 << 40;
/// The largest sum of the address spaces of a trace's devices, bytes: sums stay numbers.
const ADDRESSES_MAX: u64 = 1 << 62;

/// Which part of a trace is replayed, and where to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choice {
    /// Only requests from here on, ns in the trace's time.
    pub from_ns: u64,
    /// Only requests before this, ns in the trace's time.
    pub until_ns: Option<u64>,
    /// The first so many.
    pub records_max: Option<u64>,
    /// Pauses longer than this become as long as this, ns.
    pub gap_max_ns: Option<u64>,
    /// What becomes of addresses.
    pub policy: Policy,
    /// Size of the target, bytes; without, it is as large as the trace needs.
    pub target_bytes: Option<u64>,
    /// The smallest piece that the target takes, bytes; a power of two.
    pub block_bytes: u64,
    /// Only reads are made.
    pub reads_only: bool,
}

/// Requests in the order of their times, placed on a target.
#[derive(Debug)]
pub struct Script {
    /// The requests; they begin at time 0 and are all of one device.
    pub(super) records: Vec<Record>,
    /// Where in the machine they were seen.
    pub level: Level,
    /// Size of the target, bytes.
    pub target_bytes: u64,
    /// What the trace is, and what became of it.
    pub told: ReplayTrace,
    touched: Touched,
}

impl Script {
    /// Reads `trace`, named `name`, as far as `choice` says.
    ///
    /// # Errors
    /// When the trace cannot be read, is too long, or its addresses do not fit the target.
    pub fn load(name: &str, mut trace: Trace, choice: &Choice) -> Result<Self, ReplayError> {
        let unfit =
            |what: String, hint: &str| ReplayError::Unfit { trace: name.into(), what, hint: hint.into() };
        let mut told = ReplayTrace { trace: name.into(), ..ReplayTrace::default() };
        let mut records = read(&mut trace, choice, &mut told).map_err(|fault| match fault {
            Fault::Trace(error) => error.into(),
            Fault::TooLong => unfit(
                format!("it has more than {RECORDS_MAX} requests"),
                "--max-records, or --window FROM..UNTIL for a part of it",
            ),
        })?;
        if records.is_empty() {
            return Err(unfit(
                "no request is left".into(),
                "`keepup trace info` tells what it has; --window",
            ));
        }
        told.has_times = trace.header().clock != TraceClock::None;
        told.origin = trace.header().origin.told();
        told.level = trace.header().level.name().into();
        told.corrected = trace.corrections().told().into_iter().map(|(n, what)| (what.into(), n)).collect();
        rebase(&mut records);
        told.shortened_seconds = choice.gap_max_ns.map_or(0, |gap| shorten(&mut records, gap)) as f64 / 1e9;
        let source_bytes = join_devices(&mut records, choice.block_bytes).ok_or_else(|| {
            let what = format!("the addresses of all its devices span more than {ADDRESSES_MAX} bytes");
            unfit(what, "--device NAME, one at a time")
        })?;
        let target_bytes = choice.target_bytes.unwrap_or(source_bytes);
        if target_bytes > SPACE_BYTES_MAX {
            let what = format!("its target would have {:.1} TB", target_bytes as f64 / 1e12);
            return Err(unfit(what, "--map wrap or --map scale, with --size for the target"));
        }
        let target_bytes = target_bytes / choice.block_bytes * choice.block_bytes;
        if choice.policy == Policy::Identity && source_bytes > target_bytes {
            let what = format!("its addresses go to {source_bytes} bytes, the target has {target_bytes}");
            return Err(unfit(what, "--map clip, wrap or scale, or a larger target"));
        }
        let mapper = Mapper::new(choice.policy, source_bytes, target_bytes, choice.block_bytes);
        let touched = place(&mut records, mapper, &mut told);
        if records.is_empty() {
            return Err(unfit(
                "the target has room for none of its requests".into(),
                "--map wrap or --map scale",
            ));
        }
        told.span_seconds = records.last().map_or(0, |r| r.issue_ns) as f64 / 1e9;
        told.records = records.len() as u64;
        Ok(Self { records, level: trace.header().level, target_bytes, told, touched })
    }

    /// Bytes that its requests touch, in whole extents.
    pub fn touched_bytes(&self) -> u64 {
        self.touched.count() * EXTENT_BYTES
    }

    /// Bytes that one pass writes.
    pub fn written_bytes(&self) -> u64 {
        self.told.bytes_written
    }

    /// Where the extents lie that its requests touch: begin and length, bytes, neighbours joined.
    pub(super) fn touched(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.touched.runs(self.target_bytes)
    }

    /// What contents are made in units of, bytes: a block of the target, or what is usual where it has none.
    pub(super) fn unit(&self) -> usize {
        if self.told.map.block_bytes >= 512 { self.told.map.block_bytes as usize } else { 4096 }
    }

    /// The longest request, bytes.
    pub(super) fn longest(&self) -> usize {
        self.records.iter().map(|record| record.bytes as usize).max().unwrap_or(0)
    }

    /// Median of the times between requests, ns.
    pub(super) fn median_gap_ns(&self) -> u64 {
        let mut gaps: Vec<u64> = self.records.windows(2).map(|w| w[1].issue_ns - w[0].issue_ns).collect();
        if gaps.is_empty() {
            return 0;
        }
        let middle = gaps.len() / 2;
        *gaps.select_nth_unstable(middle).1
    }
}

enum Fault {
    Trace(super::trace::TraceError),
    TooLong,
}

/// The requests that are asked for, with what is left out counted.
fn read(trace: &mut Trace, choice: &Choice, told: &mut ReplayTrace) -> Result<Vec<Record>, Fault> {
    let (mut records, mut batch) = (Vec::new(), Vec::new());
    let limit = choice.records_max.unwrap_or(u64::MAX);
    let until_ns = choice.until_ns.unwrap_or(u64::MAX);
    'all: loop {
        batch.clear();
        let more = trace.fill(&mut batch).map_err(Fault::Trace)?;
        for record in batch.drain(..) {
            if record.issue_ns >= until_ns || records.len() as u64 >= limit {
                told.is_cut = true;
                break 'all;
            }
            if record.issue_ns < choice.from_ns {
                told.is_cut = true;
            } else if record.operation == Operation::Discard {
                told.discards_left_out += 1;
            } else if choice.reads_only && record.operation != Operation::Read {
                told.writes_left_out += 1;
            } else if u64::from(record.bytes) + 2 * choice.block_bytes > REQUEST_BYTES_MAX {
                told.too_long_left_out += 1;
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

/// Times begin at 0.
fn rebase(records: &mut [Record]) {
    let first_ns = records.first().map_or(0, |record| record.issue_ns);
    for record in records {
        *record = record.at(record.issue_ns - first_ns, record.completion_ns().map(|ns| ns - first_ns));
    }
}

/// Shortens pauses between requests to `gap_ns`, and gives how much was taken away, ns. Completions move with
/// the requests around them, so that what was before something stays before it.
fn shorten(records: &mut [Record], gap_ns: u64) -> u64 {
    // From which time on how much is taken away.
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
        // Within a pause that is cut: no later than what follows it.
        let follows = cuts.get(at).map_or(u64::MAX, |(from, taken)| from - taken);
        (ns - taken).min(follows)
    };
    for record in records {
        *record = record.at(moved(record.issue_ns), record.completion_ns().map(moved));
    }
    total
}

/// Puts the address spaces of several devices one behind the other; gives the size of all, bytes, unless it
/// is more than [`ADDRESSES_MAX`].
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

/// Places every request, counts what they are, and gives what they touch.
fn place(records: &mut Vec<Record>, mut mapper: Mapper, told: &mut ReplayTrace) -> Touched {
    let mut touched = Touched::default();
    records.retain_mut(|record| {
        if record.operation == Operation::Flush {
            told.flushes += 1;
            return true;
        }
        let Some((offset, bytes)) = mapper.place(record.offset, u64::from(record.bytes)) else {
            return false;
        };
        (record.offset, record.bytes) = (offset, bytes as u32);
        touched.add(offset, bytes);
        if record.operation == Operation::Read {
            (told.reads, told.bytes_read) = (told.reads + 1, told.bytes_read + bytes);
        } else {
            (told.writes, told.bytes_written) = (told.writes + 1, told.bytes_written + bytes);
            let is_ordered = record.flags.has(Flags::FUA) || record.flags.has(Flags::PREFLUSH);
            told.orders_not_kept += u64::from(is_ordered);
        }
        true
    });
    told.map = mapper.report();
    rebase(records);
    touched
}

/// Which extents are touched: a bit for each.
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
