//! Tests of the grid.

use super::*;
use proptest::prelude::*;

#[test]
fn ends_are_exact_and_outside_rates_are_clamped() {
    let grid = Grid::new(3e6, 1e9, 0.01);
    assert_eq!(grid.rate(0), 3e6);
    assert_eq!(grid.rate(grid.top()), 1e9);
    assert_eq!(grid.at_most(2.9e6), None);
    assert_eq!(grid.at_most(f64::NAN), None);
    assert_eq!(grid.at_most(5e9), Some(grid.top()));
    assert_eq!(grid.at_least(1.0), 0);
    assert_eq!(grid.at_least(5e9), grid.top());
}

#[test]
fn a_single_rate_is_a_grid_of_one_load() {
    let grid = Grid::new(1e9, 1e9, 0.01);
    assert_eq!((grid.top(), grid.rate(0)), (0, 1e9));
    assert_eq!((grid.at_most(1e9), grid.at_least(1e9)), (Some(0), 0));
}

proptest! {
    #[test]
    fn neighbours_are_within_the_width_and_loads_round_trip(
        min in 1.0f64..1e9,
        span in 1.0f64..1e5,
        width in 0.0005f64..0.5,
    ) {
        let grid = Grid::new(min, min * span, width);
        for load in 0..=grid.top().min(2000) {
            let rate = grid.rate(load);
            prop_assert_eq!(grid.at_most(rate), Some(load));
            prop_assert_eq!(grid.at_least(rate), load);
            if load < grid.top() {
                let upper = grid.rate(load + 1);
                prop_assert!((upper - rate) / upper <= width * (1.0 + 1e-6));
                prop_assert_eq!(grid.at_most((rate + upper) / 2.0), Some(load));
                prop_assert_eq!(grid.at_least((rate + upper) / 2.0), load + 1);
            }
        }
    }
}
