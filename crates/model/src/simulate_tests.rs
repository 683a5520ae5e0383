//! Comparison with hand calculations, queueing theory, and `solve`.
use proptest::prelude::*;

use super::*;
use crate::solve::solve;
use crate::system::{Currency, Resource, System, Use};

/// A stage with this service time and an unlimited buffer.
fn stage(event_seconds: f64) -> Stage {
    Stage {
        name: "disk".to_owned(),
        buffer_bytes: f64::INFINITY,
        bytes_per_second: f64::INFINITY,
        event_seconds,
        service: Service::Fixed,
        servers: 1,
        stalls: None,
    }
}

/// Periodic events of 1000 bytes.
fn simulation(period_seconds: f64, stages: Vec<Stage>, events: u64) -> Simulation {
    let (pattern, when_full) = (Pattern::Regular, WhenFull::Lose);
    let source = Source { event_bytes: 1000.0, period_seconds, pattern, when_full };
    Simulation { source, stages, events, seed: 1 }
}

fn assert_near(found: f64, wanted: f64, share: f64) {
    assert!((found - wanted).abs() <= share * wanted.abs(), "{found} is not {wanted}");
}

/// Mean of a figure over several seeds, and its standard error.
fn over_seeds(simulation: &Simulation, seeds: u32, figure: impl Fn(&Outcome) -> f64) -> (f64, f64) {
    let one = |seed| figure(&simulate(&Simulation { seed, ..simulation.clone() }).unwrap());
    let figures: Vec<f64> = (0..u64::from(seeds)).map(one).collect();
    let mean = figures.iter().sum::<f64>() / f64::from(seeds);
    let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
    (mean, (squares / f64::from(seeds - 1) / f64::from(seeds)).sqrt())
}

/// Within four standard errors of less than 2 %: a correct answer fails once in 16,000 times, and
/// seeds are fixed.
fn assert_by_chance((mean, error): (f64, f64), wanted: f64) {
    assert!((mean - wanted).abs() < 4.0 * error, "{mean} +- {error} is not {wanted}");
    assert!(error < 0.02 * wanted, "{mean} +- {error} says little");
}

/// Half a millisecond for each event, and a stall of 5 ms after 10 ms.
fn stalling() -> Simulation {
    let mut disk = stage(0.5e-3);
    disk.stalls = Some(Stalls { gap: Draw::Fixed(10e-3), length: Draw::Fixed(5e-3) });
    simulation(1e-3, vec![disk], 20)
}

#[test]
fn one_stall_by_hand() {
    // The events of 10 to 14 ms wait for the end at 15 ms, when the sixth comes: 6 in the buffer. From then
    // on one leaves each half millisecond; that of 10 ms at 15.5 ms, 5.5 ms late, that of 11 ms at 16 ms and
    // so on: 5.5, 5, 4.5 … 0.5 ms, sum 11 * 3 = 33 ms for those of 10 to 20 ms, of which 19 is the last with
    // 1.0: 32.5 ms.
    let outcome = simulate(&stalling()).unwrap();
    assert_eq!(outcome.events_out, 20);
    assert_eq!(outcome.stages[0].fill_bytes_max, 6000.0);
    assert_near(outcome.latency_seconds_max, 5.5e-3, 1e-9);
    assert_near(outcome.latency_seconds_p99, 5.5e-3, 1e-9);
    assert_near(outcome.latency_seconds_mean, (10.0 * 0.5e-3 + 32.5e-3) / 20.0, 1e-9);
    assert_eq!((outcome.stages[0].stalls, outcome.events_lost), (1, 0));
    assert_near(outcome.stages[0].stalled_seconds, 5e-3, 1e-9);
    assert_near(outcome.bytes_per_second_in, 1e6, 1e-9);
    assert_near(outcome.seconds, 20e-3, 1e-9);
    assert_near(outcome.stages[0].utilisation, 0.5, 1e-9);
}

