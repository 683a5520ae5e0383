//! Stream V2: a CBOR message of one frame for each image.
use std::convert::Infallible;

use minicbor::Encoder;
use minicbor::data::Tag;
use minicbor::encode::Error;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::super::super::event::Event;
use super::{Messages, Series};
use crate::wire::{Compression, ElementType};
use crate::zmtp::{HEADER_BYTES_MAX, frame_header};

/// The only series of a source.
const SERIES: u64 = 1;
/// Name of its channel.
const CHANNEL: &str = "threshold_1";
/// In front of each message: it is CBOR (RFC 8949, section 3.4.6).
const TAG_SELF_DESCRIBED: u64 = 55_799;
/// Multi-dimensional array, rows first (RFC 8746).
const TAG_ARRAY: u64 = 40;
/// Compressed byte string: algorithm, bytes of an element, data.
const TAG_COMPRESSED: u64 = 56_500;
const NS_PER_S: u64 = 1_000_000_000;

/// Messages of Stream V2.
pub(super) struct V2;

type Out<'a> = Encoder<&'a mut Vec<u8>>;
type Written = Result<(), Error<Infallible>>;

impl Messages for V2 {
    fn start(&self, series: &Series) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        // Memory takes everything.
        let _ = put_start(&mut Encoder::new(&mut out), series);
        vec![out]
    }

    fn put_header(&self, series: &Series, event: &Event, timestamp_ns: u64, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; HEADER_BYTES_MAX]);
        let _ = put_image(&mut Encoder::new(&mut *out), series, event, timestamp_ns);
        let bytes = (out.len() - start - HEADER_BYTES_MAX) as u64 + event.bytes;
        out[start..start + HEADER_BYTES_MAX].copy_from_slice(&frame_header(bytes, true));
    }

    fn put_trailer(&self, _event: &Event, _out: &mut Vec<u8>) {}

    fn end(&self, series: &Series) -> Vec<u8> {
        let mut out = Vec::new();
        let _ = put_head(&mut Encoder::new(&mut out), 3, "end", series);
        out
    }
}

/// The fields that all messages start with; `fields` is the number of all fields.
fn put_head(out: &mut Out<'_>, fields: u64, kind: &str, series: &Series) -> Written {
    out.tag(Tag::new(TAG_SELF_DESCRIBED))?
        .map(fields)?
        .str("type")?
        .str(kind)?
        .str("series_id")?
        .u64(SERIES)?;
    out.str("series_unique_id")?.str(&series.unique_id)?;
    Ok(())
}

fn put_start(out: &mut Out<'_>, series: &Series) -> Written {
    put_head(out, 9, "start", series)?;
    out.str("channels")?.array(1)?.str(CHANNEL)?;
    out.str("image_dtype")?.str(&format!("uint{}", series.element.bytes() * 8))?;
    out.str("image_size_x")?.u64(series.width)?.str("image_size_y")?.u64(series.height)?;
    out.str("number_of_images")?.u64(series.images)?;
    out.str("detector_description")?.str("keepup source")?;
    Ok(())
}

/// Everything in front of the pixels.
fn put_image(out: &mut Out<'_>, series: &Series, event: &Event, timestamp_ns: u64) -> Written {
    put_head(out, 8, "image", series)?;
    out.str("image_id")?.u64(event.sequence)?;
    out.str("series_date")?.tag(Tag::new(0))?.str(&date(timestamp_ns.saturating_sub(event.due_ns)))?;
    for key in ["start_time", "stop_time"] {
        out.str(key)?.array(2)?.u64(event.due_ns)?.u64(NS_PER_S)?;
    }
    out.str("data")?.map(1)?.str(CHANNEL)?.tag(Tag::new(TAG_ARRAY))?.array(2)?;
    out.array(2)?.u64(series.height)?.u64(series.width)?;
    out.tag(Tag::new(array_tag(series.element)))?;
    if series.is_compressed {
        let algorithm = Compression::BitshuffleLz4.as_str();
        out.tag(Tag::new(TAG_COMPRESSED))?.array(3)?.str(algorithm)?.u64(series.element.bytes())?;
    }
    out.bytes_len(event.bytes)?;
    Ok(())
}

/// Tag of an array of unsigned integers, little-endian (RFC 8746).
fn array_tag(element: ElementType) -> u64 {
    match element {
        ElementType::U16 => 69,
        ElementType::U32 => 70,
        _ => 64,
    }
}

/// A date of RFC 3339 in UTC; empty beyond the year 9999.
fn date(unix_ns: u64) -> String {
    let date = OffsetDateTime::from_unix_timestamp_nanos(unix_ns.into()).ok();
    date.and_then(|date| date.format(&Rfc3339).ok()).unwrap_or_default()
}
