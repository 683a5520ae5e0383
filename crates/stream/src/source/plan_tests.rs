//! Valid plans, and invalid plans that are refused before anything is opened.

use super::*;

pub(crate) fn plan() -> SourcePlan {
    SourcePlan {
        streams: 4,
        connections: 2,
        events: Some(100),
        buffer_bytes: 1 << 20,
        ..SourcePlan::new(EventSize::Fixed(1000), Rate::EventsPerSecond(1000.0))
    }
}

fn fault(change: impl FnOnce(&mut SourcePlan)) -> String {
    let mut plan = plan();
    change(&mut plan);
    plan.check().unwrap_err().to_string()
}

#[test]
fn a_minimal_plan_is_valid() {
    plan().check().unwrap();
    let shaped = SourcePlan { element: ElementType::U16, shape: vec![20, 25], ..plan() };
    shaped.check().unwrap();
    let empty = SourcePlan { size: EventSize::Fixed(0), ..plan() };
    empty.check().unwrap();
}

#[test]
fn invalid_plans_have_a_reason() {
    assert!(fault(|p| p.streams = 0).contains("0 streams"));
    assert!(fault(|p| p.streams = 65_536).contains("65536 streams"));
    assert!(fault(|p| p.first_stream = 65_533).contains("ids below 65536"));
    assert!(fault(|p| p.connections = 0).contains("0 connections"));
    assert!(fault(|p| p.connections = 5).contains("5 connections for 4 streams"));
    assert!(fault(|p| (p.streams, p.connections) = (100, 65)).contains("65 connections"));
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 2e9] {
        assert!(fault(|p| p.rate = Rate::EventsPerSecond(rate)).contains("rate of"));
    }
    let burst = Burst { on: Duration::ZERO, off: Duration::from_secs(1) };
    assert!(fault(|p| p.burst = Some(burst)).contains("bursts of no length"));
    let burst = Burst { on: Duration::from_secs(1), off: Duration::ZERO };
    assert!(fault(|p| (p.rate, p.burst) = (Rate::Max, Some(burst))).contains("closed loop"));
    assert!(fault(|p| p.size = EventSize::Uniform { min: 2, max: 1 }).contains("smallest"));
    for (median, sigma, max) in [(0, 1.0, 9), (10, 1.0, 9), (1, -1.0, 9), (1, f64::NAN, 9)] {
        assert!(fault(|p| p.size = EventSize::LogNormal { median, sigma, max }).contains("log-normal"));
    }
    assert!(fault(|p| p.buffer_bytes = 1063).contains("front-end buffer of 1063"));
    assert!(fault(|p| p.size = EventSize::Fixed(u64::MAX)).contains("front-end buffer"));
    assert!(fault(|p| p.shape = vec![999]).contains("says 999 bytes"));
    assert!(
        fault(|p| (p.size, p.shape) = (EventSize::Uniform { min: 0, max: 1000 }, vec![1000]))
            .contains("shape")
    );
    assert!(fault(|p| p.shape = vec![u64::MAX, 8]).contains("no number of"));
    assert!(fault(|p| p.cpus = vec![1 << 20]).contains("core"));
}

#[test]
fn streams_are_assigned_round_robin() {
    let plan = SourcePlan { streams: 5, first_stream: 10, ..plan() };
    let ids = |connection| plan.hello(connection).streams.iter().map(|s| s.id).collect::<Vec<_>>();
    assert_eq!((ids(0), ids(1)), (vec![10, 12, 14], vec![11, 13]));
    assert_eq!(plan.hello(1).streams[0].name, "stream-11");
}
