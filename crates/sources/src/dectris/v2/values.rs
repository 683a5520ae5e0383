//! Values of fields in every form that CBOR has for them: with tags in front, in pieces, in any width.
use std::borrow::Cow;

use minicbor::Decoder;
use minicbor::data::Type;
use minicbor::decode::Error;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::skip::{DEPTH_MAX, skip};

/// Longest text that is sent in pieces.
const PIECES_BYTES_MAX: usize = 64 << 10;
/// Ratio of numerator and denominator.
const TAG_RATIONAL: u64 = 30;
const NS: u128 = 1_000_000_000;

/// Skips the tags in front of a value; returns the last one.
pub(super) fn tags(decoder: &mut Decoder<'_>) -> Result<Option<u64>, Error> {
    let mut last = None;
    while decoder.datatype()? == Type::Tag {
        last = Some(decoder.tag()?.as_u64());
    }
    Ok(last)
}

/// Reads the next item with `read`, and skips all of it even if that fails.
pub(super) fn lenient<'a, T>(
    decoder: &mut Decoder<'a>,
    read: impl FnOnce(&mut Decoder<'a>) -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    let mut value = decoder.clone();
    skip(decoder, DEPTH_MAX)?;
    Ok(read(&mut value).ok())
}

/// A text.
pub(super) fn text<'a>(decoder: &mut Decoder<'a>) -> Result<Cow<'a, str>, Error> {
    tags(decoder)?;
    if decoder.datatype()? != Type::StringIndef {
        return decoder.str().map(Cow::Borrowed);
    }
    let mut whole = String::new();
    for piece in decoder.str_iter()? {
        whole.push_str(piece?);
        if whole.len() > PIECES_BYTES_MAX {
            return Err(Error::message("a text in pieces is too long"));
        }
    }
    Ok(whole.into())
}

/// A byte string, which may be sent in pieces only if there is a single one.
pub(super) fn bytes<'a>(decoder: &mut Decoder<'a>) -> Result<&'a [u8], Error> {
    if decoder.datatype()? != Type::BytesIndef {
        return decoder.bytes();
    }
    let mut found: Option<&[u8]> = None;
    for piece in decoder.bytes_iter()? {
        match (piece?, found) {
            (piece, None) => found = Some(piece),
            ([], Some(_)) => {}
            _ => return Err(Error::message("a byte string in several pieces")),
        }
    }
    Ok(found.unwrap_or_default())
}

/// A whole number from 0 on.
pub(super) fn number(decoder: &mut Decoder<'_>) -> Result<u64, Error> {
    tags(decoder)?;
    match decoder.datatype()? {
        Type::F16 | Type::F32 | Type::F64 => {
            let value = float(decoder)?;
            let is_whole = (0.0..9e15).contains(&value) && value.fract() == 0.0;
            if is_whole { Ok(value as u64) } else { Err(Error::message("not a whole number")) }
        }
        _ => decoder.u64(),
    }
}

/// A number.
pub(super) fn float(decoder: &mut Decoder<'_>) -> Result<f64, Error> {
    match decoder.datatype()? {
        Type::F16 => half(decoder),
        Type::F32 => decoder.f32().map(f64::from),
        Type::F64 => decoder.f64(),
        Type::I8 | Type::I16 | Type::I32 | Type::I64 => decoder.i64().map(|value| value as f64),
        _ => decoder.u64().map(|value| value as f64),
    }
}

/// A floating-point number of 16 bits.
pub(super) fn half(decoder: &mut Decoder<'_>) -> Result<f64, Error> {
    let at = decoder.position();
    let bits = decoder.input().get(at + 1..).and_then(|rest| rest.first_chunk().copied());
    let bits = u16::from_be_bytes(bits.ok_or_else(Error::end_of_input)?);
    decoder.set_position(at + 3);
    let (exponent, mantissa) = (i32::from(bits >> 10 & 0x1F), f64::from(bits & 0x3FF));
    let value = match exponent {
        0 => mantissa * 2_f64.powi(-24),
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (mantissa + 1024.0) * 2_f64.powi(exponent - 25),
    };
    Ok(if bits & 0x8000 == 0 { value } else { -value })
}

/// A date, as text (tag 0) or in seconds since the Unix epoch (tag 1); in ns since then. `None` if it is
/// neither, or before the epoch, or 2^64 ns or more after it.
pub(super) fn date_ns(decoder: &mut Decoder<'_>) -> Result<Option<u64>, Error> {
    tags(decoder)?;
    if matches!(decoder.datatype()?, Type::String | Type::StringIndef) {
        let date = OffsetDateTime::parse(&text(decoder)?, &Rfc3339).ok();
        return Ok(date.and_then(|date| u64::try_from(date.unix_timestamp_nanos()).ok()));
    }
    let ns = float(decoder)? * NS as f64;
    Ok((0.0..u64::MAX as f64).contains(&ns).then_some(ns as u64))
}

/// A time in seconds as numerator and denominator, in ns.
pub(super) fn rational_ns(decoder: &mut Decoder<'_>) -> Result<u64, Error> {
    let tag = tags(decoder)?;
    let parts = decoder.array()?;
    if parts.is_some_and(|parts| parts != 2) || tag.is_some_and(|tag| tag != TAG_RATIONAL) {
        return Err(Error::message("not a pair of numerator and denominator"));
    }
    let (ticks, rate) = (number(decoder)?, number(decoder)?);
    if parts.is_none() {
        end(decoder)?;
    }
    let ns = (u128::from(ticks) * NS).checked_div(u128::from(rate));
    let ns = ns.ok_or_else(|| Error::message("the denominator is 0"))?;
    Ok(u64::try_from(ns).unwrap_or(u64::MAX))
}

/// Takes the break behind the last item of an array or a map without a length.
pub(super) fn end(decoder: &mut Decoder<'_>) -> Result<(), Error> {
    if decoder.datatype()? != Type::Break {
        return Err(Error::message("an array has too many items"));
    }
    decoder.set_position(decoder.position() + 1);
    Ok(())
}

/// Whether another item follows of an array or a map that has `left` more, if that is known. Takes the break
/// behind the last one.
pub(super) fn has_more(decoder: &mut Decoder<'_>, left: &mut Option<u64>) -> Result<bool, Error> {
    match left {
        Some(0) => Ok(false),
        Some(left) => {
            *left -= 1;
            Ok(true)
        }
        None if decoder.datatype()? == Type::Break => end(decoder).map(|()| false),
        None => Ok(true),
    }
}

#[cfg(test)]
#[path = "values_tests.rs"]
mod tests;
