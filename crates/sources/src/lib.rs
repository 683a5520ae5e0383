//! Decoders of detector protocols: bytes of a connection become streams and events.
//!
//! The caller reads from the connection into the memory of a [`Decoder`] and takes items from it. Invariants:
//! a decoder does no I/O; it checks lengths against its limits before it allocates memory; an item stays the
//! same until [`Decoder::take`].

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may sum"))]
mod address;
pub mod capture;
mod continuity;
pub mod dectris;
pub mod directory;
mod error;
pub mod packets;
mod paths;
pub mod pvaccess;
mod rejects;
mod staging;
pub mod zmtp;

use std::collections::BTreeMap;

use keepup_stream::ledger::LossCause;
use keepup_stream::rejected::Rejection;
use keepup_stream::wire::StreamInfo;
use keepup_sys::datagram::Batch;

pub use address::{CaptureAddress, PacketAddress, SourceAddress, SourceAddressError};
pub use error::DetectorError;
pub use paths::{path_in_address, split_path};

/// Maximum number of streams of a detector, not counting maps and sources of packets. Their ids are below it.
pub const STREAMS_MAX: usize = 16;
/// Smallest stream id of the streams of packets beyond [`STREAMS_MAX`], in a recording of several sources.
pub const MORE_IDS_MIN: u32 = 1 << 13;
/// One past the largest of these ids.
pub const MORE_IDS_END: u32 = 1 << 15;
/// Smallest stream id of a map (`keepup_stream::detector_map`), above those of reduced streams.
pub const MAP_ID_MIN: u32 = 3 << 14;
/// Maximum number of maps of a detector.
pub const MAPS_MAX: usize = 3 * STREAMS_MAX;

/// Decoder of one detector's connection.
pub trait Decoder: Send {
    /// Memory for what arrives next.
    fn input(&mut self) -> Input<'_>;

    /// Takes the first `count` bytes or messages of [`Decoder::input`], which have been received at
    /// `unix_ns`, ns since the Unix epoch.
    fn received(&mut self, count: usize, unix_ns: u64);

    /// The next item; repeated calls return it until [`Decoder::take`]. `None` if more bytes are needed.
    ///
    /// # Errors
    /// The detector violates the protocol or sends data that cannot be recorded. Do not use the decoder after
    /// an error.
    fn item(&mut self) -> Result<Option<Item<'_>>, DetectorError>;

    /// Takes the item.
    fn take(&mut self);

    /// Metadata of the detector and its series, by name; available with [`Item::Streams`]. At most
    /// [`METADATA_MAX`] entries of at most [`METADATA_BYTES_MAX`] bytes.
    ///
    /// [`METADATA_MAX`]: keepup_stream::wire::METADATA_MAX
    /// [`METADATA_BYTES_MAX`]: keepup_stream::wire::METADATA_BYTES_MAX
    fn metadata(&self) -> &BTreeMap<String, String>;

    /// Sentences for the report about data that is not handed out; each is returned once.
    fn remarks(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Data that have arrived since the last call and are neither handed out nor reported as [`Item::Lost`].
    fn rejected(&mut self) -> Vec<Rejection> {
        Vec::new()
    }

    /// The connection has ended: what arrived in part is rejected, and what waits for earlier events is
    /// handed out now. [`Decoder::reconnect`] follows if the decoder gets another connection.
    fn disconnected(&mut self) {}

    /// The payload of an event was recorded; `crc` is its CRC-32. Called before [`Item::Event`] or
    /// [`Item::Complete`] is taken.
    fn completed(&mut self, _crc: u32) {}

    /// Bytes to send to the detector.
    fn outgoing(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Called about every 20 ms while connected, at `now_ns`, monotonic ns: adds what the protocol sends
    /// without being asked to [`Decoder::outgoing`].
    fn tick(&mut self, _now_ns: u64) {}

    /// Whether an item has become due without further bytes: it has waited long enough for earlier ones.
    fn has_due(&self) -> bool {
        false
    }

    /// Lower bound of the bytes that are missing for the next item; at least 1.
    fn bytes_due(&self) -> usize {
        1
    }

    /// Whether a message has arrived in part.
    fn is_within_message(&self) -> bool {
        false
    }

    /// Whether what the detector sends from now on arrives, as far as its protocol shows that.
    fn is_ready(&self) -> bool {
        false
    }

    /// Whether the start of a series has arrived; until [`Decoder::next_series`].
    fn has_series(&self) -> bool {
        false
    }

    /// Continues on a new connection. What arrived in part is lost; the series goes on.
    fn reconnect(&mut self) {}

    /// After [`Item::End`]: the next items are those of the next series on the same connection.
    fn next_series(&mut self) {}

    /// Nothing more will be received: what waits for earlier events is handed out now. `drops` is the number
    /// of messages that the kernel has dropped at the socket, as in [`Received::drops`].
    ///
    /// [`Received::drops`]: keepup_sys::datagram::Received::drops
    fn finish(&mut self, _drops: u32) {}
}

/// Memory of a decoder for what arrives next.
pub enum Input<'a> {
    /// Bytes of a connection; never empty.
    Bytes(&'a mut [u8]),
    /// Datagrams.
    Datagrams(&'a mut Batch),
}

/// What a detector sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Item<'a> {
    /// Streams of the following events; before the first event, again after a reconnection, and with more
    /// streams at the end whenever the decoder learns of one.
    Streams(&'a [StreamInfo]),
    /// An event.
    Event(Event<'a>),
    /// The start of an event. After it is taken, its payload is received past the decoder.
    Start(EventStart),
    /// The end of an event that began with [`Item::Start`].
    Complete {
        /// Whether the payload is valid; otherwise the event is discarded, and another one gets its sequence
        /// number.
        is_whole: bool,
    },
    /// An event that will never arrive.
    Lost {
        /// Index of its stream in [`Item::Streams`].
        stream: usize,
        /// Its sequence number.
        sequence: u64,
        /// The reason.
        cause: LossCause,
    },
    /// The detector has sent all events.
    End {
        /// Events per stream that the detector announced at the start of the series; 0 if unknown.
        events: u64,
        /// Number of streams that this applies to, from the first one. The others have no announced number.
        streams: usize,
    },
}

/// An event of a detector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event<'a> {
    /// Index of its stream in [`Item::Streams`].
    pub stream: usize,
    /// Sequence number within the stream.
    pub sequence: u64,
    /// Its time, ns since the Unix epoch.
    pub timestamp_ns: u64,
    /// Why events before it are missing, if any are and the decoder knows the reason.
    pub missing: Option<LossCause>,
    /// Its payload.
    pub payload: &'a [u8],
}

/// Start of an event with a payload that is received past the decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventStart {
    /// Index of its stream in [`Item::Streams`].
    pub stream: usize,
    /// Sequence number within the stream.
    pub sequence: u64,
    /// Its time, ns since the Unix epoch.
    pub timestamp_ns: u64,
    /// Length of its payload, bytes.
    pub bytes: u64,
}

/// Limits of what a detector may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest message, bytes.
    pub message_bytes_max: usize,
    /// Largest event, bytes.
    pub event_bytes_max: u64,
}
