//! Answers of a host: compressed, in parts that fit into heartbeats.
use std::io::{self, Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::{Deserialize, Serialize};

/// Bytes of a part, of which base64 makes four thirds: less than a heartbeat's limit of 1 MiB.
const PART_BYTES: usize = 512 << 10;
/// Limit on parts: 32 MiB.
const PARTS_MAX: u32 = 64;
/// Limit on the bytes of an answer before compression.
pub(crate) const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// The answer is larger than allowed.
    #[error("the result is too large to be sent: more than {limit} bytes {what}")]
    TooLarge {
        /// Most bytes.
        limit: u64,
        /// Which bytes.
        what: &'static str,
    },
    /// A part is not what it should be.
    #[error("malformed answer: {0}")]
    Malformed(String),
    /// It cannot be compressed, or a file cannot be read or written.
    #[error("{0}")]
    Io(String),
}

/// A part of an answer as it travels.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    /// Number of this part, from 0.
    number: u32,
    /// Number of all parts.
    of: u32,
    /// Compressed bytes, in base64.
    data: String,
}

/// A compressed answer: at a host until the controller has all parts, at the controller until it is complete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    bytes: Vec<u8>,
    /// Parts that the controller has; all at the host.
    parts: u32,
    of: u32,
}

/// Compresses what is written, up to a limit.
pub(crate) struct ReplyWriter {
    encoder: ZlibEncoder<Vec<u8>>,
    written: u64,
}

impl ReplyWriter {
    pub(crate) fn new() -> Self {
        Self { encoder: ZlibEncoder::new(Vec::new(), Compression::default()), written: 0 }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), ReplyError> {
        self.written = self.written.saturating_add(bytes.len() as u64);
        if self.written > ANSWER_BYTES_MAX {
            return Err(ReplyError::TooLarge { limit: ANSWER_BYTES_MAX, what: "before compression" });
        }
        self.encoder.write_all(bytes).map_err(of_io)?;
        self.check(self.encoder.get_ref().len())
    }

    pub(crate) fn finish(self) -> Result<Reply, ReplyError> {
        let bytes = self.encoder.finish().map_err(of_io)?;
        let of = u32::try_from(bytes.len().div_ceil(PART_BYTES).max(1)).unwrap_or(u32::MAX);
        let reply = Reply { bytes, parts: of, of };
        match of <= PARTS_MAX {
            true => Ok(reply),
            false => Err(too_many_parts()),
        }
    }

    fn check(&self, compressed: usize) -> Result<(), ReplyError> {
        match compressed.div_ceil(PART_BYTES) <= PARTS_MAX as usize {
            true => Ok(()),
            false => Err(too_many_parts()),
        }
    }
}

fn too_many_parts() -> ReplyError {
    let limit = u64::from(PARTS_MAX) * PART_BYTES as u64;
    ReplyError::TooLarge { limit, what: "after compression" }
}

pub(crate) fn of_io(error: io::Error) -> ReplyError {
    ReplyError::Io(error.to_string())
}

impl Reply {
    /// A part as JSON, at the host.
    ///
    /// # Errors
    /// There is no such part.
    pub(crate) fn part(&self, number: u32) -> Result<String, ReplyError> {
        let malformed = |why: String| ReplyError::Malformed(why);
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let chunk = self.bytes.chunks(PART_BYTES).nth(index);
        let chunk = chunk.ok_or_else(|| malformed(format!("no part {number} of {}", self.of)))?;
        let part = Part { number, of: self.of, data: STANDARD.encode(chunk) };
        serde_json::to_string(&part).map_err(|error| malformed(error.to_string()))
    }

    /// Adds the next part at the controller; returns the number of the one after it, if there is one.
    ///
    /// # Errors
    /// Not the next part, or malformed.
    pub fn add(&mut self, text: &str) -> Result<Option<u32>, ReplyError> {
        let malformed = |why: String| ReplyError::Malformed(why);
        let part: Part = serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?;
        let is_first = self.parts == 0;
        let is_next = part.number == self.parts && part.number < part.of && part.of <= PARTS_MAX;
        if !is_next || (!is_first && part.of != self.of) {
            return Err(malformed(format!("part {} of {} is not the next one", part.number, part.of)));
        }
        let data = STANDARD.decode(&part.data).map_err(|error| malformed(error.to_string()))?;
        if data.len() > PART_BYTES {
            return Err(malformed(format!("a part of {} bytes", data.len())));
        }
        self.bytes.extend(data);
        (self.parts, self.of) = (part.number + 1, part.of);
        Ok((self.parts < self.of).then_some(self.parts))
    }

    /// Reads the answer, which must be complete.
    pub(crate) fn reader(&self) -> impl io::Read {
        // A few bytes of hostile data can become gigabytes.
        ZlibDecoder::new(&self.bytes[..]).take(ANSWER_BYTES_MAX)
    }

    /// The answer as text.
    ///
    /// # Errors
    /// It cannot be decompressed, or is no text.
    pub fn text(&self) -> Result<String, ReplyError> {
        let mut text = String::new();
        self.reader().read_to_string(&mut text).map_err(|error| ReplyError::Malformed(error.to_string()))?;
        Ok(text)
    }
}

#[cfg(test)]
#[path = "reply_tests.rs"]
mod tests;
