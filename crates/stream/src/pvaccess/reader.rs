//! Numbers, texts and bit sets of a pvAccess message.
//!
//! Invariants: no memory is allocated for lengths that a message claims; the work for one message is bounded.
use std::ops::Range;

use super::Malformed;

/// Most values of a message that are read one by one, such as the texts of an array.
const STEPS_MAX: u32 = 1 << 20;

/// Position in a message.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    is_big_endian: bool,
    steps: u32,
}

/// Outcome of an operation, with a peer that violates the protocol.
#[derive(Debug, Default)]
pub struct Status {
    /// Whether it failed.
    pub is_failure: bool,
    /// The peer's text, at most 200 visible characters.
    pub text: String,
}

impl<'a> Reader<'a> {
    /// Reads `bytes` from the position `at`.
    pub fn new(bytes: &'a [u8], at: usize, is_big_endian: bool) -> Self {
        Self { bytes, at, is_big_endian, steps: 0 }
    }

    /// Whether everything was read.
    pub fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Counts a value towards the bound of the work.
    ///
    /// # Errors
    /// There are too many values.
    pub fn step(&mut self) -> Result<(), Malformed> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return Err(Malformed(format!("it has more than {STEPS_MAX} values")));
        }
        Ok(())
    }

    /// Place of the next `count` elements of `bytes_each`.
    ///
    /// # Errors
    /// The message is truncated or malformed.
    pub fn range(&mut self, count: usize, bytes_each: usize) -> Result<Range<usize>, Malformed> {
        let left = self.bytes.len() - self.at;
        match count.checked_mul(bytes_each).filter(|bytes| *bytes <= left) {
            Some(bytes) => {
                self.at += bytes;
                Ok(self.at - bytes..self.at)
            }
            None => Err(Malformed(format!(
                "{count} elements of {bytes_each} bytes were announced, {left} bytes are left"
            ))),
        }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let found = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>());
        let Some(found) = found else { return Err(Malformed("it is truncated".into())) };
        self.at += N;
        Ok(*found)
    }

    /// Next number of 8 bits.
    ///
    /// # Errors
    /// The message is truncated or malformed.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.take::<1>().map(|[byte]| byte)
    }

    /// Next number of 16 bits.
    ///
    /// # Errors
    /// The message is truncated or malformed.
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        let bytes = self.take()?;
        Ok(if self.is_big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    /// Next number of 32 bits.
    ///
    /// # Errors
    /// The message is truncated or malformed.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        let bytes = self.take()?;
        Ok(if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    /// Next number of 64 bits.
    ///
    /// # Errors
    /// The message is truncated or malformed.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        let bytes = self.take()?;
        Ok(if self.is_big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    /// A size; `None` is the null of texts and unions.
    ///
    /// # Errors
    /// The message is truncated or malformed.
    pub fn size(&mut self) -> Result<Option<usize>, Malformed> {
        match self.u8()? {
            255 => Ok(None),
            254 => match self.u32()? {
                0x7FFF_FFFF => Err(Malformed("it has an array of more than 2 GiB".into())),
                size => Ok(Some(size as usize)),
            },
            size => Ok(Some(size.into())),
        }
    }

    /// Number of elements of an array.
    ///
    /// # Errors
    /// The message is truncated or malformed.
    pub fn count(&mut self) -> Result<usize, Malformed> {
        self.size()?.ok_or_else(|| Malformed("an array has no size".into()))
    }

    /// A text; bytes that are not UTF-8 are replaced.
    ///
    /// # Errors
    /// The message is truncated or malformed.
    pub fn text(&mut self) -> Result<std::borrow::Cow<'a, str>, Malformed> {
        self.step()?;
        let length = self.size()?.unwrap_or(0);
        let range = self.range(length, 1)?;
        Ok(String::from_utf8_lossy(&self.bytes[range]))
    }

    /// Outcome of an operation.
    ///
    /// # Errors
    /// The message is truncated or malformed.
    pub fn status(&mut self) -> Result<Status, Malformed> {
        let code = self.u8()?;
        if code == 255 {
            return Ok(Status::default());
        }
        let text = self.text()?.chars().filter(|c| !c.is_control()).take(200).collect();
        self.text()?;
        // 0 is success, 1 a warning.
        Ok(Status { is_failure: code > 1, text })
    }

    /// A set of bits.
    ///
    /// # Errors
    /// The message is truncated or malformed.
    pub fn bits(&mut self) -> Result<Bits<'a>, Malformed> {
        let count = self.count()?;
        let range = self.range(count, 1)?;
        Ok(Bits { bytes: &self.bytes[range], is_big_endian: self.is_big_endian })
    }
}

/// A set of bits: words of 64 bits, the last one without its leading zero bytes.
#[derive(Clone, Copy, Debug)]
pub struct Bits<'a> {
    bytes: &'a [u8],
    is_big_endian: bool,
}

impl Bits<'_> {
    /// Whether a bit is set.
    pub fn has(&self, bit: usize) -> bool {
        let byte = bit / 8;
        // The bytes after the last whole word are in little-endian order in any case.
        let is_in_word = byte < self.bytes.len() / 8 * 8;
        let byte = if self.is_big_endian && is_in_word { byte / 8 * 8 + 7 - byte % 8 } else { byte };
        self.bytes.get(byte).is_some_and(|found| found >> (bit % 8) & 1 == 1)
    }

    /// Whether one of some bits is set.
    pub fn has_any(&self, mut bits: Range<usize>) -> bool {
        bits.any(|bit| self.has(bit))
    }

    /// Whether no bit is set.
    pub fn is_empty(&self) -> bool {
        self.bytes.iter().all(|byte| *byte == 0)
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
