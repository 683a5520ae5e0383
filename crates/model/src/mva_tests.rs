//! Textbook networks, closed forms, and properties of any network.
use keepup_error::Diagnostic as _;
use proptest::prelude::*;

use super::*;
use crate::solve::solve;
use crate::system::{Currency, Flow, Resource, System, Use, Window};

fn queue(service_seconds: f64, servers: u32) -> Station {
    Station { name: format!("{servers} servers"), service_seconds, servers, kind: StationKind::Queueing }
}

fn delay(service_seconds: f64) -> Station {
    Station { name: "delay".to_owned(), service_seconds, servers: 1, kind: StationKind::Delay }
}

fn assert_near(found: f64, wanted: f64, share: f64) {
    assert!((found / wanted - 1.0).abs() <= share, "{found} is not {wanted}");
}

#[test]
fn a_timesharing_system_as_in_the_textbook() {
    // Jain, The Art of Computer Systems Performance Analysis, 1991, example 34.2: 16 visits to the processor
    // of 0.125 s, 10 to disk A of 0.3 s, 5 to disk B of 0.2 s, 4 s between requests. By hand: n = 1: 2 + 3 +
    // 1 = 6 s; 1 / (4 + 6) = 0.1 operations/s; queues 0.2, 0.3, 0.1. n = 2: 2 * 1.2 + 3 * 1.3 + 1 * 1.1 = 7.4
    // s; 2 / 11.4 = 0.17544; queues 0.42105, 0.68421, 0.19298. n = 3: 2 * 1.42105 + 3 * 1.68421 + 1.19298 =
    // 9.08772 s; 3 / 13.08772 = 0.22922.
    let stations = [queue(2.0, 1), queue(3.0, 1), queue(1.0, 1), delay(4.0)];
    let loads = exact(&stations, 20).unwrap();
    for (load, (response, rate)) in
        loads.iter().zip([(6.0, 0.1), (7.4, 0.175_438_6), (9.087_719, 0.229_222_5)])
    {
        assert_near(load.response_seconds, response, 1e-6);
        assert_near(load.operations_per_second, rate, 1e-6);
    }
    assert_near(loads[1].stations[1].queue, 0.684_210_5, 1e-6);
    assert_near(loads[1].stations[0].utilisation.unwrap(), 0.350_877_2, 1e-6);
    assert_eq!(loads[1].stations[3].utilisation, None);
    // With twenty, disk A is nearly saturated.
    assert_near(loads[19].operations_per_second, 1.0 / 3.0, 1e-3);
}

#[test]
fn equal_stations_share_operations_evenly() {
    // Balanced: each arrival finds (n - 1) / m at each station, so X = n / (D (n + m - 1)).
    let stations = [queue(0.01, 1), queue(0.01, 1), queue(0.01, 1)];
    for population in [1, 2, 7, 1000] {
        let wanted = f64::from(population) / (0.01 * f64::from(population + 2));
        assert_near(network(&stations, population).unwrap().operations_per_second, wanted, 1e-12);
        assert_near(approximate(&stations, population).unwrap().operations_per_second, wanted, 1e-12);
    }
}

/// Operations per second of machines that fail after `delay` and are repaired by `servers`, from the
/// equations of the Markov chain: `p(k + 1) / p(k)` is the rate into `k + 1` over the rate out of it.
fn repairmen(delay: f64, service: f64, servers: u32, population: u32) -> f64 {
    let (mut weight, mut all, mut served) = (1.0f64, 1.0f64, 0.0f64);
    for k in 1..=population {
        let working = f64::from(k.min(servers));
        weight *= f64::from(population - k + 1) / delay * service / working;
        all += weight;
        served += weight * working / service;
        if all > 1e200 {
            (weight, all, served) = (weight / 1e200, all / 1e200, served / 1e200);
        }
    }
    served / all
}

#[test]
fn several_servers_as_the_markov_chain_has_it() {
    for (servers, population) in
        [(1, 1), (1, 50), (2, 3), (4, 4), (4, 40), (16, 12), (16, 1000), (64, 200), (200, 1024)]
    {
        for ratio in [0.5, 3.0, 20.0] {
            let wanted = repairmen(ratio, 1.0, servers, population);
            let load = network(&[delay(ratio), queue(1.0, servers)], population).unwrap();
            assert_near(load.operations_per_second, wanted, 1e-9);
        }
    }
}

