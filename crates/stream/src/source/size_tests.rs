//! Sizes depend on the seed and have the stated distribution.

use proptest::prelude::*;

use super::*;

fn sizes(size: EventSize) -> Vec<u64> {
    (0..20_000).map(|sequence| size.bytes(42, 3, sequence)).collect()
}

fn mean(sizes: &[u64]) -> f64 {
    sizes.iter().sum::<u64>() as f64 / sizes.len() as f64
}

#[test]
fn uniform_sizes_reach_both_ends() {
    let sizes = sizes(EventSize::Uniform { min: 10, max: 19 });
    for bytes in 10..=19 {
        let share = sizes.iter().filter(|s| **s == bytes).count();
        assert!((1_700..2_300).contains(&share), "{bytes}: {share} of 2000 expected");
    }
    assert!(sizes.iter().all(|s| (10..=19).contains(s)));
}

#[test]
fn log_normal_sizes_have_their_median_and_mean() {
    let size = EventSize::LogNormal { median: 10_000, sigma: 0.5, max: 1_000_000 };
    let mut sizes = sizes(size);
    let mean = mean(&sizes);
    sizes.sort_unstable();
    assert!((9_700..10_300).contains(&sizes[10_000]), "median {}", sizes[10_000]);
    let expected = size.mean_bytes() as f64;
    assert!((mean / expected - 1.0).abs() < 0.03, "mean {mean}, expected {expected}");
    assert!(
        (0.1585 - sizes.iter().filter(|s| **s as f64 > 10_000.0 * 0.5f64.exp()).count() as f64 / 2e4).abs()
            < 0.01
    );
}

#[test]
fn sizes_differ_between_streams_and_seeds() {
    let size = EventSize::Uniform { min: 0, max: u64::MAX };
    assert_eq!(size.bytes(1, 2, 3), size.bytes(1, 2, 3));
    let others = [size.bytes(2, 2, 3), size.bytes(1, 3, 3), size.bytes(1, 2, 4)];
    assert!(others.iter().all(|other| *other != size.bytes(1, 2, 3)));
}

proptest! {
    #[test]
    fn sizes_stay_within_their_bounds(
        seed: u64, stream: u32, sequence: u64, a: u64, b: u64, sigma in 0.0f64..10.0,
    ) {
        let (min, max) = (a.min(b), a.max(b));
        let uniform = EventSize::Uniform { min, max }.bytes(seed, stream, sequence);
        prop_assert!((min..=max).contains(&uniform));
        let normal = EventSize::LogNormal { median: min.max(1), sigma, max }.bytes(seed, stream, sequence);
        prop_assert!(normal <= max);
    }
}
