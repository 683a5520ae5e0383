//! Short fields of a start message as text, for the metadata of the recording.
//!
//! Invariants: long, binary and deeply nested fields are left out; no memory is allocated for lengths that
//! a message claims.
use std::collections::BTreeMap;

use keepup_stream::wire::{METADATA_BYTES_MAX, METADATA_MAX};
use minicbor::Decoder;
use minicbor::data::Type;
use minicbor::decode::Error;

use super::skip::{DEPTH_MAX as NESTED_MAX, skip};
use super::values::{half, has_more, tags, text};

/// Most levels of maps, such as those of a goniometer's axes.
const DEPTH_MAX: usize = 3;
/// Most entries of a map.
const ENTRIES_MAX: u64 = 64;
/// Most elements of an array, such as a translation.
const ELEMENTS_MAX: usize = 16;

/// Adds the next item under `key`. Items of a map are added under `key/NAME`.
///
/// Ignores errors: decoding the message reports them.
pub(super) fn put_metadata(out: &mut BTreeMap<String, String>, key: &str, decoder: &mut Decoder<'_>) {
    let _ = put(out, key, decoder, DEPTH_MAX);
}

fn put(
    out: &mut BTreeMap<String, String>,
    key: &str,
    decoder: &mut Decoder<'_>,
    depth: usize,
) -> Result<(), Error> {
    if key.len() > METADATA_BYTES_MAX || out.len() == METADATA_MAX {
        return skip(decoder, NESTED_MAX);
    }
    let begin = decoder.position();
    tags(decoder)?;
    if matches!(decoder.datatype()?, Type::Map | Type::MapIndef) && depth > 0 {
        let mut left = decoder.map()?;
        if left.is_none_or(|count| count <= ENTRIES_MAX) {
            while has_more(decoder, &mut left)? {
                let name = text(decoder)?;
                put(out, &format!("{key}/{name}"), decoder, depth - 1)?;
            }
            return Ok(());
        }
    }
    decoder.set_position(begin);
    let text = text_of(decoder).unwrap_or_default();
    // Skips the whole item, even if only part of it was read.
    decoder.set_position(begin);
    skip(decoder, NESTED_MAX)?;
    let is_text = |text: &str| !text.is_empty() && !text.chars().any(char::is_control);
    if let Some(text) = text.filter(|text| is_text(text) && is_text(key))
        && key.len() + text.len() <= METADATA_BYTES_MAX
    {
        out.insert(key.to_owned(), text);
    }
    Ok(())
}

/// A number, a truth value, a text, a date, or a few of them; `None` for anything else.
fn text_of(decoder: &mut Decoder<'_>) -> Result<Option<String>, Error> {
    tags(decoder)?;
    if !matches!(decoder.datatype()?, Type::Array | Type::ArrayIndef) {
        return scalar(decoder);
    }
    let mut left = decoder.array()?;
    let mut texts = Vec::new();
    while has_more(decoder, &mut left)? {
        match scalar(decoder)? {
            Some(text) if texts.len() < ELEMENTS_MAX => texts.push(text),
            _ => return Ok(None),
        }
    }
    Ok(Some(texts.join(", ")))
}

fn scalar(decoder: &mut Decoder<'_>) -> Result<Option<String>, Error> {
    tags(decoder)?;
    Ok(Some(match decoder.datatype()? {
        Type::Bool => decoder.bool()?.to_string(),
        Type::U8 | Type::U16 | Type::U32 | Type::U64 => decoder.u64()?.to_string(),
        Type::I8 | Type::I16 | Type::I32 | Type::I64 => decoder.i64()?.to_string(),
        Type::F16 => half(decoder)?.to_string(),
        Type::F32 => decoder.f32()?.to_string(),
        Type::F64 => decoder.f64()?.to_string(),
        Type::String | Type::StringIndef => text(decoder)?.into_owned(),
        _ => return Ok(None),
    }))
}
