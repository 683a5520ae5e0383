//! Causes are reported only where conditions changed in the matching direction.
use super::*;

const GB: f64 = 1e9;

fn samples(conditions: SteadyConditions, overwrites: bool) -> Vec<SteadySample> {
    let sample = SteadySample {
        at_seconds: 0.0,
        at_bytes: 0,
        seconds: 1.0,
        bytes: 1,
        lowest_bytes_per_second: 1.0,
        overwrites,
        conditions,
    };
    vec![sample; 5]
}

fn kinds(before: SteadyConditions, after: SteadyConditions, is_drop: bool) -> Vec<SteadyCauseKind> {
    let (before, after) = (samples(before, false), samples(after, false));
    let sides = Sides { before: &before, after: &after, rate_before: GB, is_drop };
    sides.causes().into_iter().map(|cause| cause.kind).collect()
}

/// A machine without any adverse condition.
fn calm() -> SteadyConditions {
    SteadyConditions {
        drive_celsius: Some(45.0),
        drive_celsius_max: Some(80.0),
        frequency_share: Some(0.9),
        throttled: Some(100),
        steal_cores: Some(0.01),
        neighbour_bytes_per_second: Some(1e6),
        fill_percent: Some(50.0),
    }
}

#[test]
fn each_cause_is_reported_for_a_drop_and_its_recovery() {
    use SteadyCauseKind as Cause;
    let troubles = [
        (Cause::DriveTemperature, SteadyConditions { drive_celsius: Some(79.5), ..calm() }, true),
        (Cause::Throttling, SteadyConditions { frequency_share: Some(0.7), ..calm() }, true),
        (Cause::Throttling, SteadyConditions { throttled: Some(108), ..calm() }, false),
        (Cause::Steal, SteadyConditions { steal_cores: Some(0.3), ..calm() }, true),
        (Cause::Neighbour, SteadyConditions { neighbour_bytes_per_second: Some(0.3 * GB), ..calm() }, true),
        (Cause::NearlyFull, SteadyConditions { fill_percent: Some(93.0), ..calm() }, false),
    ];
    for (kind, trouble, recovers) in troubles {
        assert_eq!(kinds(calm(), trouble, true), [kind], "{trouble:?}");
        let wanted = if recovers { vec![kind] } else { vec![] };
        assert_eq!(kinds(trouble, calm(), false), wanted, "{trouble:?}");
        // A condition present on both sides explains nothing, except heat and lack of space.
        let lasting = [Cause::DriveTemperature, Cause::NearlyFull].contains(&kind);
        let wanted = if lasting { kind } else { Cause::WriteCache };
        assert_eq!(kinds(trouble, trouble, true), [wanted], "{trouble:?}");
    }
}

#[test]
fn a_drop_with_nothing_to_explain_it_is_a_cache_that_is_full_and_a_rise_is_nothing() {
    assert_eq!(kinds(calm(), calm(), true), [SteadyCauseKind::WriteCache]);
    assert_eq!(kinds(calm(), calm(), false), []);
    let unknown = SteadyConditions::default();
    assert_eq!(kinds(unknown, unknown, true), [SteadyCauseKind::WriteCache]);
    assert_eq!(kinds(unknown, calm(), false), []);
}

#[test]
fn a_drive_without_a_limit_is_hot_at_70() {
    let at = |celsius| SteadyConditions { drive_celsius: Some(celsius), drive_celsius_max: None, ..calm() };
    assert_eq!(kinds(at(50.0), at(72.0), true), [SteadyCauseKind::DriveTemperature]);
    assert_eq!(kinds(at(50.0), at(60.0), true), [SteadyCauseKind::WriteCache]);
}

#[test]
fn overwriting_is_reported_when_it_starts() {
    let (first, over) = (samples(calm(), false), samples(calm(), true));
    let causes = |before: &[SteadySample], after: &[SteadySample]| {
        Sides { before, after, rate_before: GB, is_drop: true }.causes()
    };
    assert_eq!(causes(&first, &over)[0].kind, SteadyCauseKind::Overwriting);
    assert_eq!(causes(&over, &over)[0].kind, SteadyCauseKind::WriteCache);
    assert_eq!(causes(&[], &over)[0].kind, SteadyCauseKind::Overwriting);
}
