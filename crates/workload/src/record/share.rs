//! Upper bound of what a trial writes to each volume.
use keepup_recorder::PlacementKind;
use keepup_stream::source::Rate;
use keepup_stream::wire::StreamInfo;

use super::TrialSpec;

/// Upper bound of the bytes written to each volume; 0 for an unthrottled source limited only by
/// time.
pub(super) fn share_bytes(spec: &TrialSpec, volumes: u64) -> u64 {
    let source = &spec.source;
    let by_rate = match (source.rate, source.duration) {
        (Rate::EventsPerSecond(rate), Some(time)) => Some((rate * time.as_secs_f64()).ceil() as u64),
        _ => None,
    };
    let events = by_rate.into_iter().chain(source.events).min().unwrap_or(0);
    let bytes = events.saturating_mul(stored_bytes_max(spec));
    match spec.recorder.placement {
        PlacementKind::Free => bytes.div_ceil(volumes.max(1)),
        PlacementKind::Pinned => {
            let streams = u64::from(source.streams.max(1));
            (u128::from(bytes) * u128::from(streams.div_ceil(volumes.max(1))) / u128::from(streams)) as u64
        }
    }
}

/// Maximum stored size of an event over all streams, bytes.
fn stored_bytes_max(spec: &TrialSpec) -> u64 {
    let (source, event_bytes) = (&spec.source, spec.source.size.max_bytes());
    let stored = |id: u32| {
        let info = StreamInfo {
            id,
            name: String::new(),
            element: source.element,
            shape: source.shape.clone(),
            compression: None,
        };
        keepup_recorder::reduce::stored_bytes_max(&spec.recorder.reductions, &info, event_bytes)
    };
    let ids = source.first_stream..source.first_stream + source.streams;
    // Fast path: most profiles reduce nothing and have many streams.
    if spec.recorder.reductions.is_empty() { event_bytes } else { ids.map(stored).max().unwrap_or(0) }
}
