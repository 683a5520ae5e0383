//! Time until the volumes are full, by rate, drain and placement.
use super::*;

const HOUR: f64 = 3600.0;

fn room(written: f64, drained: f64, usable_bytes: f64) -> Room {
    Room { usable_bytes, written, drained, run_seconds: 8.0 * HOUR, is_required: false }
}

#[test]
fn a_run_that_does_not_fit_says_when_the_volumes_are_full() {
    let short = room(80e6, 20e6, 79.2e9);
    assert_eq!(short.full_after(), Some(1320.0));
    assert_eq!(short.run_bytes(), 60e6 * 8.0 * HOUR);
    assert_eq!(
        short.shortage().unwrap(),
        "the volumes are full after 22 min: a run of 8 h needs 1.73 TB beyond what the drain frees, 79.2 GB \
         can be used"
    );
    assert_eq!(room(80e6, 0.0, 80e6 * 8.0 * HOUR).shortage(), None);
    let almost = room(80e6, 0.0, 80e6 * 8.0 * HOUR - 1e6).shortage().unwrap();
    assert!(!almost.contains("drain"), "{almost}");
}

#[test]
fn a_drain_that_keeps_up_needs_no_space() {
    for drained in [80e6, 90e6] {
        let ring = room(80e6, drained, 1e9);
        assert_eq!((ring.full_after(), ring.run_bytes(), ring.shortage()), (None, 0.0, None));
    }
}

#[test]
fn placement_decides_which_volume_is_full_first() {
    let usable = |placement, streams, volumes| usable_bytes(placement, streams, volumes, 100);
    assert_eq!(usable(PlacementKind::Free, 1, 4), 400.0);
    assert_eq!(usable(PlacementKind::Pinned, 4, 4), 400.0);
    assert_eq!(usable(PlacementKind::Pinned, 1, 4), 100.0);
    // Of five streams two are on the first volume: it is full when each has recorded 50.
    assert_eq!(usable(PlacementKind::Pinned, 5, 4), 250.0);
    assert_eq!(usable(PlacementKind::Pinned, 508, 3), 100.0 * (508.0 / 170.0));
}