#[test]
fn the_approximation_is_close_where_it_is_used() {
    // The error is largest where the operations just fill the servers.
    for (servers, share) in [(1, 0.011), (8, 0.012), (64, 0.013), (512, 0.02)] {
        let mut worst = 0.0f64;
        for percent in 50..150 {
            let population = EXACT_POPULATION_MAX;
            let delay_seconds = f64::from(population) * f64::from(percent) / 100.0 / f64::from(servers);
            let stations = [delay(delay_seconds), queue(1.0, servers)];
            let wanted = repairmen(delay_seconds, 1.0, servers, population);
            let found = approximate(&stations, population).unwrap().operations_per_second;
            worst = worst.max((found / wanted - 1.0).abs());
        }
        assert!(worst < share, "{servers} servers: {worst}");
    }
}

#[test]
fn two_stations_of_several_servers_by_counting_all_states() {
    let (first, second, third, population) = ((0.7, 3), (1.1, 2), (0.4, 1), 9);
    let weight = |(service, servers): (f64, u32), n: u32| -> f64 {
        (1..=n).map(|k| service / f64::from(k.min(servers))).product()
    };
    let constant = |population: u32| -> f64 {
        let pairs = (0..=population).flat_map(|a| (0..=population - a).map(move |b| (a, b)));
        pairs.map(|(a, b)| weight(first, a) * weight(second, b) * weight(third, population - a - b)).sum()
    };
    let stations = [first, second, third].map(|(service, servers)| queue(service, servers));
    let loads = exact(&stations, population).unwrap();
    for load in &loads {
        assert_near(
            load.operations_per_second,
            constant(load.population - 1) / constant(load.population),
            1e-12,
        );
        let queues: f64 = load.stations.iter().map(|one| one.queue).sum();
        assert_near(queues, f64::from(load.population), 1e-12);
    }
}

#[test]
fn more_servers_than_operations_are_a_delay() {
    let busy = network(&[queue(2.0, 8), queue(1.0, 1)], 8).unwrap();
    let free = network(&[delay(2.0), queue(1.0, 1)], 8).unwrap();
    assert_near(busy.operations_per_second, free.operations_per_second, 1e-12);
    assert_near(busy.response_seconds, free.response_seconds + 2.0, 1e-12);
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let refused = |stations: &[Station], population| network(stations, population).unwrap_err().to_string();
    assert!(refused(&[queue(-1.0, 1)], 1).contains("-1 is not a service time"));
    assert!(refused(&[queue(f64::NAN, 1)], 1).contains("NaN"));
    assert!(refused(&[queue(1.0, 0)], 1).contains("number of servers"));
    assert!(refused(&[queue(1.0, 1)], 0).contains("operations in flight"));
    assert!(refused(&[queue(1.0, 1)], POPULATION_MAX + 1).contains("exceed the limit of 1000000"));
    assert!(refused(&[queue(0.0, 1)], 1).contains("all service times are 0"));
    assert!(refused(&vec![queue(1.0, 1); 65], 1).contains("65 stations"));
    assert!(
        exact(&[queue(1.0, 1)], 1025).unwrap_err().hint().unwrap().contains("use the approximate method")
    );
}

fn resource(name: &str, capacity: f64, count: u32) -> Resource {
    Resource { name: name.to_owned(), currency: Currency::Bytes, capacity, count }
}

fn plain(resource: usize, per_byte: f64) -> Use {
    Use { resource, per_byte, per_operation: 0.0, window: None, in_flight_bytes: None }
}

#[test]
fn a_path_with_one_operation_takes_the_sum_of_its_times() {
    // 1 MB over one of four disks of 25 MB/s and a bus of 100 MB/s: 40 ms + 10 ms.
    let mut machine = System {
        resources: vec![resource("disks", 100e6, 4), resource("bus", 100e6, 1)],
        uses: vec![plain(0, 1.0), plain(1, 1.0)],
        operation_bytes: 1e6,
        beside: Vec::new(),
    };
    assert_near(closed(&machine, 1).unwrap().bytes_per_second, 20e6, 1e-12);
    // Half of the bus goes to another flow: 40 ms + 20 ms.
    let uses = vec![plain(1, 1.0)];
    machine.beside =
        vec![Flow { name: "network".to_owned(), bytes_per_second: 80e6, operation_bytes: 1e6, uses }];
    assert_near(closed(&machine, 1).unwrap().bytes_per_second, 1e6 / 0.06, 1e-12);
}

fn bus_with_a_window(capacity: f64, outstanding: f64, operation_bytes: f64) -> System {
    let window = Window { outstanding, request_bytes: 512.0, round_trip_seconds: 4e-6, behind_bytes: 0.0 };
    System {
        resources: vec![resource("bus", capacity, 1)],
        uses: vec![Use {
            resource: 0,
            per_byte: 1.0,
            per_operation: 0.0,
            window: Some(window),
            in_flight_bytes: None,
        }],
        operation_bytes,
        beside: Vec::new(),
    }
}

