//! Protocols in which detectors send their data, decoded to streams and events.
//!
//! A [`Decoder`] has the bytes of one connection put into its memory and hands out items. Invariants: it does
//! no I/O; lengths are checked against its limits before memory is allocated; what it has handed out stays
//! valid until it is taken.
mod address;
pub mod dectris;
mod error;
pub mod zmtp;

use std::collections::BTreeMap;

use keepup_stream::wire::StreamInfo;

pub use address::{SourceAddress, SourceAddressError};
pub use error::SourceError;

/// Most streams of a detector; their ids are below it.
pub const STREAMS_MAX: usize = 16;

/// Decoder of one detector's connection.
pub trait Decoder: Send {
    /// Memory for the next bytes of the connection; never empty.
    fn space(&mut self) -> &mut [u8];

    /// Takes the first `bytes` of [`Decoder::space`], which have been received.
    fn received(&mut self, bytes: usize);

    /// The next item, the same until it is taken. `None` if more bytes are needed.
    ///
    /// # Errors
    /// The detector has broken the protocol, or sends what cannot be recorded. The decoder is not used after
    /// that.
    fn item(&mut self) -> Result<Option<Item<'_>>, SourceError>;

    /// Takes the item.
    fn take(&mut self);

    /// What the detector says about itself and its series, by name; known with the streams. At most
    /// [`METADATA_MAX`] entries of at most [`METADATA_BYTES_MAX`] bytes.
    ///
    /// [`METADATA_MAX`]: keepup_stream::wire::METADATA_MAX
    /// [`METADATA_BYTES_MAX`]: keepup_stream::wire::METADATA_BYTES_MAX
    fn metadata(&self) -> &BTreeMap<String, String>;

    /// Bytes to send to the detector.
    fn outgoing(&mut self) -> Vec<u8>;

    /// At least this many more bytes are needed for the next item, at least 1.
    fn bytes_due(&self) -> usize;

    /// Whether a message has arrived in part.
    fn is_within_message(&self) -> bool;

    /// Continues on a new connection. What arrived in part is lost; the series goes on.
    fn reconnect(&mut self);
}

/// What a detector sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Item<'a> {
    /// Streams of the following events; before the first event, and again after a reconnection.
    Streams(&'a [StreamInfo]),
    /// An event.
    Event(Event<'a>),
    /// The detector has sent all events.
    End {
        /// Events of each stream that it has taken, sent or not, as it stated before.
        events: u64,
    },
}

/// An event of a detector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event<'a> {
    /// Its stream, by the position among the streams.
    pub stream: usize,
    /// Sequence number within the stream.
    pub sequence: u64,
    /// Its time, ns since the Unix epoch.
    pub timestamp_ns: u64,
    /// Its payload.
    pub payload: &'a [u8],
}

/// Limits of what a detector may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest message, bytes.
    pub message_bytes_max: usize,
}
