//! The formats: their names, how a file's content tells which it is, and what each of them means by its
//! figures.
//!
//! Invariant: a format is told by content or by the user, never guessed: where two fit, both are named and
//! the flag that decides.
mod biosnoop;
mod blkparse;
mod blktrace;
mod csv;
mod iolog;
mod pending;
mod simulator;

use std::io::Read;

use serde::{Deserialize, Serialize};

use super::batch::{Base, Reader};
use super::error::{Complaint, Fault};
use super::header::{Level, TraceClock, Unit};
use super::text::{TextReader, decimal, separated, whole, words};

/// A format of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// keepup's own.
    Native,
    /// fio's iolog, version 2.
    Iolog2,
    /// fio's iolog, version 3.
    Iolog3,
    /// blktrace's binary events.
    Blktrace,
    /// blkparse's default text.
    Blkparse,
    /// bcc's biosnoop.
    Biosnoop,
    /// MSR Cambridge.
    Msr,
    /// SPC and UMass.
    Spc,
    /// Alibaba 2020.
    Alibaba,
    /// MQSim's text.
    Mqsim,
    /// DiskSim's text.
    Disksim,
}

/// The unit of a time that a format does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

/// What `wait` means in an iolog of version 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Microseconds since the wait before it, as fio's HOWTO says.
    Gap,
    /// Milliseconds from the begin, as fio's code takes it.
    Start,
}

/// What the user says about a trace; all that is left out is told by the file or asked for.
#[derive(Clone, Debug, Default)]
pub struct Hints {
    /// The format.
    pub format: Option<Format>,
    /// What offsets count.
    pub unit: Option<Unit>,
    /// What times of MQSim and DiskSim count.
    pub time_unit: Option<TimeUnit>,
    /// What `wait` means.
    pub waits: Option<Waits>,
}

/// What a format's figures mean.
pub(super) struct Facts {
    pub(super) unit: Unit,
    pub(super) clock: TraceClock,
    pub(super) resolution_ns: u64,
    pub(super) level: Level,
    /// Whether offsets and sizes are those of blocks, so that they can be checked for sectors against bytes.
    pub(super) is_blocks: bool,
}

impl TimeUnit {
    pub(super) fn ns(self) -> i64 {
        [1, 1000, 1_000_000, 1_000_000_000][self as usize]
    }

