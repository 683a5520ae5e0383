//! Streams of DECTRIS detectors over ZeroMQ: messages for the start of a series, for each image, and for the
//! end.
//!
//! Each channel (threshold) is a stream, each image an event of it, with the image's number as sequence
//! number. Flat fields, pixel masks and tables of the start message are streams of one event each. Compressed
//! images stay compressed. A message that cannot be recorded is rejected, and the series continues.
//! Invariants: an image becomes an item only if its width, height and pixel type match those of its series;
//! items of a stream have ascending numbers; images that wait for earlier ones need a bounded amount of
//! memory.
mod maps;
mod message;
mod quote;
mod series;
mod v1;
mod v2;

use std::collections::{BTreeMap, VecDeque};

use keepup_stream::rejected::RejectReason::{
    Conflicting, Contradictory, Incomplete, Late, Malformed, OutsideSeries,
};
use keepup_stream::rejected::{RejectUnit, Rejection};
use keepup_stream::wire::crc32;

use self::message::{Message, Refused, Start, malformed};
use self::series::{Arrived, Held, Pending, Series};
use crate::continuity::{Place, mix};
use crate::error::DetectorError;
use crate::rejects::Rejects;
use crate::zmtp::Zmtp;
use crate::{Decoder, Event, Input, Item, Limits};

/// Decoder of Stream V1 and V2. The first byte of each message shows which one it is.
#[derive(Debug)]
pub struct Dectris {
    zmtp: Zmtp,
    event_bytes_max: u64,
    series: Option<Series>,
    /// Start of the next series, if it arrived before the end of this one.
    next: Option<Start>,
    /// Items of the current message, or of `held`.
    pending: VecDeque<Pending>,
    /// The image that is being handed out, if it has waited for earlier ones.
    held: Option<Held>,
    /// Checksum of the item that is taken next, if it was recorded.
    crc: Option<u32>,
    rejects: Rejects,
    oddities: Oddities,
    /// Time of arrival of the latest bytes, ns since the Unix epoch.
    arrival_ns: u64,
    is_finishing: bool,
}

