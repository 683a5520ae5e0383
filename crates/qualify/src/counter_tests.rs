//! A nominee is confirmed by the effect of its change, and by nothing else.
use super::*;

/// A stage whose figures pass the rule.
fn nominee(stage: Stage, asked: Option<f64>) -> Nominee {
    Nominee { stage, evidence: "figures".into(), score: 1.0, asked }
}

const SETUP: Setup = Setup { is_pinned: false, cores: 8, pool_bytes: 1 << 20, available_bytes: 1 << 30 };

fn counters(stages: &[Stage]) -> Counters {
    let nominees = stages.iter().map(|stage| nominee(stage.clone(), Some(5e8))).collect();
    Counters::new(nominees, SETUP, 2, Duration::from_secs(1))
}

/// Runs the tests on a path whose rate is `rate(change)`, or `rate(None)` without one.
fn run(mut counters: Counters, rate: impl Fn(Option<Change>) -> (f64, bool)) -> (Bottleneck, usize) {
    let mut steps = 0;
    while let Step::Trial { change, is_changed, .. } = counters.next() {
        let (bytes_per_second, held) = rate(is_changed.then_some(change));
        counters.record(CounterRate { bytes_per_second, held });
        steps += 1;
    }
    (counters.bottleneck("nothing").1, steps)
}

fn volume() -> Stage {
    Stage::Volume("/a".into())
}

#[test]
fn the_first_nominee_whose_change_has_the_effect_is_the_bottleneck() {
    let discards = |change: Option<Change>| (if change == Some(Change::Discard) { 1.3e9 } else { 1e9 }, true);
    let (found, steps) = run(counters(&[volume(), Stage::Network]), discards);
    assert_eq!((found.stage.as_str(), found.is_confirmed(), steps), ("volume /a", true, 4));
    assert_eq!(found.evidence, "figures");
    assert_eq!(found.counter_trials[0].pairs.len(), 2);

    // The network carries no more alone, and discarding has no effect.
    let (found, steps) = run(counters(&[volume(), Stage::Network]), |_| (1e9, true));
    assert_eq!((found.stage.as_str(), steps), ("network", 8));
    let confirmed: Vec<bool> = found.counter_trials.iter().map(|counter| counter.confirmed).collect();
    assert_eq!(confirmed, [false, true]);
}

#[test]
fn without_an_effect_the_bottleneck_is_not_resolved() {
    let (found, _) = run(counters(&[volume(), Stage::Reduction]), |_| (1e9, true));
    assert_eq!((found.stage.as_str(), found.evidence.as_str()), ("not resolved", "nothing"));
    assert!(!found.is_confirmed());
    let (found, steps) = run(counters(&[]), |_| (1e9, true));
    assert_eq!((found.stage.as_str(), steps), ("not resolved", 0));
}

/// Which effect confirms which stage.
#[test]
fn each_stage_is_confirmed_by_its_own_effect() {
    let named = |stage: Stage, changed: (f64, bool), unchanged: (f64, bool)| {
        run(counters(&[stage]), |change| if change.is_some() { changed } else { unchanged }).0.is_confirmed()
    };
    let (same, up, down) = ((1e9, true), (1.2e9, true), (0.8e9, true));
    for stage in [volume(), Stage::Reduction] {
        assert!(named(stage.clone(), up, same) && !named(stage.clone(), same, same), "{stage}");
    }
    assert!(named(Stage::Processor, down, same) && !named(Stage::Processor, same, same));
    for stage in [Stage::Network, Stage::Source, Stage::Recorder] {
        assert!(named(stage.clone(), same, same) && !named(stage.clone(), (2e9, true), same), "{stage}");
    }
    for stage in [Stage::Pool, Stage::Drain] {
        let (holds, fails) = ((5e8, true), (5e8, false));
        assert!(named(stage.clone(), holds, fails), "{stage}");
        assert!(!named(stage.clone(), fails, fails) && !named(stage.clone(), holds, holds), "{stage}");
    }
}

#[test]
fn one_pair_against_the_effect_refutes_it() {
    let mut counters = counters(&[volume()]);
    for bytes_per_second in [1e9, 1.5e9, 1e9, 1.04e9] {
        counters.record(CounterRate { bytes_per_second, held: true });
    }
    assert_eq!(counters.next(), Step::Done);
    assert_eq!(counters.bottleneck("nothing").0, Stage::Unresolved);
}

#[test]
fn pinned_threads_are_freed_and_free_ones_get_less() {
    let change = |is_pinned, cores| {
        let setup = Setup { is_pinned, cores, ..SETUP };
        let one = vec![nominee(Stage::Processor, None)];
        match Counters::new(one, setup, 1, Duration::from_secs(1)).next() {
            Step::Trial { change, .. } => change,
            Step::Done => panic!("a trial"),
        }
    };
    assert_eq!(change(true, 8), Change::AnyCpu);
    assert_eq!((change(false, 2), change(false, 8)), (Change::BusyCores(1), Change::BusyCores(2)));
}

