//! Messages of Stream V2: CBOR, one frame each
//! (<https://github.com/dectris/documentation/tree/main/stream_v2>).
//!
//! Invariants: unknown fields are skipped without being decoded; no memory is allocated for lengths that a
//! message claims.
mod array;
mod metadata;
mod skip;
mod values;

use std::borrow::Cow;
use std::collections::BTreeMap;

use keepup_stream::detector_map::{COUNTRATE_LOOKUP_TABLE, FLATFIELD, PIXEL_MASK, stream_name};
use keepup_stream::wire::ElementType;
use minicbor::Decoder;
use minicbor::data::Type;
use minicbor::decode::Error;

use self::array::{Elements, array, elements};
use self::metadata::put_metadata;
use self::skip::{DEPTH_MAX, skip};
use self::values::{date_ns, has_more, lenient, number, rational_ns, tags, text};
use super::maps::{Maps, SentMap};
use super::message::{
    ChannelData, End, Format, Image, Message, Refused, Start, Time, check_count, element_of,
    images_announced, malformed, need, unsupported,
};
use super::quote::quoted;
use crate::{MAPS_MAX, STREAMS_MAX as CHANNELS_MAX};

/// Fields of all message types. Which ones are required depends on the type.
#[derive(Default)]
struct Fields<'a> {
    series_id: Option<u64>,
    unique_id: Option<Cow<'a, str>>,
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
pub(super) fn parse(bytes: &[u8], map_bytes_max: u64) -> Result<Message<'_>, Refused> {
    let mut decoder = Decoder::new(bytes);
    let mut kind: Option<Cow<'_, str>> = None;
    let mut fields = Fields::default();
    // Detectors mark a message as CBOR (tag 55799, RFC 8949 section 3.4.6); others may not.
    tags(&mut decoder).map_err(|error| cbor("message", &error))?;
    each_field(&mut decoder, |key, decoder| match (&*key, &kind) {
        ("type", None) => {
            kind = Some(text(decoder).map_err(|error| cbor("type", &error))?);
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
    match kind.as_deref() {
        Some("start") => fields.start(bytes, map_bytes_max).map(Message::Start),
        Some("image") => fields.image().map(Message::Image),
        Some("end") => fields.end().map(Message::End),
        Some(other) => Err(unsupported(format!("its type is {}", quoted(other)))),
        None => Err(malformed("it is empty")),
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self, key: &str, decoder: &mut Decoder<'a>) -> Result<(), Refused> {
        let failed = |error| cbor(key, &error);
        let number = |decoder: &mut Decoder<'a>| number(decoder).map_err(failed);
        match key {
            "series_id" => self.series_id = Some(number(decoder)?),
            "series_unique_id" => self.unique_id = Some(text(decoder).map_err(failed)?),
            "channels" => self.channels = Some(names(decoder)?),
            "image_dtype" => {
                let name = text(decoder).map_err(failed)?;
                let unknown = || unsupported(format!("unsupported image_dtype {}", quoted(&name)));
                self.element = Some(element_of(&name).ok_or_else(unknown)?);
            }
            "image_size_x" => self.width = Some(number(decoder)?),
            "image_size_y" => self.height = Some(number(decoder)?),
            "number_of_images" => self.images = lenient(decoder, values::number).map_err(failed)?,
            "image_id" => self.image_id = Some(check_count(number(decoder)?, key)?),
            // An image is recorded whatever its times are.
            "series_date" => self.series_ns = lenient(decoder, date_ns).map_err(failed)?.flatten(),
            "start_time" => self.start_ns = lenient(decoder, rational_ns).map_err(failed)?,
            "data" => self.data = Some(channels(decoder)?),
            FLATFIELD => self.channel_maps(FLATFIELD, decoder)?,
            PIXEL_MASK => self.channel_maps(PIXEL_MASK, decoder)?,
            COUNTRATE_LOOKUP_TABLE => self.lookup_table(decoder)?,
            _ => skip(decoder, DEPTH_MAX).map_err(failed)?,
        }
        Ok(())
    }

    /// Adds the maps of all channels. One that is malformed is left out.
    fn channel_maps(&mut self, map: &'static str, decoder: &mut Decoder<'a>) -> Result<(), Refused> {
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
                Err(why) => self.leave_out(stream_name(&channel, map), why),
            }
            Ok(())
        });
        if let Err(why) = read {
            self.leave_out(map.to_owned(), why);
        }
        Ok(())
    }

    fn leave_out(&mut self, map: String, refused: Refused) {
        if self.left_out.len() < MAPS_MAX {
            self.left_out.push((map, refused.why));
        }
    }

    /// Adds the table of the count rate correction, unless it is malformed.
    fn lookup_table(&mut self, decoder: &mut Decoder<'a>) -> Result<(), Refused> {
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
    fn start(self, message: &[u8], map_bytes_max: u64) -> Result<Start, Refused> {
        let channels = need(self.channels, "channels")?;
        let (mut maps, base) = (Maps::default(), message.as_ptr().addr());
        self.maps.iter().for_each(|map| maps.add(map, base, &channels, map_bytes_max));
        self.left_out.iter().for_each(|(name, why)| maps.leave_out(name, why));
        // If it does not state all of the format, images do.
        let size = self.width.zip(self.height).zip(self.element);
        let format = size.map(|((width, height), element)| Format { element, width, height });
        Ok(Start {
            series_id: need(self.series_id, "series_id")?,
            unique_id: self.unique_id.unwrap_or_default().into_owned(),
            channels,
            format,
            images: images_announced(self.images.unwrap_or(0)),
            metadata: self.metadata,
            maps,
        })
    }

    fn image(self) -> Result<Image<'a>, Refused> {
        let time = match (self.series_ns, self.start_ns) {
            (None, None) => Time::Unknown,
            (date, start) => {
                let ns = date.unwrap_or(0).checked_add(start.unwrap_or(0));
                ns.map_or(Time::Unknown, Time::Absolute)
            }
        };
        Ok(Image {
            series_id: need(self.series_id, "series_id")?,
            unique_id: self.unique_id.unwrap_or_default(),
            image_id: need(self.image_id, "image_id")?,
            time,
            channels: need(self.data, "data")?,
        })
    }

    fn end(self) -> Result<End<'a>, Refused> {
        let unique_id = self.unique_id.unwrap_or_default();
        Ok(End { series_id: need(self.series_id, "series_id")?, unique_id })
    }
}

