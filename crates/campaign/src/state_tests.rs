//! Which run comes next, whatever has ended before.
use std::collections::BTreeSet;

use keepup_results::Quantity;
use proptest::prelude::*;

use super::*;
use crate::file::parse;

/// A campaign of `cells` cells.
pub(crate) fn campaign(cells: usize, repetitions: u32, more: &str) -> Campaign {
    let values: Vec<String> = (0..cells).map(|value| value.to_string()).collect();
    let text = format!(
        "name = \"c\"\nrepetitions = {repetitions}\n{more}\n[run]\nverb = \"disk sweep\"\n[axes]\nn = [{}]",
        values.join(", ")
    );
    parse(&text, "c", &[]).unwrap()
}

fn state(campaign: Campaign) -> State {
    let mut forecasts = Forecasts::default();
    for cell in campaign.cells() {
        let forecast = Forecast { bytes_written: 100, seconds: Some(2.0), ..Forecast::default() };
        forecasts.insert(&cell, forecast);
    }
    State::new(campaign, forecasts)
}

fn done(cell: u32, repetition: u32, exit_code: i32) -> RunDone {
    RunDone { cell, repetition, exit_code, seconds: 1.0, ..RunDone::default() }
}

/// Runs to the end; what was run, and how it ended.
fn all(state: &mut State, run: &mut dyn FnMut(u32, u32) -> RunDone) -> (Vec<(u32, u32)>, Action) {
    let mut order = Vec::new();
    loop {
        match state.next() {
            Action::Run { cell, repetition } => {
                order.push((cell, repetition));
                state.take(run(cell, repetition));
            }
            end => return (order, end),
        }
    }
}

#[test]
fn cells_alternate_repetition_by_repetition() {
    let (order, end) = all(&mut state(campaign(2, 3, "")), &mut |cell, n| done(cell, n, 0));
    assert_eq!(order, [(1, 1), (2, 1), (1, 2), (2, 2), (1, 3), (2, 3)]);
    assert_eq!(end, Action::End);
}

#[test]
fn a_random_order_has_every_cell_once_in_each_repetition() {
    let order = |seed: u64| {
        let more = format!("order = \"random\"\nseed = {seed}");
        all(&mut state(campaign(20, 3, &more)), &mut |cell, n| done(cell, n, 0)).0
    };
    let first = order(7);
    for (n, block) in first.chunks(20).enumerate() {
        assert!(block.iter().all(|(_, repetition)| *repetition as usize == n + 1));
        assert_eq!(block.iter().map(|(cell, _)| *cell).collect::<BTreeSet<_>>().len(), 20);
        assert!(!block.is_sorted());
    }
    assert_ne!(
        first[..20].iter().map(|at| at.0).collect::<Vec<_>>(),
        first[20..40].iter().map(|at| at.0).collect::<Vec<_>>()
    );
    assert_eq!(order(7), first);
    assert_ne!(order(8), first);
}

#[test]
fn what_failed_is_recorded_and_the_rest_is_run() {
    let mut state = state(campaign(3, 2, ""));
    let (order, end) = all(&mut state, &mut |cell, n| done(cell, n, if cell == 2 { 4 } else { 0 }));
    assert_eq!((order.len(), end), (6, Action::End));
    let progress = state.progress();
    assert_eq!((progress.done, progress.failed, progress.left, progress.spared), (6, 2, 0, 0));
    assert_eq!(progress.seconds_left, Some(0.0));
}

#[test]
fn rules_end_it() {
    let stopped = |rule: &str, code: i32| {
        let mut whole = campaign(3, 2, "");
        whole.stop =
            parse(&format!("name = \"c\"\n[run]\nverb = \"x\"\n[axes]\nn = [1]\n[stop]\n{rule}"), "c", &[])
                .unwrap()
                .stop;
        let (order, end) = all(&mut state(whole), &mut |cell, n| done(cell, n, code));
        match end {
            Action::Stop { why } => (order.len(), why),
            other => panic!("{rule}: {other:?}"),
        }
    };
    assert_eq!(stopped("failures = 2", 4), (2, "2 runs failed".into()));
    assert_eq!(stopped("time = \"3 s\"", 0), (3, "the runs took 3 s".into()));
    // Of 100 bytes each, the fifth would go beyond.
    assert_eq!(stopped("bytes = \"499 B\"", 0).0, 4);
    assert_eq!(stopped("bytes = \"400 B\"", 0).0, 4);
}

