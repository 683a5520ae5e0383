//! Stream V2 of DECTRIS detectors: one CBOR message for the start of a series, for each image, and for the
//! end (<https://github.com/dectris/documentation/tree/main/stream_v2>).
//!
//! Each channel (threshold) is a stream, each image an event of it, with the image's number as sequence
//! number. Compressed images stay compressed. Invariant: an image becomes an item only if its width,
//! height and pixel type match the start message.
mod message;
mod metadata;
mod skip;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use keepup_stream::wire::{Compression, ElementType, StreamInfo};

use self::message::{ChannelData, End, Image, Message, Start, parse, quoted};
use crate::error::DetectorError;
use crate::zmtp::Zmtp;
use crate::{Decoder, Event, Input, Item, Limits};

/// Decoder of Stream V2.
#[derive(Debug)]
pub struct DectrisV2 {
    zmtp: Zmtp,
    series: Option<Series>,
    /// Items of the current message.
    pending: VecDeque<Pending>,
    /// Images that arrived without the start of their series, and whether this was reported.
    skipped: u64,
    is_late: bool,
}

/// The series that is recorded.
#[derive(Debug)]
struct Series {
    start: Start,
    /// Empty until the first image arrives, because only images state the compression.
    streams: Vec<StreamInfo>,
    /// Whether the streams were handed out on this connection.
    is_declared: bool,
    has_ended: bool,
}

#[derive(Clone, Debug)]
enum Pending {
    Streams,
    Image { stream: usize, sequence: u64, timestamp_ns: u64, payload: Range<usize> },
    End { events: u64 },
}

impl DectrisV2 {
    /// A decoder for a connection that has just been made.
    pub fn new(limits: Limits) -> Self {
        let (zmtp, pending) = (Zmtp::new(limits.message_bytes_max), VecDeque::new());
        Self { zmtp, series: None, pending, skipped: 0, is_late: false }
    }

    /// Decodes the message that has arrived.
    fn decode(&mut self) -> Result<(), DetectorError> {
        let bytes = self.zmtp.bytes();
        match parse(bytes)? {
            Message::Start(start) => match &mut self.series {
                // The previous series has no images yet, or the detector repeated the start message.
                Some(series) if series.streams.is_empty() => series.start = start,
                Some(series) if series.start.is_same_series(&start) => series.start.check_repeated(&start)?,
                // The detector was armed again before it sent the end.
                Some(series) => series.end(&mut self.pending),
                none => *none = Some(Series::new(start)),
            },
            Message::Image(image) => {
                let Some(series) = &mut self.series else {
                    self.skipped += 1;
                    return Ok(());
                };
                series.image(&image, bytes.as_ptr().addr(), &mut self.pending)?;
            }
            Message::End(end) => {
                if let Some(series) = &mut self.series {
                    series.check_end(&end)?;
                    series.end(&mut self.pending);
                }
            }
        }
        Ok(())
    }
}

impl Decoder for DectrisV2 {
    fn input(&mut self) -> Input<'_> {
        Input::Bytes(self.zmtp.space())
    }

    fn received(&mut self, count: usize, _unix_ns: u64) {
        self.zmtp.received(count);
    }

    fn item(&mut self) -> Result<Option<Item<'_>>, DetectorError> {
        while self.pending.is_empty() {
            self.zmtp.take();
            if self.series.as_ref().is_some_and(|series| series.has_ended) {
                return Ok(None);
            }
            match self.zmtp.message()? {
                None => return Ok(None),
                Some(message) if message.ends.len() > 1 => {
                    return Err(DetectorError::Message("it has several frames, as in Stream V1".into()));
                }
                Some(_) => self.decode()?,
            }
        }
        let streams = || self.series.as_ref().map_or(&[][..], |series| &series.streams);
        Ok(self.pending.front().map(|pending| match pending {
            Pending::Streams => Item::Streams(streams()),
            Pending::Image { stream, sequence, timestamp_ns, payload } => Item::Event(Event {
                stream: *stream,
                sequence: *sequence,
                timestamp_ns: *timestamp_ns,
                missing: None,
                payload: &self.zmtp.bytes()[payload.clone()],
            }),
            Pending::End { events } => Item::End { events: *events },
        }))
    }

    fn take(&mut self) {
        if let (Some(Pending::Streams), Some(series)) = (self.pending.pop_front(), &mut self.series) {
            series.is_declared = true;
        }
    }

    fn metadata(&self) -> &BTreeMap<String, String> {
        const NONE: &BTreeMap<String, String> = &BTreeMap::new();
        self.series.as_ref().map_or(NONE, |series| &series.start.metadata)
    }

    fn remarks(&mut self) -> Vec<String> {
        let is_new = self.skipped > 0 && !std::mem::replace(&mut self.is_late, true);
        let remark = || "images of a series that was started before the recorder are not recorded".to_owned();
        is_new.then(remark).into_iter().collect()
    }

    fn outgoing(&mut self) -> Vec<u8> {
        self.zmtp.outgoing()
    }

    fn bytes_due(&self) -> usize {
        self.zmtp.bytes_due()
    }

    fn is_within_message(&self) -> bool {
        self.zmtp.is_within_message()
    }

    fn reconnect(&mut self) {
        self.zmtp.reconnect();
        self.pending.clear();
        if let Some(series) = &mut self.series {
            series.is_declared = false;
        }
    }
}

