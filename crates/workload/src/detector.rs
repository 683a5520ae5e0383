//! Conversion of a detector profile to source and recorder settings.
use std::time::Duration;

use keepup_plan::{Element, EventSize as ProfileSize, Placement, Profile};
use keepup_recorder::config::pool_bytes_needed;
use keepup_recorder::{PlacementKind, RecorderConfig};
use keepup_stream::source::{Burst, EventSize, Rate, SourcePlan};
use keepup_stream::wire::ElementType;

/// Seed of the simulated data and sizes, for reproducible runs.
const SEED: u64 = 0x6b65_6570;

/// Rate of a source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SourceRate {
    /// Rate of the profile.
    Profile,
    /// Bytes per second, mean over time including bursts.
    Bytes(f64),
    /// Events per second of all streams together, within bursts.
    Events(f64),
    /// Unthrottled: closed loop without bursts.
    Max,
}

/// Source settings for `profile` at `rate` during `duration` (default: the profile's).
pub fn source_plan(profile: &Profile, rate: SourceRate, duration: Option<Duration>) -> SourcePlan {
    let burst = profile.burst.map(|burst| Burst { on: burst.on.0, off: burst.off.0 });
    let events = profile.rate.events_per_second();
    let rate = match rate {
        SourceRate::Profile => Rate::EventsPerSecond(events),
        SourceRate::Bytes(bytes) => {
            Rate::EventsPerSecond(events * bytes / profile.required_bytes_per_second())
        }
        SourceRate::Events(events) => Rate::EventsPerSecond(events),
        SourceRate::Max => Rate::Max,
    };
    let size = match profile.event {
        ProfileSize::Fixed(bytes) => EventSize::Fixed(bytes.0),
        ProfileSize::Uniform { min, max } => EventSize::Uniform { min: min.0, max: max.0 },
        ProfileSize::LogNormal { median, sigma, max } => {
            EventSize::LogNormal { median: median.0, sigma, max: max.0 }
        }
    };
    SourcePlan {
        streams: profile.streams,
        connections: profile.connections,
        burst: if rate == Rate::Max { None } else { burst },
        duration: Some(duration.unwrap_or(profile.duration.0)),
        buffer_bytes: profile.buffer.0,
        seed: SEED,
        element: element(profile.element),
        shape: profile.shape.clone(),
        compressed: profile.compression.is_some(),
        ..SourcePlan::new(size, rate)
    }
}

/// Requested rate of a source, bytes per second, mean over time including bursts; none if
/// unthrottled.
pub fn asked_bytes_per_second(profile: &Profile, rate: SourceRate) -> Option<f64> {
    let required = profile.required_bytes_per_second();
    match rate {
        SourceRate::Profile => Some(required),
        SourceRate::Bytes(bytes) => Some(bytes),
        SourceRate::Events(events) => Some(required * events / profile.rate.events_per_second()),
        SourceRate::Max => None,
    }
}

/// Lower bound of the number of events of `profile` in `bytes`.
pub fn events_in(profile: &Profile, bytes: u64) -> u64 {
    bytes / profile.event.max().0.max(1)
}

fn element(element: Option<Element>) -> ElementType {
    match element {
        None | Some(Element::U8) => ElementType::U8,
        Some(Element::U16) => ElementType::U16,
        Some(Element::U32) => ElementType::U32,
        Some(Element::U64) => ElementType::U64,
        Some(Element::I8) => ElementType::I8,
        Some(Element::I16) => ElementType::I16,
        Some(Element::I32) => ElementType::I32,
        Some(Element::I64) => ElementType::I64,
        Some(Element::F32) => ElementType::F32,
        Some(Element::F64) => ElementType::F64,
    }
}

/// `base` with the recording settings of `profile`: placement, block, segment, largest event, pool,
/// reductions.
pub fn recorder_config(profile: &Profile, base: &RecorderConfig) -> RecorderConfig {
    let event_bytes = profile.event.max().0;
    let mut config = base.clone();
    config.placement = match profile.placement {
        Placement::Free => PlacementKind::Free,
        Placement::Pinned => PlacementKind::Pinned,
    };
    config.block_bytes = profile.block.0 as usize;
    // A segment holds at least eight of the largest blocks, a pool eight of the largest events and the blocks
    // of all streams.
    let segment = profile.segment.map_or(config.segment_bytes, |segment| segment.0);
    config.segment_bytes = segment.max(8 * event_bytes.max(profile.block.0)).next_multiple_of(4096);
    config.segment_auto = profile.segment.is_none();
    let intakes = config.intake_threads.max(1);
    let streams = pool_bytes_needed((profile.streams as usize).div_ceil(intakes), config.block_bytes);
    config.pool_bytes = config.pool_bytes.max(8 * event_bytes as usize).max(streams.saturating_mul(intakes));
    config.reductions = profile.reductions.clone();
    config
}

#[cfg(test)]
#[path = "detector_tests.rs"]
mod tests;