#[test]
fn a_cell_that_is_exact_enough_is_not_repeated() {
    let mut whole = campaign(2, 10, "");
    whole.stop.half_width = Some(0.02);
    let mut state = state(whole);
    let (order, end) = all(&mut state, &mut |cell, n| {
        // The first varies by a thousandth, the second by a half.
        let value = if cell == 1 { 100.0 + f64::from(n % 2) / 10.0 } else { 100.0 + 50.0 * f64::from(n % 2) };
        let figure = Figure {
            place: String::new(),
            what: "write".into(),
            quantity: Quantity::BytesPerSecond,
            values: vec![value],
            is_too_short: false,
        };
        RunDone { figures: vec![figure], ..done(cell, n, 0) }
    });
    assert_eq!(end, Action::End);
    assert_eq!(order.iter().filter(|at| at.0 == 1).count(), 3);
    assert_eq!(order.iter().filter(|at| at.0 == 2).count(), 10);
    let progress = state.progress();
    assert_eq!((progress.planned, progress.done, progress.spared, progress.left), (20, 13, 7, 0));
}

#[test]
fn time_left_follows_the_plan_and_then_the_clock() {
    let mut state = state(campaign(2, 2, ""));
    assert_eq!(state.progress().seconds_left, Some(8.0));
    // Plans say 2 s, the first run took 1 s.
    state.take(done(1, 1, 0));
    assert_eq!(state.progress().seconds_left, Some(3.0));
    let mut unknown = State::new(campaign(2, 2, ""), Forecasts::default());
    assert_eq!(unknown.progress().seconds_left, None);
    unknown.take(done(1, 1, 0));
    assert_eq!(unknown.progress().seconds_left, Some(3.0));
    assert_eq!(state.forecast_left().bytes_written, 300);
}

#[test]
fn what_is_none_of_the_campaigns_is_left_out() {
    let mut state = state(campaign(2, 2, ""));
    for (cell, repetition) in [(0, 1), (3, 1), (1, 0), (1, 3), (u32::MAX, u32::MAX)] {
        state.take(done(cell, repetition, 0));
    }
    state.take(done(1, 1, 0));
    state.take(done(1, 1, 4));
    assert_eq!((state.progress().done, state.progress().failed), (1, 0));
}

#[test]
fn ten_thousand_cells_have_a_next_one() {
    let mut state = state(campaign(10_000, 1, ""));
    let (order, end) = all(&mut state, &mut |cell, n| done(cell, n, 0));
    assert_eq!((order.len(), end), (10_000, Action::End));
}

proptest! {
    /// Whatever part of the runs has ended, in whatever order they were told: the rest comes, each once.
    #[test]
    fn it_goes_on_where_it_was(
        cells in 1usize..8,
        repetitions in 1u32..5,
        kept in any::<u64>(),
        seed in any::<bool>(),
    ) {
        let more = if seed { "order = \"random\"\nseed = 3" } else { "" };
        let (whole, _) = all(&mut state(campaign(cells, repetitions, more)), &mut |cell, n| done(cell, n, 0));
        let mut again = state(campaign(cells, repetitions, more));
        let is_kept = |n: usize| kept >> (n % 64) & 1 == 1;
        for (n, (cell, repetition)) in whole.iter().enumerate().rev() {
            if is_kept(n) {
                again.take(done(*cell, *repetition, 0));
            }
        }
        let (rest, end) = all(&mut again, &mut |cell, n| done(cell, n, 0));
        let left = whole.iter().enumerate().filter(|(n, _)| !is_kept(*n));
        let wanted: Vec<_> = left.map(|(_, at)| *at).collect();
        prop_assert_eq!(rest, wanted);
        prop_assert_eq!(end, Action::End);
        prop_assert_eq!(whole.iter().collect::<BTreeSet<_>>().len(), cells * repetitions as usize);
    }
}
