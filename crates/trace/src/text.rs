//! Lines and numbers of text formats, parsed as bytes.
//!
//! Invariants: memory is one buffer; a longer line is refused; numbers are never converted to floating point,
//! so nanoseconds stay exact.
use std::io::Read;

use super::batch::{BATCH, Batch, Reader};
use super::error::{FilePosition, ParseError, ReadError};

/// Longest line, bytes.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Buffer size, bytes.
const BUFFER_BYTES: usize = 256 << 10;
/// Bytes of an invalid field shown in an error.
const SHOWN_BYTES: usize = 60;

/// Parser for the lines of a format.
pub(super) trait LineFormat: Send {
    /// Parses a line without its terminator. `number` counts from 1.
    fn line(&mut self, line: &[u8], number: u64, batch: &mut Batch) -> Result<(), ParseError>;

    /// Whether a line is complete, as far as can be seen: the last one may have been cut.
    fn is_whole(&self, _line: &[u8]) -> bool {
        true
    }

    /// Called after the last line.
    fn finish(&mut self, _batch: &mut Batch) -> Result<(), ParseError> {
        Ok(())
    }
}

/// Reader of a text format.
pub(super) struct TextReader<R, F> {
    lines: Lines<R>,
    format: F,
}

impl<R: Read + Send, F: LineFormat> TextReader<R, F> {
    pub(super) fn new(reader: R, format: F) -> Self {
        Self { lines: Lines::new(reader), format }
    }
}

impl<R: Read + Send, F: LineFormat> Reader for TextReader<R, F> {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool, ReadError> {
        for _ in 0..BATCH {
            let number = self.lines.number + 1;
            let Some(line) = self.lines.next()? else {
                if self.lines.is_unfinished {
                    batch.corrections.unfinished_lines = 1;
                }
                self.format.finish(batch).map_err(|c| c.at(FilePosition::Line(self.lines.number)))?;
                return Ok(false);
            };
            let (parsed, is_whole) = (self.format.line(line, number, batch), self.format.is_whole(line));
            let parsed = match parsed {
                Ok(()) if self.lines.is_unfinished && !is_whole => {
                    Err(ParseError::new("the line is incomplete"))
                }
                parsed => parsed,
            };
            if let Err(error) = parsed {
                return Err(self.lines.add_hint(error).at(FilePosition::Line(number)));
            }
        }
        Ok(true)
    }

    fn has_lines(&self) -> bool {
        true
    }
}

/// The lines of a file.
struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Lines returned so far.
    number: u64,
    is_ended: bool,
    /// Whether the last line had no terminator.
    is_unfinished: bool,
}

impl<R: Read> Lines<R> {
    fn new(reader: R) -> Self {
        let buffer = vec![0; BUFFER_BYTES];
        Self { reader, buffer, start: 0, end: 0, number: 0, is_ended: false, is_unfinished: false }
    }

    /// The next line without its terminator; `None` at the end.
    #[inline]
    fn next(&mut self) -> Result<Option<&[u8]>, ReadError> {
        let mut searched = 0;
        loop {
            let rest = &self.buffer[self.start + searched..self.end];
            if let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
                let (start, length) = (self.start, searched + at);
                self.start += length + 1;
                self.number += 1;
                return Ok(Some(without_return(&self.buffer[start..start + length])));
            }
            searched = self.end - self.start;
            if self.is_ended {
                let start = std::mem::replace(&mut self.start, self.end);
                self.is_unfinished |= searched > 0;
                self.number += u64::from(searched > 0);
                return Ok((searched > 0).then(|| without_return(&self.buffer[start..self.end])));
            }
            self.more(searched)?;
        }
    }

    /// Reads more behind the `left` unused bytes.
    fn more(&mut self, left: usize) -> Result<(), ReadError> {
        if left > LINE_BYTES_MAX {
            let what = format!("the line is longer than {LINE_BYTES_MAX} bytes: not a text trace");
            return Err(ParseError::new(what).at(FilePosition::Line(self.number + 1)));
        }
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, left);
        let read = read_some(&mut self.reader, &mut self.buffer[left..]).map_err(|e| ReadError::Io(0, e))?;
        self.end += read;
        self.is_ended = read == 0;
        Ok(())
    }

    /// Adds a hint to an error in an unterminated last line, which is most likely truncated.
    fn add_hint(&self, error: ParseError) -> ParseError {
        if self.is_unfinished && error.help.is_empty() {
            return error.help("the line is truncated: copy the file again, or remove the line");
        }
        error
    }
}

