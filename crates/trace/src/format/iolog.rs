//! fio's iolog, versions 2 and 3: one action on a file per line.
//!
//! Version 3 has the time of each action in us from the start of the job (`log_io_u` of fio's `iolog.c`).
//! Version 2 has only `wait`, which fio's HOWTO and fio's code define differently, so the user must choose.
//! Lost: opening and closing, the difference between datasync and sync, and sync_file_range.
use super::{Waits, in_bytes};
use crate::batch::{Batch, NO_TIME, RawRecord, TimeBase};
use crate::error::ParseError;
use crate::header::Unit;
use crate::record::{Flags, Operation};
use crate::text::{LineFormat, bad, number, shown, words};

/// Hint about the meaning of `wait`.
pub(super) const ASK_WAITS: &str = "--waits gap: microseconds since the previous wait, as in fio's HOWTO; \
                                    --waits start: milliseconds from the start, as in fio's code";
const US: i64 = 1000;

/// Version 3.
pub(super) struct Iolog3 {
    base: TimeBase,
    unit: Unit,
}

/// Version 2.
pub(super) struct Iolog2 {
    unit: Unit,
    waits: Option<Waits>,
    now_ns: i64,
}

/// Action of a line.
enum Action {
    Request(Operation),
    File,
    Wait,
}

impl Iolog3 {
    pub(super) fn new(unit: Unit) -> Self {
        Self { base: TimeBase::default(), unit }
    }
}

impl LineFormat for Iolog3 {
    fn line(&mut self, line: &[u8], line_number: u64, batch: &mut Batch) -> Result<(), ParseError> {
        let (fields, count) = words::<5>(line);
        if line_number == 1 || count == 0 {
            return check_header(line, line_number, "fio version 3 iolog");
        }
        let [time, file, action, offset, length] = fields;
        match (parse_action(action, batch, line)?, count) {
            (Action::Request(operation), 5) => {
                let ticks = number(time, "time")?;
                let time_ns = self.base.relative_ns(ticks, US);
                add(batch, (time_ns, line_number), (operation, self.unit), [file, offset, length])
            }
            (Action::Wait, _) => Err(ParseError::new("version 3 of the format has no wait")),
            (Action::File, 3..=5) => {
                number(time, "time")?;
                batch.corrections.other_events += 1;
                Ok(())
            }
            _ => Err(columns(count, "3 or 5")),
        }
    }
}

impl Iolog2 {
    pub(super) fn new(unit: Unit, waits: Option<Waits>) -> Self {
        Self { unit, waits, now_ns: 0 }
    }

    fn wait(&mut self, time: u64) -> Result<(), ParseError> {
        let far = || ParseError::new(format!("a wait of {time} is out of range"));
        let ns = |unit: i64| i64::try_from(time).ok().and_then(|t| t.checked_mul(unit)).ok_or_else(far);
        self.now_ns = match self.waits {
            None => {
                let what = "the meaning of its wait is ambiguous";
                return Err(ParseError::new(what).help(ASK_WAITS));
            }
            Some(Waits::Gap) => self.now_ns.checked_add(ns(US)?).ok_or_else(far)?,
            Some(Waits::Start) => ns(US * 1000)?,
        };
        Ok(())
    }
}

impl LineFormat for Iolog2 {
    fn line(&mut self, line: &[u8], line_number: u64, batch: &mut Batch) -> Result<(), ParseError> {
        let (fields, count) = words::<4>(line);
        if line_number == 1 || count == 0 {
            return check_header(line, line_number, "fio version 2 iolog");
        }
        let [file, action, offset, length] = fields;
        match (parse_action(action, batch, line)?, count) {
            (Action::Request(operation), 4) => {
                add(batch, (self.now_ns, line_number), (operation, self.unit), [file, offset, length])
            }
            (Action::Wait, 3 | 4) => {
                batch.corrections.other_events += 1;
                self.wait(number(offset, "wait")?)
            }
            (Action::File, 2..=4) => {
                batch.corrections.other_events += 1;
                Ok(())
            }
            _ => Err(columns(count, "2 or 4")),
        }
    }
}

fn check_header(line: &[u8], line_number: u64, header: &str) -> Result<(), ParseError> {
    if line_number != 1 || line.trim_ascii_end() == header.as_bytes() {
        return Ok(());
    }
    Err(ParseError::new(format!("it is {} instead of \"{header}\"", shown(line))))
}

#[inline]
fn parse_action(action: &[u8], batch: &mut Batch, line: &[u8]) -> Result<Action, ParseError> {
    Ok(match action {
        b"read" => Action::Request(Operation::Read),
        b"write" => Action::Request(Operation::Write),
        b"trim" => Action::Request(Operation::Discard),
        b"sync" | b"datasync" => Action::Request(Operation::Flush),
        b"add" | b"open" | b"close" => Action::File,
        b"wait" => Action::Wait,
        _ if line.starts_with(b"fio version") => {
            return Err(ParseError::new("another trace starts here: fio appends to an existing log")
                .help("split the file here; times restart"));
        }
        b"syncfilerange" => {
            batch.corrections.other_operations += 1;
            Action::File
        }
        _ => return Err(bad(action, "action", "an action of fio")),
    })
}

#[inline]
fn add(
    batch: &mut Batch,
    (time_ns, position): (i64, u64),
    (operation, unit): (Operation, Unit),
    [file, offset, length]: [&[u8]; 3],
) -> Result<(), ParseError> {
    let device = batch.device(file)?;
    let mut offset = in_bytes(number(offset, "offset")?, unit);
    let mut bytes = number(length, "length")?;
    if operation == Operation::Flush {
        (offset, bytes) = (0, 0);
    }
    let (completion_ns, flags) = (NO_TIME, Flags::NONE);
    batch.records.push(RawRecord {
        time_ns,
        completion_ns,
        dispatch_ns: NO_TIME,
        offset,
        bytes,
        position,
        device,
        operation,
        flags,
    });
    Ok(())
}

#[cold]
fn columns(count: usize, wanted: &str) -> ParseError {
    ParseError::new(format!("it has {count} columns instead of {wanted}"))
        .help("file names must not contain spaces")
}

#[cfg(test)]
#[path = "iolog_tests.rs"]
mod tests;
