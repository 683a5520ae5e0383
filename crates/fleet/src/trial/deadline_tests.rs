//! When a trial is ended because a recorder has not ended.
use super::*;
use crate::trial::SourcePlan;

const S: u64 = 1_000_000_000;

fn recorder(seconds: f64, check: ReadBack) -> Option<HostPlan> {
    Some(HostPlan::Recorder(RecorderPlan {
        profile: String::new(),
        rate: Some(1e6),
        bytes_max: None,
        seconds,
        volumes: vec!["/a".into()],
        source: "s0:7614".to_owned(),
        check,
        cut_off: false,
        drain: None,
    }))
}

fn deadline(plans: &[Option<HostPlan>]) -> Deadline {
    let mut deadline = Deadline::new(7, plans, &Timing::trial());
    deadline.on_event(0, &FleetEvent::Phase(7, Phase::Preparing));
    assert!(!deadline.expires(u64::MAX), "preparation has its own deadline");
    deadline
}

/// Time from the start order at which the deadline expires, without the start delay, seconds.
fn seconds(plans: &[Option<HostPlan>]) -> u64 {
    let mut deadline = deadline(plans);
    deadline.on_event(10 * S, &FleetEvent::Phase(7, Phase::Running));
    let start_ns = 10 * S + Timing::trial().start_delay_ns;
    let expired = (0..100_000).find(|seconds| deadline.expires(start_ns + seconds * S));
    expired.unwrap()
}

#[test]
fn time_reading_back_and_margin_add_up() {
    assert_eq!(seconds(&[recorder(10.0, ReadBack::None)]), 310);
    assert_eq!(seconds(&[recorder(10.0, ReadBack::Sample(45.0))]), 355);
    assert_eq!(seconds(&[recorder(10.0, ReadBack::Whole)]), 330);
    // The longest part counts; sources end when recorders have ended.
    let source = Some(HostPlan::Source(SourcePlan { listen: String::new(), recorders: 2 }));
    let plans = [source, recorder(10.0, ReadBack::None), None, recorder(20.0, ReadBack::None)];
    assert_eq!(seconds(&plans), 320);
}

#[test]
fn a_pause_of_the_controller_extends_it_and_the_end_of_the_recorders_clears_it() {
    let mut late = deadline(&[recorder(10.0, ReadBack::None)]);
    late.on_event(0, &FleetEvent::Phase(7, Phase::Running));
    late.on_event(100 * S, &FleetEvent::Paused(50 * S));
    assert!(!late.expires(350 * S));
    assert!(late.expires(361 * S) && !late.expires(362 * S), "it expires once");
    let mut in_time = deadline(&[recorder(10.0, ReadBack::None)]);
    in_time.on_event(0, &FleetEvent::Phase(7, Phase::Running));
    // Another trial does not concern it.
    in_time.on_event(1, &FleetEvent::Phase(6, Phase::FinishingRecorders));
    assert!(in_time.clone().expires(400 * S));
    in_time.on_event(12 * S, &FleetEvent::Phase(7, Phase::FinishingRecorders));
    assert!(!in_time.expires(400 * S));
}

#[test]
fn times_that_are_out_of_range_do_not_expire() {
    let mut endless = deadline(&[recorder(f64::INFINITY, ReadBack::None)]);
    endless.on_event(5, &FleetEvent::Phase(7, Phase::Running));
    assert!(!endless.expires(u64::MAX - 1));
}
