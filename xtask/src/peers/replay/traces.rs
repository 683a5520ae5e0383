//! Deterministic traces of the campaign.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};

/// Request size, bytes.
const REQUEST_BYTES: u64 = 4096;
/// Range of the request offsets, bytes.
pub(super) const FILE_BYTES: u64 = 512 << 20;
/// Duration of a timed trace, us.
const TIMED_US: u64 = 5_000_000;
/// Share of writes in the mixed trace, per cent.
const WRITES_PERCENT: u64 = 30;
/// Requests of the dependent trace.
const DEP_REQUESTS: u64 = 20_000;
/// Interval between their starts, us.
const DEP_GAP_US: u64 = 125;
/// Service time, us.
const DEP_SERVICE_US: u64 = 100;

/// Trace in the format of fio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trace {
    /// File name.
    pub(super) name: &'static str,
    /// Number of requests.
    pub(super) requests: u64,
    /// Interval between requests, us.
    gap_us: u64,
    /// Share of writes, per cent.
    writes_percent: u64,
}

impl Trace {
    const fn timed(name: &'static str, gap_us: u64) -> Self {
        Self { name, requests: TIMED_US / gap_us, gap_us, writes_percent: 0 }
    }

    const fn quick(name: &'static str, requests: u64, writes_percent: u64) -> Self {
        Self { name, requests, gap_us: 1, writes_percent }
    }

    /// Time from the first to the last request, seconds.
    pub(super) fn span_seconds(self) -> f64 {
        ((self.requests - 1) * self.gap_us) as f64 / 1e6
    }

    fn write(self, to: &mut dyn Write) -> std::io::Result<()> {
        writeln!(to, "fio version 3 iolog\n0 target add\n0 target open")?;
        for n in 0..self.requests {
            let drawn = draw(n);
            let verb =
                if drawn >> 32 & 0xffff < self.writes_percent * 65_536 / 100 { "write" } else { "read" };
            writeln!(to, "{} target {verb} {} {REQUEST_BYTES}", n * self.gap_us, place(drawn))?;
        }
        writeln!(to, "{} target close", (self.requests - 1) * self.gap_us)
    }
}

/// 250 requests per second.
pub(super) const SLOW: Trace = Trace::timed("250.iolog", 4000);
/// 2,000 requests per second.
pub(super) const MIDDLE: Trace = Trace::timed("2000.iolog", 500);
/// 50,000 requests per second.
pub(super) const FAST: Trace = Trace::timed("50000.iolog", 20);
/// Reads for the null target.
pub(super) const NOWHERE: Trace = Trace::quick("nowhere.iolog", 2_000_000, 0);
/// Reads for a disk.
pub(super) const READS: Trace = Trace::quick("reads.iolog", 50_000, 0);
/// Reads and writes for a disk.
pub(super) const MIXED: Trace = Trace::quick("mixed.iolog", 50_000, WRITES_PERCENT);
/// Dependent requests with their completion times.
pub(super) const DEPENDENT: &str = "dependent.csv";

/// Duration of [`DEPENDENT`] if each request completes at once, seconds.
pub(super) fn dependent_seconds() -> f64 {
    ((DEP_REQUESTS - 1) * (DEP_GAP_US - DEP_SERVICE_US)) as f64 / 1e6
}

/// Writes all traces to `directory`.
pub(super) fn write_all(directory: &Path) -> Result<()> {
    for trace in [SLOW, MIDDLE, FAST, NOWHERE, READS, MIXED] {
        write_to(&directory.join(trace.name), |to| trace.write(to))?;
    }
    write_to(&directory.join(DEPENDENT), write_dependent)
}

fn write_to(path: &Path, write: impl Fn(&mut dyn Write) -> std::io::Result<()>) -> Result<()> {
    let what = || format!("write {}", path.display());
    let mut file = BufWriter::new(File::create(path).with_context(what)?);
    write(&mut file).and_then(|()| file.flush()).with_context(what)
}

/// MSR Cambridge format: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime, times in 100 ns.
fn write_dependent(to: &mut dyn Write) -> std::io::Result<()> {
    // 1 January 2020, counted from 1601.
    const START: u64 = 132_223_104_000_000_000;
    for n in 0..DEP_REQUESTS {
        let (at, takes) = (START + n * DEP_GAP_US * 10, DEP_SERVICE_US * 10);
        writeln!(to, "{at},peers,0,Read,{},{REQUEST_BYTES},{takes}", place(draw(n)))?;
    }
    Ok(())
}

/// Offset of a request, bytes.
fn place(drawn: u64) -> u64 {
    drawn % (FILE_BYTES / REQUEST_BYTES) * REQUEST_BYTES
}

/// Deterministic random number for `n`: SplitMix64 (Steele, Lea, Flood 2014).
fn draw(n: u64) -> u64 {
    let mut z = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
#[path = "traces_tests.rs"]
mod tests;
