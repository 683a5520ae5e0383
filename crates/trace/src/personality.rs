//! Synthetic personalities: server and desktop traces generated from documented distributions and a
//! seed.
//!
//! Operations, their order and sizes are taken from a source: filebench's workload files for
//! servers, published statistics of recorded traces for desktops. Timing is our choice unless a
//! source has a rate: rounds start at a given rate (Poisson process), and the steps of a round
//! follow after exponential pauses, half of which is attributed to the disk. Requests are those of
//! a file system without a cache: whole 4 KiB pages. Names, directories, deletion and stat calls
//! are omitted.
//!
//! Invariants: the same personality, seed, time and rate generate identical bytes; the trace is
//! marked as synthetic.
mod desktops;
mod draw;
mod generator;
mod servers;

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;

use self::desktops::{DESKTOP_START, IMAGE_EDITING, OFFICE};
use self::draw::Sizes;
use self::generator::Generator;
use self::servers::{DATABASE, FILE_SERVER, MAIL_SERVER, WEB_SERVER};
use super::{
    Corrections, Flags, Format, Level, NativeWriter, Operation, Origin, TraceClock, TraceDevice, TraceHeader,
    Unit,
};

const PAGE: u64 = 4096;
/// Mean pause between two steps of a round, ns; our choice.
const PAUSE_NS: f64 = 500_000.0;
/// Size of the circular append area, bytes; our choice.
const LOG_BYTES: u64 = 64 << 20;
/// Request size of sequential access, bytes (`iosize` of filebench's workload files).
const IO_BYTES: u64 = 1 << 20;
/// Maximum number of requests of a trace.
const RECORDS_MAX: f64 = 1e9;
/// Maximum number of requests of overlapping rounds, held in memory at about 50 bytes each.
const WAITING_MAX: f64 = 1e7;

/// One kind of server or desktop work.
#[derive(Debug)]
pub struct Personality {
    /// Name on the command line.
    pub name: &'static str,
    /// One-line description.
    pub about: &'static str,
    /// Default rounds per second; our choice.
    pub rounds_per_second: f64,
    files: u64,
    file_bytes: Sizes,
    round: &'static [Step],
}

/// A step of a round.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Reads a whole file.
    ReadFile,
    /// Writes a file of a new length.
    WriteFile,
    /// Appends up to this many bytes to the log area.
    Append(u64),
    /// Flush.
    Flush,
    /// Reads this many bytes at a random position.
    ReadAt(u64),
    /// Once in this many rounds, a burst of durable writes of this size at random positions.
    WriteEvery { rounds: u64, writes: u64, bytes: u64 },
    /// Requests at random positions.
    Requests(Requests),
    /// Idle time with this mean in seconds (exponential).
    Think(f64),
}

/// Requests of whole pages at random positions.
#[derive(Clone, Copy, Debug)]
struct Requests {
    operation: Operation,
    count: u64,
    /// Rounded to pages, at least one.
    bytes: Sizes,
    /// Probability that a request continues where the previous one ended.
    sequential_share: f64,
    flags: Flags,
}

/// All personalities.
pub const PERSONALITIES: [&Personality; 7] =
    [&WEB_SERVER, &FILE_SERVER, &MAIL_SERVER, &DATABASE, &DESKTOP_START, &OFFICE, &IMAGE_EDITING];

/// Totals of a generated trace.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Generated {
    /// Requests.
    pub records: u64,
    /// Bytes of the requests.
    pub bytes: u64,
    /// Rounds.
    pub rounds: u64,
}

impl Personality {
    /// Personality with this name.
    pub fn of_name(name: &str) -> Option<&'static Self> {
        PERSONALITIES.into_iter().find(|personality| personality.name == name)
    }

    /// Writes a trace in the native format with rounds starting within `time`, at
    /// `rounds_per_second`.
    ///
    /// # Errors
    /// `out` cannot be written, or the trace would have more than 10^9 requests, or 10^7 at a time.
    pub fn make(
        &self,
        seed: u64,
        time: Duration,
        rounds_per_second: f64,
        out: impl Write,
    ) -> io::Result<Generated> {
        self.check(time, rounds_per_second)?;
        let mut writer = NativeWriter::new(out, &self.header(seed))?;
        let bytes = self.files_bytes() + LOG_BYTES;
        writer.device(&TraceDevice { name: self.name.into(), bytes: Some(bytes) })?;
        let mut generator = Generator::new(self, seed);
        let (mut now_ns, end_ns) = (0.0, time.as_secs_f64() * 1e9);
        while now_ns < end_ns {
            generator.round(now_ns);
            now_ns += generator.exponential(1e9 / rounds_per_second);
            generator.write_until(now_ns as u64, &mut writer)?;
        }
        generator.write_until(u64::MAX, &mut writer)?;
        writer.finish(&Corrections::default())?;
        Ok(generator.made)
    }

    fn header(&self, seed: u64) -> TraceHeader {
        TraceHeader {
            format: Format::Native,
            source: Vec::new(),
            unit: Unit::Bytes,
            clock: TraceClock::Issue,
            resolution_ns: 1,
            level: Level::Block,
            origin: Origin::Synthetic { personality: self.name.into(), seed },
        }
    }

    /// Checks the number of requests in total and in memory.
    fn check(&self, time: Duration, rounds_per_second: f64) -> io::Result<()> {
        let refused = |what| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        let (mut requests, mut seconds) = (0.0, 0.0);
        for step in self.round {
            match step {
                Step::Requests(several) => requests += several.count as f64,
                Step::Think(mean) => seconds += mean,
                _ => requests += 1.0,
            }
        }
        seconds += requests * PAUSE_NS / 1e9;
        let expected = rounds_per_second * time.as_secs_f64() * requests;
        if !(rounds_per_second > 0.0 && expected <= RECORDS_MAX) {
            return refused(format!("{expected:.0} requests: must be 1 to {RECORDS_MAX:.0}"));
        }
        // Not more than the total.
        let waiting = expected.min(rounds_per_second * seconds * requests);
        if waiting > WAITING_MAX {
            return refused(format!(
                "{waiting:.0} overlapping requests: at most {WAITING_MAX:.0} are possible"
            ));
        }
        Ok(())
    }

    /// Total size of all files, bytes.
    fn files_bytes(&self) -> u64 {
        self.files * self.file_bytes.longest()
    }
}

#[cfg(test)]
#[path = "personality_tests.rs"]
mod tests;