#[test]
fn one_event_too_little_loses_one_and_holding_back_loses_none() {
    let needed = buffer_needed(&stalling()).unwrap();
    assert_eq!(needed.bytes, 6000.0);
    // 1 MB/s for 5 ms; gone at half of 2 MB/s again, for a third of the time the disk stalls: 1.333 - 1 MB/s.
    assert_near(needed.single_stall_bytes, 5000.0, 1e-9);
    assert_near(needed.recovery_seconds, 5000.0 / (2e6 / 1.5 - 1e6), 1e-9);
    let mut short = stalling();
    short.stages[0].buffer_bytes = 5000.0;
    let outcome = simulate(&short).unwrap();
    assert_eq!((outcome.events_lost, outcome.bytes_lost, outcome.events_out), (1, 1000.0, 19));
    // Full from 14 ms until the first leaves at 15.5 ms.
    assert_near(outcome.dead_seconds, 1.5e-3, 1e-9);
    short.source.when_full = WhenFull::Wait;
    let outcome = simulate(&short).unwrap();
    // That of 15 ms is held until 15.5 ms, and all later ones come half a millisecond later.
    assert_eq!((outcome.events_lost, outcome.events_out), (0, 20));
    assert_near(outcome.dead_seconds, 0.5e-3, 1e-9);
    assert_near(outcome.seconds, 20e-3, 1e-9);
}

#[test]
fn a_burst_fills_the_buffer_with_what_the_server_does_not_take() {
    // Ten events within 0.9 ms, 1 ms for each: when the tenth comes, none has left. 100 ms of silence empty
    // it.
    let mut burst = simulation(0.1e-3, vec![stage(1e-3)], 40);
    burst.source.pattern = Pattern::Bursts { events: 10, pause_seconds: 0.1 };
    let outcome = simulate(&burst).unwrap();
    assert_eq!(outcome.stages[0].fill_bytes_max, 10_000.0);
    assert_near(outcome.latency_seconds_max, 10e-3 - 0.9e-3, 1e-9);
    assert_near(outcome.bytes_per_second_in, 10_000.0 / 0.1009, 1e-9);
}

#[test]
fn waits_by_pollaczek_and_khinchine() {
    // W = load * service * (1 + variation^2) / (2 (1 - load)): half of it for a fixed service.
    for (load, service, factor) in
        [(0.5, Service::Fixed, 0.5), (0.8, Service::Fixed, 0.5), (0.8, Service::Exponential, 1.0)]
    {
        let mut disk = stage(load);
        disk.service = service;
        let mut queue = simulation(1.0, vec![disk], 100_000);
        queue.source.pattern = Pattern::Poisson;
        let waits = over_seeds(&queue, 20, |outcome| outcome.stages[0].wait_seconds_mean);
        assert_by_chance(waits, factor * load * load / (1.0 - load));
    }
}

#[test]
fn several_servers_by_erlangs_second_formula() {
    // Three servers, two of them busy on average: 4/9 of all events wait, W = 4/9 * service / (3 - 2).
    let mut disks = stage(2.0);
    (disks.servers, disks.service) = (3, Service::Exponential);
    let mut queue = simulation(1.0, vec![disks], 100_000);
    queue.source.pattern = Pattern::Poisson;
    assert_by_chance(over_seeds(&queue, 20, |outcome| outcome.stages[0].wait_seconds_mean), 4.0 / 9.0 * 2.0);
}

#[test]
fn a_full_buffer_loses_what_the_formula_says() {
    // M/M/1/K: (1 - r) r^K / (1 - r^(K + 1)).
    for (load, slots) in [(0.8f64, 5), (1.25, 10), (0.5, 3)] {
        let mut disk = stage(load);
        (disk.service, disk.buffer_bytes) = (Service::Exponential, 1000.0 * f64::from(slots));
        let mut queue = simulation(1.0, vec![disk], 100_000);
        queue.source.pattern = Pattern::Poisson;
        let lost = over_seeds(&queue, 20, |outcome| outcome.events_lost as f64 / 100_000.0);
        assert_by_chance(lost, (1.0 - load) * load.powi(slots) / (1.0 - load.powi(slots + 1)));
        // With random arrivals, an event finds the buffer full as often as it is full.
        let full = over_seeds(&queue, 20, |outcome| outcome.dead_seconds / outcome.seconds);
        assert_by_chance(full, lost.0);
    }
}

#[test]
fn stalls_take_their_share_of_the_rate() {
    let measured = Draw::Measured(vec![0.01, 0.02, 0.06]);
    for length in [Draw::Fixed(0.03), measured, Draw::Exponential(0.03)] {
        let mut disk = stage(1e-3);
        disk.buffer_bytes = 20e3;
        disk.stalls = Some(Stalls { gap: Draw::Exponential(0.07), length });
        let mut hungry = simulation(0.1e-3, vec![disk], 200_000);
        hungry.source.when_full = WhenFull::Wait;
        let (mean, _) = over_seeds(&hungry, 5, |outcome| outcome.bytes_per_second_out);
        assert_near(mean, 0.7e6, 0.01);
    }
}

