//! Rate search against a hundred simulated machines of each kind: correctness and cost of the
//! qualified rate. Machines, trials and the search are deterministic; the figures are printed with
//! `--nocapture`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests, outside of test functions")]

#[path = "simulation/machine.rs"]
mod machine;

use std::time::Duration;

use keepup_qualify::search::{End, Outcome, Phase, Search, SearchPlan, Step, TrialOutcome};
use machine::{CAPACITY, Machine, MachineKind};

const SEEDS: u64 = 100;
const QUIET_LARGE: MachineKind =
    MachineKind { name: "quiet, 8 s buffer", buffer_s: 8.0, stall_every_s: None };
const QUIET_SMALL: MachineKind =
    MachineKind { name: "quiet, 0.1 s buffer", buffer_s: 0.1, stall_every_s: None };
const STALLS_LARGE: MachineKind =
    MachineKind { name: "stalls, 1 s buffer", buffer_s: 1.0, stall_every_s: Some(20.0) };
const STALLS_SMALL: MachineKind =
    MachineKind { name: "stalls, 0.1 s buffer", buffer_s: 0.1, stall_every_s: Some(20.0) };

/// Results of a hundred searches.
struct Tally {
    /// Knees in ascending order, as shares of the capacity.
    knees: Vec<f64>,
    qualified: usize,
    /// Qualified rates that lost nothing in a fresh run of 120 s.
    valid: usize,
    stalls_exceed_buffer: usize,
    /// Seconds of trials before the soak, ascending.
    search_s: Vec<f64>,
    /// Seconds in all, ascending.
    total_s: Vec<f64>,
}

fn standard() -> SearchPlan {
    SearchPlan::standard(0.05 * CAPACITY, 2.0 * CAPACITY)
}

fn quick() -> SearchPlan {
    SearchPlan::quick(0.05 * CAPACITY, 2.0 * CAPACITY)
}

fn search(plan: SearchPlan, mut trial: impl FnMut(f64, Duration) -> TrialOutcome) -> Outcome {
    let mut search = Search::new(plan).unwrap();
    loop {
        let outcome = match search.next() {
            Step::Trial { rate, duration, .. } | Step::Soak { rate, duration } => trial(rate, duration),
            Step::Done(outcome) => return outcome,
        };
        search.record(outcome);
    }
}

fn tally(kind: MachineKind, plan_name: &str, plan: &SearchPlan) -> Tally {
    let mut tally = Tally {
        knees: Vec::new(),
        qualified: 0,
        valid: 0,
        stalls_exceed_buffer: 0,
        search_s: Vec::new(),
        total_s: Vec::new(),
    };
    let (mut qualified, mut trials) = (Vec::new(), Vec::new());
    for seed in 0..SEEDS {
        let mut machine = Machine::new(kind, seed);
        let outcome = search(shifted(plan, seed), |rate, duration| machine.run(rate, duration));
        tally.knees.extend(outcome.knee.map(|knee| knee.lower / CAPACITY));
        if let Some(rate) = outcome.qualified_rate {
            qualified.push(rate / CAPACITY);
            let fresh = Machine::new(kind, seed + 1_000_000).run(rate, Duration::from_secs(120));
            tally.valid += usize::from(fresh.lost_events == 0);
        }
        tally.stalls_exceed_buffer += usize::from(matches!(outcome.end, End::StallsExceedBuffer { .. }));
        let seconds = |soak: bool| -> f64 {
            let trials = outcome.trials.iter().filter(|trial| (trial.phase == Phase::Soak) == soak);
            trials.map(|trial| trial.duration.as_secs_f64()).sum()
        };
        trials.push(outcome.trials.len() as f64);
        tally.search_s.push(seconds(false));
        tally.total_s.push(seconds(false) + seconds(true));
    }
    tally.qualified = qualified.len();
    for figures in [&mut tally.knees, &mut tally.search_s, &mut tally.total_s, &mut qualified, &mut trials] {
        figures.sort_by(f64::total_cmp);
    }
    println!(
        "{:21} {plan_name:8} knee {}  qualified {} ({} of {SEEDS}, {} valid)  stalls exceed buffer {}\n\
         {:30} search {} s  all {} s  trials {}   (p10 median p90 max)",
        kind.name,
        spread(&tally.knees),
        spread(&qualified),
        tally.qualified,
        tally.valid,
        tally.stalls_exceed_buffer,
        "",
        spread(&tally.search_s),
        spread(&tally.total_s),
        spread(&trials),
    );
    tally
}

