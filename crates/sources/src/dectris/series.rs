//! The series that is recorded: its streams, and the checks of its images.
use std::collections::VecDeque;
use std::ops::Range;

use keepup_stream::rejected::RejectReason::{Contradictory, OutsideSeries, Unsupported};
use keepup_stream::wire::{Compression, StreamInfo, crc32};

use super::message::{
    ChannelData, End, Format, Image, LZ4_HEADER_BYTES, Refused, Start, Time, image_refused, malformed,
};
use super::quote::quoted;
use crate::continuity::{Continuity, mix};

/// Bytes to write into a message, at an offset.
pub(super) type Patch = (usize, [u8; LZ4_HEADER_BYTES]);

/// Most images that may be missing in front of one, if the series has no announced number of images: image
/// numbers have 32 bits.
const GAP_MAX: u64 = 1 << 32;

/// The series that is recorded.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) start: Start,
    /// Channels, then maps. Empty until the first image arrives, because only images state the compression.
    pub(super) streams: Vec<StreamInfo>,
    /// Whether the streams were handed out on this connection.
    pub(super) is_declared: bool,
    /// Whether the series ends behind the images that are held.
    pub(super) is_ending: bool,
    pub(super) has_ended: bool,
    /// Order of its images.
    pub(super) order: Continuity<Held>,
    /// Digest of the image that is being handed out, as far as it was.
    pub(super) digest: u64,
    /// Time 0 of images whose times are relative, ns since the Unix epoch.
    origin_ns: Option<u64>,
}

/// An image in a message: for each of its channels, the index of the stream and a range of the message.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) number: u64,
    pub(super) timestamp_ns: u64,
    pub(super) parts: Vec<(usize, Range<usize>)>,
}

/// An image that waits for earlier ones, in its message.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) arrived: Arrived,
    pub(super) message: Vec<u8>,
}

/// An item of the current message, whose payload is a range of its bytes, or a map.
#[derive(Clone, Debug)]
pub(super) enum Pending {
    Streams,
    Map { index: usize },
    Image { stream: usize, sequence: u64, timestamp_ns: u64, payload: Range<usize>, is_last: bool },
    End,
}

impl Arrived {
    /// Digest of its content.
    pub(super) fn digest(&self, message: &[u8]) -> u64 {
        self.parts.iter().fold(0, |digest, (stream, range)| {
            let bytes = message.get(range.clone()).unwrap_or_default();
            mix(digest, *stream, crc32(bytes), bytes.len())
        })
    }
}

impl Series {
    pub(super) fn new(start: Start) -> Self {
        Self {
            start,
            streams: Vec::new(),
            is_declared: false,
            is_ending: false,
            has_ended: false,
            order: Continuity::new(),
            digest: 0,
            origin_ns: None,
        }
    }

    /// Whether `start` repeats the start of this series. V1 has no unique ids: on a new connection, a start
    /// with the same number is that of a detector that was restarted.
    pub(super) fn continues(&self, start: &Start) -> bool {
        let is_restart = start.unique_id.is_empty() && !self.is_declared;
        self.start.is_same_series(start) && !is_restart
    }

    /// Checks an image that arrived at `arrival_ns`. `base` is the address of its message, from which offsets
    /// are computed. Channels that cannot be recorded are passed to `refuse`. Returns bytes to write into the
    /// message, too.
    pub(super) fn image(
        &mut self,
        image: &Image<'_>,
        base: usize,
        arrival_ns: u64,
        mut refuse: impl FnMut(Refused),
    ) -> Result<(Arrived, Option<Patch>), Refused> {
        let Start { unique_id, series_id, .. } = &self.start;
        let id = image.image_id;
        if image.series_id != *series_id || image.unique_id != unique_id.as_str() {
            let (found, unique, expected) = (image.series_id, quoted(&image.unique_id), quoted(unique_id));
            let what = format!(
                "image {id} is of series {found} ({unique}), expected series {series_id} ({expected})"
            );
            return Err(image_refused(OutsideSeries, what));
        }
        let (images, next) = (self.start.images, self.order.next());
        let gap_max = if images > 0 { images.saturating_sub(next + 1) } else { GAP_MAX };
        if id.saturating_sub(next) > gap_max {
            let of = if images > 0 { format!(" of a series of {images}") } else { String::new() };
            return Err(image_refused(Contradictory, format!("image {id}{of} behind image {next}")));
        }
        let declared = match self.streams.is_empty() {
            true => self.declare(image)?,
            false => Vec::new(),
        };
        let streams = if declared.is_empty() { &self.streams } else { &declared };
        let (mut patch, mut parts) = (None, Vec::new());
        for channel in &image.channels {
            let stream = self.start.channels.iter().position(|name| *name == channel.name);
            let Some((stream, info)) = stream.and_then(|at| Some((at, streams.get(at)?))) else {
                let what = format!("image {id} has the unknown channel {}", quoted(&channel.name));
                refuse(image_refused(Contradictory, what));
                continue;
            };
            if let Err(why) = check(channel, info) {
                let what = format!("image {id} of channel {} {why}", quoted(&channel.name));
                refuse(image_refused(Contradictory, what));
                continue;
            }
            let from = channel.bytes.as_ptr().addr() - base;
            let mut payload = from..from + channel.bytes.len();
            if let Some(header) = channel.lz4_header {
                // Overwrites the end of the frame in front, which has been decoded.
                payload.start =
                    from.checked_sub(header.len()).ok_or_else(|| malformed("no frame before it"))?;
                patch = Some((payload.start, header));
            }
            parts.push((stream, payload));
        }
        if !declared.is_empty() && !parts.is_empty() {
            self.streams = declared;
        }
        let timestamp_ns = self.time_ns(image, arrival_ns);
        Ok((Arrived { number: id, timestamp_ns, parts }, patch))
    }

