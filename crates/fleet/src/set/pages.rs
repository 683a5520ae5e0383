//! Answers of hosts that are longer than a message: compressed, and sent in pages.
use std::io::{BufWriter, Read as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Bytes of a page; a message may have 1 MiB.
const PAGE_BYTES: usize = 512 << 10;
/// Longest packed answer, bytes.
const PACKED_BYTES_MAX: usize = 64 << 20;
/// Longest answer, bytes of JSON.
const ANSWER_BYTES_MAX: u64 = 512 << 20;

/// A part of a packed answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Page {
    /// Bytes of the packed answer.
    total: usize,
    /// Offset of this part.
    start: usize,
    /// This part.
    text: String,
}

/// Packs an answer: JSON, compressed, in ASCII.
///
/// # Errors
/// It is longer than an answer may be.
pub(super) fn pack(answer: &impl Serialize) -> Result<String, String> {
    pack_within(answer, ANSWER_BYTES_MAX)
}

fn pack_within(answer: &impl Serialize, limit: u64) -> Result<String, String> {
    let failed = |error: &dyn std::fmt::Display| format!("cannot encode the result: {error}");
    let encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    let mut writer = BufWriter::new(Limited { encoder, bytes: 0, limit });
    serde_json::to_writer(&mut writer, answer).map_err(|error| failed(&error))?;
    let Limited { encoder, .. } = writer.into_inner().map_err(|error| failed(error.error()))?;
    let packed = STANDARD_NO_PAD.encode(encoder.finish().map_err(|error| failed(&error))?);
    match packed.len() > PACKED_BYTES_MAX {
        true => Err(failed(&format!("it has {} bytes, limit {PACKED_BYTES_MAX}", packed.len()))),
        false => Ok(packed),
    }
}

/// Reverses [`pack`]; `limit` is that of the JSON, bytes.
///
/// # Errors
/// It is too long, or no answer of this kind.
fn unpack<T: DeserializeOwned>(packed: &str, limit: u64) -> Result<T, String> {
    let failed = |error: &dyn std::fmt::Display| format!("cannot decode its result: {error}");
    let packed = STANDARD_NO_PAD.decode(packed).map_err(|error| failed(&error))?;
    let mut json = Vec::new();
    let mut decoder = DeflateDecoder::new(packed.as_slice()).take(limit + 1);
    decoder.read_to_end(&mut json).map_err(|error| failed(&error))?;
    if json.len() as u64 > limit {
        return Err(failed(&format!("it has more than {limit} bytes")));
    }
    serde_json::from_slice(&json).map_err(|error| failed(&error))
}

/// A writer that refuses too many bytes.
struct Limited {
    encoder: DeflateEncoder<Vec<u8>>,
    bytes: u64,
    limit: u64,
}

impl std::io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        if self.bytes > self.limit {
            return Err(std::io::Error::other(format!("it has more than {} bytes", self.limit)));
        }
        self.encoder.write_all(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.encoder.flush()
    }
}

impl Page {
    /// The page of a packed answer at `start`.
    pub(super) fn of(packed: &str, start: usize) -> Result<Self, String> {
        let end = packed.len().min(start.saturating_add(PAGE_BYTES));
        let text = packed.get(start..end).ok_or("it has no such part of a result")?.to_owned();
        Ok(Self { total: packed.len(), start, text })
    }
}

/// Pages that were received.
#[derive(Debug, Default)]
pub(super) struct Pages {
    packed: String,
    total: Option<usize>,
}

impl Pages {
    /// Takes the next page, as JSON.
    pub(super) fn take(&mut self, page: &str) -> Result<(), String> {
        let Page { total, start, text } =
            serde_json::from_str(page).map_err(|error| format!("cannot decode its result: {error}"))?;
        let is_next = start == self.packed.len() && *self.total.get_or_insert(total) == total;
        let end = start.saturating_add(text.len());
        // An empty page would be asked for again and again.
        if !is_next || end > total || total > PACKED_BYTES_MAX || text.is_empty() {
            return Err("cannot decode its result: a page does not fit the others".to_owned());
        }
        self.packed.push_str(&text);
        Ok(())
    }

    /// Start of the next page; none if all are here.
    pub(super) fn next(&self) -> Option<usize> {
        (self.total != Some(self.packed.len())).then_some(self.packed.len())
    }

    /// The whole answer.
    pub(super) fn unpack<T: DeserializeOwned>(&self) -> Result<T, String> {
        unpack(&self.packed, ANSWER_BYTES_MAX)
    }
}

#[cfg(test)]
#[path = "pages_tests.rs"]
mod tests;
