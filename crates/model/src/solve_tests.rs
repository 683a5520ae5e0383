//! Hand calculations, and properties of any machine.
use proptest::prelude::*;

use super::*;
use crate::system::{Currency, Window};

fn resource(name: &str, capacity: f64) -> Resource {
    Resource { name: name.to_owned(), currency: Currency::Bytes, capacity, count: 1 }
}

fn plain(resource: usize, per_byte: f64) -> Use {
    Use { resource, per_byte, per_operation: 0.0, window: None, in_flight_bytes: None }
}

fn system(resources: Vec<Resource>, uses: Vec<Use>) -> System {
    System { resources, uses, operation_bytes: 1e6, beside: Vec::new() }
}

fn beside(rate: f64, uses: Vec<Use>) -> Flow {
    Flow { name: "network".to_owned(), bytes_per_second: rate, operation_bytes: 1e6, uses }
}

#[test]
fn the_slowest_stage_sets_the_rate_and_the_next_is_the_runner_up() {
    // Data cross the bus twice: 133 MB/s give 66.5.
    let machine = system(
        vec![resource("disk", 80e6), resource("bus", 133e6), resource("link", 118e6)],
        vec![plain(0, 1.0), plain(1, 1.0), plain(1, 1.0), plain(2, 1.0)],
    );
    let solution = solve(&machine);
    assert_eq!(solution.bytes_per_second, 66.5e6);
    let names: Vec<&str> = solution.limits.iter().map(|limit| limit.name.as_str()).collect();
    assert_eq!(names, ["bus", "disk", "link"]);
    assert_eq!(solution.limits[0].utilisation, 1.0);
    assert_eq!(solution.limits[1].utilisation, 66.5 / 80.0);
    let gains = gains(&machine);
    assert_eq!(gains[0].resource, 1);
    assert!((gains[0].gain - 0.1).abs() < 1e-12 && gains[1].gain == 0.0);
}

#[test]
fn a_flow_beside_takes_its_part_up_to_an_equal_share() {
    let with = |rate: f64| {
        let mut machine = system(vec![resource("bus", 100.0)], vec![plain(0, 1.0)]);
        machine.beside = vec![beside(rate, vec![plain(0, 1.0)])];
        solve(&machine).bytes_per_second
    };
    assert_eq!(with(25.0), 75.0);
    assert_eq!(with(50.0), 50.0);
    assert_eq!(with(500.0), 50.0);
    let equal = |wanted: [f64; 2]| wanted.map(|wanted| Share { wanted, weight: 1.0 });
    assert_eq!(left(90.0, 1.0, &equal([10.0, 50.0])), 40.0);
    assert_eq!(left(90.0, 1.0, &equal([40.0, 50.0])), 30.0);
}

/// A path on a disk of 60 MB/s, with these MiB in flight of the path and of a load of 20 MB/s.
fn beside_a_load(own_mib: f64, load_mib: f64) -> f64 {
    let on_disk = |mib: f64| Use { in_flight_bytes: Some(mib * 1_048_576.0), ..plain(0, 1.0) };
    let mut machine = system(vec![resource("disk", 60e6)], vec![on_disk(own_mib)]);
    machine.beside = vec![beside(20e6, vec![on_disk(load_mib)])];
    solve(&machine).bytes_per_second
}

#[test]
fn a_queue_divides_by_what_each_flow_has_in_flight() {
    // The load gets 1 of 33 parts, far less than it asks for.
    assert!((beside_a_load(8.0, 0.25) / (60e6 * 32.0 / 33.0) - 1.0).abs() < 1e-12);
    // With as much in flight its 20 MB/s are below its half.
    assert!((beside_a_load(8.0, 8.0) / 40e6 - 1.0).abs() < 1e-12);
    // A load with most in flight takes no more than it asks for.
    assert!((beside_a_load(0.25, 8.0) / 40e6 - 1.0).abs() < 1e-12);
}

/// The validation's worst case (journal 0020): one throttled volume that sustains 58.8 MB/s alone, eight
/// blocks of 1 MiB of the recorder, four requests of 64 KiB of a load that asks for 20 MB/s. The recorder
/// got 58.2 to 58.8 MB/s; equal shares give 38.8.
#[test]
fn the_recorder_beside_a_load_on_a_throttled_disk_is_within_five_percent() {
    let predicted = 58.8 / 60.0 * beside_a_load(8.0, 0.25);
    assert!((predicted / 58.8e6 - 1.0).abs() < 0.05, "{predicted}");
}

#[test]
fn what_is_done_one_after_another_takes_the_sum_of_the_times() {
    // 40 MB/s followed by 60 MB/s in one thread give 24.
    let thread = Resource { name: "thread".into(), currency: Currency::Seconds, capacity: 1.0, count: 1 };
    let machine = system(vec![thread], vec![plain(0, 1.0 / 40e6), plain(0, 1.0 / 60e6)]);
    assert!((solve(&machine).bytes_per_second / 24e6 - 1.0).abs() < 1e-12);
}

#[test]
fn operations_cost_more_when_they_are_small() {
    let cpu = Resource { name: "cpu".into(), currency: Currency::Cycles, capacity: 1e9, count: 1 };
    let mut machine = system(vec![cpu], vec![Use { per_operation: 10_000.0, ..plain(0, 1.0) }]);
    machine.operation_bytes = 10_000.0;
    assert_eq!(solve(&machine).bytes_per_second, 500e6);
}

#[test]
fn a_master_that_waits_is_slowed_by_others_though_the_bus_has_room() {
    let window =
        Window { outstanding: 1.0, request_bytes: 512.0, round_trip_seconds: 3.6e-6, behind_bytes: 1440.0 };
    let uses = vec![Use { window: Some(window), ..plain(0, 1.0) }];
    let mut machine = system(vec![resource("bus", 800e6)], uses);
    let quiet = solve(&machine);
    assert_eq!(quiet.limits[0].kind, LimitKind::RoundTrip);
    assert!((quiet.bytes_per_second - 512.0 / 3.6e-6).abs() < 1.0);
    machine.beside = vec![beside(120e6, vec![plain(0, 1.0)])];
    assert!((solve(&machine).bytes_per_second - 512.0 / 5.4e-6).abs() < 1.0);
}

#[test]
fn nothing_to_do_has_no_limit() {
    assert_eq!(solve(&system(vec![resource("disk", 1.0)], Vec::new())).bytes_per_second, f64::INFINITY);
}

proptest! {
    #[test]
    fn more_of_anything_never_makes_it_slower(
        capacities in prop::collection::vec(1.0..1e9f64, 1..6),
        demands in prop::collection::vec((0usize..6, 0.01..10.0f64), 1..10),
        traffic in 0.0..1e9f64,
        in_flight_bytes in prop::option::of(1.0..1e9f64),
    ) {
        let resources: Vec<Resource> = capacities.iter().map(|c| resource("r", *c)).collect();
        let uses = demands.iter().map(|(r, d)| Use { in_flight_bytes, ..plain(r % resources.len(), *d) });
        let uses: Vec<Use> = uses.collect();
        let mut machine = system(resources, uses.clone());
        machine.beside = vec![beside(traffic, uses[..1].to_vec())];
        let before = solve(&machine);
        for gain in gains(&machine) {
            prop_assert!(gain.gain >= -1e-12 && gain.gain <= 0.1 * (1.0 + traffic), "{gain:?}");
        }
        for limit in &before.limits {
            prop_assert!(limit.utilisation >= 0.0 && limit.utilisation <= 1.0 + 1e-12);
            prop_assert!(limit.bytes_per_second >= before.bytes_per_second);
        }
    }
}
