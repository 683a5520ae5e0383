//! Messages of Stream V2.
//!
//! Invariants: unknown fields are skipped without being decoded; no memory is allocated for lengths that a
//! message claims.
use std::collections::BTreeMap;

use keepup_stream::wire::{Compression, ElementType};
use minicbor::Decoder;
use minicbor::data::Type;
use minicbor::decode::Error;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::metadata::put_metadata;
use super::skip::{DEPTH_MAX, skip};
use super::{compression_of, element_of};
use crate::STREAMS_MAX as CHANNELS_MAX;
use crate::error::DetectorError;

/// Multi-dimensional array, rows first (RFC 8746).
const TAG_ARRAY: u64 = 40;
/// Compressed byte string.
const TAG_COMPRESSED: u64 = 56_500;
const NS: u128 = 1_000_000_000;
/// Above any number of images.
const COUNT_END: u64 = 1 << 48;
/// Most characters of a peer's text in an error.
const QUOTED_CHARS_MAX: usize = 100;

/// A message.
#[derive(Debug)]
pub(super) enum Message<'a> {
    Start(Start),
    Image(Image<'a>),
    End(End<'a>),
}

/// Start of a series.
#[derive(Debug, Clone)]
pub(super) struct Start {
    pub(super) series_id: u64,
    pub(super) unique_id: String,
    /// Names of the channels, in the order of the streams.
    pub(super) channels: Vec<String>,
    pub(super) element: ElementType,
    pub(super) width: u64,
    pub(super) height: u64,
    /// Images in the series.
    pub(super) images: u64,
    /// Its short fields by name, as text.
    pub(super) metadata: BTreeMap<String, String>,
}

impl Start {
    pub(super) fn is_same_series(&self, other: &Start) -> bool {
        (self.series_id, &self.unique_id) == (other.series_id, &other.unique_id)
    }

    /// Checks that a start message that is repeated within its series describes the same images.
    pub(super) fn check_repeated(&self, other: &Start) -> Result<(), DetectorError> {
        let images = |start: &Start| (start.channels.clone(), start.element, start.width, start.height);
        match images(self) == images(other) {
            true => Ok(()),
            false => Err(DetectorError::Series("its start message was repeated with other images".into())),
        }
    }
}

/// An image.
#[derive(Debug)]
pub(super) struct Image<'a> {
    pub(super) series_id: u64,
    pub(super) unique_id: &'a str,
    pub(super) image_id: u64,
    /// Start of the series, ns since the Unix epoch.
    series_ns: Option<u64>,
    /// Start of the image relative to the start of the series, ns.
    start_ns: u64,
    pub(super) channels: Vec<ChannelData<'a>>,
}

impl Image<'_> {
    /// Start of the image, ns since the Unix epoch. Relative to the start of the series if the message has no
    /// valid `series_date`.
    pub(super) fn time_ns(&self) -> u64 {
        self.series_ns.unwrap_or(0).saturating_add(self.start_ns)
    }
}

/// An image of one channel.
#[derive(Debug)]
pub(super) struct ChannelData<'a> {
    pub(super) name: &'a str,
    pub(super) height: u64,
    pub(super) width: u64,
    pub(super) element: ElementType,
    pub(super) compression: Option<Compression>,
    pub(super) bytes: &'a [u8],
}

/// End of a series.
#[derive(Debug)]
pub(super) struct End<'a> {
    pub(super) series_id: u64,
    pub(super) unique_id: &'a str,
}

/// Fields of all message types. Which ones are required depends on the type.
#[derive(Default)]
struct Fields<'a> {
    series_id: Option<u64>,
    unique_id: Option<&'a str>,
    channels: Option<Vec<String>>,
    element: Option<ElementType>,
    width: Option<u64>,
    height: Option<u64>,
    images: Option<u64>,
    image_id: Option<u64>,
    series_ns: Option<u64>,
    start_ns: Option<u64>,
    data: Option<Vec<ChannelData<'a>>>,
    metadata: BTreeMap<String, String>,
}

