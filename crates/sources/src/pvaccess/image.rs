//! The fields of an NTNDArray
//! (<https://docs.epics-controls.org/en/latest/pv-access/Normative-Types-Specification.html#ntndarray>), kept
//! between messages because a message contains only those that have changed.
//!
//! Invariants: the size of an uncompressed image matches its dimensions; a compressed image has the format in
//! which its HDF5 filter stores a chunk, or it is recorded as opaque bytes.
use std::collections::BTreeMap;

use keepup_stream::pvaccess::{Bits, NUMBERS};
use keepup_stream::rejected::RejectReason;
use keepup_stream::wire::{Compression, ElementType, METADATA_BYTES_MAX, METADATA_MAX};

use super::types::{Kind, Type};
use super::values::{Array, Part, Values};
use crate::error::DetectorError;

/// Most dimensions of a stream.
const DIMENSIONS_MAX: usize = 8;
/// Longest name of a codec.
const CODEC_BYTES_MAX: usize = 64;
/// Block size that `bitshuffle` chooses for elements of any size, in bytes.
const BITSHUFFLE_BLOCK_BYTES: u32 = 8192;
/// Largest input of LZ4.
const LZ4_BYTES_MAX: u64 = 0x7E00_0000;

/// Fields of the last message and those before it.
#[derive(Debug, Default)]
pub(super) struct Fields {
    /// `uniqueId`.
    pub(super) unique_id: i32,
    data_time: Time,
    time: Time,
    shape: Vec<u64>,
    codec: String,
    /// Number of the pvData type of uncompressed pixels.
    original: Option<i64>,
    /// Short attributes by name. Filled while `wants_attributes`.
    pub(super) attributes: BTreeMap<String, String>,
    pub(super) wants_attributes: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Time {
    seconds: i64,
    nanoseconds: i64,
}

/// Meaning of the bytes of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Type of the uncompressed pixels, if it is known.
    pub(super) element: Option<ElementType>,
    /// Pixels along each dimension, the slowest one first.
    pub(super) shape: Vec<u64>,
    /// Name of the codec; empty: uncompressed.
    pub(super) codec: String,
}

/// Whether images of type `found` can be recorded.
pub(super) fn check_type(found: &Type) -> Result<(), String> {
    let has = |name: &str, is_right: fn(&Kind) -> bool| {
        found.field(name).is_some_and(|field| is_right(&field.kind))
    };
    let is_image = found.kind == Kind::Structure
        && has("value", |kind| matches!(kind, Kind::Union | Kind::Any))
        // Servers of records (QSRV) may not have it: their images are numbered one by one.
        && found.field("uniqueId").is_none_or(|field| matches!(field.kind, Kind::Scalar(_)))
        && has("dimension", |kind| matches!(kind, Kind::StructureArray(_)));
    let id: String = found.id.chars().filter(|c| !c.is_control()).collect();
    let id = if id.is_empty() { "without a name".to_owned() } else { id };
    if is_image { Ok(()) } else { Err(format!("its type is {id}, not NTNDArray")) }
}

impl Fields {
    /// Fields before the first message.
    pub(super) fn new() -> Self {
        Self { wants_attributes: true, ..Self::default() }
    }

