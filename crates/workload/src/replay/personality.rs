//! Synthetic personalities: traces of servers that are made up from documented distributions and a seed.
//!
//! What is done, in which order and of which sizes is that of filebench's workload files (`webserver.f`,
//! `fileserver.f`, `varmail.f`, `oltp.f`; filebench 1.5). When it is done is a choice of ours, for
//! filebench has no rates: rounds begin at random at a stated rate (a Poisson process), and the steps of a
//! round follow one another after exponential pauses. A request is what a file system without a cache would
//! ask of a disk: whole pages of 4 KiB. Names, directories, deletion and the status of files are left out.
//!
//! Invariants: the same personality, seed, time and rate make the same bytes; a trace says that it is
//! synthetic.
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};
use std::time::Duration;

use fastrand::Rng;
use serde::Serialize;

use super::trace::{
    Corrections, Flags, Format, Level, NativeWriter, Operation, Origin, Record, TraceClock, TraceDevice,
    TraceHeader, Unit,
};

const PAGE: u64 = 4096;
/// Shape of filebench's gamma distribution of file sizes (`cvar-gamma`, `gamma:1.5`).
const SHAPE: f64 = 1.5;
/// A file is at most so many times as long as the mean: longer ones are cut, 1 in 10 000 or fewer.
const LONGEST: f64 = 8.0;
/// Mean pause between two steps of a round, ns; a choice of ours.
const PAUSE_NS: f64 = 500_000.0;
/// Room that appends go round in, bytes; a choice of ours.
const LOG_BYTES: u64 = 64 << 20;
/// How much is read or written at once, bytes (`iosize` of the workload files).
const IO_BYTES: u64 = 1 << 20;
/// Requests of one trace.
const RECORDS_MAX: f64 = 1e9;

/// One kind of server.
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

#[derive(Clone, Copy, Debug)]
enum Sizes {
    /// Gamma with [`SHAPE`] and this mean, bytes.
    Gamma(f64),
    /// All the same, bytes.
    Fixed(u64),
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
}

/// `webserver.f`: ten files read, then a line of the log.
const WEB_SERVER: Personality = Personality {
    name: "web-server",
    about: "10 whole files of 16 KiB in the mean are read, then up to 16 KiB are added to a log",
    rounds_per_second: 50.0,
    files: 1000,
    file_bytes: Sizes::Gamma(16_384.0),
    round: &[
        Step::ReadFile,
        Step::ReadFile,
        Step::ReadFile,
        Step::ReadFile,
        Step::ReadFile,
        Step::ReadFile,
        Step::ReadFile,
        Step::ReadFile,
        Step::ReadFile,
        Step::ReadFile,
        Step::Append(16 << 10),
    ],
};

/// `fileserver.f`: one file written, something added to one, one read.
const FILE_SERVER: Personality = Personality {
    name: "file-server",
    about: "a file of 128 KiB in the mean is written, up to 16 KiB are added, another is read",
    rounds_per_second: 100.0,
    files: 10_000,
    file_bytes: Sizes::Gamma(131_072.0),
    round: &[Step::WriteFile, Step::Append(16 << 10), Step::ReadFile],
};

/// `varmail.f`: a mail arrives, one is read and changed, one is read.
const MAIL_SERVER: Personality = Personality {
    name: "mail-server",
    about: "a mail of up to 16 KiB arrives and is made durable, one is read, added to and made durable, \
            one is read",
    rounds_per_second: 100.0,
    files: 1000,
    file_bytes: Sizes::Gamma(16_384.0),
    round: &[
        Step::Append(16 << 10),
        Step::Flush,
        Step::ReadFile,
        Step::Append(16 << 10),
        Step::Flush,
        Step::ReadFile,
    ],
};

