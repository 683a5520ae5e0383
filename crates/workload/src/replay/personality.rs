//! Synthetic personalities: traces of servers and desktops that are made up from documented distributions
//! and a seed.
//!
//! What is done, in which order and of which sizes is that of a source: filebench's workload files for
//! servers, published counts of recorded traces for desktops. When it is done is a choice of ours unless a
//! source has a rate: rounds begin at random at a stated rate (a Poisson process), and the steps of a round
//! follow one another after exponential pauses, half of which the disk is said to have taken. A request is
//! what a file system without a cache would ask of a disk: whole pages of 4 KiB. Names, directories,
//! deletion and the status of files are left out.
//!
//! Invariants: the same personality, seed, time and rate make the same bytes; a trace says that it is
//! synthetic.
mod desktops;
mod draw;
mod maker;
mod servers;

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;

use self::desktops::{DESKTOP_START, IMAGE_EDITING, OFFICE};
use self::draw::Sizes;
use self::maker::Maker;
use self::servers::{DATABASE, FILE_SERVER, MAIL_SERVER, WEB_SERVER};
use super::trace::{
    Corrections, Flags, Format, Level, NativeWriter, Operation, Origin, TraceClock, TraceDevice, TraceHeader,
    Unit,
};

const PAGE: u64 = 4096;
/// Mean pause between two steps of a round, ns; a choice of ours.
const PAUSE_NS: f64 = 500_000.0;
/// Room that appends go round in, bytes; a choice of ours.
const LOG_BYTES: u64 = 64 << 20;
/// How much is read or written at once, bytes (`iosize` of filebench's workload files).
const IO_BYTES: u64 = 1 << 20;
/// Requests of one trace.
const RECORDS_MAX: f64 = 1e9;
/// Requests of rounds that go on side by side; they are in memory, some 50 bytes each.
const WAITING_MAX: f64 = 1e7;

/// One kind of server, or of work at a desktop.
#[derive(Debug)]
pub struct Personality {
    /// Its name, as users write it.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    /// Rounds per second unless told otherwise; a choice of ours.
    pub rounds_per_second: f64,
    files: u64,
    file_bytes: Sizes,
    round: &'static [Step],
}

/// A step of a round.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A file is read from begin to end.
    ReadFile,
    /// A file of a new length is written.
    WriteFile,
    /// Up to so many bytes go behind those before, in a room of their own.
    Append(u64),
    /// What was written becomes durable.
    Flush,
    /// So many bytes somewhere in a file are read.
    ReadAt(u64),
    /// Every so many rounds a burst of durable writes of so many bytes each, somewhere in files.
    WriteEvery { rounds: u64, writes: u64, bytes: u64 },
    /// Requests somewhere in files.
    Requests(Requests),
    /// Nobody asks for anything, for so many seconds in the mean (exponential).
    Think(f64),
}

/// Requests of whole pages somewhere in files.
#[derive(Clone, Copy, Debug)]
struct Requests {
    operation: Operation,
    count: u64,
    /// Rounded to pages, at least one.
    bytes: Sizes,
    /// By which chance one begins where the one before ended.
    goes_on: f64,
    flags: Flags,
}

/// All of them.
pub const PERSONALITIES: [&Personality; 7] =
    [&WEB_SERVER, &FILE_SERVER, &MAIL_SERVER, &DATABASE, &DESKTOP_START, &OFFICE, &IMAGE_EDITING];

/// What was made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Made {
    /// Requests.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Rounds.
    pub rounds: u64,
}

impl Personality {
    /// The one with this name.
    pub fn of_name(name: &str) -> Option<&'static Self> {
        PERSONALITIES.into_iter().find(|personality| personality.name == name)
    }

    /// Writes a trace in the native format whose rounds begin within `time`, at `rounds_per_second`.
    ///
    /// # Errors
    /// When `out` does not take it, or it would have more than 10^9 requests, or 10^7 at a time.
    pub fn make(
        &self,
        seed: u64,
        time: Duration,
        rounds_per_second: f64,
        out: impl Write,
    ) -> io::Result<Made> {
        self.check(time, rounds_per_second)?;
        let mut writer = NativeWriter::new(out, &self.header(seed))?;
        let bytes = self.files_bytes() + LOG_BYTES;
        writer.device(&TraceDevice { name: self.name.into(), bytes: Some(bytes) })?;
        let mut maker = Maker::new(self, seed);
        let (mut now_ns, end_ns) = (0.0, time.as_secs_f64() * 1e9);
        while now_ns < end_ns {
            maker.round(now_ns);
            now_ns += maker.exponential(1e9 / rounds_per_second);
            maker.give(now_ns as u64, &mut writer)?;
        }
        maker.give(u64::MAX, &mut writer)?;
        writer.finish(&Corrections::default())?;
        Ok(maker.made)
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

    /// Whether so many requests can be made, and held in memory until it is their time.
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
            return refused(format!("{expected:.0} requests: from 1 to {RECORDS_MAX:.0} can be made"));
        }
        // Not more than all that there are.
        let waiting = expected.min(rounds_per_second * seconds * requests);
        if waiting > WAITING_MAX {
            return refused(format!(
                "{waiting:.0} requests side by side: up to {WAITING_MAX:.0} can be made"
            ));
        }
        Ok(())
    }

    /// Room for all files, bytes.
    fn files_bytes(&self) -> u64 {
        self.files * self.file_bytes.longest()
    }
}

#[cfg(test)]
#[path = "personality_tests.rs"]
mod tests;
