//! Pages of simulated qualifications: search, counter-trials and verdict of `qualify` against simulated
//! machines, and no sentence on any page that contradicts them. `crates/report/tests/contradictions.rs` shows
//! that each contradiction is found.
#[path = "../../crates/qualify/tests/simulation/chain.rs"]
#[allow(dead_code, reason = "parts that other tests use")]
mod chain;
#[path = "../../crates/report/tests/contradictions/check.rs"]
#[allow(dead_code, reason = "parts that other tests use")]
mod check;
#[path = "../../crates/qualify/tests/simulation/machine.rs"]
#[allow(dead_code, reason = "parts that other tests use")]
mod machine;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use fastrand::Rng;
use keepup_qualify::bottleneck::{Evidence, Stage, VolumeEvidence, next, nominees, unresolved};
use keepup_qualify::counter::{Counters, Setup, Step as CounterStep};
use keepup_qualify::judge::first_failed;
use keepup_qualify::run_space::RunSpace;
use keepup_qualify::search::{End, Outcome, Phase, Search, SearchPlan, Step, TrialOutcome, TrialRecord};
use keepup_qualify::verdict::{
    Basis, became_slower, bounded_end, failed_above, judge, longest_run, soak, unbridged_above, untried,
};
use keepup_qualify::wear::Wear;
use keepup_results::{
    Bottleneck, Ceilings, Count, KneeInterval, LedgerSummary, ResultSummary, StorageCost, Stored,
    StoredResult, TrialResult, Verdict, VolumeCeiling,
};

use self::chain::{Chain, WIDE};
use self::check::{contradictions, pages};
use self::machine::{CAPACITY, Machine, MachineKind};

/// Machines of each kind, with each plan and source.
const SEEDS: u64 = 4;
const HEADROOM: f64 = 1.3;
const RUN_S: f64 = 28_800.0;
/// Highest rate of a search as a share of what the source reaches alone, as in a session.
const SOURCE_SHARE: f64 = 0.8;
const TRIAL: Duration = Duration::from_secs(4);

const KINDS: [MachineKind; 7] = [
    MachineKind::quiet("quiet, small buffer", 0.1),
    MachineKind::quiet("quiet, large buffer", 8.0),
    MachineKind { stalls: Some([(2.0, 200.0), (0.02, 2.0)]), ..MachineKind::quiet("stalls", 0.2) },
    MachineKind { drift: Some((0.3, 60.0)), ..MachineKind::quiet("drift", 1.0) },
    MachineKind { drift: Some((0.6, 90.0)), ..MachineKind::quiet("long drift", 1.0) },
    MachineKind { cache_s: Some((1.0, 60.0)), ..MachineKind::quiet("cache", 1.0) },
    MachineKind { pause_every_s: Some((5.0, 100.0)), ..MachineKind::quiet("pauses of the source", 1.0) },
];

/// What a source offers at most and what it reached when measured alone, as shares of the machine's capacity.
const SOURCES: [(f64, f64); 4] = [(8.0, 8.0), (1.5, 1.5), (0.9, 0.95), (0.9, 0.7)];

/// One qualification with its random choices.
struct Case {
    kind: MachineKind,
    is_quick: bool,
    source: f64,
    alone: f64,
    required: f64,
    /// Trials until the run is interrupted.
    trials_max: usize,
    run_space: RunSpace,
    seed: u64,
}

impl Case {
    fn new(kind: MachineKind, (source, alone): (f64, f64), seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let required = CAPACITY * 0.1 * 15f64.powf(rng.f64());
        let usable_bytes = required * RUN_S * if rng.bool() { 0.5 } else { 2.0 };
        let is_required = rng.u32(..4) == 0;
        Self {
            kind,
            is_quick: rng.bool(),
            source: source * CAPACITY,
            alone: alone * CAPACITY,
            required,
            trials_max: if rng.u32(..6) == 0 { rng.usize(..25) } else { usize::MAX },
            run_space: RunSpace {
                usable_bytes,
                written: required,
                drained: 0.0,
                run_seconds: RUN_S,
                is_required,
            },
            seed,
        }
    }