fn cbor(field: &str, error: &Error) -> Refused {
    malformed(format!("{field}: {error}"))
}

/// Calls `take` with each key of a map that is a text; `take` must consume the value.
fn each_field<'a>(
    decoder: &mut Decoder<'a>,
    mut take: impl FnMut(Cow<'a, str>, &mut Decoder<'a>) -> Result<(), Refused>,
) -> Result<(), Refused> {
    let mut left = decoder.map().map_err(|error| cbor("map", &error))?;
    while has_more(decoder, &mut left).map_err(|error| cbor("key", &error))? {
        let is_text = matches!(decoder.datatype(), Ok(Type::String | Type::StringIndef | Type::Tag));
        if is_text {
            let key = text(decoder).map_err(|error| cbor("key", &error))?;
            take(key, decoder)?;
        } else {
            for part in ["key", "value"] {
                skip(decoder, DEPTH_MAX).map_err(|error| cbor(part, &error))?;
            }
        }
    }
    Ok(())
}

/// Names of channels.
fn names(decoder: &mut Decoder<'_>) -> Result<Vec<String>, Refused> {
    let failed = |error| cbor("channels", &error);
    let mut left = decoder.array().map_err(failed)?;
    let mut names: Vec<String> = Vec::new();
    while has_more(decoder, &mut left).map_err(failed)? {
        let name = text(decoder).map_err(failed)?.into_owned();
        if names.contains(&name) {
            return Err(malformed(format!("it has the channel {} twice", quoted(&name))));
        }
        if names.len() == CHANNELS_MAX {
            return Err(unsupported(format!("it has more than {CHANNELS_MAX} channels")));
        }
        names.push(name);
    }
    if names.is_empty() { Err(malformed("it has no channels")) } else { Ok(names) }
}

/// Images of all channels.
fn channels<'a>(decoder: &mut Decoder<'a>) -> Result<Vec<ChannelData<'a>>, Refused> {
    let mut channels: Vec<ChannelData<'a>> = Vec::new();
    each_field(decoder, |name, decoder| {
        if channels.len() == CHANNELS_MAX || channels.iter().any(|channel| channel.name == name) {
            return Err(malformed(format!(
                "data: duplicate channel {}, or over {CHANNELS_MAX} channels",
                quoted(&name)
            )));
        }
        channels.push(channel(name, decoder)?);
        Ok(())
    })?;
    Ok(channels)
}

/// A multi-dimensional typed array, compressed or not.
fn channel<'a>(name: Cow<'a, str>, decoder: &mut Decoder<'a>) -> Result<ChannelData<'a>, Refused> {
    let (dimensions, Elements { element, compression, bytes }) = array(decoder, "data")?;
    let &[height, width] = dimensions.as_slice() else {
        return Err(unsupported("data: the array is not two-dimensional"));
    };
    let format = Format { element, width, height };
    Ok(ChannelData { name, format, compression, bytes, lz4_header: None })
}