    /// Digits behind the point down to ns.
    fn places(self) -> usize {
        [0, 3, 6, 9][self as usize]
    }
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Native,
        Self::Iolog2,
        Self::Iolog3,
        Self::Blktrace,
        Self::Blkparse,
        Self::Biosnoop,
        Self::Msr,
        Self::Spc,
        Self::Alibaba,
        Self::Mqsim,
        Self::Disksim,
    ];

    /// Its name, as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Iolog2 => "iolog2",
            Self::Iolog3 => "iolog3",
            Self::Blktrace => "blktrace",
            Self::Blkparse => "blkparse",
            Self::Biosnoop => "biosnoop",
            Self::Msr => "msr",
            Self::Spc => "spc",
            Self::Alibaba => "alibaba",
            Self::Mqsim => "mqsim",
            Self::Disksim => "disksim",
        }
    }

    pub(super) fn facts(self, hints: &Hints) -> Facts {
        let (unit, resolution_ns, level) = match self {
            Self::Native => (Unit::Bytes, 1, Level::Unknown),
            Self::Iolog2 | Self::Iolog3 => (Unit::Bytes, 1000, Level::File),
            Self::Blktrace | Self::Blkparse => (Unit::Sectors, 1, Level::Block),
            Self::Biosnoop => (Unit::Sectors, 10_000, Level::Device),
            Self::Msr => (Unit::Bytes, 100, Level::Device),
            Self::Spc => (Unit::Sectors, 1000, Level::Device),
            Self::Alibaba => (Unit::Bytes, 1000, Level::Device),
            Self::Mqsim => {
                (Unit::Sectors, hints.time_unit.unwrap_or(TimeUnit::Ns).ns() as u64, Level::Unknown)
            }
            Self::Disksim => (Unit::Sectors, 1000, Level::Unknown),
        };
        let clock = match self {
            Self::Biosnoop => TraceClock::Completion,
            Self::Iolog2 if hints.waits.is_none() => TraceClock::None,
            _ => TraceClock::Issue,
        };
        let is_blocks = !matches!(self, Self::Native | Self::Iolog2 | Self::Iolog3);
        Facts { unit: hints.unit.unwrap_or(unit), clock, resolution_ns, level, is_blocks }
    }

    /// Refuses what the user says where it has no meaning.
    pub(super) fn check(self, hints: &Hints) -> Result<(), Fault> {
        let name = self.name();
        let is_simulator = matches!(self, Self::Mqsim | Self::Disksim);
        let refused = [
            (hints.time_unit.is_some() && !is_simulator, "--time-unit is for mqsim and disksim"),
            (hints.waits.is_some() && self != Self::Iolog2, "--waits is for iolog2"),
            (hints.unit.is_some() && matches!(self, Self::Native | Self::Blktrace), "--unit does not apply"),
        ];
        match refused.iter().find(|(is_refused, _)| *is_refused) {
            Some((_, why)) => Err(Fault::Usage(Complaint::new(format!("the format is {name}: {why}")))),
            None => Ok(()),
        }
    }

    /// The format of a file that begins with `head`.
    pub(super) fn of_content(head: &[u8]) -> Result<Self, Fault> {
        let fitting = candidates(head);
        match fitting[..] {
            [one] => Ok(one),
            [] => {
                let names = Self::ALL.map(Self::name).join(", ");
                let what = "its begin looks like no format that is known";
                let help = format!("--format says which it is: {names}");
                Err(Fault::Asked(Complaint::new(what).help(help)))
            }
            _ => {
                let names: Vec<&str> = fitting.iter().map(|format| format.name()).collect();
                let what = format!("it may be {}, which mean different things", names.join(" or "));
                let flags: Vec<String> = names.iter().map(|name| format!("--format {name}")).collect();
                let help = format!("{} decides", flags.join(" or "));
                Err(Fault::Asked(Complaint::new(what).help(help)))
            }
        }
    }
}

/// Formats that a file which begins with `head` may have.
fn candidates(head: &[u8]) -> Vec<Format> {
    if head.starts_with(super::native::MAGIC) {
        return vec![Format::Native];
    }
    if blktrace::begins(head) {
        return vec![Format::Blktrace];
    }
    let mut lines = head.split(|byte| *byte == b'\n').map(|line| line.trim_ascii());
    let lines = lines.by_ref().filter(|line| !line.is_empty()).take(2);
    let [first, second] = {
        let mut both = [&[][..]; 2];
        both.iter_mut().zip(lines).for_each(|(place, line)| *place = line);
        both
    };
    // A first line may have the names of the columns.
    let fits = |is: &dyn Fn(&[u8]) -> bool| is(first) || (!has_digits_first(first) && is(second));
    let tests: [(Format, bool); 8] = [
        (Format::Iolog2, first == b"fio version 2 iolog"),
        (Format::Iolog3, first == b"fio version 3 iolog"),
        (Format::Blkparse, blkparse::is_event(first)),
        (Format::Biosnoop, first.starts_with(b"TIME") && words::<2>(first).0[1] == b"COMM"),
        (Format::Msr, fits(&is_msr)),
        (Format::Spc, fits(&|line| is_five(line, 3, |time| decimal(time, 9).is_some()))),
        (Format::Alibaba, fits(&|line| is_five(line, 1, |time| whole(time).is_some()))),
        (Format::Mqsim, is_simulator(first, |time| whole(time).is_some())),
    ];
    let mut fitting: Vec<Format> = tests.into_iter().filter(|(_, fits)| *fits).map(|(f, _)| f).collect();
    if is_simulator(first, |time| decimal(time, 6).is_some()) {
        fitting.push(Format::Disksim);
    }
    fitting
}

fn has_digits_first(line: &[u8]) -> bool {
    line.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'-')
}