/// The plan with slightly shifted rates, to vary the capacity's position on the grid.
fn shifted(plan: &SearchPlan, seed: u64) -> SearchPlan {
    let factor = 1.0 + plan.width * seed as f64 / SEEDS as f64;
    SearchPlan { min_rate: plan.min_rate * factor, max_rate: plan.max_rate * factor, ..plan.clone() }
}

/// 10th percentile, median, 90th percentile and maximum of ascending figures.
fn spread(figures: &[f64]) -> String {
    [0.1, 0.5, 0.9, 1.0].map(|q| format!("{:.3}", quantile(figures, q))).join(" ")
}

fn quantile(figures: &[f64], q: f64) -> f64 {
    let last = figures.len().saturating_sub(1);
    figures.get((last as f64 * q).round() as usize).copied().unwrap_or(f64::NAN)
}

/// If the buffer bridges the stalls, the qualified rate must hold at a bounded cost.
fn holds(kind: MachineKind, plan_name: &str, plan: &SearchPlan) -> Tally {
    let tally = tally(kind, plan_name, plan);
    let knee = quantile(&tally.knees, 0.5);
    assert!((knee - 1.0).abs() < 0.02, "median knee {knee}");
    assert!(
        tally.valid >= 95,
        "{} of {SEEDS} qualified rates hold, {} qualified",
        tally.valid,
        tally.qualified
    );
    let longest = quantile(&tally.search_s, 1.0);
    assert!(longest <= plan.budget.as_secs_f64(), "search of {longest} s");
    tally
}

#[test]
fn quiet_machines_qualify_whatever_their_buffer() {
    for kind in [QUIET_LARGE, QUIET_SMALL] {
        let thorough = holds(kind, "standard", &standard());
        assert!(quantile(&thorough.search_s, 0.9) <= 100.0);
        // No soak of a quiet machine fails.
        assert!(quantile(&thorough.total_s, 1.0) <= 120.0 + 120.0);
        let first_look = holds(kind, "quick", &quick());
        assert!(quantile(&first_look.total_s, 1.0) <= 45.0);
    }
}

#[test]
fn stalls_that_the_buffer_bridges_do_not_disqualify() {
    let thorough = holds(STALLS_LARGE, "standard", &standard());
    assert!(quantile(&thorough.search_s, 0.9) <= 100.0);
    let first_look = holds(STALLS_LARGE, "quick", &quick());
    assert!(quantile(&first_look.total_s, 0.9) <= 45.0);
}

#[test]
fn stalls_longer_than_the_buffer_are_named() {
    let thorough = tally(STALLS_SMALL, "standard", &standard());
    assert!(thorough.stalls_exceed_buffer + thorough.valid >= 95);
    // With stalls every 20 s a 10 s soak often has none: a quick search cannot promise more than
    // its soak covers, but it always terminates.
    let first_look = tally(STALLS_SMALL, "quick", &quick());
    assert_eq!(first_look.stalls_exceed_buffer + first_look.qualified, SEEDS as usize);
    assert!(quantile(&first_look.total_s, 1.0) <= 30.0 + 4.0 * 10.0);
}

#[test]
fn loss_alone_would_overestimate_a_large_buffer() {
    let mut machine = Machine::new(QUIET_LARGE, 1);
    let by_loss_alone = search(standard(), |rate, duration| TrialOutcome {
        backlog_growing: false,
        ..machine.run(rate, duration)
    });
    assert!(by_loss_alone.knee.unwrap().lower > 1.5 * CAPACITY);
}

#[test]
fn the_same_outcomes_give_the_same_search() {
    let run = || {
        let mut machine = Machine::new(STALLS_LARGE, 7);
        search(standard(), |rate, duration| machine.run(rate, duration))
    };
    assert_eq!(run(), run());
}
