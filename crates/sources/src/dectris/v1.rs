//! Messages of Stream V1: several frames, JSON and binary (SIMPLON API reference, "Stream").
//!
//! Invariant: the image size that a frame states is checked against the payload by the caller.
use std::collections::BTreeMap;

use keepup_stream::detector_map::{COUNTRATE_TABLE, FLATFIELD, PIXEL_MASK};
use keepup_stream::rejected::RejectReason;
use keepup_stream::wire::{Compression, METADATA_BYTES_MAX, METADATA_MAX};
use serde::Deserialize;
use serde_json::Value;

use super::maps::{Maps, SentMap};
use super::message::{
    ChannelData, End, Format, Image, LZ4_HEADER_BYTES, Message, Refused, Start, Time, check_count,
    element_of, image_refused, images_announced, malformed, need, unsupported,
};
use super::quote::quoted;
use crate::zmtp;

/// Name of the only channel.
const CHANNEL: &str = "image";
/// Longest JSON frame.
const JSON_BYTES_MAX: usize = 1 << 20;
/// Longest image in a single LZ4 block (LZ4_MAX_INPUT_SIZE).
const LZ4_BLOCK_BYTES_MAX: u64 = 0x7E00_0000;

/// Fields of a message's first frame.
#[derive(Deserialize)]
struct Head {
    htype: String,
    series: Option<u64>,
    frame: Option<u64>,
    header_detail: Option<String>,
}

/// The frame that describes the pixels.
#[derive(Deserialize)]
struct Pixels {
    /// Width, height.
    shape: Vec<u64>,
    #[serde(rename = "type")]
    kind: String,
    encoding: String,
}

/// The frame that describes a map.
#[derive(Deserialize)]
struct MapHead {
    htype: String,
    /// Width, height.
    shape: Vec<u64>,
    #[serde(rename = "type")]
    kind: String,
}

/// The frame with the times, ns since the start of the series.
#[derive(Deserialize)]
struct Times {
    start_time: Option<u64>,
    stop_time: Option<u64>,
}

/// Decodes a message. Maps have at most `map_bytes_max`.
pub(super) fn parse(message: zmtp::Message<'_>, map_bytes_max: u64) -> Result<Message<'_>, Refused> {
    let head: Head = json(frame(message, 0)?)?;
    let series_id = need(head.series, "series")?;
    match head.htype.split('-').next().unwrap_or_default() {
        "dheader" => {
            let detail = head.header_detail.as_deref();
            let has_config = message.ends.len() > 1 && detail != Some("none");
            let mut start = start(message, series_id, has_config);
            if detail == Some("all") {
                put_maps(message, &mut start, map_bytes_max);
            }
            Ok(Message::Start(start))
        }
        "dimage" => {
            let image_id = check_count(need(head.frame, "frame")?, "frame")?;
            image(message, series_id, image_id).map(Message::Image)
        }
        "dseries_end" => Ok(Message::End(End { series_id, unique_id: "".into() })),
        _ => Err(unsupported(format!("unknown htype {}", quoted(&head.htype)))),
    }
}

/// A frame of a message.
fn frame(message: zmtp::Message<'_>, index: usize) -> Result<&[u8], Refused> {
    let start = index.checked_sub(1).map_or(Some(0), |before| message.ends.get(before).copied());
    let range = start.zip(message.ends.get(index).copied());
    let bytes = range.and_then(|(start, end)| message.bytes.get(start..end));
    bytes.ok_or_else(|| malformed(format!("it has only {} frames", message.ends.len())))
}

fn json<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Refused> {
    if bytes.len() > JSON_BYTES_MAX {
        return Err(malformed(format!(
            "a JSON frame has {} bytes, limit {JSON_BYTES_MAX} bytes",
            bytes.len()
        )));
    }
    serde_json::from_slice(bytes).map_err(|error| malformed(error.to_string()))
}

/// Start of a series. With header_detail "basic" or "all", the second frame is the configuration; with "none"
/// it is what the user appended, if anything.
fn start(message: zmtp::Message<'_>, series_id: u64, has_config: bool) -> Start {
    let (mut metadata, mut maps) = (BTreeMap::new(), Maps::default());
    let config = if has_config { frame(message, 1).and_then(json) } else { Ok(Value::Null) };
    let config: Value = config.unwrap_or_else(|refused| {
        maps.remark(format!("the configuration in the header is not recorded: {}", refused.why));
        Value::Null
    });
    put(&mut metadata, "series_id", &series_id.into());
    for (key, value) in config.as_object().into_iter().flatten() {
        put(&mut metadata, key, value);
    }
    let number = |key: &str| config.get(key).and_then(Value::as_u64);
    let images = number("nimages").unwrap_or(0).saturating_mul(number("ntrigger").unwrap_or(1));
    Start {
        series_id,
        unique_id: String::new(),
        channels: vec![CHANNEL.to_owned()],
        // The configuration states the size of the detector, not that of a region of interest.
        format: None,
        images: images_announced(images),
        metadata,
        maps,
    }
}

/// Adds the maps of a header. Behind the configuration, there are two frames for each: JSON that describes
/// it, and its bytes. What the user appended is a single frame at the end.
fn put_maps(message: zmtp::Message<'_>, start: &mut Start, bytes_max: u64) {
    let base = message.bytes.as_ptr().addr();
    for index in (2..message.ends.len().saturating_sub(1)).step_by(2) {
        let (Ok(head), Ok(bytes)) = (frame(message, index), frame(message, index + 1)) else { return };
        match json::<MapHead>(head).map_err(|refused| refused.why).and_then(|head| map(head, bytes)) {
            Ok(map) => start.maps.add(&map, base, &start.channels, bytes_max),
            Err(why) => {
                start.maps.remark(format!("the map in frame {} is not recorded: {why}", index + 1));
            }
        }
    }
}

fn map(head: MapHead, bytes: &[u8]) -> Result<SentMap<'_>, String> {
    let map = match head.htype.split('-').next().unwrap_or_default() {
        // Firmware versions differ in the name.
        "dflatfield" | "flatfield" => FLATFIELD,
        "dpixelmask" => PIXEL_MASK,
        "dcountrate_table" => COUNTRATE_TABLE,
        _ => return Err(format!("unknown htype {}", quoted(&head.htype))),
    };
    let element = element_of(&head.kind).ok_or_else(|| format!("unsupported type {}", quoted(&head.kind)))?;
    if head.shape.is_empty() {
        return Err("it has no dimensions".into());
    }
    let shape = head.shape.into_iter().rev().collect();
    Ok(SentMap { channel: Some(CHANNEL.into()), map, element, shape, compression: None, bytes })
}

