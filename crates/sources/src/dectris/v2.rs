//! Messages of Stream V2: CBOR, one frame each
//! (<https://github.com/dectris/documentation/tree/main/stream_v2>).
//!
//! Invariants: unknown fields are skipped without being decoded; no memory is allocated for lengths that a
//! message claims.
mod array;
mod metadata;
mod skip;

use std::collections::BTreeMap;

use keepup_stream::detector_map::{COUNTRATE_LOOKUP_TABLE, FLATFIELD, PIXEL_MASK, stream_name};
use keepup_stream::wire::ElementType;
use minicbor::Decoder;
use minicbor::data::Type;
use minicbor::decode::Error;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use self::array::{Elements, array, elements};
use self::metadata::put_metadata;
use self::skip::{DEPTH_MAX, skip};
use super::maps::{Maps, SentMap};
use super::message::{
    ChannelData, End, Format, Image, Message, Start, Time, check_count, element_of, malformed, need,
};
use super::quote::quoted;
use crate::error::DetectorError;
use crate::{MAPS_MAX, STREAMS_MAX as CHANNELS_MAX};

const NS: u128 = 1_000_000_000;

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
    maps: Vec<SentMap<'a>>,
    /// Maps that cannot be recorded, with the reasons.
    left_out: Vec<(String, String)>,
}

/// Decodes a message. Maps have at most `map_bytes_max`.
pub(super) fn parse(bytes: &[u8], map_bytes_max: u64) -> Result<Message<'_>, DetectorError> {
    let mut decoder = Decoder::new(bytes);
    let mut kind = None;
    let mut fields = Fields::default();
    each_field(&mut decoder, |key, decoder| match (key, kind) {
        ("type", None) => {
            kind = Some(text(decoder, "type")?);
            Ok(())
        }
        (_, None) => Err(malformed("its first field is not its type")),
        (key, Some(kind)) => {
            if kind == "start" {
                put_metadata(&mut fields.metadata, key, &mut decoder.clone());
            }
            fields.field(key, decoder)
        }
    })?;
    match kind {
        Some("start") => fields.start(bytes, map_bytes_max).map(Message::Start),
        Some("image") => fields.image().map(Message::Image),
        Some("end") => fields.end().map(Message::End),
        Some(other) => Err(malformed(format!("its type is {}", quoted(other)))),
        None => Err(malformed("it is empty")),
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
                let unknown = || malformed(format!("unsupported image_dtype {}", quoted(name)));
                self.element = Some(element_of(name).ok_or_else(unknown)?);
            }
            "image_size_x" => self.width = Some(number(decoder, key)?),
            "image_size_y" => self.height = Some(number(decoder, key)?),
            "number_of_images" => self.images = Some(number_of(decoder, key)?),
            "image_id" => self.image_id = Some(number_of(decoder, key)?),
            "series_date" => self.series_ns = date_ns(decoder)?,
            "start_time" => self.start_ns = Some(rational_ns(decoder)?),
            "data" => self.data = Some(channels(decoder)?),
            FLATFIELD => self.channel_maps(FLATFIELD, decoder)?,
            PIXEL_MASK => self.channel_maps(PIXEL_MASK, decoder)?,
            COUNTRATE_LOOKUP_TABLE => self.lookup_table(decoder)?,
            _ => skip(decoder, DEPTH_MAX).map_err(|error| cbor(key, &error))?,
        }
        Ok(())
    }

    /// Adds the maps of all channels. One that is malformed is left out.
    fn channel_maps(&mut self, map: &'static str, decoder: &mut Decoder<'a>) -> Result<(), DetectorError> {
        let mut maps = decoder.clone();
        skip(decoder, DEPTH_MAX).map_err(|error| cbor(map, &error))?;
        if matches!(maps.datatype(), Ok(Type::Null | Type::Undefined)) {
            return Ok(());
        }
        let read = each_field(&mut maps, |channel, maps| {
            if self.maps.len() + self.left_out.len() >= MAPS_MAX {
                return Err(malformed(format!("more than {MAPS_MAX} maps")));
            }
            let found = array(&mut maps.clone(), map);
            skip(maps, DEPTH_MAX).map_err(|error| cbor(map, &error))?;
            match found {
                Ok((dimensions, Elements { element, compression, bytes })) => {
                    let (channel, shape) = (Some(channel), dimensions.as_slice().to_vec());
                    self.maps.push(SentMap { channel, map, element, shape, compression, bytes });
                }
                Err(why) => self.leave_out(stream_name(channel, map), why),
            }
            Ok(())
        });
        if let Err(why) = read {
            self.leave_out(map.to_owned(), why);
        }
        Ok(())
    }

    fn leave_out(&mut self, map: String, why: DetectorError) {
        if self.left_out.len() < MAPS_MAX {
            let why = match why {
                DetectorError::Message(what) => what,
                other => other.to_string(),
            };
            self.left_out.push((map, why));
        }
    }

    /// Adds the table of the count rate correction, unless it is malformed.
    fn lookup_table(&mut self, decoder: &mut Decoder<'a>) -> Result<(), DetectorError> {
        let map = COUNTRATE_LOOKUP_TABLE;
        let mut table = decoder.clone();
        skip(decoder, DEPTH_MAX).map_err(|error| cbor(map, &error))?;
        if matches!(table.datatype(), Ok(Type::Null | Type::Undefined)) {
            return Ok(());
        }
        match elements(&mut table, map) {
            Ok(Elements { element, compression, bytes }) if self.maps.len() < MAPS_MAX => {
                let (channel, shape) = (None, Vec::new());
                self.maps.push(SentMap { channel, map, element, shape, compression, bytes });
            }
            Ok(_) => self.leave_out(map.to_owned(), malformed(format!("more than {MAPS_MAX} maps"))),
            Err(why) => self.leave_out(map.to_owned(), why),
        }
        Ok(())
    }

    /// The start message `message`.
    fn start(self, message: &[u8], map_bytes_max: u64) -> Result<Start, DetectorError> {
        let channels = need(self.channels, "channels")?;
        let (mut maps, base) = (Maps::default(), message.as_ptr().addr());
        self.maps.iter().for_each(|map| maps.add(map, base, &channels, map_bytes_max));
        self.left_out.iter().for_each(|(name, why)| maps.leave_out(name, why));
        Ok(Start {
            series_id: need(self.series_id, "series_id")?,
            unique_id: self.unique_id.unwrap_or_default().to_owned(),
            channels,
            format: Some(Format {
                element: need(self.element, "image_dtype")?,
                width: need(self.width, "image_size_x")?,
                height: need(self.height, "image_size_y")?,
            }),
            images: self.images.unwrap_or(0),
            metadata: self.metadata,
            maps,
        })
    }

    fn image(self) -> Result<Image<'a>, DetectorError> {
        Ok(Image {
            series_id: need(self.series_id, "series_id")?,
            unique_id: self.unique_id.unwrap_or_default(),
            image_id: need(self.image_id, "image_id")?,
            time: Time::Absolute(self.series_ns.unwrap_or(0).saturating_add(self.start_ns.unwrap_or(0))),
            channels: need(self.data, "data")?,
        })
    }

    fn end(self) -> Result<End<'a>, DetectorError> {
        let unique_id = self.unique_id.unwrap_or_default();
        Ok(End { series_id: need(self.series_id, "series_id")?, unique_id })
    }
}