    /// Rate without a schedule, which the machine or the source limits.
    fn unthrottled(&self) -> f64 {
        CAPACITY.min(0.98 * self.source)
    }

    fn plan(&self) -> SearchPlan {
        let max_rate = (2.0 * self.unthrottled()).min(SOURCE_SHARE * self.alone);
        let min_rate = (max_rate / 20.0).min(self.required / 4.0);
        let plan = match self.is_quick {
            true => SearchPlan::quick_qualification(min_rate, max_rate),
            false => SearchPlan::qualification(min_rate, max_rate),
        };
        SearchPlan { target_rate: Some(self.required * HEADROOM), ..plan }
    }

    fn search(&self) -> Outcome {
        let plan = self.plan();
        let max_rate = plan.max_rate;
        let mut search = Search::new(plan).unwrap();
        let mut machine = Machine::new(self.kind, self.seed);
        let mut trials = 0;
        let mut outcome = loop {
            let step = search.next();
            let (rate, duration) = match step {
                Step::Trial { rate, duration, .. } | Step::Soak { rate, duration } => (rate, duration),
                Step::Done(outcome) => break outcome,
            };
            if trials == self.trials_max {
                break search.finish_now();
            }
            trials += 1;
            let offered_rate = rate.min(self.source);
            let found = match &step {
                Step::Soak { .. } => machine.soak(offered_rate, duration),
                _ => machine.run(offered_rate, duration),
            };
            let generator_limited = found.generator_limited || rate > self.source;
            search.record(TrialOutcome { offered_rate, generator_limited, ..found });
        };
        if max_rate >= SOURCE_SHARE * self.alone {
            outcome.end = bounded_end(outcome.end, self.alone, self.unthrottled());
        }
        outcome
    }

    fn summary(&self, sample: &ResultSummary, (stage, bottleneck): &(Stage, Bottleneck)) -> ResultSummary {
        let outcome = self.search();
        let is_throttled = self.source > CAPACITY;
        let judgement = judge(&Basis {
            required: self.required,
            headroom_wanted: HEADROOM,
            cpu_free_wanted: 0.2,
            cpu_share_at_required: Some(if self.seed.is_multiple_of(9) { 0.9 } else { 0.3 }),
            saturated: is_throttled.then(|| self.unthrottled()),
            offered_unthrottled: Some(self.unthrottled()),
            outcome: &outcome,
            fault: None,
            loads: &[],
            load_failure: None,
            run_space: self.run_space,
            wear: &Wear::default(),
        });
        let ceilings = Ceilings {
            source_bytes_per_second: Some(self.alone),
            network_bytes_per_second: Some(4.0 * CAPACITY),
            memory_bytes_per_second: Some(12.0 * CAPACITY),
            volumes: vec![VolumeCeiling { path: "/data".into(), bytes_per_second: Some(1.1 * CAPACITY) }],
        };
        let knee = outcome.knee;
        let held = outcome.qualified_rate.into_iter().chain(knee.map(|knee| knee.lower)).reduce(f64::max);
        let next = next(stage, &ceilings, None, held);
        let soaked = outcome.soak.map_or(0, |soak| (soak.rate * soak.seconds) as u64);
        let limits = [
            Some(longest_run(&outcome, RUN_S)),
            became_slower(&outcome),
            unbridged_above(&outcome, self.required),
            untried(&outcome, self.plan().max_rate),
        ];
        let unthrottled = unthrottled_trial(self.unthrottled(), sample);
        let trials = outcome.trials.iter().map(|record| trial(record, sample));
        ResultSummary {
            verdict: judgement.verdict,
            verdict_reasons: judgement.reasons,
            required_bytes_per_second: self.required,
            required_run_seconds: Some(RUN_S),
            headroom_wanted: HEADROOM,
            knee_bytes_per_second: knee.map(|knee| knee.lower),
            knee_interval: knee.map(|knee| KneeInterval {
                lower_bytes_per_second: knee.lower,
                upper_bytes_per_second: knee.upper,
            }),
            qualified_bytes_per_second: outcome.qualified_rate,
            headroom: outcome.qualified_rate.map(|rate| rate / self.required),
            failed_above: failed_above(&outcome),
            soak: soak(&outcome, soaked, Some(16_000_000_000)),
            bottleneck: Some(Bottleneck { next, ..bottleneck.clone() }),
            ceilings,
            ledger: ledger(&outcome),
            storage: StorageCost {
                hours_of_storage_left_at_required: self.run_space.full_after().map(|after| after / 3600.0),
                run_bytes: Some(self.run_space.run_bytes() as u64),
                usable_bytes: Some(self.run_space.usable_bytes as u64),
                ..sample.storage.clone()
            },
            limits: limits.into_iter().flatten().collect(),
            interrupted: outcome.end == End::Interrupted,
            trials: [unthrottled].into_iter().chain(trials).collect(),
            ..sample.clone()
        }
    }
}