/// Adds a short value to the metadata of the recording.
fn put(metadata: &mut BTreeMap<String, String>, key: &str, value: &Value) {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        Value::Array(items) if items.iter().all(Value::is_number) => {
            items.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
        }
        _ => return,
    };
    let is_text = |text: &str| !text.is_empty() && !text.chars().any(char::is_control);
    let fits = key.len() + text.len() <= METADATA_BYTES_MAX && metadata.len() < METADATA_MAX;
    if fits && is_text(key) && is_text(&text) {
        metadata.insert(key.to_owned(), text);
    }
}

fn image(message: zmtp::Message<'_>, series_id: u64, image_id: u64) -> Result<Image<'_>, Refused> {
    let pixels: Pixels = json(frame(message, 1)?)?;
    let bytes = frame(message, 2)?;
    // An image is recorded whatever its times are.
    let times = frame(message, 3).and_then(json::<Times>).ok();
    let &[width, height] = &pixels.shape[..] else {
        return Err(malformed(format!("shape has {} dimensions, not 2", pixels.shape.len())));
    };
    let unknown = || unsupported(format!("unsupported pixel type {}", quoted(&pixels.kind)));
    let format = Format { element: element_of(&pixels.kind).ok_or_else(unknown)?, width, height };
    let compression = encoding(&pixels.encoding, format)?;
    let lz4_header = match compression {
        Some(Compression::Lz4) => Some(lz4_header(format, bytes.len())?),
        _ => None,
    };
    let data = ChannelData { name: CHANNEL.into(), format, compression, bytes, lz4_header };
    let time = match times.map(|times| (times.start_time, times.stop_time)) {
        Some((Some(start_ns), stop_ns)) => Time::Relative { start_ns, stop_ns: stop_ns.unwrap_or(start_ns) },
        _ => Time::Unknown,
    };
    Ok(Image { series_id, unique_id: "".into(), image_id, time, channels: vec![data] })
}

/// Compression of an encoding such as `<`, `lz4<` or `bs16-lz4<`.
fn encoding(name: &str, format: Format) -> Result<Option<Compression>, Refused> {
    match name.strip_suffix('<') {
        Some("") => Ok(None),
        Some("lz4") => Ok(Some(Compression::Lz4)),
        Some(shuffled) if shuffled == format!("bs{}-lz4", format.element.bytes() * 8) => {
            Ok(Some(Compression::BitshuffleLz4))
        }
        _ => Err(unsupported(format!("unsupported encoding {}", quoted(name)))),
    }
}

/// Header of HDF5's LZ4 filter for a single block, which the stream does not have: bytes of the image, bytes
/// of an uncompressed block, bytes of the compressed block, all big endian (HDF5 filter 32004).
fn lz4_header(format: Format, bytes: usize) -> Result<[u8; LZ4_HEADER_BYTES], Refused> {
    let plain =
        format.width.checked_mul(format.height).and_then(|pixels| pixels.checked_mul(format.element.bytes()));
    let plain = plain.filter(|plain| (1..=LZ4_BLOCK_BYTES_MAX).contains(plain));
    let refused = |what: &str| image_refused(RejectReason::Unsupported, what);
    let plain = plain.ok_or_else(|| refused("an image of this size does not fit an LZ4 block"))?;
    // The filter takes a block of the full length as not compressed.
    let block = u32::try_from(bytes).ok().filter(|block| u64::from(*block) != plain);
    let block = block.ok_or_else(|| refused("the LZ4 block is as long as the image"))?;
    let mut header = [0; LZ4_HEADER_BYTES];
    header[..8].copy_from_slice(&plain.to_be_bytes());
    header[8..12].copy_from_slice(&(plain as u32).to_be_bytes());
    header[12..].copy_from_slice(&block.to_be_bytes());
    Ok(header)
}

#[cfg(test)]
#[path = "v1_tests.rs"]
mod tests;
