//! Formats: detection by content, the meaning of their numbers, and the reader of each.
//!
//! Invariant: a format is detected from the content or given by the user, never guessed. If several
//! match, the error names them and the deciding flag.
mod biosnoop;
mod blkparse;
mod blkreplay;
mod blktrace;
mod csv;
mod iolog;
mod pending;
mod simulator;

use std::io::Read;

use super::batch::{Reader, TimeBase};
use super::error::{ParseError, ReadError};
use super::header::{Format, Level, TraceClock, Unit};
use super::text::{TextReader, decimal, separated, whole, words};

/// Unit of times in a format that does not define it.
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

/// Meaning of `wait` in an iolog of version 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Microseconds since the previous wait, as in fio's HOWTO.
    Gap,
    /// Milliseconds from the start, as in fio's code.
    Start,
}

/// Properties of a trace given by the user. The file determines the others, or reading it fails.
#[derive(Clone, Debug, Default)]
pub struct Hints {
    /// Format.
    pub format: Option<Format>,
    /// Unit of offsets.
    pub unit: Option<Unit>,
    /// Unit of times in MQSim and DiskSim traces.
    pub time_unit: Option<TimeUnit>,
    /// Meaning of `wait`.
    pub waits: Option<Waits>,
}

/// Properties of a format.
pub(super) struct FormatProperties {
    pub(super) unit: Unit,
    pub(super) clock: TraceClock,
    pub(super) resolution_ns: u64,
    pub(super) level: Level,
    /// Whether offsets and sizes are those of a block device, so that their unit can be checked.
    pub(super) is_blocks: bool,
}

impl TimeUnit {
    pub(super) fn ns(self) -> i64 {
        [1, 1000, 1_000_000, 1_000_000_000][self as usize]
    }

    /// Decimal digits down to ns.
    fn places(self) -> usize {
        [0, 3, 6, 9][self as usize]
    }
}