    /// Adds the items of an image.
    pub(super) fn hand_out(&self, arrived: &Arrived, pending: &mut VecDeque<Pending>) {
        if !self.is_declared {
            self.hand_out_streams(pending);
        }
        let Arrived { number: sequence, timestamp_ns, ref parts } = *arrived;
        for (at, (stream, payload)) in parts.iter().enumerate() {
            let (payload, is_last) = (payload.clone(), at + 1 == parts.len());
            pending.push_back(Pending::Image { stream: *stream, sequence, timestamp_ns, payload, is_last });
        }
    }

    /// Start of an image, ns since the Unix epoch. Stream V1 has only times relative to the start of the
    /// series: the first image is taken to arrive when it ends.
    fn time_ns(&mut self, image: &Image<'_>, arrival_ns: u64) -> u64 {
        match image.time {
            Time::Absolute(ns) => ns,
            Time::Unknown => arrival_ns,
            Time::Relative { start_ns, stop_ns } => {
                let origin_ns =
                    self.origin_ns.get_or_insert(arrival_ns.saturating_sub(stop_ns.max(start_ns)));
                origin_ns.saturating_add(start_ns)
            }
        }
    }

    /// Streams of the series, with the compression of its first image. A channel that the image lacks has
    /// that of the others.
    fn declare(&self, image: &Image<'_>) -> Result<Vec<StreamInfo>, Refused> {
        let Some(first) = image.channels.first() else { return Ok(Vec::new()) };
        let stream = |(id, name): (usize, &String)| {
            let data = image.channels.iter().find(|channel| channel.name == name.as_str()).unwrap_or(first);
            stream_info(id, name, self.start.format.unwrap_or(data.format), data.compression)
        };
        let channels: Vec<_> = self.start.channels.iter().enumerate().map(stream).collect();
        if let Some(wrong) = channels.iter().find(|stream| !stream.is_valid()) {
            let (name, shape) = (quoted(&wrong.name), &wrong.shape);
            let what = format!("channel {name} with images of {shape:?} pixels cannot be that of a stream");
            return Err(image_refused(Unsupported, what));
        }
        Ok(channels.into_iter().chain(self.start.maps.streams().iter().cloned()).collect())
    }

    /// Adds the streams, and the maps that have not been handed out.
    fn hand_out_streams(&self, pending: &mut VecDeque<Pending>) {
        pending.push_back(Pending::Streams);
        pending.extend(self.start.maps.left().map(|index| Pending::Map { index }));
    }

    pub(super) fn is_end(&self, end: &End<'_>) -> bool {
        end.series_id == self.start.series_id && end.unique_id == self.start.unique_id
    }

    /// Adds the end of the series.
    pub(super) fn end(&mut self, pending: &mut VecDeque<Pending>) {
        if self.streams.is_empty() {
            // Without an image, the compression is unknown.
            self.streams = self.declare_without_image();
        }
        if !self.is_declared && !self.streams.is_empty() {
            self.hand_out_streams(pending);
        }
        self.has_ended = true;
        pending.push_back(Pending::End);
    }

    /// Streams without compression; none if the start message does not state the format.
    fn declare_without_image(&self) -> Vec<StreamInfo> {
        let Some(format) = self.start.format else { return Vec::new() };
        let channels = self.start.channels.iter().enumerate();
        let channels: Vec<_> = channels.map(|(id, name)| stream_info(id, name, format, None)).collect();
        if channels.iter().any(|stream| !stream.is_valid()) {
            return Vec::new();
        }
        channels.into_iter().chain(self.start.maps.streams().iter().cloned()).collect()
    }
}

fn stream_info(id: usize, name: &str, format: Format, compression: Option<Compression>) -> StreamInfo {
    let Format { element, width, height } = format;
    StreamInfo { id: id as u32, name: name.to_owned(), element, shape: vec![height, width], compression }
}

/// Checks an image of one channel against its stream.
fn check(data: &ChannelData<'_>, info: &StreamInfo) -> Result<(), String> {
    let Format { element, width, height } = data.format;
    if [height, width] != info.shape[..] {
        return Err(format!("has {width} x {height} pixels, not {} x {}", info.shape[1], info.shape[0]));
    } else if element != info.element {
        return Err(format!("has pixels of type {}, not {}", element.as_str(), info.element.as_str()));
    } else if data.compression != info.compression {
        return Err("has a different compression than the first image".into());
    }
    let expected = info.event_bytes();
    // Both HDF5 filters put the uncompressed length in front, big endian.
    let stated = match (data.compression, data.lz4_header) {
        (None, _) => Some(data.bytes.len() as u64),
        (Some(_), Some(_)) => expected,
        (Some(_), None) => data.bytes.first_chunk().map(|length| u64::from_be_bytes(*length)),
    };
    match (stated, expected) {
        (None, _) => Err(format!("has only {} bytes of compressed data", data.bytes.len())),
        (Some(stated), Some(expected)) if stated != expected => {
            Err(format!("has {stated} bytes, not {expected}"))
        }
        _ => Ok(()),
    }
}
