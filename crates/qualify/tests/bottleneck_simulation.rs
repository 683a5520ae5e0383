//! Forced bottlenecks on a simulated path: nominated by their occupancy and confirmed by counter-trials.

#[path = "simulation/chain.rs"]
mod chain;

use std::time::Duration;

use fastrand::Rng;
use keepup_qualify::bottleneck::{Evidence, nominees, unresolved};
use keepup_qualify::counter::{Counters, Setup, Step};
use keepup_results::Bottleneck;

use self::chain::{Chain, WIDE};

const SEEDS: u64 = 20;
const TRIAL: Duration = Duration::from_secs(4);
/// Ratio of neighbouring rates of the search.
const WIDTH: f64 = 1.05;
/// Highest rate of the search as a share of the source's speed, as in a session.
const SOURCE_SHARE: f64 = 0.8;

/// A path with one stage forced to be slow, by how much is random.
struct Forced {
    name: &'static str,
    stage: &'static str,
    is_pinned: bool,
    draw: fn(&mut Rng) -> Chain,
}

fn between(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low * (high / low).powf(rng.f64())
}

/// The slow stage carries at most 60 % of what the next one does.
const FORCED: [Forced; 9] = [
    Forced {
        name: "throttled volume",
        stage: "volume /data",
        is_pinned: false,
        draw: |rng| Chain { volume: between(rng, 10e6, 2e9), ..WIDE },
    },
    Forced {
        name: "shaped link",
        stage: "network",
        is_pinned: false,
        draw: |rng| Chain { link: between(rng, 10e6, 1.8e9), ..WIDE },
    },
    Forced {
        name: "one busy core, pinned",
        stage: "processor",
        is_pinned: true,
        draw: |rng| Chain { cpu: between(rng, 0.05, 0.35), ..WIDE },
    },
    Forced {
        name: "busy cores",
        stage: "processor",
        is_pinned: false,
        draw: |rng| Chain { cpu: between(rng, 0.05, 0.35), ..WIDE },
    },
    Forced {
        name: "slow source",
        stage: "source",
        is_pinned: false,
        draw: |rng| Chain { source: between(rng, 10e6, 1.8e9), ..WIDE },
    },
    Forced {
        name: "slow drain",
        stage: "drain",
        is_pinned: false,
        draw: |rng| Chain { drain: Some((300e6, between(rng, 5e6, 240e6))), ..WIDE },
    },
    Forced {
        name: "small pool",
        stage: "pool",
        is_pinned: false,
        draw: |rng| {
            // The stall outlasts pool and buffer at a fraction of the volume's rate.
            let pool = between(rng, 16e6, 64e6);
            let length_s = (pool + 4e6) / between(rng, 0.3e9, 1e9);
            Chain { pool, buffer: 4e6, stalls: Some((0.5, length_s.min(0.2))), ..WIDE }
        },
    },
    Forced {
        name: "reduce threads",
        stage: "reduction",
        is_pinned: false,
        draw: |rng| Chain { reduce: Some(between(rng, 10e6, 1.8e9)), ..WIDE },
    },
    Forced {
        name: "slow intake",
        stage: "recorder CPU",
        is_pinned: false,
        draw: |rng| Chain { intake: between(rng, 10e6, 1.8e9), ..WIDE },
    },
];

/// Evidence of the trials that failed, the lowest rate first, then of the unthrottled one.
fn searched(path: &Chain, rng: &mut Rng) -> Vec<Evidence> {
    let saturated = path.run(None, TRIAL, rng).evidence;
    let mut failed = Vec::new();
    let mut rate = (2.0 * saturated.rate).min(SOURCE_SHARE * path.source);
    for _ in 0..100 {
        let evidence = path.run(Some(rate), TRIAL, rng).evidence;
        if !evidence.failed {
            break;
        }
        failed.insert(0, evidence);
        rate /= WIDTH;
    }
    failed.into_iter().chain([saturated]).collect()
}

/// Diagnoses the path as `qualify` does, with its counter-trials.
fn diagnosed(path: &Chain, is_pinned: bool, pairs: usize, seconds: f64, seed: u64) -> Bottleneck {
    let mut rng = Rng::with_seed(seed);
    let evidence = searched(path, &mut rng);
    let setup = Setup { is_pinned, cores: 4, pool_bytes: path.pool as usize, available_bytes: 1 << 40 };
    let mut counters = Counters::new(nominees(&evidence), setup, pairs, Duration::from_secs_f64(seconds));
    while let Step::Trial { rate, change, is_changed, duration } = counters.next() {
        let outcome = path.changed(change, is_changed).run(rate, duration, &mut rng);
        counters.record(outcome.rate);
    }
    counters.bottleneck(&unresolved(&evidence)).1
}

/// Journal 0031 has the table.
#[test]
fn forced_bottlenecks_are_named_in_20_of_20() {
    let plans = [("default", 3, 1.5), ("quick", 2, 1.0)];
    let mut wrong = Vec::new();
    for forced in &FORCED {
        for (plan, pairs, seconds) in plans {
            let named = |seed: u64| {
                let path = (forced.draw)(&mut Rng::with_seed(1000 + seed));
                (path, diagnosed(&path, forced.is_pinned, pairs, seconds, seed))
            };
            let right = |found: &Bottleneck| found.stage == forced.stage && found.is_confirmed();
            let missed: Vec<_> = (0..SEEDS).map(named).filter(|(_, found)| !right(found)).collect();
            let count = SEEDS as usize - missed.len();
            println!("{:<22} {plan:<8} {count} of {SEEDS}", forced.name);
            wrong.extend(missed.into_iter().take(1).map(|found| (forced.name, plan, found)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A path whose nominee is not its limit: the counter-trials refute it.
#[test]
fn a_wrong_nominee_is_refuted() {
    let path = Chain { link: 1e9, ..WIDE };
    let mut rng = Rng::with_seed(1);
    let evidence = searched(&path, &mut rng);
    let mut all = nominees(&evidence);
    let volume = keepup_qualify::bottleneck::Stage::Volume("/data".into());
    all.insert(0, keepup_qualify::bottleneck::Nominee { stage: volume, ..all[0].clone() });
    let setup = Setup { cores: 4, available_bytes: 1 << 40, ..Setup::default() };
    let mut counters = Counters::new(all, setup, 3, Duration::from_millis(1500));
    while let Step::Trial { rate, change, is_changed, duration } = counters.next() {
        counters.record(path.changed(change, is_changed).run(rate, duration, &mut rng).rate);
    }
    let found = counters.bottleneck("").1;
    let first = found.counter_trials.first().unwrap();
    assert_eq!((found.stage.as_str(), first.confirmed), ("network", false));
}