#[test]
fn a_stage_that_is_full_holds_back_those_before_it() {
    // Each stage holds two, the last takes 2 ms: the first works no faster, and nothing is lost
    // between.
    let mut stages = [1e-3, 0.1e-3, 2e-3].map(stage).to_vec();
    stages.iter_mut().for_each(|stage| stage.buffer_bytes = 2000.0);
    let mut chain = simulation(0.5e-3, stages, 1000);
    let lossy = simulate(&chain).unwrap();
    assert!(lossy.events_lost > 700 && lossy.events_out + lossy.events_lost == 1000, "{lossy:?}");
    chain.source.when_full = WhenFull::Wait;
    let outcome = simulate(&chain).unwrap();
    assert_eq!((outcome.events_out, outcome.events_lost), (1000, 0));
    assert_near(outcome.bytes_per_second_out, 0.5e6, 1e-3);
    assert_near(outcome.stages[0].utilisation, 0.5, 1e-2);
    assert!(outcome.stages.iter().all(|stage| stage.fill_bytes_max == 2000.0));
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let refused = |change: fn(&mut Simulation)| {
        let mut bad = stalling();
        change(&mut bad);
        simulate(&bad).unwrap_err().to_string()
    };
    assert!(refused(|bad| bad.events = 0).contains("service times are 0"));
    assert!(refused(|bad| bad.events = EVENTS_MAX + 1).contains("exceed the limit of 4000000"));
    assert!(refused(|bad| bad.stages.clear()).contains("service times are 0"));
    assert!(refused(|bad| bad.stages[0].servers = 0).contains("servers"));
    assert!(refused(|bad| bad.stages[0].buffer_bytes = 999.0).contains("at least one event"));
    assert!(refused(|bad| bad.stages[0].event_seconds = f64::NAN).contains("NaN"));
    assert!(refused(|bad| bad.stages[0].event_seconds = 0.0).contains("at least 1 ns"));
    assert!(refused(|bad| bad.source.period_seconds = 0.0).contains("above 0"));
    assert!(refused(|bad| bad.source.period_seconds = 1e5).contains("10000 s"));
    assert!(refused(|bad| bad.source.event_bytes = -1.0).contains("-1 is not a size"));
    let stalls = |bad: &mut Simulation, gap, length| bad.stages[0].stalls = Some(Stalls { gap, length });
    let empty = Draw::Measured(Vec::new());
    let mut bad = stalling();
    stalls(&mut bad, Draw::Fixed(1.0), empty);
    assert!(simulate(&bad).unwrap_err().to_string().contains("length of stalls"));
    stalls(&mut bad, Draw::Fixed(0.0), Draw::Fixed(1.0));
    assert!(simulate(&bad).unwrap_err().to_string().contains("between stalls"));
    // Ten thousand stalls per event, each ten thousand seconds long.
    stalls(&mut bad, Draw::Fixed(1e-7), Draw::Fixed(1e4));
    assert!(simulate(&bad).unwrap_err().to_string().contains("seconds exceed the limit of 10000000"));
}

#[test]
fn no_buffer_suffices_for_a_source_that_is_too_fast() {
    let mut fast = stalling();
    fast.source.period_seconds = 0.7e-3;
    let why = buffer_needed(&fast).unwrap_err().to_string();
    assert!(why.contains("sends 1.429 MB/s") && why.contains("more than the 1.333 MB/s"), "{why}");
}

fn any_pattern() -> impl Strategy<Value = Pattern> {
    prop_oneof![
        Just(Pattern::Regular),
        Just(Pattern::Poisson),
        (1u32..20, 1e-3..0.1f64)
            .prop_map(|(events, pause_seconds)| Pattern::Bursts { events, pause_seconds }),
    ]
}

fn any_stage() -> impl Strategy<Value = Stage> {
    let draw = || {
        prop_oneof![
            (1e-4..0.1f64).prop_map(Draw::Fixed),
            (1e-4..0.1f64).prop_map(Draw::Exponential),
            prop::collection::vec(1e-4..0.1f64, 1..5).prop_map(Draw::Measured),
        ]
    };
    let stalls = prop::option::of((draw(), draw()).prop_map(|(gap, length)| Stalls { gap, length }));
    (1e-4..1e-2f64, 1e5..1e8f64, 1u32..5, 1u32..50, any::<bool>(), stalls).prop_map(
        |(event_seconds, bytes_per_second, servers, slots, is_fixed, stalls)| Stage {
            buffer_bytes: 1000.0 * f64::from(slots),
            bytes_per_second,
            service: if is_fixed { Service::Fixed } else { Service::Exponential },
            servers,
            stalls,
            ..stage(event_seconds)
        },
    )
}

