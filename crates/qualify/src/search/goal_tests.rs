//! Rounds of one goal and the loads they nominate.

use std::time::Duration;

use super::super::loads::Finding;
use super::*;

const TOP: usize = 300;

fn goal() -> Goal {
    Goal::new(&SearchPlan::standard(1e8, 2e9), 0.0)
}

fn nominate(goal: &mut Goal, loads: &Loads, hint: Option<usize>) -> Option<usize> {
    goal.nominate(loads, TOP, hint).map(|nomination| nomination.load)
}

/// Makes `load` a bound of every round.
fn decide(loads: &mut Loads, load: usize, holds: bool) {
    let loss_ratio = if holds { 0.0 } else { 0.5 };
    loads.add(load, Finding { duration_s: 30.0, loss_ratio, bad_anyway: false });
}

#[test]
fn rounds_grow_geometrically_while_the_width_halves() {
    let plan = SearchPlan {
        initial_trial: Duration::from_secs(1),
        trial: Duration::from_secs(4),
        sum_trials: 4,
        ..SearchPlan::standard(1e8, 2e9)
    };
    let rounds: Vec<_> =
        Goal::new(&plan, 0.0).targets.iter().map(|t| (t.trial_s, t.sum_s, t.width)).collect();
    assert_eq!(rounds, [(1.0, 1.0, 4), (2.0, 4.0, 2), (4.0, 16.0, 1)]);
    let single = Goal::new(&SearchPlan { preceding_targets: 0, ..plan }, 0.0);
    let only = &single.targets[..];
    assert!(matches!(only, [target] if (target.trial_s, target.sum_s, target.width) == (4.0, 16.0, 1)));
}

#[test]
fn it_starts_at_the_top_then_at_what_came_through_then_near_it() {
    let (mut goal, mut loads) = (goal(), Loads::default());
    assert_eq!(nominate(&mut goal, &loads, None), Some(TOP));
    decide(&mut loads, TOP, false);
    assert_eq!(nominate(&mut goal, &loads, Some(200)), Some(200));
    let mut lower = loads.clone();
    decide(&mut loads, 200, true);
    // Upward in steps that double from the width of the first round, 4.
    for next in [204, 212, 228, 260] {
        assert_eq!(nominate(&mut goal.clone(), &loads, Some(200)), Some(next));
        decide(&mut loads, next, true);
    }
    // Never beyond the middle of the remaining interval.
    assert_eq!(nominate(&mut goal, &loads, Some(200)), Some(280));
    // And downward alike.
    for (load, next) in [(200, 196), (196, 188), (188, 172)] {
        decide(&mut lower, load, false);
        assert_eq!(nominate(&mut goal.clone(), &lower, Some(200)), Some(next));
    }
    decide(&mut lower, 172, true);
    assert_eq!(nominate(&mut goal, &lower, Some(200)), Some(180));
}

#[test]
fn without_a_hint_it_bisects() {
    let (mut goal, mut loads) = (goal(), Loads::default());
    decide(&mut loads, 300, false);
    decide(&mut loads, 100, true);
    assert_eq!(nominate(&mut goal, &loads, None), Some(200));
}

#[test]
fn a_later_round_halves_then_checks_the_inherited_bounds() {
    let (mut goal, mut loads) = (goal(), Loads::default());
    let short = |holds: bool| Finding {
        duration_s: 1.0,
        loss_ratio: if holds { 0.0 } else { 0.5 },
        bad_anyway: false,
    };
    loads.add(100, short(true));
    loads.add(104, short(false));
    let middle = nominate(&mut goal, &loads, Some(100));
    assert_eq!((goal.round, middle), (1, Some(102)));
    let mut upper = loads.clone();
    decide(&mut loads, 102, true);
    assert_eq!(nominate(&mut goal.clone(), &loads, Some(100)), Some(104));
    // The upper bound does not hold: continue from there.
    loads.add(104, Finding { duration_s: 30.0, ..short(true) });
    assert_eq!(nominate(&mut goal.clone(), &loads, Some(100)), Some(106));
    decide(&mut upper, 102, false);
    assert_eq!(nominate(&mut goal.clone(), &upper, Some(100)), Some(100));
    decide(&mut upper, 100, false);
    assert_eq!(nominate(&mut goal, &upper, Some(100)), Some(98));
}

#[test]
fn it_is_settled_by_width_by_the_top_or_by_the_bottom() {
    for decided in [&[(7, true), (8, false)][..], &[(TOP, true)], &[(0, false)]] {
        let (mut goal, mut loads) = (goal(), Loads::default());
        for &(load, holds) in decided {
            decide(&mut loads, load, holds);
        }
        assert_eq!(nominate(&mut goal, &loads, None), None, "{decided:?}");
    }
}

#[test]
fn an_unfinished_knee_comes_from_the_last_round_that_has_one() {
    let (goal, mut loads) = (goal(), Loads::default());
    let grid = Grid::new(1e8, 2e9, 0.01);
    assert_eq!(goal.knee(&loads, &grid), None);
    let finding = Finding { duration_s: 1.0, loss_ratio: 0.0, bad_anyway: false };
    loads.add(100, finding);
    loads.add(90, finding);
    decide(&mut loads, 200, false);
    let knee = Interval { lower: grid.rate(100), upper: Some(grid.rate(200)) };
    assert_eq!(goal.knee(&loads, &grid), Some(knee));
    // A load found bad by a longer round is not good by a shorter one.
    decide(&mut loads, 95, false);
    let knee = Interval { lower: grid.rate(90), upper: Some(grid.rate(95)) };
    assert_eq!(goal.knee(&loads, &grid), Some(knee));
}
