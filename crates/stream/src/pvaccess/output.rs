//! Messages to a peer, in its byte order.
use super::{FLAG_BIG_ENDIAN, HEADER_BYTES, MAGIC, VERSION};

/// Bytes that are appended to a buffer.
pub struct Output<'a> {
    bytes: &'a mut Vec<u8>,
    is_big_endian: bool,
}

impl<'a> Output<'a> {
    /// Appends to `bytes`.
    pub fn new(bytes: &'a mut Vec<u8>, is_big_endian: bool) -> Self {
        Self { bytes, is_big_endian }
    }

    /// Appends a message with these flags, besides that of the byte order. `put` appends its body.
    pub fn message(&mut self, flags: u8, command: u8, put: impl FnOnce(&mut Output<'_>)) {
        let start = self.bytes.len();
        self.head(flags, command, 0);
        put(self);
        let length = (self.bytes.len() - start - HEADER_BYTES) as u32;
        let length = if self.is_big_endian { length.to_be_bytes() } else { length.to_le_bytes() };
        self.bytes[start + 4..start + HEADER_BYTES].copy_from_slice(&length);
    }

    /// Appends the header of a message with a body of `length` bytes.
    pub fn head(&mut self, flags: u8, command: u8, length: u32) -> &mut Self {
        let order = if self.is_big_endian { FLAG_BIG_ENDIAN } else { 0 };
        self.raw(&[MAGIC, VERSION, flags | order, command]).u32(length)
    }

    /// Appends bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Appends a number of 8 bits.
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.raw(&[value])
    }

    /// Appends a number of 16 bits.
    pub fn u16(&mut self, value: u16) -> &mut Self {
        let bytes = if self.is_big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
        self.raw(&bytes)
    }

    /// Appends a number of 32 bits.
    pub fn u32(&mut self, value: u32) -> &mut Self {
        let bytes = if self.is_big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
        self.raw(&bytes)
    }

    /// Appends a number of 64 bits.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        let bytes = if self.is_big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
        self.raw(&bytes)
    }

    /// Appends a size.
    pub fn size(&mut self, size: u32) -> &mut Self {
        match u8::try_from(size) {
            Ok(size) if size < 254 => self.u8(size),
            _ => self.u8(254).u32(size),
        }
    }

    /// Appends a text with its length in front.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.size(text.len() as u32).raw(text.as_bytes())
    }

    /// Appends the start of a structure's type, which `fields` names and types follow.
    pub fn structure(&mut self, id: &str, fields: u32) -> &mut Self {
        self.u8(super::code::STRUCTURE).text(id).size(fields)
    }

    /// Appends the outcome of an operation; `None` is success.
    pub fn status(&mut self, failure: Option<&str>) -> &mut Self {
        match failure {
            None => self.u8(0xFF),
            Some(why) => self.u8(2).text(why).text(""),
        }
    }
}
