//! MCAP channel record that describes a block's stream, repeated in every block.

use keepup_stream::wire::{Compression, StreamInfo};

use super::bytes::{u16_at, u32_at, u64_at};
use super::{CHANNEL_BYTES_MAX, LayoutError, RECORD_HEADER};

const PART: &str = "channel record";
const OP_CHANNEL: u8 = 0x04;
/// Message encoding of a stream without a declared shape.
const OPAQUE: &str = "application/octet-stream";
const TYPED: &str = "x-keepup-";

/// A stream's channel record, encoded once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelBytes {
    record: Box<[u8]>,
}

impl ChannelBytes {
    /// Encodes the description of `stream`.
    ///
    /// # Errors
    /// The id does not fit MCAP's 16 bits, or the record does not fit a block's first sector.
    pub fn new(stream: &StreamInfo) -> Result<ChannelBytes, LayoutError> {
        let id = u16::try_from(stream.id).map_err(|_| LayoutError::StreamId { stream: stream.id })?;
        let element = stream.element.as_str();
        let shape: Vec<String> = stream.shape.iter().map(u64::to_string).collect();
        let encoding = match stream.compression {
            _ if shape.is_empty() => OPAQUE.to_owned(),
            None => format!("{TYPED}{element}"),
            Some(compression) => format!("{TYPED}{}-{element}", compression.as_str()),
        };
        let mut metadata = Vec::new();
        for text in ["element", element, "shape", &shape.join(",")] {
            put_text(&mut metadata, text);
        }
        if let Some(compression) = stream.compression {
            put_text(&mut metadata, "compression");
            put_text(&mut metadata, compression.as_str());
        }
        let mut body = Vec::new();
        body.extend_from_slice(&id.to_le_bytes());
        // Schema 0: none; the encoding's name is the complete description.
        body.extend_from_slice(&0u16.to_le_bytes());
        put_text(&mut body, &stream.name);
        put_text(&mut body, &encoding);
        body.extend_from_slice(&(metadata.len() as u32).to_le_bytes());
        body.extend_from_slice(&metadata);
        let mut record = vec![OP_CHANNEL];
        record.extend_from_slice(&(body.len() as u64).to_le_bytes());
        record.extend_from_slice(&body);
        if record.len() > CHANNEL_BYTES_MAX {
            return Err(LayoutError::ChannelTooLong { stream: stream.id, bytes: record.len() });
        }
        Ok(ChannelBytes { record: record.into_boxed_slice() })
    }

    /// The whole record, including opcode and length.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        &self.record
    }
}

/// Parses a channel record into the stream's description.
///
/// # Errors
/// The bytes are not a channel record as written by [`ChannelBytes`].
pub fn parse_channel(record: &[u8]) -> Result<StreamInfo, LayoutError> {
    let fault = |what| LayoutError::Inconsistent { part: PART, what };
    let is_channel = record.first() == Some(&OP_CHANNEL);
    if !is_channel || u64_at(record, 1) != record.len().saturating_sub(RECORD_HEADER) as u64 {
        return Err(fault("it is not one MCAP channel record"));
    }
    let mut texts = Texts { bytes: record, at: RECORD_HEADER + 4 };
    let not_text = || fault("a text in it is cut or not UTF-8");
    let name = texts.next().ok_or_else(not_text)?;
    let _encoding = texts.next().ok_or_else(not_text)?;
    texts.at += 4;
    let map: Vec<&str> = std::iter::from_fn(|| texts.next()).collect();
    let (element, shape, compression) = match map[..] {
        ["element", element, "shape", shape] => (element, shape, None),
        ["element", element, "shape", shape, "compression", name] => {
            let known = Compression::parse(name).ok_or_else(|| fault("its compression is unknown"));
            (element, shape, Some(known?))
        }
        _ => return Err(fault("its metadata is not element, shape and compression")),
    };
    let element = element.parse().map_err(|_| fault("its element type is unknown"))?;
    let shape = shape.split(',').filter(|text| !text.is_empty()).map(str::parse);
    let shape = shape.collect::<Result<_, _>>().map_err(|_| fault("its shape is not a list of numbers"))?;
    let id = u32::from(u16_at(record, RECORD_HEADER));
    let stream = StreamInfo { id, name: name.to_owned(), element, shape, compression };
    stream.check_shape().map_err(|_| fault("its shape is not one that events can have"))?;
    Ok(stream)
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// Iterator over consecutive length-prefixed texts.
struct Texts<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Texts<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let start = self.at.checked_add(4)?;
        if start > self.bytes.len() {
            return None;
        }
        let end = start.checked_add(u32_at(self.bytes, self.at) as usize)?;
        let text = std::str::from_utf8(self.bytes.get(start..end)?).ok()?;
        self.at = end;
        Some(text)
    }
}
