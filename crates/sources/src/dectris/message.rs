//! Messages of a series, the same for both versions of the stream.
use std::borrow::Cow;
use std::collections::BTreeMap;

use keepup_stream::rejected::{RejectReason, RejectUnit};
use keepup_stream::wire::{Compression, ElementType};

use super::maps::Maps;

/// Above any number of images.
const COUNT_END: u64 = 1 << 48;

/// Why a message or an image is not recorded.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) reason: RejectReason,
    pub(super) unit: RejectUnit,
    pub(super) why: String,
}

/// A message.
#[derive(Debug)]
pub(super) enum Message<'a> {
    Start(Start),
    Image(Image<'a>),
    End(End<'a>),
}

/// Size and type of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Format {
    pub(super) element: ElementType,
    pub(super) width: u64,
    pub(super) height: u64,
}

/// Start of a series.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) series_id: u64,
    pub(super) unique_id: String,
    /// Names of the channels, in the order of the streams.
    pub(super) channels: Vec<String>,
    /// Format of the images; `None` if only images state it.
    pub(super) format: Option<Format>,
    /// Images in the series; 0 if unknown.
    pub(super) images: u64,
    /// Its short fields by name, as text.
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) maps: Maps,
}

impl Start {
    pub(super) fn is_same_series(&self, other: &Start) -> bool {
        (self.series_id, &self.unique_id) == (other.series_id, &other.unique_id)
    }

    /// Whether a start message that is repeated within its series describes the same images.
    pub(super) fn has_images_of(&self, other: &Start) -> bool {
        self.channels == other.channels && other.format.is_none_or(|it| self.format == Some(it))
    }
}

/// An image.
#[derive(Debug)]
pub(super) struct Image<'a> {
    pub(super) series_id: u64,
    pub(super) unique_id: Cow<'a, str>,
    pub(super) image_id: u64,
    pub(super) time: Time,
    pub(super) channels: Vec<ChannelData<'a>>,
}

/// When an image was taken.
#[derive(Clone, Copy, Debug)]
pub(super) enum Time {
    /// Its start, ns since the Unix epoch. Relative to the start of the series if the message has no valid
    /// date.
    Absolute(u64),
    /// Its start and end relative to the start of the series, ns.
    Relative { start_ns: u64, stop_ns: u64 },
    /// The message does not state it.
    Unknown,
}

/// An image of one channel.
#[derive(Debug)]
pub(super) struct ChannelData<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) format: Format,
    pub(super) compression: Option<Compression>,
    pub(super) bytes: &'a [u8],
    /// Header of HDF5's LZ4 filter that `bytes` lack.
    pub(super) lz4_header: Option<[u8; LZ4_HEADER_BYTES]>,
}

/// Length of the header of HDF5's LZ4 filter in front of a single block.
pub(super) const LZ4_HEADER_BYTES: usize = 16;

/// End of a series.
#[derive(Debug)]
pub(super) struct End<'a> {
    pub(super) series_id: u64,
    pub(super) unique_id: Cow<'a, str>,
}

/// A message that does not conform to the protocol.
pub(super) fn malformed(what: impl Into<String>) -> Refused {
    Refused { reason: RejectReason::Malformed, unit: RejectUnit::Message, why: what.into() }
}

/// A message with content that cannot be recorded.
pub(super) fn unsupported(what: impl Into<String>) -> Refused {
    Refused { reason: RejectReason::Unsupported, unit: RejectUnit::Message, why: what.into() }
}

/// An image that is not recorded.
pub(super) fn image_refused(reason: RejectReason, what: impl Into<String>) -> Refused {
    Refused { reason, unit: RejectUnit::Image, why: what.into() }
}

pub(super) fn need<T>(field: Option<T>, name: &str) -> Result<T, Refused> {
    field.ok_or_else(|| malformed(format!("missing field {name}")))
}

/// Checks the number of an image.
pub(super) fn check_count(count: u64, field: &str) -> Result<u64, Refused> {
    if count < COUNT_END { Ok(count) } else { Err(malformed(format!("{field}: {count} is too large"))) }
}

/// A number of images in a series; 0, for unknown, if it is larger than any.
pub(super) fn images_announced(count: u64) -> u64 {
    if count < COUNT_END { count } else { 0 }
}

/// Type of pixels by its name.
pub(super) fn element_of(name: &str) -> Option<ElementType> {
    Some(match name {
        "uint8" => ElementType::U8,
        "uint16" => ElementType::U16,
        "uint32" => ElementType::U32,
        "uint64" => ElementType::U64,
        "int8" => ElementType::I8,
        "int16" => ElementType::I16,
        "int32" => ElementType::I32,
        "int64" => ElementType::I64,
        "float32" => ElementType::F32,
        "float64" => ElementType::F64,
        _ => return None,
    })
}
