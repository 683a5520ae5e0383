//! Streams of DECTRIS detectors over ZeroMQ: messages for the start of a series, for each image, and for the
//! end.
//!
//! Each channel (threshold) is a stream, each image an event of it, with the image's number as sequence
//! number. Flat fields, pixel masks and tables of the start message are streams of one event each. Compressed
//! images stay compressed. Invariant: an image becomes an item only if its width, height and pixel type match
//! those of its series.
mod maps;
mod message;
mod quote;
mod series;
mod v1;
mod v2;

use std::collections::{BTreeMap, VecDeque};

use self::message::{Message, Start};
use self::series::{Pending, Series};
use crate::error::DetectorError;
use crate::zmtp::Zmtp;
use crate::{Decoder, Event, Input, Item, Limits};

/// Decoder of Stream V1 and V2. The first message shows which one it is.
#[derive(Debug)]
pub struct Dectris {
    zmtp: Zmtp,
    event_bytes_max: u64,
    series: Option<Series>,
    /// Start of the next series, if it arrived before the end of this one.
    next: Option<Start>,
    /// Items of the current message.
    pending: VecDeque<Pending>,
    /// Images that arrived without the start of their series, and whether this was reported.
    skipped: u64,
    is_late: bool,
    /// Time of arrival of the latest bytes, ns since the Unix epoch.
    arrival_ns: u64,
}

impl Dectris {
    /// A decoder for a connection that has just been made.
    pub fn new(limits: Limits) -> Self {
        Self {
            zmtp: Zmtp::new(limits.message_bytes_max),
            event_bytes_max: limits.event_bytes_max,
            series: None,
            next: None,
            pending: VecDeque::new(),
            skipped: 0,
            is_late: false,
            arrival_ns: 0,
        }
    }

    /// Decodes the message that has arrived.
    fn decode(&mut self) -> Result<(), DetectorError> {
        let message = self.zmtp.whole();
        let base = message.bytes.as_ptr().addr();
        let decoded = match message.bytes.first() {
            // V1 sends JSON objects.
            Some(b'{') => v1::parse(message, self.event_bytes_max)?,
            _ if message.ends.len() > 1 => {
                return Err(DetectorError::Message("several frames, but the first one is not JSON".into()));
            }
            _ => v2::parse(message.bytes, self.event_bytes_max)?,
        };
        let mut patch = None;
        match decoded {
            Message::Start(start) => self.start(start)?,
            Message::Image(image) => {
                let Some(series) = &mut self.series else {
                    self.skipped += 1;
                    return Ok(());
                };
                patch = series.image(&image, base, self.arrival_ns, &mut self.pending)?;
            }
            Message::End(end) => {
                if let Some(series) = &mut self.series {
                    series.check_end(&end)?;
                    series.end(&mut self.pending);
                }
            }
        }
        if let Some((at, header)) = patch {
            self.zmtp.overwrite(at, &header);
        }
        Ok(())
    }

    /// Takes a start message.
    fn start(&mut self, mut start: Start) -> Result<(), DetectorError> {
        // Start messages may be longer than those of images: their memory is freed once the maps are taken.
        let message = self.zmtp.detach();
        if !start.maps.is_empty() {
            start.maps.keep(message, self.arrival_ns);
        }
        match &mut self.series {
            // The previous series has no images yet.
            Some(series) if series.streams.is_empty() => series.start = start,
            // The detector repeated the start message.
            Some(series) if series.continues(&start) => series.start.check_repeated(&start)?,
            // The detector was armed again before it sent the end.
            Some(series) => {
                series.end(&mut self.pending);
                self.next = Some(start);
            }
            none => *none = Some(Series::new(start)),
        }
        Ok(())
    }
}

impl Decoder for Dectris {
    fn input(&mut self) -> Input<'_> {
        Input::Bytes(self.zmtp.space())
    }

    fn received(&mut self, count: usize, unix_ns: u64) {
        self.arrival_ns = unix_ns;
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
                Some(_) => self.decode()?,
            }
        }
        let (Some(series), Some(pending)) = (&self.series, self.pending.front()) else { return Ok(None) };
        let channels = series.start.channels.len();
        Ok(Some(match pending {
            Pending::Streams => Item::Streams(&series.streams),
            Pending::Map { index } => {
                let (timestamp_ns, payload) = series.start.maps.event(*index);
                Item::Event(Event {
                    stream: channels + index,
                    sequence: 0,
                    timestamp_ns,
                    missing: None,
                    payload,
                })
            }
            Pending::Image { stream, sequence, timestamp_ns, payload } => Item::Event(Event {
                stream: *stream,
                sequence: *sequence,
                timestamp_ns: *timestamp_ns,
                missing: None,
                payload: &self.zmtp.bytes()[payload.clone()],
            }),
            Pending::End => Item::End { events: series.start.images, streams: channels },
        }))
    }

    fn take(&mut self) {
        let Some(series) = &mut self.series else { return };
        match self.pending.pop_front() {
            Some(Pending::Streams) => series.is_declared = true,
            Some(Pending::Map { .. }) => series.start.maps.take(),
            _ => {}
        }
    }

    fn metadata(&self) -> &BTreeMap<String, String> {
        const NONE: &BTreeMap<String, String> = &BTreeMap::new();
        self.series.as_ref().map_or(NONE, |series| &series.start.metadata)
    }

    fn remarks(&mut self) -> Vec<String> {
        let mut remarks = self.series.as_mut().map_or(Vec::new(), |series| series.start.maps.take_remarks());
        if self.skipped > 0 && !std::mem::replace(&mut self.is_late, true) {
            remarks
                .push("images of a series that was started before the recorder are not recorded".to_owned());
        }
        remarks
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

    fn is_ready(&self) -> bool {
        self.zmtp.is_ready()
    }

    fn has_series(&self) -> bool {
        self.series.is_some()
    }

    fn next_series(&mut self) {
        self.series = self.next.take().map(Series::new);
        self.pending.clear();
        (self.skipped, self.is_late) = (0, false);
    }

    fn reconnect(&mut self) {
        self.zmtp.reconnect();
        self.pending.clear();
        if let Some(series) = &mut self.series {
            series.is_declared = false;
        }
    }
}

#[cfg(test)]
#[path = "dectris/decoder_tests.rs"]
mod tests;
