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
        self.is_at_summary |= SUMMARY.iter().any(|begin| line.starts_with(begin));
        if count == 0 || self.is_at_summary {
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
        let Some((operation, flags)) = kind(rwbs) else {
            batch.corrections.other_operations += u64::from(is_queued);
            return Ok(());
        };
        let mut raw = request(time_ns, position, batch.device(device)?, operation);
        raw.flags = flags;
        // A pure flush has no sectors.
        if plus == b"+" {
            raw.offset = in_bytes(number(sector, "sector")?, self.unit)?;
            let length = number(sectors, "number of sectors")?.min(SECTORS_MAX);
            raw.bytes = in_bytes(length, self.unit)?;
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

    fn finish(&mut self, batch: &mut Batch) -> Result<(), ParseError> {
        self.pending.finish(batch);
        Ok(())
    }
}

/// Decodes the letters of `RWBS` (blkparse(1)); `None` if the event is not a storage access.
fn kind(rwbs: &[u8]) -> Option<(Operation, Flags)> {
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
        _ if before => return Some((Operation::Flush, Flags::NONE)),
        _ => return None,
    };
    let mut flags = if before { Flags::PREFLUSH } else { Flags::NONE };
    for letter in &rest[1..] {
        flags = flags.with(match letter {
            b'F' => Flags::FUA,
            b'S' => Flags::SYNC,
            b'M' => Flags::META,
            b'A' => Flags::AHEAD,
            _ => Flags::NONE,
        });
    }
    Some((operation, flags))
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