impl Format {
    pub(super) fn properties(self, hints: &Hints) -> FormatProperties {
        let (unit, resolution_ns, level) = match self {
            Self::Native => (Unit::Bytes, 1, Level::Unknown),
            Self::Iolog2 | Self::Iolog3 => (Unit::Bytes, 1000, Level::File),
            Self::Blktrace | Self::Blkparse | Self::Blkreplay => (Unit::Sectors, 1, Level::Block),
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
        FormatProperties { unit: hints.unit.unwrap_or(unit), clock, resolution_ns, level, is_blocks }
    }

    /// Refuses hints that do not apply to the format.
    pub(super) fn check(self, hints: &Hints) -> Result<(), ReadError> {
        let name = self.name();
        let is_simulator = matches!(self, Self::Mqsim | Self::Disksim);
        let refused = [
            (hints.time_unit.is_some() && !is_simulator, "--time-unit", "only to mqsim and disksim"),
            (hints.waits.is_some() && self != Self::Iolog2, "--waits", "only to iolog2"),
            (
                hints.unit.is_some() && matches!(self, Self::Native | Self::Blktrace),
                "--unit",
                "only to formats without a defined unit",
            ),
        ];
        match refused.iter().find(|(is_refused, ..)| *is_refused) {
            Some((_, flag, applies)) => {
                let what = format!("cannot use {flag} with format {name}: it applies {applies}");
                Err(ReadError::Usage(ParseError::new(what)))
            }
            None => Ok(()),
        }
    }

    /// Detects the format of a file that begins with `head`.
    pub(super) fn detect(head: &[u8]) -> Result<Self, ReadError> {
        let fitting = matching_formats(head);
        match fitting[..] {
            [one] => Ok(one),
            [] => {
                let names = Self::ALL.map(Self::name).join(", ");
                let what = match head {
                    [] => "unrecognized trace format: the file is empty".to_owned(),
                    [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
                        let help = "convert it: iconv -f UTF-16 -t UTF-8 FILE";
                        let what = "cannot read the trace: its text is UTF-16";
                        return Err(ReadError::Ambiguous(ParseError::new(what).help(help)));
                    }
                    _ => {
                        let start = &head[..head.len().min(HEAD_SHOWN_BYTES)];
                        let bytes: Vec<String> = start.iter().map(|byte| format!("{byte:02x}")).collect();
                        format!("unrecognized trace format: the first bytes are {}", bytes.join(" "))
                    }
                };
                let help = format!("choose the format with --format: {names}");
                Err(ReadError::Ambiguous(ParseError::new(what).help(help)))
            }
            _ => {
                let names: Vec<&str> = fitting.iter().map(|format| format.name()).collect();
                let what = format!("ambiguous trace format: {}", names.join(" or "));
                let flags: Vec<String> = names.iter().map(|name| format!("--format {name}")).collect();
                let help = format!("choose {}", flags.join(" or "));
                Err(ReadError::Ambiguous(ParseError::new(what).help(help)))
            }
        }
    }
}

/// Bytes shown of a file in an unknown format.
const HEAD_SHOWN_BYTES: usize = 8;

/// Formats that match the head of a file.
fn matching_formats(head: &[u8]) -> Vec<Format> {
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
        both.iter_mut().zip(lines).for_each(|(position, line)| *position = line);
        both
    };
    // The first line may contain column names.
    let fits = |is: &dyn Fn(&[u8]) -> bool| is(first) || (!has_digits_first(first) && is(second));
    let is_names = |line: &[u8]| blkreplay::is_names(line);
    let tests: [(Format, bool); 9] = [
        (Format::Iolog2, first == b"fio version 2 iolog"),
        (Format::Iolog3, first == b"fio version 3 iolog"),
        (Format::Blkparse, blkparse::is_event(first) || blkparse::begins(head)),
        (Format::Biosnoop, first.starts_with(b"TIME") && words::<2>(first).0[1] == b"COMM"),
        (Format::Blkreplay, head.split(|byte| *byte == b'\n').any(is_names)),
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

/// Whether a line has five columns (SPC: or more), with an operation's letter in column `letter` and a
/// time in the fifth.
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

/// Converts an address or length to bytes. One that exceeds 2^64 bytes, such as the sector -1 of a request
/// without data, becomes the largest number: requests there are dropped and counted.
#[inline]
fn in_bytes(count: u64, unit: Unit) -> u64 {
    count.saturating_mul(unit.bytes())
}

/// Opens the reader of a format. Only blktrace has several files.
pub(super) fn open<R: Read + Send + 'static>(
    format: Format,
    hints: &Hints,
    mut files: Vec<R>,
) -> Result<Box<dyn Reader>, ReadError> {
    let unit = format.properties(hints).unit;
    if format == Format::Blktrace {
        return Ok(Box::new(blktrace::Blktrace::new(files)?));
    }
    let Some(file) = files.pop() else {
        return Err(ReadError::Usage(ParseError::new("no file was given")));
    };
    let ns = hints.time_unit;
    Ok(match format {
        Format::Iolog2 => Box::new(TextReader::new(file, iolog::Iolog2::new(unit, hints.waits))),
        Format::Iolog3 => Box::new(TextReader::new(file, iolog::Iolog3::new(unit))),
        Format::Blkparse => Box::new(TextReader::new(file, blkparse::Blkparse::new(unit))),
        Format::Biosnoop => Box::new(TextReader::new(file, biosnoop::Biosnoop { unit, columns: None })),
        Format::Blkreplay => {
            Box::new(TextReader::new(file, blkreplay::Blkreplay { unit, is_after_names: false }))
        }
        Format::Msr => {
            let format = csv::msr::Msr { base: TimeBase::default(), unit, name: Vec::new() };
            Box::new(TextReader::new(file, format))
        }
        Format::Spc => Box::new(TextReader::new(file, csv::spc::Spc { unit })),
        Format::Alibaba => {
            Box::new(TextReader::new(file, csv::alibaba::Alibaba { base: TimeBase::default(), unit }))
        }
        Format::Mqsim => {
            let time_unit = ns.unwrap_or(TimeUnit::Ns);
            Box::new(TextReader::new(file, simulator::Mqsim { base: TimeBase::default(), unit, time_unit }))
        }
        Format::Disksim => {
            let time_unit = ns.unwrap_or(TimeUnit::Ms);
            Box::new(TextReader::new(file, simulator::Disksim { unit, time_unit }))
        }
        // Binary formats are opened elsewhere.
        Format::Native | Format::Blktrace => {
            return Err(ReadError::Usage(ParseError::new("not a text format")));
        }
    })
}

/// The error for an iolog of version 2 with waits of unknown meaning in its head.
pub(super) fn ambiguous_waits(format: Format, hints: &Hints, head: &[u8]) -> Option<ReadError> {
    let is_open = format == Format::Iolog2 && hints.waits.is_none();
    let waits = |line: &[u8]| words::<2>(line).0[1] == b"wait";
    let asks = is_open && head.split(|byte| *byte == b'\n').any(waits);
    asks.then(|| {
        ReadError::Ambiguous(ParseError::new("the meaning of its waits is ambiguous").help(iolog::ASK_WAITS))
    })
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
