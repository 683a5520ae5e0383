//! Event for display: description and payload.
mod thin;

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use self::thin::thin;

/// HTTP header with the description of an event, as JSON in ASCII; the body is the payload.
pub const EVENT_HEADER: &str = "keepup-event";
/// Largest event that is read into memory for display, in bytes.
pub const EVENT_BYTES_MAX: u64 = 256 << 20;

/// Description of an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventCard {
    /// Stream id.
    pub stream: u32,
    /// Stream name.
    pub name: String,
    /// Element type.
    pub element: String,
    /// Elements along each dimension; empty means opaque bytes.
    pub shape: Vec<u64>,
    /// Compression, if any.
    pub compression: Option<String>,
    /// Sequence number within the stream.
    pub sequence: u64,
    /// Due time, ns since the Unix epoch.
    pub timestamp_ns: u64,
}

/// A copied event.
#[derive(Debug)]
pub struct EventCopy {
    /// Description.
    pub card: EventCard,
    /// Its payload.
    pub payload: Bytes,
}

/// Description sent with a payload.
#[derive(Debug, Serialize)]
struct Head<'a> {
    /// Description with the shape as sent, after thinning.
    #[serde(flatten)]
    card: Cow<'a, EventCard>,
    /// Size of the payload before thinning, in bytes.
    bytes: usize,
    /// Shape before thinning, if thinned.
    whole_shape: Option<&'a [u64]>,
    /// Selected events that this subscriber has missed so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    missed: Option<u64>,
}

impl EventCopy {
    /// Creates a copy with its payload in `owner`, which is dropped with the last reference.
    pub fn new(card: EventCard, owner: impl AsRef<[u8]> + Send + 'static) -> Self {
        Self { card, payload: Bytes::from_owner(owner) }
    }

    /// Description as JSON, and payload; images and waveforms are thinned to at most `preview`
    /// elements along each dimension. `missed` is the number of events that a subscriber has
    /// missed.
    pub fn serialize(&self, preview: Option<u64>, missed: Option<u64>) -> (String, Bytes) {
        let whole = &self.card;
        let (card, whole_shape, payload) = match preview.and_then(|most| thin(whole, &self.payload, most)) {
            Some((shape, payload)) => {
                let card = EventCard { shape, ..whole.clone() };
                (Cow::Owned(card), Some(whole.shape.as_slice()), Bytes::from(payload))
            }
            None => (Cow::Borrowed(whole), None, self.payload.clone()),
        };
        let head = Head { card, bytes: self.payload.len(), whole_shape, missed };
        // Texts and numbers always serialize.
        (serde_json::to_string(&head).unwrap_or_default(), payload)
    }
}
