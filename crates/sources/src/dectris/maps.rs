//! Maps of a start message: flat fields, pixel masks, and tables of the count rate correction.
//!
//! Each map becomes the only event of a stream. Invariants: a map that cannot be recorded is left out with a
//! remark, so it never stops the recording of images; no memory is allocated for lengths that a message
//! claims.
use std::borrow::Cow;
use std::ops::Range;

use keepup_stream::detector_map::stream_name;
use keepup_stream::wire::{Compression, ElementType, StreamInfo};

use super::quote::quoted;
use crate::{MAP_ID_MIN, MAPS_MAX};

/// Longest name of a map's stream. With several detectors, the address is added.
const NAME_BYTES_MAX: usize = 128;
/// Most remarks on maps of a start message.
const REMARKS_MAX: usize = MAPS_MAX;
/// Longest remark, characters.
const REMARK_CHARS_MAX: usize = 300;

/// A map in a message.
#[derive(Debug)]
pub(super) struct SentMap<'a> {
    /// Its channel; `None` for all channels.
    pub(super) channel: Option<Cow<'a, str>>,
    /// What it is, such as `flatfield`.
    pub(super) map: &'static str,
    pub(super) element: ElementType,
    /// Rows first. Empty for a map of one dimension whose length is not stated.
    pub(super) shape: Vec<u64>,
    pub(super) compression: Option<Compression>,
    pub(super) bytes: &'a [u8],
}

impl SentMap<'_> {
    fn name(&self) -> String {
        match &self.channel {
            Some(channel) => stream_name(channel, self.map),
            None => self.map.to_owned(),
        }
    }

    /// Its shape, if its type and shape match its length.
    fn checked_shape(&self) -> Result<Vec<u64>, String> {
        let bytes = self.bytes.len() as u64;
        // Both HDF5 filters put the uncompressed length in front, big endian.
        let plain = match (self.compression, self.bytes.first_chunk()) {
            (None, _) => bytes,
            (Some(_), Some(length)) => u64::from_be_bytes(*length),
            (Some(_), None) => return Err(format!("its compressed data have {bytes} bytes")),
        };
        let element = self.element.bytes();
        let shape = match self.shape[..] {
            [] => vec![plain / element],
            ref shape => shape.to_vec(),
        };
        let expected = shape.iter().try_fold(element, |product, &size| product.checked_mul(size));
        if expected != Some(plain) || plain == 0 {
            let kind = self.element.as_str();
            return Err(format!("{plain} bytes do not match the type {kind} and the shape {shape:?}"));
        }
        Ok(shape)
    }
}

/// Maps that are recorded.
#[derive(Debug, Default)]
pub(super) struct Maps {
    streams: Vec<StreamInfo>,
    /// Payload of each, in `bytes`.
    ranges: Vec<Range<usize>>,
    /// The message that contains the maps.
    bytes: Vec<u8>,
    arrival_ns: u64,
    /// Number of maps that have been handed out.
    taken: usize,
    remarks: Vec<String>,
}

impl Maps {
    /// Adds a map of the message that begins at the address `base`, unless it cannot be recorded beside
    /// `channels` in an event of at most `bytes_max`.
    pub(super) fn add(&mut self, sent: &SentMap<'_>, base: usize, channels: &[String], bytes_max: u64) {
        let (name, bytes) = (sent.name(), sent.bytes.len());
        if self.streams.len() == MAPS_MAX {
            return self.leave_out(&name, format!("the detector has more than {MAPS_MAX} maps"));
        }
        if channels.contains(&name) || self.streams.iter().any(|stream| stream.name == name) {
            return self.leave_out(&name, "another stream has this name");
        }
        if bytes as u64 > bytes_max {
            let why = format!("{bytes} bytes, limit {bytes_max} bytes; use a larger --pool");
            return self.leave_out(&name, why);
        }
        let shape = match sent.checked_shape() {
            Ok(shape) => shape,
            Err(why) => return self.leave_out(&name, why),
        };
        let (id, element, compression) =
            (MAP_ID_MIN + self.streams.len() as u32, sent.element, sent.compression);
        let stream = StreamInfo { id, name, element, shape, compression };
        if stream.name.len() > NAME_BYTES_MAX || !stream.is_valid() {
            return self.leave_out(&stream.name, "its name or its shape cannot be that of a stream");
        }
        let from = sent.bytes.as_ptr().addr() - base;
        self.streams.push(stream);
        self.ranges.push(from..from + bytes);
    }

    /// Notes that a map is not recorded.
    pub(super) fn leave_out(&mut self, name: &str, why: impl std::fmt::Display) {
        self.remark(format!("the map {} is not recorded: {why}", quoted(name)));
    }

    /// Notes what a user should know; texts of the detector make it only so long.
    pub(super) fn remark(&mut self, mut remark: String) {
        if let Some((end, _)) = remark.char_indices().nth(REMARK_CHARS_MAX) {
            remark.truncate(end);
        }
        if self.remarks.len() < REMARKS_MAX {
            self.remarks.push(remark);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Keeps the message that contains the maps, which arrived at `arrival_ns`.
    pub(super) fn keep(&mut self, message: Vec<u8>, arrival_ns: u64) {
        (self.bytes, self.arrival_ns) = (message, arrival_ns);
    }

    pub(super) fn streams(&self) -> &[StreamInfo] {
        &self.streams
    }

    /// Maps that have not been handed out.
    pub(super) fn left(&self) -> Range<usize> {
        self.taken..self.streams.len()
    }

    /// Time of arrival, ns since the Unix epoch, and payload of a map that has not been handed out.
    pub(super) fn event(&self, index: usize) -> (u64, &[u8]) {
        let range = self.ranges.get(index).cloned().unwrap_or_default();
        (self.arrival_ns, self.bytes.get(range).unwrap_or_default())
    }

    /// Takes the next map. The memory of the message is free after the last one.
    pub(super) fn take(&mut self) {
        self.taken += 1;
        if self.left().is_empty() {
            self.bytes = Vec::new();
        }
    }

    pub(super) fn take_remarks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.remarks)
    }
}

#[cfg(test)]
#[path = "maps_tests.rs"]
mod tests;