/// `oltp.f`: a reader's read; its semaphores let a writer go every 1000 of them and the log's every 3200.
const DATABASE: Personality = Personality {
    name: "database",
    about: "2 KiB somewhere in 10 files of 10 MiB are read; 100 durable writes of 2 KiB every 1000 reads, \
            one of 256 KiB every 3200",
    rounds_per_second: 2000.0,
    files: 10,
    file_bytes: Sizes::Fixed(10 << 20),
    round: &[
        Step::ReadAt(2 << 10),
        Step::WriteEvery { rounds: 1000, writes: 100, bytes: 2 << 10 },
        Step::WriteEvery { rounds: 3200, writes: 1, bytes: 256 << 10 },
    ],
};

/// All of them.
pub const PERSONALITIES: [&Personality; 4] = [&WEB_SERVER, &FILE_SERVER, &MAIL_SERVER, &DATABASE];

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
    /// When `out` does not take it, or it would have more than 10^9 requests.
    pub fn make(
        &self,
        seed: u64,
        time: Duration,
        rounds_per_second: f64,
        out: impl Write,
    ) -> io::Result<Made> {
        let expected = rounds_per_second * time.as_secs_f64() * self.round.len() as f64;
        if !(rounds_per_second > 0.0 && expected <= RECORDS_MAX) {
            let what = format!("{expected:.0} requests: from 1 to {RECORDS_MAX:.0} can be made");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let mut writer = NativeWriter::new(out, &self.header(seed))?;
        let bytes = self.files * self.slot_bytes() + LOG_BYTES;
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

    /// Room for a file, bytes.
    fn slot_bytes(&self) -> u64 {
        match self.file_bytes {
            Sizes::Gamma(mean) => (mean * LONGEST) as u64,
            Sizes::Fixed(bytes) => bytes,
        }
    }
}

/// A request that was not given yet: time, number, operation, offset, bytes, flags; the number keeps the
/// order of those with the same time.
type Waiting = (u64, u64, u8, u64, u32, u8);

/// The state of a trace that is made.
struct Maker<'a> {
    personality: &'a Personality,
    seed: u64,
    rng: Rng,
    made: Made,
    /// Bytes that were added to the log.
    log_bytes: u64,
    /// Requests that were not given, the earliest on top.
    waiting: BinaryHeap<Reverse<Waiting>>,
    number: u64,
    zero_ns: Option<u64>,
}

impl<'a> Maker<'a> {
    fn new(personality: &'a Personality, seed: u64) -> Self {
        Self {
            personality,
            seed,
            rng: Rng::with_seed(seed),
            made: Made { records: 0, bytes: 0, rounds: 0 },
            log_bytes: 0,
            waiting: BinaryHeap::new(),
            number: 0,
            zero_ns: None,
        }
    }

    /// A round that begins at `start_ns`.
    fn round(&mut self, start_ns: f64) {
        self.made.rounds += 1;
        let mut at_ns = start_ns;
        for step in self.personality.round {
            match *step {
                Step::ReadFile => {
                    let file = self.rng.u64(..self.personality.files);
                    let bytes = self.length(&mut Rng::with_seed(self.seed ^ (file + 1).rotate_left(32)));
                    self.whole(&mut at_ns, Operation::Read, file, bytes);
                }
                Step::WriteFile => {
                    let file = self.rng.u64(..self.personality.files);
                    let mut rng = self.rng.fork();
                    let bytes = self.length(&mut rng);
                    self.whole(&mut at_ns, Operation::Write, file, bytes);
                }
                Step::Append(most) => {
                    let bytes = self.rng.u64(1..=most);
                    let start = self.personality.files * self.personality.slot_bytes();
                    // Past the end of its room it begins again.
                    if self.log_bytes + bytes > LOG_BYTES {
                        self.log_bytes = 0;
                    }
                    self.add(at_ns, Operation::Write, start + self.log_bytes, bytes, Flags::NONE);
                    self.log_bytes += bytes;
                }
                Step::Flush => self.add(at_ns, Operation::Flush, 0, 0, Flags::NONE),
                Step::ReadAt(bytes) => {
                    let offset = self.somewhere(bytes);
                    self.add(at_ns, Operation::Read, offset, bytes, Flags::NONE);
                }
                Step::WriteEvery { rounds, writes, bytes } => {
                    let count = if self.made.rounds.is_multiple_of(rounds) { writes } else { 0 };
                    for _ in 0..count {
                        let offset = self.somewhere(bytes);
                        self.add(at_ns, Operation::Write, offset, bytes, Flags::FUA);
                        at_ns += self.exponential(PAUSE_NS);
                    }
                }
            }
            at_ns += self.exponential(PAUSE_NS);
        }
    }