fn cbor(field: &str, error: &Error) -> DetectorError {
    malformed(format!("{field}: {error}"))
}

fn number(decoder: &mut Decoder<'_>, field: &str) -> Result<u64, DetectorError> {
    decoder.u64().map_err(|error| cbor(field, &error))
}

/// A number of images.
fn number_of(decoder: &mut Decoder<'_>, field: &str) -> Result<u64, DetectorError> {
    check_count(number(decoder, field)?, field)
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
    let count = count.ok_or_else(|| malformed(format!("it has no channels, or more than {CHANNELS_MAX}")))?;
    let mut names: Vec<String> = Vec::new();
    for _ in 0..count {
        let name = text(decoder, "channels")?.to_owned();
        if names.contains(&name) {
            return Err(malformed(format!("it has the channel {} twice", quoted(&name))));
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
            return Err(malformed(format!(
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
    let (dimensions, Elements { element, compression, bytes }) = array(decoder, "data")?;
    let &[height, width] = dimensions.as_slice() else {
        return Err(malformed("data: the array is not two-dimensional"));
    };
    let format = Format { element, width, height };
    Ok(ChannelData { name, format, compression, bytes, lz4_header: None })
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
        return Err(malformed("start_time: not a pair of numerator and denominator"));
    }
    let (ticks, rate) = (number(decoder, "start_time")?, number(decoder, "start_time")?);
    let ns = (u128::from(ticks) * NS).checked_div(u128::from(rate));
    let ns = ns.ok_or_else(|| malformed("start_time: the denominator is 0"))?;
    Ok(u64::try_from(ns).unwrap_or(u64::MAX))
}