/// The stored form of a trial, as the judge makes it.
fn trial(record: &TrialRecord, sample: &ResultSummary) -> TrialResult {
    let outcome = &record.outcome;
    let failed = first_failed(outcome);
    TrialResult {
        phase: record.phase.to_string(),
        asked_bytes_per_second: record.rate,
        seconds: outcome.duration_s,
        achieved_bytes_per_second: outcome.achieved_rate,
        durable_bytes_per_second: 0.97 * outcome.achieved_rate,
        lost_events: outcome.lost_events,
        backlog_growing: outcome.backlog_growing,
        stall_ms_max: outcome.longest_stall.map(|stall| stall.as_secs_f64() * 1e3),
        passed: failed.is_none(),
        failed_condition: failed,
        ..sample.trials[0].clone()
    }
}

fn unthrottled_trial(rate: f64, sample: &ResultSummary) -> TrialResult {
    TrialResult {
        phase: "saturated".into(),
        asked_bytes_per_second: rate,
        achieved_bytes_per_second: rate,
        durable_bytes_per_second: 0.95 * rate,
        lost_events: 0,
        backlog_growing: false,
        passed: true,
        failed_condition: None,
        ..sample.trials[0].clone()
    }
}

/// Ledger of the soak that held, else of the last one, else of the unthrottled trial.
fn ledger(outcome: &Outcome) -> LedgerSummary {
    let soaks = || outcome.trials.iter().filter(|trial| trial.phase == Phase::Soak);
    let held = soaks().find(|soak| soak.failed.is_none() && Some(soak.rate) == outcome.qualified_rate);
    let shown = held
        .or_else(|| soaks().next_back())
        .map(|soak| (soak.outcome.offered_events, soak.outcome.lost_events));
    let (due, lost) = shown.unwrap_or((40_000, 0));
    let count = |events: u64| Count { events, bytes: events * 100_000 };
    let lost = lost.min(due);
    let arrived = count(due - lost);
    LedgerSummary {
        sent: count(due),
        received: arrived,
        written: arrived,
        durable: arrived,
        lost: count(lost),
        lost_by_cause: [("sequence_gap".to_owned(), count(lost))].into(),
        ..LedgerSummary::default()
    }
}

/// Counter-trials of simulated paths, each complete, without memory for a larger pool, and cut off early.
fn bottlenecks() -> Vec<(Stage, Bottleneck)> {
    let paths = [
        Chain { volume: 0.4e9, ..WIDE },
        Chain { link: 0.9e9, ..WIDE },
        Chain { cpu: 0.2, ..WIDE },
        Chain { drain: Some((300e6, 60e6)), ..WIDE },
        Chain { pool: 16e6, buffer: 4e6, stalls: Some((0.5, 0.05)), ..WIDE },
        Chain { source: 0.5e9, ..WIDE },
    ];
    let (enough, ever) = (1u64 << 40, usize::MAX);
    let cuts = [(enough, ever), (0, ever), (enough, 0), (enough, 1), (enough, 3)];
    let each = |path: Chain| cuts.map(|(memory, trials_max)| diagnosed(&path, memory, trials_max));
    let mut all: Vec<_> = paths.into_iter().flat_map(each).collect();
    // Figures below the thresholds, without a trial to test them.
    let volume = VolumeEvidence { path: "/data".into(), full: 0.3, ..VolumeEvidence::default() };
    let vague = Evidence { failed: true, asked: Some(1e9), volumes: vec![volume], ..Evidence::default() };
    for evidence in [vague, Evidence { failed: true, ..Evidence::default() }] {
        let evidence = [evidence];
        let counters = Counters::new(nominees(&evidence), Setup::default(), 2, TRIAL);
        all.push(counters.bottleneck(&unresolved(&evidence)));
    }
    all
}

