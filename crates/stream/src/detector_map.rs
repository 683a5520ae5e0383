//! Names of the streams of a detector's maps: flat fields, pixel masks, tables of the count rate correction,
//! and its configuration.
//!
//! Each map is the only event of a stream of its own. The stream is named after the channel and the map, such
//! as `threshold_1-pixel_mask`; a map for all channels has the name of the map alone.

/// Factor of each pixel.
pub const FLATFIELD: &str = "flatfield";
/// Flags of each pixel: bit 0 is a gap, bit 1 a dead pixel, and so on, as in NXdetector.
pub const PIXEL_MASK: &str = "pixel_mask";
/// Corrected count for each measured count.
pub const COUNTRATE_LOOKUP_TABLE: &str = "countrate_correction_lookup_table";
/// Pairs of measured and corrected count rates.
pub const COUNTRATE_TABLE: &str = "countrate_correction_table";

/// Configuration of the detector: a JSON document. Like a map, it is the only event of its stream, and no
/// image.
pub const DETECTOR_CONFIG: &str = "detector_config";

const MAPS: [&str; 5] = [FLATFIELD, PIXEL_MASK, COUNTRATE_LOOKUP_TABLE, COUNTRATE_TABLE, DETECTOR_CONFIG];

/// Name of the stream of a channel's map.
#[must_use]
pub fn stream_name(channel: &str, map: &str) -> String {
    format!("{channel}-{map}")
}

/// Whether a stream with this name is that of a map.
#[must_use]
pub fn is_map(stream: &str) -> bool {
    MAPS.iter()
        .any(|map| stream.strip_suffix(map).is_some_and(|front| front.is_empty() || front.ends_with('-')))
}

#[cfg(test)]
#[path = "detector_map_tests.rs"]
mod tests;
