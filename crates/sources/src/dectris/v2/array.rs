//! Typed arrays (RFC 8746), compressed or not.
use keepup_stream::wire::{Compression, ElementType};
use minicbor::Decoder;
use minicbor::data::Type;

use super::cbor;
use super::values::{bytes, end, has_more, number, text};
use crate::dectris::message::{Refused, malformed, unsupported};
use crate::dectris::quote::quoted;

/// Multi-dimensional array, rows first.
const TAG_ARRAY: u64 = 40;
/// Compressed byte string.
const TAG_COMPRESSED: u64 = 56_500;
/// Tags of typed arrays.
const TAGS_TYPED: std::ops::RangeInclusive<u64> = 64..=87;
/// Most dimensions of an array.
const DIMENSIONS_MAX: usize = 8;

/// Elements of an array.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elements<'a> {
    pub(super) element: ElementType,
    pub(super) compression: Option<Compression>,
    pub(super) bytes: &'a [u8],
}

/// Dimensions of an array, the slowest first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dimensions {
    sizes: [u64; DIMENSIONS_MAX],
    count: usize,
}

impl Dimensions {
    pub(super) fn as_slice(&self) -> &[u64] {
        &self.sizes[..self.count]
    }
}

/// The beginning of an array of exactly `count` items, or of one without a length; returns whether it has
/// none.
fn begin(decoder: &mut Decoder<'_>, count: u64, field: &str, what: &str) -> Result<bool, Refused> {
    let found = decoder.array().map_err(|error| cbor(field, &error))?;
    match found {
        Some(found) if found != count => Err(malformed(format!("{field}: {what}"))),
        found => Ok(found.is_none()),
    }
}

/// A multi-dimensional array of the field `field`.
pub(super) fn array<'a>(
    decoder: &mut Decoder<'a>,
    field: &str,
) -> Result<(Dimensions, Elements<'a>), Refused> {
    let failed = |error| cbor(field, &error);
    match decoder.tag().map_err(failed)?.as_u64() {
        TAG_ARRAY => {}
        1040 => return Err(unsupported(format!("{field}: an array with columns first (CBOR tag 1040)"))),
        _ => return Err(malformed(format!("{field}: not a row-major array (CBOR tag 40)"))),
    }
    let is_open = begin(decoder, 2, field, "the array lacks dimensions or elements")?;
    let mut left = decoder.array().map_err(failed)?;
    let (mut sizes, mut count) = ([0; DIMENSIONS_MAX], 0);
    while has_more(decoder, &mut left).map_err(failed)? {
        let size = sizes.get_mut(count);
        let size = size.ok_or_else(|| malformed(format!("{field}: over {DIMENSIONS_MAX} dimensions")))?;
        *size = number(decoder).map_err(failed)?;
        count += 1;
    }
    if count == 0 {
        return Err(malformed(format!("{field}: not 1 to {DIMENSIONS_MAX} dimensions")));
    }
    let elements = elements(decoder, field)?;
    if is_open {
        end(decoder).map_err(failed)?;
    }
    Ok((Dimensions { sizes, count }, elements))
}

/// A typed array of the field `field`.
pub(super) fn elements<'a>(decoder: &mut Decoder<'a>, field: &str) -> Result<Elements<'a>, Refused> {
    let failed = |error| cbor(field, &error);
    let tag = decoder.tag().map_err(failed)?.as_u64();
    let Some(element) = element_of(tag) else {
        let what = format!("{field}: elements with tag {tag} are not known");
        return Err(if TAGS_TYPED.contains(&tag) { unsupported(what) } else { malformed(what) });
    };
    if decoder.datatype().map_err(failed)? != Type::Tag {
        return Ok(Elements { element, compression: None, bytes: bytes(decoder).map_err(failed)? });
    }
    if decoder.tag().map_err(failed)?.as_u64() != TAG_COMPRESSED {
        return Err(malformed(format!("{field}: the elements are not a byte string")));
    }
    let is_open = begin(decoder, 3, field, "compressed data (tag 56500) needs 3 elements")?;
    let algorithm = text(decoder).map_err(failed)?;
    let size = number(decoder).map_err(failed)?;
    let bytes = bytes(decoder).map_err(failed)?;
    if is_open {
        end(decoder).map_err(failed)?;
    }
    let Some(compression) = Compression::parse(&algorithm) else {
        return Err(unsupported(format!("{field}: the compression {} is not known", quoted(&algorithm))));
    };
    if compression == Compression::BitshuffleLz4 && size != element.bytes() {
        let what = format!("{field}: bitshuffle element size differs from that of the elements");
        return Err(malformed(what));
    }
    Ok(Elements { element, compression: Some(compression), bytes })
}

/// Type of elements by its tag: little endian only.
fn element_of(tag: u64) -> Option<ElementType> {
    Some(match tag {
        // 68 has the same values: it only asks for clamped arithmetic.
        64 | 68 => ElementType::U8,
        69 => ElementType::U16,
        70 => ElementType::U32,
        71 => ElementType::U64,
        72 => ElementType::I8,
        77 => ElementType::I16,
        78 => ElementType::I32,
        79 => ElementType::I64,
        85 => ElementType::F32,
        86 => ElementType::F64,
        _ => return None,
    })
}
