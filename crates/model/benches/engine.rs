//! Benchmarks of the engine: a sweep over ranges, a queueing network, a simulation.
//!
//! `cargo bench -p keepup-model --bench engine`
#![expect(
    clippy::unwrap_used,
    clippy::missing_docs_in_private_items,
    clippy::disallowed_methods,
    reason = "a benchmark"
)]

use divan::Bencher;
use divan::counter::ItemsCount;
use keepup_model::mva::{Station, StationKind, network};
use keepup_model::simulate::{Draw, Pattern, Service, Simulation, Source, Stage, Stalls, WhenFull, simulate};
use keepup_model::vary::interval;
use keepup_model::{Currency, Resource, System, Use, solve};

fn main() {
    divan::main();
}

fn machine(resources: usize) -> System {
    let resource = |number: usize| Resource {
        name: format!("resource {number}"),
        currency: Currency::Bytes,
        capacity: 100e6 + number as f64 * 1e6,
        count: 1,
    };
    let one =
        |resource| Use { resource, per_byte: 1.0, per_operation: 100.0, window: None, in_flight_bytes: None };
    System {
        resources: (0..resources).map(resource).collect(),
        uses: (0..resources).map(one).collect(),
        operation_bytes: 1e6,
        beside: Vec::new(),
    }
}

/// A thousand points with 200 draws each, for a machine of ten ranged resources.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn sweep_of_a_thousand_points(bencher: Bencher) {
    let mut machine = machine(10);
    bencher.counter(ItemsCount::new(1000u32)).bench_local(|| {
        let point = |point: u32| {
            let spread = interval(200, 1, |figure: &mut dyn FnMut(f64, f64, f64) -> f64| {
                for (number, resource) in machine.resources.iter_mut().enumerate() {
                    let value = 100e6 + (number as f64) * 1e6 + f64::from(point) * 1e3;
                    resource.capacity = figure(0.8 * value, value, 1.1 * value);
                }
                solve(&machine).bytes_per_second
            });
            spread.unwrap().median
        };
        (0..1000).map(point).sum::<f64>()
    });
}

/// Ten stations with this many servers each and this many concurrent operations.
#[divan::bench(args = [(1, 1024), (8, 64), (8, 1024), (8, 100_000)])]
fn network_of_ten(bencher: Bencher, (servers, population): (u32, u32)) {
    let station = |number: u32| Station {
        name: format!("station {number}"),
        service_seconds: 0.001 * f64::from(number),
        servers,
        kind: StationKind::Queueing,
    };
    let stations: Vec<Station> = (1..=10).map(station).collect();
    bencher.bench_local(|| network(&stations, population).unwrap());
}

/// Events through a chain of stages, each of which stalls.
#[divan::bench(args = [1, 5])]
fn simulated_events(bencher: Bencher, stages: usize) {
    let stage = Stage {
        name: "stage".to_owned(),
        buffer_bytes: 64e6,
        bytes_per_second: 2e9,
        event_seconds: 1e-6,
        service: Service::Fixed,
        servers: 1,
        stalls: Some(Stalls { gap: Draw::Exponential(0.1), length: Draw::Exponential(0.01) }),
    };
    let (pattern, when_full) = (Pattern::Poisson, WhenFull::Lose);
    let source = Source { event_bytes: 1e6, period_seconds: 1e-3, pattern, when_full };
    let simulation = Simulation { source, stages: vec![stage; stages], events: 100_000, seed: 1 };
    bencher.counter(ItemsCount::new(100_000u32)).bench_local(|| simulate(&simulation).unwrap());
}
