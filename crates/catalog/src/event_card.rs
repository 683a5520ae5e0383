//! Description of an event, the same for live runs and for recordings.
use keepup_live::EventCard;
use keepup_stream::wire::StreamInfo;

/// Describes an event of a stream.
#[must_use]
pub fn event_card(stream: &StreamInfo, sequence: u64, timestamp_ns: u64) -> EventCard {
    EventCard {
        stream: stream.id,
        name: stream.name.clone(),
        element: stream.element.to_string(),
        shape: stream.shape.clone(),
        compression: stream.compression.map(|compression| compression.as_str().to_owned()),
        sequence,
        timestamp_ns,
    }
}