/// A rate that failed is tried again, long enough to judge a drain; other trials have no schedule.
#[test]
fn only_what_must_hold_has_a_rate() {
    let first = |stage| counters(&[stage]).next();
    let expected = Step::Trial {
        rate: Some(5e8),
        change: Change::NoDrain,
        is_changed: false,
        duration: Duration::from_secs(3),
    };
    assert_eq!(first(Stage::Drain), expected);
    let Step::Trial { rate, duration, .. } = first(volume()) else { panic!("a trial") };
    assert_eq!((rate, duration), (None, Duration::from_secs(1)));
}

#[test]
fn a_pool_that_does_not_fit_the_memory_is_named_untested() {
    let setup = Setup { available_bytes: 3 << 20, ..SETUP };
    let counters =
        Counters::new(vec![nominee(Stage::Pool, None), nominee(volume(), None)], setup, 2, Duration::ZERO);
    let (found, steps) = run(counters, |_| (1e9, true));
    assert_eq!((found.stage.as_str(), found.is_confirmed(), steps), ("pool", false, 0));
    let why = found.counter_trials[0].not_run.as_deref();
    assert_eq!(why, Some("the free memory does not hold a pool of 4.19 MB"));
}

#[test]
fn a_run_that_ends_early_leaves_the_nominee_unconfirmed() {
    let mut counters = counters(&[volume(), Stage::Network]);
    counters.record(CounterRate { bytes_per_second: 1e9, held: true });
    let (stage, found) = counters.bottleneck("nothing");
    assert_eq!((stage, found.is_confirmed()), (volume(), false));
    assert_eq!(found.counter_trials[0].not_run.as_deref(), Some("the run ended before"));
}

/// Figures below the rule name a candidate at most, whatever kept the test from running.
#[test]
fn an_untested_nominee_below_its_threshold_is_a_candidate() {
    let named = |score: f64, setup: Setup| {
        let vague = Nominee { score, ..nominee(Stage::Pool, None) };
        let counters = Counters::new(vec![vague], setup, 2, Duration::from_secs(1));
        let (stage, found) = counters.bottleneck("candidates");
        assert_eq!(stage.to_string(), found.stage);
        assert!(found.counter_trials[0].not_run.is_some());
        (found.stage, found.evidence)
    };
    let unresolved = ("not resolved".to_owned(), "candidates".to_owned());
    for setup in [SETUP, Setup { available_bytes: 0, ..SETUP }] {
        assert_eq!(named(0.99, setup), unresolved, "{setup:?}");
        assert_eq!(named(1.0, setup), ("pool".to_owned(), "figures".to_owned()), "{setup:?}");
    }
}

#[test]
fn one_pair_against_the_effect_is_enough_without_the_others() {
    for (changed, stage) in [(1.04e9, "not resolved"), (1.2e9, "volume /a")] {
        let mut counters = counters(&[volume()]);
        counters.record(CounterRate { bytes_per_second: 1e9, held: true });
        counters.record(CounterRate { bytes_per_second: changed, held: true });
        let found = counters.bottleneck("nothing").1;
        assert_eq!((found.stage.as_str(), found.is_confirmed()), (stage, false));
    }
}

#[test]
fn a_change_that_cannot_be_made_leaves_the_nominee_unconfirmed() {
    let mut counters = counters(&[volume(), Stage::Network]);
    counters.record(CounterRate { bytes_per_second: 1e9, held: true });
    counters.give_up("cannot allocate".into());
    assert_eq!(counters.next(), Step::Done);
    let (stage, found) = counters.bottleneck("nothing");
    assert_eq!((stage, found.is_confirmed()), (volume(), false));
    assert_eq!(found.counter_trials[0].not_run.as_deref(), Some("cannot allocate"));
}

#[test]
fn a_change_applies_to_one_trial_of_a_pair() {
    let config = |change: Change, is_changed| {
        let mut config =
            RecorderConfig::new(([127, 0, 0, 1], 0).into(), Target::Volumes(vec!["/a".into()]), "name");
        config.cpus = vec![1];
        change.apply(is_changed, &mut config);
        config
    };
    for change in [Change::Discard, Change::NoReduction] {
        assert_eq!(config(change, true).target, Target::Null);
    }
    assert_ne!(config(Change::Discard, false).target, Target::Null);
    assert_eq!(config(Change::NoReduction, false).target, Target::Null, "both are discarded");
    assert_eq!(config(Change::LargerPool(1 << 30), true).pool_bytes, 1 << 30);
    assert_eq!(config(Change::LargerPool(1 << 30), false).pool_bytes, 512 << 20);
    assert_eq!(config(Change::AnyCpu, true).cpus, Vec::<usize>::new());
    assert_eq!(config(Change::NoDrain, true).cpus, [1]);
}
