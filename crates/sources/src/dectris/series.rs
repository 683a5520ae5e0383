//! The series that is recorded: its streams, and the checks of its images.
use std::collections::VecDeque;
use std::ops::Range;

use keepup_stream::wire::{Compression, StreamInfo};

use super::message::{ChannelData, End, Format, Image, LZ4_HEADER_BYTES, Start, Time, malformed};
use super::quote::quoted;
use crate::error::DetectorError;

/// Bytes to write into a message, at an offset.
pub(super) type Patch = (usize, [u8; LZ4_HEADER_BYTES]);

/// The series that is recorded.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) start: Start,
    /// Channels, then maps. Empty until the first image arrives, because only images state the compression.
    pub(super) streams: Vec<StreamInfo>,
    /// Whether the streams were handed out on this connection.
    pub(super) is_declared: bool,
    pub(super) has_ended: bool,
    /// Time 0 of images whose times are relative, ns since the Unix epoch.
    origin_ns: Option<u64>,
}

/// An item of the current message, whose payload is a range of its bytes, or a map.
#[derive(Clone, Debug)]
pub(super) enum Pending {
    Streams,
    Map { index: usize },
    Image { stream: usize, sequence: u64, timestamp_ns: u64, payload: Range<usize> },
    End,
}

impl Series {
    pub(super) fn new(start: Start) -> Self {
        Self { start, streams: Vec::new(), is_declared: false, has_ended: false, origin_ns: None }
    }

    /// Whether `start` repeats the start of this series. V1 has no unique ids: on a new connection, a start
    /// with the same number is that of a detector that was restarted.
    pub(super) fn continues(&self, start: &Start) -> bool {
        let is_restart = start.unique_id.is_empty() && !self.is_declared;
        self.start.is_same_series(start) && !is_restart
    }

    /// Adds the items of an image that arrived at `arrival_ns`. `base` is the address of its message, from
    /// which offsets are computed. Returns bytes to write into the message, at an offset.
    pub(super) fn image(
        &mut self,
        image: &Image<'_>,
        base: usize,
        arrival_ns: u64,
        pending: &mut VecDeque<Pending>,
    ) -> Result<Option<Patch>, DetectorError> {
        let Start { unique_id, series_id, .. } = &self.start;
        if image.series_id != *series_id || image.unique_id != unique_id.as_str() {
            let (id, found, unique) = (image.image_id, image.series_id, quoted(image.unique_id));
            let expected = quoted(unique_id);
            return Err(DetectorError::Series(format!(
                "image {id} is of series {found} ({unique}), expected series {series_id} ({expected})"
            )));
        }
        if self.streams.is_empty() {
            self.streams = self.declare(image)?;
        }
        if !self.is_declared {
            self.hand_out_streams(pending);
        }
        let timestamp_ns = self.time_ns(image, arrival_ns);
        let mut patch = None;
        for channel in &image.channels {
            let stream = self.start.channels.iter().position(|name| name == channel.name);
            let found = stream.and_then(|at| Some((at, self.streams.get(at)?)));
            let Some((stream, info)) = found else {
                let (id, name) = (image.image_id, quoted(channel.name));
                return Err(DetectorError::Series(format!("image {id} has the unknown channel {name}")));
            };
            self.check(image, channel, info)?;
            let from = channel.bytes.as_ptr().addr() - base;
            let mut payload = from..from + channel.bytes.len();
            if let Some(header) = channel.lz4_header {
                // Overwrites the end of the frame in front, which has been decoded.
                payload.start =
                    from.checked_sub(header.len()).ok_or_else(|| malformed("no frame before it"))?;
                patch = Some((payload.start, header));
            }
            pending.push_back(Pending::Image { stream, sequence: image.image_id, timestamp_ns, payload });
        }
        Ok(patch)
    }

    /// Start of an image, ns since the Unix epoch. Stream V1 has only times relative to the start of the
    /// series: the first image is taken to arrive when it ends.
    fn time_ns(&mut self, image: &Image<'_>, arrival_ns: u64) -> u64 {
        match image.time {
            Time::Absolute(ns) => ns,
            Time::Relative { start_ns, stop_ns } => {
                let origin_ns =
                    self.origin_ns.get_or_insert(arrival_ns.saturating_sub(stop_ns.max(start_ns)));
                origin_ns.saturating_add(start_ns)
            }
        }
    }

    /// Streams of the series, with the compression of its first image.
    fn declare(&self, image: &Image<'_>) -> Result<Vec<StreamInfo>, DetectorError> {
        let data_of = |name: &String| {
            let data = image.channels.iter().find(|channel| channel.name == name);
            data.ok_or_else(|| {
                DetectorError::Series(format!("image {} lacks channel {}", image.image_id, quoted(name)))
            })
        };
        let stream = |(id, name): (usize, &String)| {
            let data = data_of(name)?;
            let format = self.start.format.unwrap_or(data.format);
            Ok(stream_info(id, name, format, data.compression))
        };
        let channels = self.start.channels.iter().enumerate().map(stream);
        channels.chain(self.start.maps.streams().iter().cloned().map(Ok)).collect()
    }

    /// Adds the streams, and the maps that have not been handed out.
    fn hand_out_streams(&self, pending: &mut VecDeque<Pending>) {
        pending.push_back(Pending::Streams);
        pending.extend(self.start.maps.left().map(|index| Pending::Map { index }));
    }

    /// Checks an image of one channel against its stream.
    fn check(
        &self,
        image: &Image<'_>,
        data: &ChannelData<'_>,
        info: &StreamInfo,
    ) -> Result<(), DetectorError> {
        let wrong = |what: String| {
            let (id, name) = (image.image_id, quoted(data.name));
            Err(DetectorError::Series(format!("image {id} of channel {name} {what}")))
        };
        let Format { element, width, height } = data.format;
        if [height, width] != info.shape[..] {
            return wrong(format!(
                "has {width} x {height} pixels, not {} x {}",
                info.shape[1], info.shape[0]
            ));
        } else if element != info.element {
            return wrong(format!("has pixels of type {}, not {}", element.as_str(), info.element.as_str()));
        } else if data.compression != info.compression {
            return wrong("has a different compression than the first image".into());
        }
        let bytes = data.bytes.len() as u64;
        match (data.compression, info.event_bytes()) {
            (None, Some(expected)) if bytes != expected => {
                wrong(format!("has {bytes} bytes, not {expected}"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn check_end(&self, end: &End<'_>) -> Result<(), DetectorError> {
        if (end.series_id, end.unique_id) == (self.start.series_id, self.start.unique_id.as_str()) {
            return Ok(());
        }
        let (found, expected) = (end.series_id, self.start.series_id);
        Err(DetectorError::Series(format!("end message is of series {found}, expected series {expected}")))
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
        let channels = channels.map(|(id, name)| stream_info(id, name, format, None));
        channels.chain(self.start.maps.streams().iter().cloned()).collect()
    }
}

fn stream_info(id: usize, name: &str, format: Format, compression: Option<Compression>) -> StreamInfo {
    let Format { element, width, height } = format;
    StreamInfo { id: id as u32, name: name.to_owned(), element, shape: vec![height, width], compression }
}