proptest! {
    #[test]
    fn no_event_is_forgotten_and_the_same_seed_gives_the_same(
        pattern in any_pattern(), stages in prop::collection::vec(any_stage(), 1..5), holds in any::<bool>(),
        period in 1e-4..1e-2f64, seed in any::<u64>(),
    ) {
        let mut any = simulation(period, stages, 500);
        (any.source.pattern, any.seed) = (pattern, seed);
        any.source.when_full = if holds { WhenFull::Wait } else { WhenFull::Lose };
        let outcome = simulate(&any).unwrap();
        prop_assert_eq!(outcome.events_out + outcome.events_lost, 500);
        prop_assert!(!holds || outcome.events_lost == 0);
        prop_assert!(outcome.latency_seconds_mean <= outcome.latency_seconds_max * (1.0 + 1e-9));
        prop_assert!(outcome.latency_seconds_p99 <= outcome.latency_seconds_max);
        prop_assert!(outcome.latency_seconds_max <= outcome.seconds);
        prop_assert!(outcome.dead_seconds <= outcome.seconds * (1.0 + 1e-9));
        for (stage, set) in outcome.stages.iter().zip(&any.stages) {
            prop_assert!(stage.fill_bytes_max <= set.buffer_bytes && stage.utilisation <= 1.0);
        }
        prop_assert_eq!(outcome, simulate(&any).unwrap());
    }

    #[test]
    fn the_buffer_needed_is_the_smallest(
        pattern in any_pattern(), stages in prop::collection::vec(any_stage(), 1..4), seed in any::<u64>(),
    ) {
        let mut any = simulation(1.0, stages, 300);
        (any.source.pattern, any.seed) = (pattern, seed);
        let mean = any.source.gap_seconds_mean();
        // At four fifths of the slowest stage.
        let slowest = any.stages.iter().map(|one| {
            one.service_seconds(1000.0) / f64::from(one.servers) / one.working()
        }).fold(0.0, f64::max);
        let scale = slowest / 0.8 / mean;
        any.source.period_seconds *= scale;
        if let Pattern::Bursts { pause_seconds, .. } = &mut any.source.pattern {
            *pause_seconds *= scale;
        }
        let needed = buffer_needed(&any).unwrap();
        any.stages[0].buffer_bytes = needed.bytes;
        let enough = simulate(&any).unwrap();
        prop_assert_eq!(enough.events_lost, 0);
        prop_assert_eq!(enough.latency_seconds_mean, needed.outcome.latency_seconds_mean);
        if needed.bytes > 1000.0 {
            any.stages[0].buffer_bytes = needed.bytes - 1000.0;
            prop_assert!(simulate(&any).unwrap().events_lost > 0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn in_the_long_run_it_is_the_rate_of_the_slowest_stage(
        stages in prop::collection::vec(any_stage(), 1..5), operations_only in any::<bool>(),
    ) {
        let mut chain = simulation(1e-6, stages, 20_000);
        chain.source.when_full = WhenFull::Wait;
        for stage in &mut chain.stages {
            (stage.service, stage.stalls) = (Service::Fixed, None);
            stage.buffer_bytes = 1000.0 * f64::from(2 * stage.servers);
            if operations_only {
                stage.bytes_per_second = f64::INFINITY;
            }
        }
        let resource = |stage: &Stage| Resource {
            name: stage.name.clone(),
            currency: Currency::Seconds,
            capacity: f64::from(stage.servers),
            count: stage.servers,
        };
        let one = |(resource, stage): (usize, &Stage)| Use {
            resource,
            per_byte: 1.0 / stage.bytes_per_second,
            per_operation: stage.event_seconds,
            window: None,
            in_flight_bytes: None,
        };
        let resources = chain.stages.iter().map(resource).collect();
        let uses = chain.stages.iter().enumerate().map(one).collect();
        let machine = System { resources, uses, operation_bytes: 1000.0, beside: Vec::new() };
        let wanted = solve(&machine).bytes_per_second;
        let found = simulate(&chain).unwrap().bytes_per_second_out;
        prop_assert!((found / wanted - 1.0).abs() < 0.01, "{found} is not {wanted}");
    }
}
