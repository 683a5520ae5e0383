//! Images of a PV from their update to the recorder: checks, place in the order, and the declaration of the
//! stream.
use std::ops::Range;

use keepup_stream::rejected::RejectReason::{self, Contradictory, Unsupported};
use keepup_stream::rejected::RejectUnit;
use keepup_stream::wire::{ElementType, METADATA_MAX, StreamInfo, crc32};

use super::PvAccess;
use super::image::Layout;
use super::order::{Arrival, Candidate};
use super::values::Array;
use crate::continuity::mix;

/// An image in its message.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) payload: Range<usize>,
    pub(super) timestamp_ns: u64,
    /// Its own time, which is a part of its identity; 0 if it has none.
    stamp: u64,
    /// Whether the server closed the channel before it.
    pub(super) is_after_closing: bool,
}

/// An image that is handed out.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) sequence: u64,
    pub(super) image: Image,
    /// Its message, if it has waited for earlier images; otherwise it is in the current one.
    pub(super) message: Option<Vec<u8>>,
}

impl Image {
    /// Digest of its identity and content.
    pub(super) fn digest(&self, message: &[u8], crc: Option<u32>) -> u64 {
        let bytes = message.get(self.payload.clone()).unwrap_or_default();
        mix(self.stamp, 0, crc.unwrap_or_else(|| crc32(bytes)), bytes.len())
    }
}

impl PvAccess {
    /// Takes the pixels of an update.
    pub(super) fn image(&mut self, array: &Array) {
        let id = self.fields.unique_id;
        // The server repeats the image that it had before the recording, or before the reconnection.
        let is_old = self.is_first && self.order.last_id().is_none_or(|last| last == id);
        if is_old {
            return;
        }
        let layout = match self.fields.layout(array) {
            Ok(Some(layout)) => layout,
            Ok(None) => {
                self.counts.empty += 1;
                return;
            }
            Err((reason, why)) => return self.reject(reason, format!("image {id} {why}")),
        };
        if let Some(first) = self.layout.as_ref().filter(|first| **first != layout) {
            // An image from before the reconnection may have another size; the next one shows whether it has
            // changed.
            if !self.is_first {
                let what = format!("image {id} is {}; the stream has {}", layout.text(), first.text());
                self.reject(Contradictory, what);
            }
            return;
        }
        let Some(header) = layout.chunk_header(array.bytes.len()) else {
            return self.reject(Unsupported, format!("image {id} cannot be read by HDF5's LZ4 filter"));
        };
        if self.layout.is_none() {
            self.declare(layout);
        }
        let is_big_endian = self.frames.head().1;
        let message = self.frames.bytes_mut();
        let size = array.element.bytes() as usize;
        if is_big_endian && size > 1 {
            message[array.bytes.clone()].chunks_exact_mut(size).for_each(<[u8]>::reverse);
        }
        // Everything in front of the pixels was decoded: the header takes its place.
        let start = array.bytes.start - header.len();
        message[start..array.bytes.start].copy_from_slice(&header);
        let time = self.fields.time_ns();
        let (timestamp_ns, stamp) = (time.unwrap_or(self.received_ns), time.unwrap_or(0));
        let is_after_closing = std::mem::take(&mut self.was_closed);
        self.place(Image { payload: start..array.bytes.end, timestamp_ns, stamp, is_after_closing });
    }

    /// Hands out or holds the image of the current message, or finds that it has arrived before.
    fn place(&mut self, image: Image) {
        let id = self.fields.unique_id;
        let digest = || image.digest(self.frames.bytes(), None);
        let found = Candidate { id, has_time: image.stamp != 0, digest: &digest };
        let arrival = self.order.judge(&found, |(image, message)| image.digest(message, None));
        match arrival {
            Arrival::Next(sequence) => self.pending = Some(Pending { sequence, image, message: None }),
            Arrival::Early(_) | Arrival::Run(_) => {
                let mut message = self.frames.detach();
                message.shrink_to_fit();
                let bytes = message.len();
                match arrival {
                    Arrival::Run(reason) => self.order.add_to_run(id, reason, bytes, (image, message)),
                    Arrival::Early(number) => self.order.images.hold(number, bytes, (image, message)),
                    _ => {}
                }
            }
            Arrival::Repeated => self.counts.repeated = self.counts.repeated.saturating_add(1),
            Arrival::Rejected(reason) => self.reject_odd(reason, id),
        }
        self.note_refused();
    }

    fn reject(&mut self, reason: RejectReason, what: String) {
        self.rejects.add(reason, RejectUnit::Image, what);
    }

    fn reject_odd(&mut self, reason: RejectReason, id: i32) {
        let what = match reason {
            RejectReason::Conflicting => "arrived again with other content",
            RejectReason::Contradictory => "is far beyond those before and after it",
            _ => "arrived after those that follow it were recorded",
        };
        self.reject(reason, format!("image {id} {what}"));
    }

    /// Rejects the images that were oddities.
    pub(super) fn note_refused(&mut self) {
        for (reason, id) in self.order.take_refused() {
            self.reject_odd(reason, id);
        }
    }

    /// Hands out the first image that has waited, if it is due; returns whether it did.
    pub(super) fn hand_out_due(&mut self) -> bool {
        let due = self.order.images.take_due();
        self.pending =
            due.map(|(sequence, (image, message))| Pending { sequence, image, message: Some(message) });
        self.pending.is_some()
    }

    /// Holds the image that has not been taken.
    pub(super) fn hold_again(&mut self) {
        if let Some(Pending { sequence, image, message }) = self.pending.take() {
            let message = message.unwrap_or_else(|| self.frames.detach());
            self.order.images.hold(sequence, message.len(), (image, message));
        }
    }

    /// Declares the stream of the first image.
    fn declare(&mut self, layout: Layout) {
        self.fields.wants_attributes = false;
        let mut metadata = std::mem::take(&mut self.fields.attributes);
        // Our own entries come first if there are too many.
        while metadata.len() + 3 > METADATA_MAX {
            metadata.pop_last();
        }
        metadata.insert("pv".to_owned(), self.options.name.clone());
        metadata.insert("first_unique_id".to_owned(), self.fields.unique_id.to_string());
        if !layout.codec.is_empty() {
            metadata.insert("codec".to_owned(), layout.text());
        }
        self.metadata = metadata;
        let (element, shape) = match layout.element {
            Some(element) if !layout.is_opaque() => (element, layout.shape.clone()),
            _ => (ElementType::U8, Vec::new()),
        };
        let (name, compression) = (self.options.name.clone(), layout.compression());
        self.streams = vec![StreamInfo { id: 0, name, element, shape, compression }];
        self.layout = Some(layout);
    }
}