    /// A file from begin to end, by [`IO_BYTES`].
    fn whole(&mut self, at_ns: &mut f64, operation: Operation, file: u64, bytes: u64) {
        let start = file * self.personality.slot_bytes();
        let mut done = 0;
        while done < bytes {
            let piece = IO_BYTES.min(bytes - done);
            self.add(*at_ns, operation, start + done, piece, Flags::NONE);
            *at_ns += self.exponential(PAUSE_NS);
            done += piece;
        }
    }

    /// A place in a file for so many bytes, at a multiple of them.
    fn somewhere(&mut self, bytes: u64) -> u64 {
        let places = self.personality.files * self.personality.slot_bytes() / bytes;
        self.rng.u64(..places) * bytes
    }

    /// Length of a file, bytes, by `rng`.
    fn length(&self, rng: &mut Rng) -> u64 {
        match self.personality.file_bytes {
            Sizes::Fixed(bytes) => bytes,
            Sizes::Gamma(mean) => (gamma(rng) / SHAPE * mean).clamp(1.0, mean * LONGEST) as u64,
        }
    }

    /// Adds a request, in whole pages.
    fn add(&mut self, at_ns: f64, operation: Operation, offset: u64, bytes: u64, flags: Flags) {
        let (start, end) = match operation {
            Operation::Flush => (0, 0),
            _ => (offset / PAGE * PAGE, (offset + bytes).next_multiple_of(PAGE)),
        };
        let request = (at_ns as u64, self.number, operation as u8, start, (end - start) as u32, flags.bits());
        self.number += 1;
        self.waiting.push(Reverse(request));
    }

    /// Gives what comes before `until_ns`; nothing that is added later does.
    fn give(&mut self, until_ns: u64, writer: &mut NativeWriter<impl Write>) -> io::Result<()> {
        while let Some(Reverse((at_ns, _, operation, offset, bytes, flags))) = self.waiting.peek().copied() {
            if at_ns >= until_ns {
                break;
            }
            self.waiting.pop();
            let zero_ns = *self.zero_ns.get_or_insert(at_ns);
            let operation = Operation::of_number(operation).unwrap_or(Operation::Read);
            let record = Record::new(at_ns - zero_ns, operation, 0, offset, bytes);
            writer.record(&record.flagged(Flags::of_bits(flags).unwrap_or_default()))?;
            self.made.records += 1;
            self.made.bytes += u64::from(bytes);
        }
        Ok(())
    }

    /// A time until the next of events that come at random, by their mean.
    fn exponential(&mut self, mean: f64) -> f64 {
        // From above 0 to 1: its logarithm is a number.
        -(1.0 - self.rng.f64()).ln() * mean
    }
}

/// A number of the gamma distribution of [`SHAPE`] and scale 1 (Marsaglia and Tsang, "A simple method for
/// generating gamma variables", ACM Transactions on Mathematical Software 26, 2000).
fn gamma(rng: &mut Rng) -> f64 {
    let d = SHAPE - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        // Box and Muller's normal number.
        let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * rng.f64()).cos();
        let v = (1.0 + c * normal).powi(3);
        let u = 1.0 - rng.f64();
        if v > 0.0 && u.ln() < normal * normal / 2.0 + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}

#[cfg(test)]
#[path = "personality_tests.rs"]
mod tests;
