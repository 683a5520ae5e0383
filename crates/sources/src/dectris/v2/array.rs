//! Typed arrays (RFC 8746), compressed or not.
use keepup_stream::wire::{Compression, ElementType};
use minicbor::Decoder;
use minicbor::data::Type;
use minicbor::decode::Error;

use super::{cbor, number, text};
use crate::dectris::message::malformed;
use crate::dectris::quote::quoted;
use crate::error::DetectorError;

/// Multi-dimensional array, rows first.
const TAG_ARRAY: u64 = 40;
/// Compressed byte string.
const TAG_COMPRESSED: u64 = 56_500;
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

fn expect(is: bool, field: &str, what: &str) -> Result<(), DetectorError> {
    if is { Ok(()) } else { Err(malformed(format!("{field}: {what}"))) }
}

/// A multi-dimensional array of the field `field`.
pub(super) fn array<'a>(
    decoder: &mut Decoder<'a>,
    field: &str,
) -> Result<(Dimensions, Elements<'a>), DetectorError> {
    let failed = |error: Error| cbor(field, &error);
    let tag = decoder.tag().map_err(failed)?.as_u64();
    expect(tag == TAG_ARRAY, field, "not a row-major array (CBOR tag 40)")?;
    let parts = decoder.array().map_err(failed)?;
    expect(parts == Some(2), field, "the array lacks dimensions or elements")?;
    let count = decoder.array().map_err(failed)?.and_then(|count| usize::try_from(count).ok());
    let count = count.filter(|count| (1..=DIMENSIONS_MAX).contains(count));
    let count = count.ok_or_else(|| malformed(format!("{field}: not 1 to {DIMENSIONS_MAX} dimensions")))?;
    let mut sizes = [0; DIMENSIONS_MAX];
    for size in &mut sizes[..count] {
        *size = number(decoder, field)?;
    }
    Ok((Dimensions { sizes, count }, elements(decoder, field)?))
}

/// A typed array of the field `field`.
pub(super) fn elements<'a>(decoder: &mut Decoder<'a>, field: &str) -> Result<Elements<'a>, DetectorError> {
    let failed = |error: Error| cbor(field, &error);
    let tag = decoder.tag().map_err(failed)?.as_u64();
    let unknown = || malformed(format!("{field}: elements with tag {tag} are not known"));
    let element = element_of(tag).ok_or_else(unknown)?;
    if decoder.datatype().map_err(failed)? != Type::Tag {
        return Ok(Elements { element, compression: None, bytes: decoder.bytes().map_err(failed)? });
    }
    let is_compressed = decoder.tag().map_err(failed)?.as_u64() == TAG_COMPRESSED;
    expect(is_compressed, field, "the elements are not a byte string")?;
    let parts = decoder.array().map_err(failed)?;
    expect(parts == Some(3), field, "compressed data (tag 56500) needs 3 elements")?;
    let algorithm = text(decoder, field)?;
    let size = number(decoder, field)?;
    let bytes = decoder.bytes().map_err(failed)?;
    let Some(compression) = Compression::parse(algorithm) else {
        return Err(malformed(format!("{field}: the compression {} is not known", quoted(algorithm))));
    };
    let fits = compression != Compression::BitshuffleLz4 || size == element.bytes();
    expect(fits, field, "bitshuffle element size differs from that of the elements")?;
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
