//! A sample is spread over the recording, and its bound is that of the binomial distribution.
use super::*;

#[test]
fn one_segment_of_each_part_is_chosen() {
    let mut seen = [0; 100];
    for seed in 0..400 {
        let chosen = Selection::Share(0.05, Seed(seed)).of((0..100).collect::<Vec<usize>>());
        assert_eq!(chosen.iter().map(|at| at / 20).collect::<Vec<_>>(), [0, 1, 2, 3, 4], "{chosen:?}");
        chosen.iter().for_each(|at| seen[*at] += 1);
    }
    // Each is one of 20: expected 20 times in 400.
    assert!(seen.iter().all(|count| (4..=44).contains(count)), "{seen:?}");
    let of =
        |count: usize, share| Selection::Share(share, Seed(7)).of((0..count).collect::<Vec<usize>>()).len();
    assert_eq!((of(27, 0.05), of(1, 0.01), of(3, 1.0), of(0, 0.5), of(10, 0.0)), (2, 1, 3, 0, 1));
}

#[test]
fn any_number_of_first_jobs_is_spread_evenly() {
    let order = spread((0..8).collect::<Vec<_>>());
    assert_eq!(order, [0, 4, 2, 6, 1, 5, 3, 7]);
    assert_eq!(spread((0..5).collect::<Vec<_>>()), [0, 4, 2, 1, 3]);
}

#[test]
fn the_bound_is_that_of_the_binomial_distribution() {
    for read in [1, 2, 10, 59, 1000] {
        let share: f64 = damaged_share_max(read);
        assert!(((1.0 - share).powi(read as i32) - 0.05).abs() < 1e-9);
    }
    assert!((damaged_share_max(59) - 0.05).abs() < 0.001, "59 intact of 59: below 5 %");
    assert!((damaged_share_max(1000) * 1000.0 - 3.0).abs() < 0.01, "the rule of three");
}
