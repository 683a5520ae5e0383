//! Sums and products at and beyond the largest numbers.
use super::*;

#[test]
fn sums_of_counts_stop_at_the_largest_number() {
    assert_eq!([1u64, 2, 3].iter().saturating_sum::<u64>(), 6);
    assert_eq!([3usize, 4].into_iter().saturating_sum::<usize>(), 7);
    assert_eq!([1u64 << 63, (1 << 63) - 1].iter().saturating_sum::<u64>(), u64::MAX);
    assert_eq!([1u64 << 63, 1 << 63, 5].iter().saturating_sum::<u64>(), u64::MAX);
    assert_eq!([u32::MAX, 1].into_iter().saturating_sum::<u32>(), u32::MAX);
    assert_eq!(std::iter::empty::<u64>().saturating_sum::<u64>(), 0);
}

#[test]
fn products_of_counts_stop_at_the_largest_number() {
    assert_eq!([3usize, 4, 5].iter().saturating_product::<usize>(), 60);
    assert_eq!([1u64 << 32, 1 << 32].iter().saturating_product::<u64>(), u64::MAX);
    assert_eq!([1u64 << 32, 1 << 32, 0].iter().saturating_product::<u64>(), 0);
    assert_eq!(std::iter::empty::<u64>().saturating_product::<u64>(), 1);
}

#[test]
fn sums_of_floats_keep_their_fractions() {
    assert_eq!([0.5, 0.25].iter().float_sum(), 0.75);
    assert_eq!([1.5, -2.0].into_iter().float_sum(), -0.5);
    assert!(std::iter::empty::<f64>().float_sum().is_sign_positive());
}