fn diagnosed(path: &Chain, available_bytes: u64, trials_max: usize) -> (Stage, Bottleneck) {
    let mut rng = Rng::with_seed(7);
    let saturated = path.run(None, TRIAL, &mut rng).evidence;
    let rates = [0.6, 1.1, 1.6].map(|share| share * saturated.rate);
    let tried = rates.map(|rate| path.run(Some(rate), TRIAL, &mut rng).evidence);
    let evidence: Vec<Evidence> = tried.into_iter().filter(|tried| tried.failed).chain([saturated]).collect();
    let setup = Setup { is_pinned: false, cores: 4, pool_bytes: path.pool as usize, available_bytes };
    let mut counters = Counters::new(nominees(&evidence), setup, 2, Duration::from_secs(1));
    for _ in 0..trials_max {
        let CounterStep::Trial { rate, change, is_changed, duration } = counters.next() else { break };
        counters.record(path.changed(change, is_changed).run(rate, duration, &mut rng).rate);
    }
    counters.bottleneck(&unresolved(&evidence))
}

/// A stored result, for what the simulation does not decide.
fn sample() -> ResultSummary {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../results/samples/qualify-v2.json");
    match StoredResult::open(&path).unwrap().summary {
        Stored::Qualify(summary) => ResultSummary {
            plan: serde_json::json!({}),
            environment: serde_json::json!({}),
            steady: None,
            loads: vec![],
            ..*summary
        },
        other => panic!("another kind of result: {other:?}"),
    }
}

#[test]
fn no_page_contradicts_a_simulated_qualification() {
    let (sample, bottlenecks) = (sample(), bottlenecks());
    let mut verdicts = BTreeSet::new();
    let mut words = String::new();
    let mut tried = 0;
    for kind in KINDS {
        for source in SOURCES {
            for seed in 0..SEEDS {
                let case = Case::new(kind, source, tried as u64 * SEEDS + seed);
                let summary = case.summary(&sample, &bottlenecks[tried % bottlenecks.len()]);
                let pages = pages(&summary);
                let found = contradictions(&summary, &pages);
                assert!(found.is_empty(), "{}, {source:?}: {found:#?}\n{}", kind.name, pages[1].1);
                verdicts.insert(summary.verdict.to_string());
                words.push_str(&pages[1].1);
                tried += 1;
            }
        }
    }
    // The sentences that are searched for contradictions stand on some of the pages.
    let all = [Verdict::Fit, Verdict::FitWithLimits, Verdict::NotFit, Verdict::Inconclusive];
    assert_eq!(verdicts, all.iter().map(ToString::to_string).collect::<BTreeSet<_>>());
    for sentence in [
        "the source offered at most",
        "lowest rate that failed",
        "no rate failed",
        "the source may not keep its schedule at ",
        "no rate above ",
        "the run was interrupted",
        "the longest run without loss took ",
        "space  full after ",
        " (not confirmed)",
        " not tested, ",
        "the machine became slower during the test: ",
        "the machine kept slowing down, so no rate was proven: the path carried ",
        "a trial had a stall of ",
        "The bottleneck was not resolved: candidates, with the share of their thresholds: volume /data (60",
        "The bottleneck was not resolved: no stage was near its threshold",
    ] {
        assert!(words.contains(sentence), "no page says `{sentence}`");
    }
}
