//! Default output of blkparse: device, processor, sequence, time, process, action, RWBS, sector + sectors.
//!
//! Queue events (Q) are requests: all other actions follow from them. Issue events (D) give the times of
//! dispatch to the driver, completion events (C) give completion times. Sectors have 512 bytes, times are
//! seconds with nine digits. The summary after the events is skipped. Custom output (`-f`) is refused. Lost:
//! processes, merges, plugs and remaps.
use super::in_bytes;
use super::pending::{Pending, request};
use crate::batch::Batch;
use crate::error::ParseError;
use crate::header::Unit;
use crate::record::{Flags, Operation};
use crate::text::{LineFormat, bad, number, time_ns, words};

const SECONDS: usize = 9;
/// Relevant words of a line; a message may have more.
const WORDS: usize = 10;
/// First words of the summary's lines.
const SUMMARY: [&[u8]; 3] = [b"CPU", b"Total", b"Throughput"];
/// Largest number of sectors of an event, whose length in bytes has 32 bits.
const SECTORS_MAX: u64 = u32::MAX as u64;

/// Parser of blkparse's lines.
pub(super) struct Blkparse {
    unit: Unit,
    pending: Pending,
    is_at_summary: bool,
}

impl Blkparse {
    pub(super) fn new(unit: Unit) -> Self {
        Self { unit, pending: Pending::default(), is_at_summary: false }
    }
}

impl LineFormat for Blkparse {
    fn line(&mut self, line: &[u8], position: u64, batch: &mut Batch) -> Result<(), ParseError> {
        let (fields, count) = words::<WORDS>(line);
        self.is_at_summary |= SUMMARY.iter().any(|begin| line.starts_with(begin)) || is_process(line);
        if self.is_at_summary && is_event(line) {
            let help = "the file joins several outputs of blkparse: read them one by one";
            return Err(ParseError::new("an event behind the summary").help(help));
        }
        if count == 0 || self.is_at_summary || is_input_name(line) {
            return Ok(());
        }
        let [device, processor, sequence, time, process, action, rwbs, sector, plus, sectors] = fields;
        if count < 6 || number(processor, "processor").is_err() || number(sequence, "sequence").is_err() {
            return Err(ParseError::new("not an event in blkparse's default format")
                .help("run blkparse without -f and -F: blkparse -i DEVICE"));
        }
        let time_ns = time_ns(time, SECONDS, "time")?;
        number(process, "process")?;
        let is_queued = action == b"Q";
        if !matches!(action, b"Q" | b"D" | b"C") {
            batch.corrections.other_events += 1;
            return Ok(());
        }
        let Some((mut operation, mut flags)) = kind(rwbs) else {
            batch.corrections.other_operations += u64::from(is_queued);
            return Ok(());
        };
        // An fsync is a write with a preflush and no data, such as `FWS`.
        if plus != b"+" && flags.has(Flags::PREFLUSH) {
            (operation, flags) = (Operation::Flush, flags.without(Flags::PREFLUSH));
        }
        let mut raw = request(time_ns, position, batch.device(device)?, operation);
        raw.flags = flags;
        if plus == b"+" {
            raw.offset = in_bytes(number(sector, "sector")?, self.unit);
            let length = number(sectors, "number of sectors")?.min(SECTORS_MAX);
            raw.bytes = in_bytes(length, self.unit);
        } else if operation != Operation::Flush {
            // A passthrough command, with its bytes in parentheses.
            batch.corrections.other_operations += u64::from(is_queued);
            return Ok(());
        }
        match action {
            b"Q" => {
                batch.corrections.negative_times += u64::from(time_ns < 0);
                self.pending.issue(raw, batch);
            }
            b"D" => self.pending.dispatch(raw),
            _ => self.pending.complete(raw, batch),
        }
        Ok(())
    }

    /// Without a summary (`-q`), an interrupted output may end within a number.
    fn is_whole(&self, line: &[u8]) -> bool {
        line.ends_with(b"]") || !matches!(words::<WORDS>(line).0[5], b"Q" | b"D" | b"C")
    }

    fn finish(&mut self, batch: &mut Batch) -> Result<(), ParseError> {
        self.pending.finish(batch);
        Ok(())
    }
}

/// Whether a line names an input file: `Input file sda.blktrace.0 added`.
fn is_input_name(line: &[u8]) -> bool {
    line.starts_with(b"Input file ") && line.trim_ascii_end().ends_with(b" added")
}

/// Whether a line begins the statistics of a process (`-s`): `fio (8699)`.
fn is_process(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let id = line.iter().rposition(|byte| *byte == b'(').map(|at| &line[at + 1..]);
    let id = id.and_then(|id| id.strip_suffix(b")"));
    id.is_some_and(|id| number(id, "process").is_ok()) && words::<3>(line).1 <= 3 && !is_event(line)
}

/// Whether a file begins with names of input files and then an event.
pub(super) fn begins(head: &[u8]) -> bool {
    let mut lines = head.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let is_named = lines.clone().next().is_some_and(is_input_name);
    is_named && lines.find(|line| !is_input_name(line)).is_some_and(is_event)
}

/// Decodes the letters of `RWBS` (blkparse(1)), also those of other tools; `None` if the event is not a
/// storage access.
pub(super) fn kind(rwbs: &[u8]) -> Option<(Operation, Flags)> {
    // F before the operation is a preflush, F after it is FUA; a pure flush is `F` or `FN`.
    let (before, rest) = match rwbs {
        [b'F', b'F', ..] => (true, &rwbs[2..]),
        [b'F', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let operation = match rest.first() {
        Some(b'R') => Operation::Read,
        Some(b'W') => Operation::Write,
        Some(b'D') => Operation::Discard,
        _ if before => return Some((Operation::Flush, with_letters(Flags::NONE, rest))),
        _ => return None,
    };
    let flags = if before { Flags::PREFLUSH } else { Flags::NONE };
    Some((operation, with_letters(flags, &rest[1..])))
}

/// Adds the flags of the letters behind an operation.
fn with_letters(flags: Flags, letters: &[u8]) -> Flags {
    letters.iter().fold(flags, |flags, letter| {
        flags.with(match letter {
            b'F' => Flags::FUA,
            b'S' => Flags::SYNC,
            b'M' => Flags::META,
            b'A' => Flags::AHEAD,
            _ => Flags::NONE,
        })
    })
}

/// Whether a line is an event, for format detection.
pub(super) fn is_event(line: &[u8]) -> bool {
    let (fields, count) = words::<WORDS>(line);
    let mut major = fields[0].split(|byte| *byte == b',').map(|part| number(part, "device").is_ok());
    let point = fields[3].iter().rposition(|byte| *byte == b'.');
    count >= 6
        && fields[0].contains(&b',')
        && major.all(|is| is)
        && point.is_some_and(|at| fields[3].len() - at == SECONDS + 1)
        && bad_action(fields[5]).is_none()
}

fn bad_action(action: &[u8]) -> Option<ParseError> {
    let is_action = action.len() <= 2 && action.iter().all(u8::is_ascii_alphabetic);
    (!is_action).then(|| bad(action, "action", "one or two letters"))
}

#[cfg(test)]
#[path = "blkparse_tests.rs"]
mod tests;