fn is_msr(line: &[u8]) -> bool {
    let (fields, count) = separated::<7>(line, b',');
    let is_type = [&b"read"[..], b"write"].iter().any(|name| fields[3].eq_ignore_ascii_case(name));
    count == 7 && is_type && [0, 2, 4, 5].into_iter().all(|column| whole(fields[column]).is_some())
}

/// Whether a line has five columns, or more in SPC's case, with the letter of an operation in column `letter`
/// and a time in the fifth.
fn is_five(line: &[u8], letter: usize, is_time: impl Fn(&[u8]) -> bool) -> bool {
    let (fields, count) = separated::<5>(line, b',');
    let is_letter = matches!(fields[letter], b"R" | b"r" | b"W" | b"w");
    let numbers = (0..4).filter(|column| *column != letter).all(|column| whole(fields[column]).is_some());
    (count == 5 || count > 5 && letter == 3) && is_letter && numbers && is_time(fields[4])
}

fn is_simulator(line: &[u8], is_time: impl Fn(&[u8]) -> bool) -> bool {
    let (fields, count) = words::<5>(line);
    count == 5
        && is_time(fields[0])
        && (1..4).all(|column| whole(fields[column]).is_some())
        && u32::from_str_radix(std::str::from_utf8(fields[4]).unwrap_or("-"), 16).is_ok()
}

/// An address or length in its unit as bytes.
#[inline]
fn in_bytes(count: u64, unit: Unit) -> Result<u64, Complaint> {
    let far = || Complaint::new(format!("an address of {count} {} is beyond 2^64 bytes", unit.name()));
    count.checked_mul(unit.bytes()).ok_or_else(far)
}

/// Opens the reader of a format; several files are those of one blktrace.
pub(super) fn open<R: Read + Send + 'static>(
    format: Format,
    hints: &Hints,
    mut files: Vec<R>,
) -> Result<Box<dyn Reader>, Fault> {
    let unit = format.facts(hints).unit;
    if format == Format::Blktrace {
        return Ok(Box::new(blktrace::Blktrace::new(files)?));
    }
    let Some(file) = files.pop() else {
        return Err(Fault::Usage(Complaint::new("no file was given")));
    };
    let ns = hints.time_unit;
    Ok(match format {
        Format::Iolog2 => Box::new(TextReader::new(file, iolog::Iolog2::new(unit, hints.waits))),
        Format::Iolog3 => Box::new(TextReader::new(file, iolog::Iolog3::new(unit))),
        Format::Blkparse => Box::new(TextReader::new(file, blkparse::Blkparse::new(unit))),
        Format::Biosnoop => Box::new(TextReader::new(file, biosnoop::Biosnoop { unit, columns: None })),
        Format::Msr => {
            let format = csv::msr::Msr { base: Base::default(), unit, name: Vec::new() };
            Box::new(TextReader::new(file, format))
        }
        Format::Spc => Box::new(TextReader::new(file, csv::spc::Spc { unit })),
        Format::Alibaba => {
            Box::new(TextReader::new(file, csv::alibaba::Alibaba { base: Base::default(), unit }))
        }
        Format::Mqsim => {
            let time_unit = ns.unwrap_or(TimeUnit::Ns);
            Box::new(TextReader::new(file, simulator::Mqsim { base: Base::default(), unit, time_unit }))
        }
        Format::Disksim => {
            let time_unit = ns.unwrap_or(TimeUnit::Ms);
            Box::new(TextReader::new(file, simulator::Disksim { unit, time_unit }))
        }
        // Those with a header of their own are opened where it is read.
        Format::Native | Format::Blktrace => {
            return Err(Fault::Usage(Complaint::new("the format has no lines")));
        }
    })
}

/// Whether an iolog of version 2 waits, as far as its begin shows.
pub(super) fn asks_for_waits(format: Format, hints: &Hints, head: &[u8]) -> Option<Fault> {
    let is_open = format == Format::Iolog2 && hints.waits.is_none();
    let waits = |line: &[u8]| words::<2>(line).0[1] == b"wait";
    let asks = is_open && head.split(|byte| *byte == b'\n').any(waits);
    asks.then(|| Fault::Asked(Complaint::new("it has waits").help(iolog::ASK_WAITS)))
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
