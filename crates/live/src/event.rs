//! An event for those who look: what it is, and its payload.
use std::borrow::Cow;

use bytes::Bytes;
use serde::Serialize;

use crate::thin::thin;

/// Header of an HTTP answer whose body is a payload: what the event is, as JSON in ASCII.
pub const EVENT_HEADER: &str = "keepup-event";

/// What an event is.
#[derive(Clone, Debug, PartialEq)]
pub struct EventCard {
    /// Number of its stream.
    pub stream: u32,
    /// Name of its stream.
    pub name: String,
    /// Type of its elements.
    pub element: String,
    /// Elements along each dimension; empty: opaque bytes.
    pub shape: Vec<u64>,
    /// How it is compressed, if it is.
    pub compression: Option<String>,
    /// Sequence number within the stream.
    pub sequence: u64,
    /// When it was due, ns since the Unix epoch.
    pub timestamp_ns: u64,
}

/// A copied event.
#[derive(Debug)]
pub struct EventCopy {
    /// What it is.
    pub card: EventCard,
    /// Its payload.
    pub payload: Bytes,
}

/// What is told of an event beside its payload.
#[derive(Debug, Serialize)]
struct Head<'a> {
    stream: u32,
    name: &'a str,
    element: &'a str,
    shape: Cow<'a, [u64]>,
    compression: Option<&'a str>,
    sequence: u64,
    timestamp_ns: u64,
    /// Payload of the event, in bytes, before it was thinned.
    bytes: usize,
    /// Shape before it was thinned, where it was.
    whole_shape: Option<&'a [u64]>,
    /// Events that this subscriber wished for and did not get, so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    missed: Option<u64>,
}

impl EventCopy {
    /// A copy whose payload belongs to `owner` until nobody looks at it any more.
    pub fn new(card: EventCard, owner: impl AsRef<[u8]> + Send + 'static) -> Self {
        Self { card, payload: Bytes::from_owner(owner) }
    }

    /// What it is, as JSON, and its payload; images and waveforms thinned to at most `preview` elements along
    /// each dimension. `missed` is what a subscriber missed so far.
    pub fn told(&self, preview: Option<u64>, missed: Option<u64>) -> (String, Bytes) {
        let card = &self.card;
        let thinned = preview.and_then(|most| thin(card, &self.payload, most));
        let is_thinned = thinned.is_some();
        let (shape, payload) = match thinned {
            Some((shape, payload)) => (Cow::Owned(shape), Bytes::from(payload)),
            None => (Cow::Borrowed(card.shape.as_slice()), self.payload.clone()),
        };
        let head = Head {
            stream: card.stream,
            name: &card.name,
            element: &card.element,
            shape,
            compression: card.compression.as_deref(),
            sequence: card.sequence,
            timestamp_ns: card.timestamp_ns,
            bytes: self.payload.len(),
            whole_shape: is_thinned.then_some(card.shape.as_slice()),
            missed,
        };
        // Texts and numbers can always be written.
        (serde_json::to_string(&head).unwrap_or_default(), payload)
    }
}