/// Decodes a message.
pub(super) fn parse(bytes: &[u8]) -> Result<Message<'_>, DetectorError> {
    let mut decoder = Decoder::new(bytes);
    let mut kind = None;
    let mut fields = Fields::default();
    each_field(&mut decoder, |key, decoder| match (key, kind) {
        ("type", None) => {
            kind = Some(text(decoder, "type")?);
            Ok(())
        }
        (_, None) => Err(message("its first field is not its type")),
        (key, Some(kind)) => {
            if kind == "start" {
                put_metadata(&mut fields.metadata, key, &mut decoder.clone());
            }
            fields.field(key, decoder)
        }
    })?;
    match kind {
        Some("start") => fields.start().map(Message::Start),
        Some("image") => fields.image().map(Message::Image),
        Some("end") => fields.end().map(Message::End),
        Some(other) => Err(message(format!("its type is {}", quoted(other)))),
        None => Err(message("it is empty")),
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self, key: &str, decoder: &mut Decoder<'a>) -> Result<(), DetectorError> {
        match key {
            "series_id" => self.series_id = Some(number(decoder, key)?),
            "series_unique_id" => self.unique_id = Some(text(decoder, key)?),
            "channels" => self.channels = Some(names(decoder)?),
            "image_dtype" => {
                let name = text(decoder, key)?;
                let unknown = || message(format!("unsupported image_dtype {}", quoted(name)));
                self.element = Some(element_of(name).ok_or_else(unknown)?);
            }
            "image_size_x" => self.width = Some(number(decoder, key)?),
            "image_size_y" => self.height = Some(number(decoder, key)?),
            "number_of_images" => self.images = Some(count(decoder, key)?),
            "image_id" => self.image_id = Some(count(decoder, key)?),
            "series_date" => self.series_ns = date_ns(decoder)?,
            "start_time" => self.start_ns = Some(rational_ns(decoder)?),
            "data" => self.data = Some(channels(decoder)?),
            _ => skip(decoder, DEPTH_MAX).map_err(|error| cbor(key, &error))?,
        }
        Ok(())
    }

    fn start(self) -> Result<Start, DetectorError> {
        Ok(Start {
            series_id: need(self.series_id, "series_id")?,
            unique_id: self.unique_id.unwrap_or_default().to_owned(),
            channels: need(self.channels, "channels")?,
            element: need(self.element, "image_dtype")?,
            width: need(self.width, "image_size_x")?,
            height: need(self.height, "image_size_y")?,
            images: self.images.unwrap_or(0),
            metadata: self.metadata,
        })
    }

    fn image(self) -> Result<Image<'a>, DetectorError> {
        Ok(Image {
            series_id: need(self.series_id, "series_id")?,
            unique_id: self.unique_id.unwrap_or_default(),
            image_id: need(self.image_id, "image_id")?,
            series_ns: self.series_ns,
            start_ns: self.start_ns.unwrap_or(0),
            channels: need(self.data, "data")?,
        })
    }

    fn end(self) -> Result<End<'a>, DetectorError> {
        let unique_id = self.unique_id.unwrap_or_default();
        Ok(End { series_id: need(self.series_id, "series_id")?, unique_id })
    }
}

fn message(what: impl Into<String>) -> DetectorError {
    DetectorError::Message(what.into())
}

fn cbor(field: &str, error: &Error) -> DetectorError {
    message(format!("{field}: {error}"))
}

fn need<T>(field: Option<T>, name: &str) -> Result<T, DetectorError> {
    field.ok_or_else(|| message(format!("missing field {name}")))
}

fn number(decoder: &mut Decoder<'_>, field: &str) -> Result<u64, DetectorError> {
    decoder.u64().map_err(|error| cbor(field, &error))
}

/// A number of images.
fn count(decoder: &mut Decoder<'_>, field: &str) -> Result<u64, DetectorError> {
    let count = number(decoder, field)?;
    if count < COUNT_END { Ok(count) } else { Err(message(format!("{field}: {count} is too large"))) }
}

/// The start of a text of a peer, for an error.
pub(super) fn quoted(text: &str) -> String {
    let start: String = text.chars().take(QUOTED_CHARS_MAX).collect();
    format!("{start:?}")
}

fn text<'a>(decoder: &mut Decoder<'a>, field: &str) -> Result<&'a str, DetectorError> {
    decoder.str().map_err(|error| cbor(field, &error))
}

/// Calls `take` with each key of a map; `take` must consume the value.
fn each_field<'a>(
    decoder: &mut Decoder<'a>,
    mut take: impl FnMut(&'a str, &mut Decoder<'a>) -> Result<(), DetectorError>,
) -> Result<(), DetectorError> {
    let mut left = decoder.map().map_err(|error| cbor("map", &error))?;
    while left != Some(0) {
        let kind = decoder.datatype().map_err(|error| cbor("key", &error))?;
        if left.is_none() && kind == Type::Break {
            // Skips the break byte.
            decoder.set_position(decoder.position() + 1);
            return Ok(());
        }
        let key = text(decoder, "key")?;
        take(key, decoder)?;
        left = left.map(|left| left - 1);
    }
    Ok(())
}

