//! Load files of blkreplay, whose package has traces of real servers: a text that the reader skips, a line
//! with the names of the columns, then `start ; sector; length ; op ; replay_delay ; replay_duration`.
//!
//! Start is in seconds, sector and length count sectors of 512 bytes, op is R, W, or RA for read-ahead; a
//! file is of one device. Lost: the delays and durations of a replay.
use super::in_bytes;
use super::pending::request;
use crate::batch::Batch;
use crate::error::ParseError;
use crate::header::Unit;
use crate::record::{Flags, Operation};
use crate::text::{LineFormat, bad, number, separated, time_ns};

const SECONDS: usize = 9;
const COLUMNS: [&str; 4] = ["start", "sector", "length", "op"];
/// Name of the device, which the file does not contain.
const DEVICE: &[u8] = b"disk";

/// Parser of the lines.
pub(super) struct Blkreplay {
    pub(super) unit: Unit,
    /// Whether the line with the names was read.
    pub(super) is_after_names: bool,
}

impl LineFormat for Blkreplay {
    #[inline]
    fn line(&mut self, line: &[u8], position: u64, batch: &mut Batch) -> Result<(), ParseError> {
        if !self.is_after_names {
            self.is_after_names = is_names(line);
            return Ok(());
        }
        let (fields, count) = separated::<4>(line, b';');
        let [start, sector, length, code] = fields.map(|field| field.trim_ascii());
        if count < COLUMNS.len() {
            // Blank lines, and remarks that tools append.
            if line.trim_ascii().is_empty() || line.starts_with(b"#") {
                return Ok(());
            }
            let what = format!("it has {count} columns instead of at least 4: {}", COLUMNS.join("; "));
            return Err(ParseError::new(what));
        }
        let (operation, flags) = match code {
            b"R" => (Operation::Read, Flags::NONE),
            b"RA" => (Operation::Read, Flags::AHEAD),
            b"W" => (Operation::Write, Flags::NONE),
            _ => return Err(bad(code, "op", "R, RA or W")),
        };
        let time_ns = time_ns(start, SECONDS, "start")?;
        batch.corrections.negative_times += u64::from(time_ns < 0);
        let mut raw = request(time_ns, position, batch.device(DEVICE)?, operation);
        raw.flags = flags;
        raw.offset = in_bytes(number(sector, "sector")?, self.unit);
        raw.bytes = in_bytes(number(length, "length")?, self.unit);
        batch.records.push(raw);
        Ok(())
    }

    fn finish(&mut self, _batch: &mut Batch) -> Result<(), ParseError> {
        if self.is_after_names {
            return Ok(());
        }
        Err(ParseError::new(
            "there is no line with the names of blkreplay's columns: start ; sector; length ; op",
        ))
    }
}

/// Whether a line has the names of the columns.
pub(super) fn is_names(line: &[u8]) -> bool {
    let (fields, count) = separated::<4>(line, b';');
    count >= COLUMNS.len()
        && fields.iter().zip(COLUMNS).all(|(field, name)| field.trim_ascii() == name.as_bytes())
}

#[cfg(test)]
#[path = "blkreplay_tests.rs"]
mod tests;
