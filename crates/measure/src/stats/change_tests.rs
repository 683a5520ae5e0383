//! Detection of 30 % drops in disk-like noise, and false alarms: hundreds of seeded runs each.
use fastrand::Rng;
use proptest::prelude::*;

use super::*;

/// Noise of a rate sampled once per second.
#[derive(Clone, Copy, Debug)]
struct Noise {
    /// Standard deviation of its logarithm.
    sigma: f64,
    /// Correlation from one second to the next.
    correlation: f64,
    /// Probability of a second in which almost nothing is written.
    stalls: f64,
}

/// A quiet disk, one with jitter, one on a shared machine.
const NOISES: [Noise; 3] = [
    Noise { sigma: 0.01, correlation: 0.0, stalls: 0.002 },
    Noise { sigma: 0.05, correlation: 0.5, stalls: 0.01 },
    Noise { sigma: 0.06, correlation: 0.7, stalls: 0.02 },
];
const SECONDS: u64 = 300;
const RUNS: u64 = 1000;
const CLIFFS: u64 = 300;

/// A run with level `level(second)`.
fn simulate(seed: u64, noise: Noise, level: impl Fn(u64) -> f64) -> Vec<f64> {
    let mut rng = Rng::with_seed(seed);
    // Box and Muller (1958).
    let mut normal = move || {
        let (radius, angle) = (rng.f64().max(1e-300), rng.f64());
        ((-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos(), rng.f64(), rng.f64())
    };
    let mut jitter = noise.sigma * normal().0;
    let new = (1.0 - noise.correlation.powi(2)).sqrt() * noise.sigma;
    (0..SECONDS)
        .map(|second| {
            let (random, chance, rest) = normal();
            jitter = noise.correlation * jitter + new * random;
            let stalled = if chance < noise.stalls { rest * 0.3 } else { 1.0 };
            level(second) * jitter.exp() * stalled
        })
        .collect()
}

fn changes(values: &[f64]) -> Vec<Change> {
    let mut detector = ChangeDetector::default();
    values.iter().filter_map(|value| detector.push(*value)).collect()
}

#[test]
fn less_than_one_false_alarm_in_100_steady_runs() {
    for noise in NOISES {
        let steady = (0..RUNS).filter(|seed| changes(&simulate(*seed, noise, |_| 1.5e9)).is_empty()).count();
        assert!(steady as u64 > RUNS * 99 / 100, "{noise:?}: alarms in {} runs", RUNS - steady as u64);
    }
}

#[test]
fn a_cliff_of_30_percent_is_noticed_within_10_seconds() {
    for (noise, part) in NOISES.into_iter().zip([99, 99, 95]) {
        for cliff in [25, 150, 280] {
            let (mut delays, mut misplaced) = (Vec::new(), 0);
            for seed in 0..CLIFFS {
                let values = simulate(seed, noise, |second| if second < cliff { 1.5e9 } else { 1.05e9 });
                let noticed = changes(&values).into_iter().find(|change| change.noticed >= cliff);
                delays.push(noticed.map_or(u64::MAX, |change| change.noticed + 1 - cliff));
                let right = noticed.is_some_and(|change| {
                    (change.after / change.before - 0.7).abs() < 0.15 && change.at.abs_diff(cliff) <= 3
                });
                misplaced += u64::from(!right);
            }
            delays.sort_unstable();
            let (half, most) = (delays[delays.len() / 2], delays[delays.len() * part / 100]);
            assert!(half <= 6 && most <= 10, "{noise:?} at {cliff}: half in {half} s, {part} % in {most} s");
            assert!(misplaced < CLIFFS / 20, "{noise:?} at {cliff}: {misplaced} at the wrong place");
        }
    }
}

#[test]
fn a_recovery_is_a_change_too_and_nothing_else_is() {
    let level = |second| if (100..140).contains(&second) { 1.0e9 } else { 2.0e9 };
    let mut right = 0;
    for seed in 0..CLIFFS {
        let found = changes(&simulate(seed, NOISES[1], level));
        let [down, up] = found[..] else { continue };
        let there = down.at.abs_diff(100) <= 2 && up.at.abs_diff(140) <= 2;
        right += u64::from(there && down.after < down.before && up.after > up.before);
    }
    assert!(right > CLIFFS * 97 / 100, "{right} of {CLIFFS}");
}

#[test]
fn stalls_of_one_second_are_no_change_and_an_end_is() {
    let mut values = vec![1.0; 100];
    for at in [30, 50, 51, 70] {
        values[at] = 0.0;
    }
    assert_eq!(changes(&values), []);
    values[90..].fill(0.0);
    let found = changes(&values);
    assert_eq!((found.len(), found[0].at, found[0].noticed), (1, 90, 92));
}

#[test]
fn a_noisy_machine_gives_no_alarms_but_is_watched_with_more_patience() {
    let noise = Noise { sigma: 0.1, correlation: 0.7, stalls: 0.02 };
    let runs = 200;
    let alarms = (0..runs).filter(|seed| !changes(&simulate(*seed, noise, |_| 1.0)).is_empty()).count();
    assert!(alarms <= 6, "{alarms} of {runs}");
    let level = |second| if second < 100 { 1.0 } else { 0.4 };
    let seen = (0..runs).filter(|seed| !changes(&simulate(*seed, noise, level)).is_empty()).count();
    assert!(seen >= 190, "{seen} of {runs}");
}

#[test]
fn a_great_fall_is_told_within_10_seconds_on_a_restless_level() {
    for (sigma, correlation) in [(0.3, 0.5), (0.45, 0.5)] {
        let noise = Noise { sigma, correlation, stalls: 0.02 };
        let steady = (0..RUNS).filter(|seed| changes(&simulate(*seed, noise, |_| 1.0)).is_empty()).count();
        assert!(steady as u64 > RUNS * 9 / 10, "{noise:?}: alarms in {} runs", RUNS - steady as u64);
        for cliff in [12, 25, 150, 280] {
            let delay = |seed| {
                let level = |second| if second < cliff { 1.0 } else { 0.02 };
                let found = changes(&simulate(seed, noise, level));
                found.iter().find(|c| c.noticed >= cliff).map_or(u64::MAX, |c| c.noticed + 1 - cliff)
            };
            let mut delays: Vec<u64> = (0..CLIFFS).map(delay).collect();
            delays.sort_unstable();
            let (half, most) = (delays[delays.len() / 2], delays[delays.len() * 95 / 100]);
            assert!(half <= 4 && most <= 10, "{noise:?} at {cliff}: half in {half} s, 95 % in {most} s");
        }
    }
}

proptest! {
    #[test]
    fn any_values_give_ordered_changes(values in prop::collection::vec(any::<f64>(), 0..400)) {
        let mut last = None;
        for change in changes(&values) {
            prop_assert!(change.at <= change.noticed && change.noticed < values.len() as u64);
            prop_assert!(last.is_none_or(|last| last < change.at));
            last = Some(change.noticed);
        }
    }

    #[test]
    fn the_unit_does_not_matter(seed in 0u64..1000, unit in -20i32..20) {
        let level = |second| if second < 150 { 1.0 } else { 0.5 };
        let values = simulate(seed, NOISES[1], level);
        let scaled: Vec<f64> = values.iter().map(|value| value * 2f64.powi(unit)).collect();
        let places = |values: &[f64]| changes(values).iter().map(|c| (c.at, c.noticed)).collect::<Vec<_>>();
        prop_assert_eq!(places(&values), places(&scaled));
    }
}