/// Reads some bytes, retrying after an interrupt; 0 at the end.
pub(super) fn read_some(reader: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match reader.read(buffer) {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Splits a line at `separator`s and trims the fields. Also returns their number, which may exceed `N`.
#[inline]
pub(super) fn separated<const N: usize>(line: &[u8], separator: u8) -> ([&[u8]; N], usize) {
    let (mut fields, mut count, mut start) = ([&[][..]; N], 0, 0);
    for (at, byte) in line.iter().enumerate() {
        if *byte == separator {
            if let Some(field) = fields.get_mut(count) {
                *field = line[start..at].trim_ascii();
            }
            count += 1;
            start = at + 1;
        }
    }
    if let Some(field) = fields.get_mut(count) {
        *field = line[start..].trim_ascii();
    }
    (fields, count + 1)
}

/// The words of a line, and how many there are, which may be more than `N`.
#[inline]
pub(super) fn words<const N: usize>(line: &[u8]) -> ([&[u8]; N], usize) {
    let (mut fields, mut count) = ([&[][..]; N], 0);
    for word in line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
        if let Some(field) = fields.get_mut(count) {
            *field = word;
        }
        count += 1;
    }
    (fields, count)
}

/// Parses an unsigned integer.
#[inline]
pub(super) fn whole(field: &[u8]) -> Option<u64> {
    let mut value: u64 = 0;
    for byte in field {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    (!field.is_empty()).then_some(value)
}

/// Parses an unsigned integer. The error names the field.
#[inline]
pub(super) fn number(field: &[u8], name: &str) -> Result<u64, ParseError> {
    whole(field).ok_or_else(|| bad(field, name, "an integer below 2^64"))
}

/// Parses a decimal number with an optional sign, times 10^`places`. Truncates further digits.
#[inline]
pub(super) fn decimal(field: &[u8], places: usize) -> Option<i64> {
    let (is_negative, digits) = match field {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, field),
    };
    let point = digits.iter().position(|byte| *byte == b'.').unwrap_or(digits.len());
    let (before, after) = (&digits[..point], digits.get(point + 1..).unwrap_or_default());
    if before.is_empty() && after.is_empty() || !after.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let mut value = if before.is_empty() { 0 } else { i64::try_from(whole(before)?).ok()? };
    for position in 0..places {
        let digit = after.get(position).map_or(0, |byte| i64::from(byte - b'0'));
        value = value.checked_mul(10)?.checked_add(digit)?;
    }
    Some(if is_negative { -value } else { value })
}

/// Parses a decimal number of seconds or ms as ns. The error names the field.
#[inline]
pub(super) fn time_ns(field: &[u8], places: usize, name: &str) -> Result<i64, ParseError> {
    decimal(field, places).ok_or_else(|| bad(field, name, "a decimal number"))
}

/// An error for an invalid field.
#[cold]
pub(super) fn bad(field: &[u8], name: &str, wanted: &str) -> ParseError {
    ParseError::new(format!("its {name} is {}, not {wanted}", shown(field)))
}

/// Escapes and shortens a field for an error.
#[cold]
pub(super) fn shown(field: &[u8]) -> String {
    let cut = &field[..field.len().min(SHOWN_BYTES)];
    format!("\"{}\"{}", cut.escape_ascii(), if cut.len() < field.len() { "…" } else { "" })
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
