//! An event for those who look: what it is, and its payload.
use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::thin::thin;

/// Header of an HTTP answer whose body is a payload: what the event is, as JSON in ASCII.
pub const EVENT_HEADER: &str = "keepup-event";
/// A larger event is not read into memory for somebody who looks, in bytes.
pub const EVENT_BYTES_MAX: u64 = 256 << 20;

/// What an event is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// What it is, as it is sent: with the shape that it was thinned to.
    #[serde(flatten)]
    card: Cow<'a, EventCard>,
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
        let whole = &self.card;
        let (card, whole_shape, payload) = match preview.and_then(|most| thin(whole, &self.payload, most)) {
            Some((shape, payload)) => {
                let card = EventCard { shape, ..whole.clone() };
                (Cow::Owned(card), Some(whole.shape.as_slice()), Bytes::from(payload))
            }
            None => (Cow::Borrowed(whole), None, self.payload.clone()),
        };
        let head = Head { card, bytes: self.payload.len(), whole_shape, missed };
        // Texts and numbers can always be written.
        (serde_json::to_string(&head).unwrap_or_default(), payload)
    }
}
