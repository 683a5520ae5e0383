//! Which streams are maps.
use super::*;

#[test]
fn streams_of_maps_are_known_by_their_names() {
    for name in [
        "threshold_1-pixel_mask",
        "eiger1:31001-image-flatfield",
        "e:1-detector_config",
        COUNTRATE_LOOKUP_TABLE,
    ] {
        assert!(is_map(name), "{name}");
    }
    assert!(is_map(&stream_name("image", COUNTRATE_TABLE)));
    for name in ["threshold_1", "pixel_mask-2", "my_flatfield", "", "-"] {
        assert!(!is_map(name), "{name}");
    }
}