/// Names of channels.
fn names(decoder: &mut Decoder<'_>) -> Result<Vec<String>, DetectorError> {
    let count = decoder.array().map_err(|error| cbor("channels", &error))?;
    let count = count.filter(|count| (1..=CHANNELS_MAX as u64).contains(count));
    let count = count.ok_or_else(|| message(format!("it has no channels, or more than {CHANNELS_MAX}")))?;
    let mut names: Vec<String> = Vec::new();
    for _ in 0..count {
        let name = text(decoder, "channels")?.to_owned();
        if names.contains(&name) {
            return Err(message(format!("it has the channel {} twice", quoted(&name))));
        }
        names.push(name);
    }
    Ok(names)
}

/// Images of all channels.
fn channels<'a>(decoder: &mut Decoder<'a>) -> Result<Vec<ChannelData<'a>>, DetectorError> {
    let mut channels: Vec<ChannelData<'a>> = Vec::new();
    each_field(decoder, |name, decoder| {
        if channels.len() == CHANNELS_MAX || channels.iter().any(|channel| channel.name == name) {
            return Err(message(format!(
                "data: duplicate channel {}, or over {CHANNELS_MAX} channels",
                quoted(name)
            )));
        }
        channels.push(channel(name, decoder)?);
        Ok(())
    })?;
    Ok(channels)
}

/// A multi-dimensional typed array, compressed or not.
fn channel<'a>(name: &'a str, decoder: &mut Decoder<'a>) -> Result<ChannelData<'a>, DetectorError> {
    let failed = |error: Error| cbor("data", &error);
    let expect = |is: bool, what: &str| if is { Ok(()) } else { Err(message(format!("data: {what}"))) };
    expect(decoder.tag().map_err(failed)?.as_u64() == TAG_ARRAY, "not a row-major array (CBOR tag 40)")?;
    expect(decoder.array().map_err(failed)? == Some(2), "the array lacks dimensions or elements")?;
    expect(decoder.array().map_err(failed)? == Some(2), "the array is not two-dimensional")?;
    let (height, width) = (number(decoder, "data")?, number(decoder, "data")?);
    let tag = decoder.tag().map_err(failed)?.as_u64();
    // RFC 8746: unsigned integers, little endian.
    let element = match tag {
        64 | 68 => ElementType::U8,
        69 => ElementType::U16,
        70 => ElementType::U32,
        _ => return Err(message(format!("data: elements with tag {tag} are not known"))),
    };
    if decoder.datatype().map_err(failed)? != Type::Tag {
        let bytes = decoder.bytes().map_err(failed)?;
        return Ok(ChannelData { name, height, width, element, compression: None, bytes });
    }
    expect(decoder.tag().map_err(failed)?.as_u64() == TAG_COMPRESSED, "the elements are not a byte string")?;
    expect(decoder.array().map_err(failed)? == Some(3), "compressed data (tag 56500) needs 3 elements")?;
    let algorithm = text(decoder, "data")?;
    let size = number(decoder, "data")?;
    let bytes = decoder.bytes().map_err(failed)?;
    let Some(compression) = compression_of(algorithm) else {
        return Err(message(format!("data: the compression {} is not known", quoted(algorithm))));
    };
    let is_shuffled = compression == Compression::BitshuffleLz4;
    expect(!is_shuffled || size == element.bytes(), "bitshuffle element size differs from the pixel size")?;
    Ok(ChannelData { name, height, width, element, compression: Some(compression), bytes })
}

/// A date, ns since the Unix epoch; `None` if it is not RFC 3339 or before the epoch.
fn date_ns(decoder: &mut Decoder<'_>) -> Result<Option<u64>, DetectorError> {
    let failed = |error: Error| cbor("series_date", &error);
    if decoder.datatype().map_err(failed)? == Type::Tag {
        decoder.tag().map_err(failed)?;
    }
    let date = OffsetDateTime::parse(text(decoder, "series_date")?, &Rfc3339).ok();
    Ok(date.and_then(|date| u64::try_from(date.unix_timestamp_nanos()).ok()))
}

/// A time in seconds as numerator and denominator, in ns.
fn rational_ns(decoder: &mut Decoder<'_>) -> Result<u64, DetectorError> {
    let parts = decoder.array().map_err(|error| cbor("start_time", &error))?;
    if parts != Some(2) {
        return Err(message("start_time: not a pair of numerator and denominator"));
    }
    let (ticks, rate) = (number(decoder, "start_time")?, number(decoder, "start_time")?);
    let ns = (u128::from(ticks) * NS).checked_div(u128::from(rate));
    let ns = ns.ok_or_else(|| message("start_time: the denominator is 0"))?;
    Ok(u64::try_from(ns).unwrap_or(u64::MAX))
}
