//! Figures of a qualified fleet.
use std::path::Path;

use super::*;
use crate::stored::{Stored, StoredResult};

fn sample() -> FleetQualifySummary {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/qualify_fleet-v1.json");
    match StoredResult::open(&path).unwrap().summary {
        Stored::QualifyFleet(summary) => *summary,
        other => panic!("another kind of result: {other:?}"),
    }
}

/// Value of a figure.
fn value(summary: &FleetQualifySummary, place: &str, what: &str, quantity: Quantity) -> Option<f64> {
    let figures = summary.figures();
    let is_it =
        |figure: &&Figure| (&*figure.place, &*figure.what, figure.quantity) == (place, what, quantity);
    figures.iter().find(is_it).map(|figure| figure.values[0])
}

#[test]
fn figures_are_those_of_all_recorders_and_of_each() {
    let found = sample();
    let rate = |place: &str, what| value(&found, place, what, Quantity::BytesPerSecond);
    assert_eq!(rate("", "qualified"), found.qualified_bytes_per_second);
    assert_eq!(rate("", "knee"), found.knee.map(|knee| knee.lower_bytes_per_second));
    assert!(found.hosts.len() > 1);
    for host in &found.hosts {
        assert_eq!(rate(&host.host, "share of the rate that held"), host.held_bytes_per_second);
        assert_eq!(rate(&host.host, "knee alone"), host.alone.map(|knee| knee.lower_bytes_per_second));
        let cpu = value(&found, &host.host, "recorder", Quantity::CpuSecondsPerGb);
        assert_eq!(cpu, host.cpu_seconds_per_gb);
    }
    assert_eq!(value(&found, "", "events, in the last soak", Quantity::Lost), Some(0.0));
}

#[test]
fn unmeasured_figures_are_absent() {
    let empty = FleetQualifySummary {
        knee: None,
        qualified_bytes_per_second: None,
        hosts: Vec::new(),
        trials: Vec::new(),
        ..sample()
    };
    assert_eq!(empty.figures(), []);
    assert_eq!((empty.headroom(), empty.last_soak()), (None, None));
    let unknown = FleetQualifySummary { required_bytes_per_second: 0.0, ..sample() };
    assert_eq!(unknown.headroom(), None);
    assert_eq!(ControlTraffic { bytes: 5, payload_bytes: 0 }.share(), None);
}