/// What arrived and makes no difference to the recording.
#[derive(Debug, Default)]
struct Oddities {
    /// Images that were recorded already, with the same content.
    repeated: u64,
    /// End messages of other series.
    ends: u64,
    /// Series that were started and had no images when the next one was.
    empty: u64,
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
            held: None,
            crc: None,
            rejects: Rejects::default(),
            oddities: Oddities::default(),
            arrival_ns: 0,
            is_finishing: false,
        }
    }

    /// Decodes the message that has arrived.
    ///
    /// # Errors
    /// It is malformed, and there is no series that could continue: the peer may send something else.
    fn decode(&mut self) -> Result<(), DetectorError> {
        let message = self.zmtp.whole();
        let base = message.bytes.as_ptr().addr();
        let decoded = match message.bytes.first() {
            // V1 sends JSON objects.
            Some(b'{') => v1::parse(message, self.event_bytes_max),
            _ if message.ends.len() > 1 => Err(malformed("several frames, but the first one is not JSON")),
            _ => v2::parse(message.bytes, self.event_bytes_max),
        };
        let rejects = &mut self.rejects;
        let mut refuse = |refused: Refused| rejects.add(refused.reason, refused.unit, refused.why);
        match decoded {
            Err(refused) if self.series.is_none() && refused.reason == Malformed => {
                return Err(DetectorError::Message(refused.why));
            }
            Err(refused) => refuse(refused),
            Ok(Message::Start(start)) => self.start(start),
            Ok(Message::Image(image)) => {
                let Some(series) = &mut self.series else {
                    let what = format!("image {} came without the start of its series", image.image_id);
                    rejects.add(OutsideSeries, RejectUnit::Image, what);
                    return Ok(());
                };
                match series.image(&image, base, self.arrival_ns, &mut refuse) {
                    Err(refused) => refuse(refused),
                    Ok((arrived, patch)) => {
                        if let Some((at, header)) = patch {
                            self.zmtp.overwrite(at, &header);
                        }
                        self.place(arrived);
                    }
                }
            }
            Ok(Message::End(end)) => match &mut self.series {
                Some(series) if series.is_end(&end) => {
                    series.order.release();
                    series.is_ending = true;
                }
                _ => self.oddities.ends = self.oddities.ends.saturating_add(1),
            },
        }
        Ok(())
    }

    /// Hands out or holds the image of the current message, or finds that it has arrived before.
    fn place(&mut self, arrived: Arrived) {
        let Some(series) = &mut self.series else { return };
        if arrived.parts.is_empty() {
            return;
        }
        let (number, bytes) = (arrived.number, self.zmtp.bytes());
        let known = match series.order.place(number) {
            Place::Next => return series.hand_out(&arrived, &mut self.pending),
            Place::Early => {
                let mut message = self.zmtp.detach();
                message.shrink_to_fit();
                return series.order.hold(number, message.len(), Held { arrived, message });
            }
            Place::Held => series.order.held(number).map(|held| held.arrived.digest(&held.message)),
            Place::Known(digest) => Some(digest),
            Place::Late => None,
        };
        let (reason, what) = match known {
            Some(digest) if digest == arrived.digest(bytes) => {
                self.oddities.repeated = self.oddities.repeated.saturating_add(1);
                return;
            }
            Some(_) => (Conflicting, "arrived again with other content"),
            None => (Late, "arrived after those that follow it were recorded"),
        };
        self.rejects.add(reason, RejectUnit::Image, format!("image {number} {what}"));
    }

    /// Hands out the first image that has waited, if it is due, or the end of the series behind the last one;
    /// returns whether it did.
    fn hand_out_due(&mut self) -> bool {
        self.held = None;
        let Some(series) = &mut self.series else { return false };
        if let Some((_, held)) = series.order.take_due() {
            series.hand_out(&held.arrived, &mut self.pending);
            self.held = Some(held);
            return true;
        }
        let ends = series.is_ending && !series.has_ended;
        if ends {
            series.end(&mut self.pending);
        }
        ends
    }

    /// Keeps the whole images that have not been taken, and forgets what has arrived in part.
    fn disconnect(&mut self) {
        self.hold_again();
        while self.series.as_ref().is_none_or(|series| !series.is_ending) {
            self.zmtp.take();
            // An error makes no difference any more: the rest of what has arrived is lost.
            let Ok(Some(_)) = self.zmtp.message() else { break };
            if self.decode().is_err() {
                break;
            }
            self.hold_again();
        }
        // What follows the end of the series is not a part of it.
        let has_ended = self.series.as_ref().is_some_and(|series| series.has_ended);
        if self.zmtp.has_part() && !has_ended {
            self.rejects.add(Incomplete, RejectUnit::Message, "the connection was lost within a message");
        }
        if let Some(series) = &mut self.series {
            series.order.release();
        }
        self.zmtp.reconnect();
    }

    /// Holds what has not been taken of the current image.
    fn hold_again(&mut self) {
        let held = self.held.take();
        let (mut parts, mut image) = (Vec::new(), None);
        for pending in self.pending.drain(..) {
            if let Pending::Image { stream, sequence, timestamp_ns, payload, .. } = pending {
                parts.push((stream, payload));
                image = Some((sequence, timestamp_ns));
            }
        }
        if let (Some(series), Some((number, timestamp_ns))) = (&mut self.series, image) {
            let arrived = Arrived { number, timestamp_ns, parts };
            let message = held.map_or_else(|| self.zmtp.detach(), |held| held.message);
            series.order.hold(number, message.len(), Held { arrived, message });
        }
    }

    /// Takes a start message.
    fn start(&mut self, mut start: Start) {
        // Start messages may be longer than those of images: their memory is freed once the maps are taken.
        let message = self.zmtp.detach();
        if !start.maps.is_empty() {
            start.maps.keep(message, self.arrival_ns);
        }
        match &mut self.series {
            // The previous series has no images yet.
            Some(series) if series.streams.is_empty() => {
                let is_other = !series.start.is_same_series(&start);
                self.oddities.empty = self.oddities.empty.saturating_add(is_other.into());
                *series = Series::new(start);
            }
            // The detector repeated the start message.
            Some(series) if series.continues(&start) => {
                if !series.start.has_images_of(&start) {
                    let what = "the start message was repeated with other images";
                    self.rejects.add(Contradictory, RejectUnit::Message, what);
                }
            }
            // The detector was armed again before it sent the end.
            Some(series) => {
                series.order.release();
                series.is_ending = true;
                self.next = Some(start);
            }
            none => *none = Some(Series::new(start)),
        }
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
        while self.pending.is_empty() && !self.hand_out_due() {
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
            Pending::Image { stream, sequence, timestamp_ns, payload, .. } => Item::Event(Event {
                stream: *stream,
                sequence: *sequence,
                timestamp_ns: *timestamp_ns,
                missing: None,
                payload: &self.message()[payload.clone()],
            }),
            Pending::End => Item::End { events: series.start.images, streams: channels },
        }))
    }

    fn take(&mut self) {
        let (crc, pending) = (self.crc.take(), self.pending.pop_front());
        let Some(series) = &mut self.series else { return };
        match pending {
            Some(Pending::Streams) => series.is_declared = true,
            Some(Pending::Map { .. }) => series.start.maps.take(),
            Some(Pending::Image { stream, sequence, payload, is_last, .. }) => {
                let message = self.held.as_ref().map_or_else(|| self.zmtp.bytes(), |held| &held.message);
                let bytes = message.get(payload).unwrap_or_default();
                series.digest = mix(series.digest, stream, crc.unwrap_or_else(|| crc32(bytes)), bytes.len());
                if is_last {
                    series.order.handed_out(sequence, std::mem::take(&mut series.digest));
                }
            }
            Some(Pending::End) | None => {}
        }
    }

    fn completed(&mut self, crc: u32) {
        self.crc = Some(crc);
    }

    fn metadata(&self) -> &BTreeMap<String, String> {
        const NONE: &BTreeMap<String, String> = &BTreeMap::new();
        self.series.as_ref().map_or(NONE, |series| &series.start.metadata)
    }

    fn remarks(&mut self) -> Vec<String> {
        let mut remarks = self.series.as_mut().map_or(Vec::new(), |series| series.start.maps.take_remarks());
        if self.is_finishing || self.series.as_ref().is_some_and(|series| series.has_ended) {
            let Oddities { repeated, ends, empty } = std::mem::take(&mut self.oddities);
            let oddities = [
                (repeated, "repeated images, identical to those that are recorded"),
                (ends, "end messages of other series"),
                (empty, "series without images before the next one was started"),
            ];
            let oddities = oddities.into_iter().filter(|(count, _)| *count > 0);
            remarks.extend(oddities.map(|(count, what)| format!("{what}: {count}")));
        }
        remarks
    }

    fn rejected(&mut self) -> Vec<Rejection> {
        self.rejects.take()
    }

    fn tick(&mut self, now_ns: u64) {
        if let Some(series) = &mut self.series {
            series.order.tick(now_ns);
        }
    }

    fn outgoing(&mut self) -> Vec<u8> {
        self.zmtp.outgoing()
    }

    fn has_due(&self) -> bool {
        self.series.as_ref().is_some_and(|series| series.order.has_due())
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
        self.held = None;
    }

    fn reconnect(&mut self) {
        self.disconnect();
        if let Some(series) = &mut self.series {
            series.is_declared = false;
            series.order.after_loss();
        }
    }

    fn disconnected(&mut self) {
        self.disconnect();
    }

    fn finish(&mut self, _drops: u32) {
        self.is_finishing = true;
        if let Some(series) = &mut self.series {
            series.order.release();
        }
    }
}

impl Dectris {
    /// The message whose image is being handed out.
    fn message(&self) -> &[u8] {
        self.held.as_ref().map_or_else(|| self.zmtp.bytes(), |held| &held.message)
    }
}

#[cfg(test)]
#[path = "dectris/decoder_tests.rs"]
mod tests;