#[test]
fn a_window_is_felt_by_one_operation_and_its_transfer_counted_once() {
    // One request of 512 B in 4 us: 128 MB/s, whatever the number of operations, on a bus of 512 MB/s.
    let slow = bus_with_a_window(512e6, 1.0, 65536.0);
    for outstanding in [1, 2, 100] {
        assert_near(closed(&slow, outstanding).unwrap().bytes_per_second, 128e6, 1e-9);
    }
    // Eight could do 1024 MB/s, so the bus is the limit; alone, an operation is there for its round trips: 64
    // us of windows, in which lie no more than the 128 us of the bus.
    let fast = bus_with_a_window(512e6, 8.0, 65536.0);
    assert_near(closed(&fast, 1).unwrap().bytes_per_second, 512e6, 1e-9);
    // Operations of one request: alone 4 us each, eight at once 1024 MB/s, of which the bus passes half.
    let small = bus_with_a_window(512e6, 8.0, 512.0);
    assert_near(closed(&small, 1).unwrap().bytes_per_second, 128e6, 1e-9);
    assert_near(closed(&small, 200).unwrap().bytes_per_second, 512e6, 0.02);
}

fn any_station(servers: u32) -> impl Strategy<Value = Station> {
    prop_oneof![
        4 => (0.001..10.0f64, 1..=servers).prop_map(|(service, servers)| queue(service, servers)),
        1 => (0.001..100.0f64).prop_map(delay),
    ]
}

proptest! {
    #[test]
    fn any_network_lies_within_its_bounds_and_loses_no_operation(
        stations in prop::collection::vec(any_station(40), 1..7), population in 1u32..200,
    ) {
        // An answer outside of the bounds would be an error.
        let loads = exact(&stations, population).unwrap();
        for pair in loads.windows(2) {
            prop_assert!(pair[1].operations_per_second >= pair[0].operations_per_second * (1.0 - 1e-9));
        }
        let queues: f64 = loads.last().unwrap().stations.iter().map(|one| one.queue).sum();
        prop_assert!((queues / f64::from(population) - 1.0).abs() < 1e-9);
        for station in &loads.last().unwrap().stations {
            prop_assert!(station.utilisation.is_none_or(|share| (0.0..=1.0 + 1e-9).contains(&share)));
        }
        let near = approximate(&stations, population).unwrap();
        prop_assert!(near.operations_per_second > 0.0);
    }

    #[test]
    fn the_approximation_is_near(
        singles in prop::collection::vec(any_station(1), 1..7),
        several in prop::collection::vec(any_station(8), 1..7),
        population in 1u32..100,
    ) {
        for (stations, share) in [(singles, 0.07), (several, 0.26)] {
            let wanted = network(&stations, population).unwrap().operations_per_second;
            let found = approximate(&stations, population).unwrap().operations_per_second;
            prop_assert!((found / wanted - 1.0).abs() < share, "{found} for {wanted}");
        }
    }

    #[test]
    fn operations_that_wait_never_beat_the_stream_and_come_close_to_it(
        resources in prop::collection::vec((1e6..1e9f64, 1u32..9), 1..5),
        demands in prop::collection::vec(
            (0usize..5, 0.1..4.0f64, 0.0..1e5f64, 1.0..64.0f64, any::<bool>()), 1..6,
        ),
        traffic in 0.0..1e9f64,
        outstanding in prop_oneof![Just(1u32), 2u32..100, Just(100_000u32)],
    ) {
        let resources: Vec<Resource> =
            resources.iter().map(|(rate, count)| resource("r", *rate, *count)).collect();
        let uses: Vec<Use> = demands.iter().map(|(at, per_byte, per_operation, outstanding, is_window)| {
            let window = Window {
                outstanding: *outstanding,
                request_bytes: 4096.0,
                round_trip_seconds: 1e-5,
                behind_bytes: 100.0,
            };
            let (resource, per_byte) = (at % resources.len(), *per_byte);
            let window = is_window.then_some(window);
            Use { resource, per_byte, per_operation: *per_operation, window, in_flight_bytes: None }
        }).collect();
        let beside = vec![Flow {
            name: "beside".to_owned(),
            bytes_per_second: traffic,
            operation_bytes: 1e6,
            uses: vec![plain(0, 1.0)],
        }];
        let machine = System { resources, uses, operation_bytes: 1e5, beside };
        let stream = solve(&machine).bytes_per_second;
        let found = closed(&machine, outstanding).unwrap();
        let share = found.bytes_per_second / stream;
        prop_assert!(share <= 1.0 + 1e-9, "{share}");
        if outstanding == 100_000 {
            prop_assert!(share >= 0.99, "{share}");
        }
    }
}
