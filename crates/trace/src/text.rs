//! Lines and figures of text formats, read as bytes.
//!
//! Invariants: memory is one buffer, whatever the file; a longer line is refused; no figure goes through a
//! float, so nanoseconds stay what they are.
use std::io::Read;

use super::batch::{BATCH, Batch, Reader};
use super::error::{Complaint, Fault, Place};

/// The longest line that is read, bytes.
const LINE_BYTES_MAX: usize = 64 << 10;
/// How much is read at once, bytes.
const BUFFER_BYTES: usize = 256 << 10;
/// How much of a bad field an error shows, bytes.
const SHOWN_BYTES: usize = 60;

/// What understands the lines of one format.
pub(super) trait LineFormat: Send {
    /// Takes the next line, without its end; `number` counts from 1.
    fn line(&mut self, line: &[u8], number: u64, batch: &mut Batch) -> Result<(), Complaint>;

    /// There are no more lines.
    fn finish(&mut self, _batch: &mut Batch) -> Result<(), Complaint> {
        Ok(())
    }
}

/// Reads a text format.
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
    fn fill(&mut self, batch: &mut Batch) -> Result<bool, Fault> {
        for _ in 0..BATCH {
            let number = self.lines.number + 1;
            let Some(line) = self.lines.next()? else {
                if self.lines.is_unfinished {
                    batch.corrections.unfinished_lines = 1;
                }
                self.format.finish(batch).map_err(|c| c.at(Place::Line(self.lines.number)))?;
                return Ok(false);
            };
            if let Err(complaint) = self.format.line(line, number, batch) {
                return Err(self.lines.explain(complaint).at(Place::Line(number)));
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
    /// Lines given so far.
    number: u64,
    is_ended: bool,
    /// Whether the last one had no line feed.
    is_unfinished: bool,
}

impl<R: Read> Lines<R> {
    fn new(reader: R) -> Self {
        let buffer = vec![0; BUFFER_BYTES];
        Self { reader, buffer, start: 0, end: 0, number: 0, is_ended: false, is_unfinished: false }
    }

    /// The next line without its end, nothing after the last.
    #[inline]
    fn next(&mut self) -> Result<Option<&[u8]>, Fault> {
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

    /// Reads on behind what is left.
    fn more(&mut self, left: usize) -> Result<(), Fault> {
        if left > LINE_BYTES_MAX {
            let what = format!("it is longer than {LINE_BYTES_MAX} bytes; this is not a text trace");
            return Err(Complaint::new(what).at(Place::Line(self.number + 1)));
        }
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, left);
        let read = read_some(&mut self.reader, &mut self.buffer[left..]).map_err(|e| Fault::Io(0, e))?;
        self.end += read;
        self.is_ended = read == 0;
        Ok(())
    }

    /// A complaint about a last line without an end is most likely about the cut.
    fn explain(&self, complaint: Complaint) -> Complaint {
        if self.is_unfinished && complaint.help.is_empty() {
            return complaint.help("the file ends within this line: copy it again, or remove the line");
        }
        complaint
    }
}

/// Reads until something came, or the end.
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

/// The fields of a line between `separator`s, blanks around them removed, and how many there are, which may
/// be more than `N`.
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

/// A whole number without sign.
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

/// A whole number, or a complaint that names the field.
#[inline]
pub(super) fn number(field: &[u8], name: &str) -> Result<u64, Complaint> {
    whole(field).ok_or_else(|| bad(field, name, "a whole number below 2^64"))
}

/// A decimal number times 10^`places`, further digits cut off; `+` and `-` may stand before it.
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
    for place in 0..places {
        let digit = after.get(place).map_or(0, |byte| i64::from(byte - b'0'));
        value = value.checked_mul(10)?.checked_add(digit)?;
    }
    Some(if is_negative { -value } else { value })
}

/// A decimal number of seconds or ms as ns, or a complaint that names the field.
#[inline]
pub(super) fn time_ns(field: &[u8], places: usize, name: &str) -> Result<i64, Complaint> {
    decimal(field, places).ok_or_else(|| bad(field, name, "a decimal number"))
}

/// A complaint about a field.
#[cold]
pub(super) fn bad(field: &[u8], name: &str, wanted: &str) -> Complaint {
    Complaint::new(format!("its {name} is {}, which is not {wanted}", shown(field)))
}

/// A field as an error shows it.
#[cold]
pub(super) fn shown(field: &[u8]) -> String {
    let cut = &field[..field.len().min(SHOWN_BYTES)];
    format!("\"{}\"{}", cut.escape_ascii(), if cut.len() < field.len() { "…" } else { "" })
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