    /// Takes the fields of a message; returns the pixels, if the message contains any.
    pub(super) fn update<'a>(
        &mut self,
        values: &mut Values<'a, '_>,
        image: &Type,
        bits: Bits<'a>,
    ) -> Result<Option<Array>, DetectorError> {
        let part = if bits.has(0) { Part::Whole } else { Part::Changed { bits, first: 0 } };
        let mut array = None;
        values.fields(image, part, |values, name, field, part| {
            match (name, &field.kind) {
                ("value", Kind::Union | Kind::Any) => array = values.array(field)?,
                ("uniqueId", _) => {
                    if let Some(id) = values.integer(field, part)? {
                        self.unique_id = id as i32;
                    }
                }
                ("codec", Kind::Structure) => self.take_codec(values, field, part)?,
                ("dataTimeStamp", Kind::Structure) => self.data_time.take(values, field, part)?,
                ("timeStamp", Kind::Structure) => self.time.take(values, field, part)?,
                ("dimension", Kind::StructureArray(element)) => self.take_dimensions(values, element)?,
                ("attribute", Kind::StructureArray(element)) if self.wants_attributes => {
                    self.attributes.clear();
                    values.elements(|values| self.take_attribute(values, element))?;
                }
                _ => values.skip(field, part)?,
            }
            Ok(())
        })?;
        Ok(array)
    }

    fn take_codec<'a>(
        &mut self,
        values: &mut Values<'a, '_>,
        codec: &Type,
        part: Part<'a>,
    ) -> Result<(), DetectorError> {
        values.fields(codec, part, |values, name, field, part| {
            match name {
                "name" => {
                    self.codec = values.text(field, part)?.unwrap_or_default();
                }
                "parameters" => self.original = values.any_integer(field)?,
                _ => values.skip(field, part)?,
            }
            Ok(())
        })
    }

    fn take_dimensions(&mut self, values: &mut Values<'_, '_>, element: &Type) -> Result<(), DetectorError> {
        self.shape.clear();
        values.elements(|values| {
            let mut size = None;
            values.fields(element, Part::Whole, |values, name, field, part| {
                match name {
                    "size" => size = values.integer(field, part)?,
                    _ => values.skip(field, part)?,
                }
                Ok(())
            })?;
            // One more shows that there are too many.
            if self.shape.len() <= DIMENSIONS_MAX {
                self.shape.push(size.and_then(|size| u64::try_from(size).ok()).unwrap_or(0));
            }
            Ok(())
        })?;
        // The server lists the fastest dimension first.
        self.shape.reverse();
        Ok(())
    }

    fn take_attribute(&mut self, values: &mut Values<'_, '_>, element: &Type) -> Result<(), DetectorError> {
        let (mut key, mut text) = (None, None);
        values.fields(element, Part::Whole, |values, name, field, part| {
            match name {
                "name" => key = values.text(field, part)?,
                "value" => text = values.any_text(field)?,
                _ => values.skip(field, part)?,
            }
            Ok(())
        })?;
        let is_text = |text: &str| !text.is_empty() && !text.chars().any(char::is_control);
        if let (Some(key), Some(text)) = (key, text)
            && is_text(&key)
            && is_text(&text)
            && key.len() + text.len() <= METADATA_BYTES_MAX
            && self.attributes.len() < METADATA_MAX
        {
            self.attributes.insert(key, text);
        }
        Ok(())
    }

    /// Time of the image, ns since the Unix epoch: `dataTimeStamp`, otherwise `timeStamp`.
    pub(super) fn time_ns(&self) -> Option<u64> {
        self.data_time.ns().or_else(|| self.time.ns())
    }

    /// Meaning of the bytes of an image; `None` if it has no pixels.
    ///
    /// # Errors
    /// The image cannot be recorded: why.
    pub(super) fn layout(&self, array: &Array) -> Result<Option<Layout>, (RejectReason, String)> {
        let bytes = array.bytes.len() as u64;
        if bytes == 0 {
            return Ok(None);
        }
        if self.shape.len() > DIMENSIONS_MAX {
            let what = format!("has more than {DIMENSIONS_MAX} dimensions");
            return Err((RejectReason::Unsupported, what));
        }
        if self.codec.len() > CODEC_BYTES_MAX || self.codec.chars().any(char::is_control) {
            return Err((RejectReason::Malformed, "has a codec whose name is not valid".into()));
        }
        let shape = match &self.shape[..] {
            [] if self.codec.is_empty() => vec![bytes / array.element.bytes()],
            shape => shape.to_vec(),
        };
        if !self.codec.is_empty() {
            let element = self.original.and_then(element_of);
            return Ok(Some(Layout { element, shape, codec: self.codec.clone() }));
        }
        let layout = Layout { element: Some(array.element), shape, codec: String::new() };
        if layout.bytes() != Some(bytes) {
            let Layout { shape, .. } = &layout;
            let what =
                format!("has {bytes} bytes; its dimensions {shape:?} of {} do not match", array.element);
            return Err((RejectReason::Contradictory, what));
        }
        Ok(Some(layout))
    }
}