impl Series {
    fn new(start: Start) -> Self {
        Self { start, streams: Vec::new(), is_declared: false, has_ended: false }
    }

    /// Adds the items of an image. `base` is the address of its message, from which offsets are computed.
    fn image(
        &mut self,
        image: &Image<'_>,
        base: usize,
        pending: &mut VecDeque<Pending>,
    ) -> Result<(), DetectorError> {
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
            pending.push_back(Pending::Streams);
        }
        let timestamp_ns = image.time_ns();
        for channel in &image.channels {
            let stream = self.start.channels.iter().position(|name| name == channel.name);
            let found = stream.and_then(|at| Some((at, self.streams.get(at)?)));
            let Some((stream, info)) = found else {
                let (id, name) = (image.image_id, quoted(channel.name));
                return Err(DetectorError::Series(format!("image {id} has the unknown channel {name}")));
            };
            self.check(image, channel, info)?;
            let from = channel.bytes.as_ptr().addr() - base;
            let payload = from..from + channel.bytes.len();
            pending.push_back(Pending::Image { stream, sequence: image.image_id, timestamp_ns, payload });
        }
        Ok(())
    }

    /// Streams of the series, with the compression of its first image.
    fn declare(&self, image: &Image<'_>) -> Result<Vec<StreamInfo>, DetectorError> {
        let Start { channels, element, width, height, .. } = &self.start;
        let compression_of = |name: &String| {
            let data = image.channels.iter().find(|channel| channel.name == name);
            data.map(|data| data.compression).ok_or_else(|| {
                DetectorError::Series(format!("image {} lacks channel {}", image.image_id, quoted(name)))
            })
        };
        let stream = |(id, name): (usize, &String)| {
            Ok(StreamInfo {
                id: id as u32,
                name: name.clone(),
                element: *element,
                shape: vec![*height, *width],
                compression: compression_of(name)?,
            })
        };
        channels.iter().enumerate().map(stream).collect()
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
        if [data.height, data.width] != info.shape[..] {
            return wrong(format!(
                "has {} x {} pixels, not {} x {}",
                data.width, data.height, info.shape[1], info.shape[0]
            ));
        } else if data.element != info.element {
            return wrong(format!(
                "has pixels of type {}, not {}",
                data.element.as_str(),
                info.element.as_str()
            ));
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

    fn check_end(&self, end: &End<'_>) -> Result<(), DetectorError> {
        if (end.series_id, end.unique_id) == (self.start.series_id, self.start.unique_id.as_str()) {
            return Ok(());
        }
        let (found, expected) = (end.series_id, self.start.series_id);
        Err(DetectorError::Series(format!("end message is of series {found}, expected series {expected}")))
    }

    /// Adds the end of the series.
    fn end(&mut self, pending: &mut VecDeque<Pending>) {
        if self.streams.is_empty() {
            // Without an image, the compression is unknown.
            self.streams = self.declare_without_image();
        }
        if !self.is_declared {
            pending.push_back(Pending::Streams);
        }
        self.has_ended = true;
        pending.push_back(Pending::End { events: self.start.images });
    }

    fn declare_without_image(&self) -> Vec<StreamInfo> {
        let Start { channels, element, width, height, .. } = &self.start;
        let stream = |(id, name): (usize, &String)| {
            let (element, shape) = (*element, vec![*height, *width]);
            StreamInfo { id: id as u32, name: name.clone(), element, shape, compression: None }
        };
        channels.iter().enumerate().map(stream).collect()
    }
}

/// Type of pixels by the name in a start message.
fn element_of(name: &str) -> Option<ElementType> {
    Some(match name {
        "uint8" => ElementType::U8,
        "uint16" => ElementType::U16,
        "uint32" => ElementType::U32,
        _ => return None,
    })
}

/// Compression by the name in an image message.
fn compression_of(name: &str) -> Option<Compression> {
    Some(match name {
        "bslz4" => Compression::BitshuffleLz4,
        "lz4" => Compression::Lz4,
        _ => return None,
    })
}

#[cfg(test)]
#[path = "v2_tests.rs"]
mod tests;
