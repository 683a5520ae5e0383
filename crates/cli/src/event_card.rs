//! Events of live runs and of recordings, told alike to those who look.
use keepup_live::EventCard;
use keepup_stream::wire::StreamInfo;

/// What an event of a stream is, for those who look at it.
pub(crate) fn event_card(stream: &StreamInfo, sequence: u64, timestamp_ns: u64) -> EventCard {
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