impl Time {
    fn take<'a>(
        &mut self,
        values: &mut Values<'a, '_>,
        time: &Type,
        part: Part<'a>,
    ) -> Result<(), DetectorError> {
        values.fields(time, part, |values, name, field, part| {
            let number = match name {
                "secondsPastEpoch" => &mut self.seconds,
                "nanoseconds" => &mut self.nanoseconds,
                _ => return values.skip(field, part),
            };
            *number = values.integer(field, part)?.unwrap_or(0);
            Ok(())
        })
    }

    fn ns(self) -> Option<u64> {
        let seconds = u64::try_from(self.seconds).ok().filter(|seconds| *seconds > 0)?;
        let nanoseconds = u64::try_from(self.nanoseconds).ok().filter(|ns| *ns < 1_000_000_000)?;
        seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
    }
}

impl Layout {
    /// Bytes of an uncompressed image; `None` if unknown.
    pub(super) fn bytes(&self) -> Option<u64> {
        let first = self.element?.bytes();
        self.shape.iter().try_fold(first, |product, n| product.checked_mul(*n)).filter(|bytes| *bytes > 0)
    }

    /// HDF5 filter that reads the images; `None`: uncompressed, or no such filter.
    pub(super) fn compression(&self) -> Option<Compression> {
        // The type and shape of the uncompressed image must be known.
        self.bytes().filter(|_| !self.shape.is_empty())?;
        match self.codec.as_str() {
            "bslz4" => Some(Compression::BitshuffleLz4),
            "lz4" | "lz4hdf5" => Some(Compression::Lz4),
            _ => None,
        }
    }

    /// Whether the images are recorded as bytes of any length.
    pub(super) fn is_opaque(&self) -> bool {
        !self.codec.is_empty() && self.compression().is_none()
    }

    /// Header that the HDF5 filter expects in front of a compressed image of `bytes`. areaDetector omits it
    /// (`NDFileHDF5Dataset.cpp` adds the same one). `None`: no filter could read the image.
    pub(super) fn chunk_header(&self, bytes: usize) -> Option<Vec<u8>> {
        if self.compression().is_none() {
            return Some(Vec::new());
        }
        let size = self.bytes()?;
        let mut header = size.to_be_bytes().to_vec();
        match self.codec.as_str() {
            "bslz4" => header.extend_from_slice(&BITSHUFFLE_BLOCK_BYTES.to_be_bytes()),
            // One block. The filter takes a block of the size of the image for an uncompressed one.
            "lz4" if size <= LZ4_BYTES_MAX && bytes as u64 != size => {
                header.extend_from_slice(&(size as u32).to_be_bytes());
                header.extend_from_slice(&u32::try_from(bytes).ok()?.to_be_bytes());
            }
            "lz4" => return None,
            _ => header.clear(),
        }
        Some(header)
    }

    /// Description for errors and metadata: `1024x2048 u16, lz4`.
    pub(super) fn text(&self) -> String {
        let shape: Vec<String> = self.shape.iter().map(u64::to_string).collect();
        let element = self.element.map_or("unknown type", ElementType::as_str);
        let codec = if self.codec.is_empty() { "uncompressed" } else { &self.codec };
        format!("{} {element}, {codec}", shape.join("x"))
    }
}

/// Type of pixels by its number in pvData's `ScalarType`, as in `codec.parameters`.
fn element_of(number: i64) -> Option<ElementType> {
    NUMBERS.get(usize::try_from(number).ok()?).map(|(.., element)| *element)
}

#[cfg(test)]
#[path = "image_tests.rs"]
mod tests;
