//! Time until the volumes are full, by rate, drain and placement.
use keepup_workload::record::Sample;

use super::*;
use crate::judge::drain_rate;

const HOUR: f64 = 3600.0;

fn run_space(written: f64, drained: f64, usable_bytes: f64) -> RunSpace {
    RunSpace { usable_bytes, written, drained, run_seconds: 8.0 * HOUR, is_required: false }
}

#[test]
fn a_run_that_does_not_fit_says_when_the_volumes_are_full() {
    let short = run_space(80e6, 20e6, 79.2e9);
    assert_eq!(short.full_after(), Some(1320.0));
    assert_eq!(short.run_bytes(), 60e6 * 8.0 * HOUR);
    assert_eq!(
        short.shortage().unwrap(),
        "the volumes are full after 22 min: a run of 8 h needs 1.73 TB beyond what the drain frees in a ring \
         (record --keep), 79.2 GB can be used"
    );
    assert_eq!(run_space(80e6, 0.0, 80e6 * 8.0 * HOUR).shortage(), None);
    let almost = run_space(80e6, 0.0, 80e6 * 8.0 * HOUR - 1e6).shortage().unwrap();
    assert!(!almost.contains("drain"), "{almost}");
}

#[test]
fn a_drain_that_keeps_up_needs_no_space() {
    for drained in [80e6, 90e6] {
        let ring = run_space(80e6, drained, 1e9);
        assert_eq!((ring.full_after(), ring.run_bytes(), ring.shortage()), (None, 0.0, None));
    }
}

/// Samples of a trial of so many seconds with constant rates, bytes per second.
fn samples(seconds: u32, stored: f64, drained: f64) -> Vec<Sample> {
    let sample = |n: u32| {
        let t_s = f64::from(n) / 10.0;
        let (stored_bytes, drained_bytes) = ((t_s * stored) as u64, (t_s * drained) as u64);
        Sample { t_s, stored_bytes, drained_bytes, ..Sample::default() }
    };
    (0..=10 * seconds).map(sample).collect()
}

#[test]
fn a_drain_is_credited_with_the_rate_that_it_reached() {
    let credited = |nominal, samples: &[Sample]| credited_drain(nominal, drain_rate(samples));
    assert_eq!(credited(80e6, &samples(5, 100e6, 73e6)), 73e6);
    assert_eq!(credited(70e6, &samples(5, 100e6, 73e6)), 70e6, "at most the nominal rate");
    assert_eq!(credited(80e6, &samples(5, 100e6, 0.0)), 0.0, "it took nothing");
    for (what, unmeasured) in [("short", samples(1, 100e6, 80e6)), ("nothing to drain", samples(5, 0.0, 0.0))]
    {
        assert_eq!(credited(80e6, &unmeasured), DRAIN_SHARE * 80e6, "{what}");
    }
    assert_eq!(credited(80e6, &[]), DRAIN_SHARE * 80e6);
    assert_eq!(credited_drain(0.0, None), 0.0, "no drain");
}

/// A drain at the required rate passes its trials with 90 % of it; what it leaves behind fills the volumes.
#[test]
fn a_drain_that_passes_with_less_than_the_required_rate_fills_the_volumes() {
    let reached = drain_rate(&samples(30, 80e6, 74e6));
    let ring = run_space(80e6, credited_drain(80e6, reached), 10e9);
    assert_eq!(ring.full_after(), Some(10e9 / 6e6));
    assert!(ring.shortage().unwrap().starts_with("the volumes are full after 27.8 min"));
}

#[test]
fn a_run_that_fits_only_in_a_ring_is_named() {
    let ring = run_space(80e6, 79e6, 100e9);
    assert_eq!(
        ring.ring().unwrap(),
        "a run of 8 h fits only in a ring (record --keep), where the drain frees 79.0 MB/s: otherwise the \
         volumes are full after 20.8 min"
    );
    for (what, run_space) in [
        ("no drain", run_space(80e6, 0.0, 1e13)),
        ("fits without the drain", run_space(80e6, 79e6, 1e13)),
        ("does not fit", run_space(80e6, 20e6, 100e9)),
    ] {
        assert_eq!(run_space.ring(), None, "{what}");
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
