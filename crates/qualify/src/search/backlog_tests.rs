//! Backlogs of known shape: what grows and what only moves. Rate 1 byte/s, so bytes read as seconds.

use super::*;
use proptest::prelude::*;

/// Samples every `step_s` for `trial_s` seconds.
fn sampled(trial_s: f64, step_s: f64, backlog: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    let count = (trial_s / step_s).round() as usize;
    (0..=count).map(|n| n as f64 * step_s).map(|t| (t, backlog(t))).collect()
}

fn grows(trial_s: f64, backlog: impl Fn(f64) -> f64) -> bool {
    backlog_grows(&sampled(trial_s, trial_s / 100.0, backlog), 1.0)
}

/// Saw-tooth: all is written every `period` seconds, beginning at `phase` of a period.
fn saw(t: f64, period: f64, phase: f64) -> f64 {
    (t + phase * period) % period
}

/// One stall of `length` at `at`, worked off at `spare` bytes/s.
fn stall(t: f64, at: f64, length: f64, spare: f64) -> f64 {
    if t < at { 0.0 } else { (t - at).min(length) - (t - at - length).clamp(0.0, length / spare) * spare }
}

/// Small wobble of a few blocks in flight, different in every sample, the same in every run.
fn wobble(t: f64) -> f64 {
    0.004 * ((t * 7919.0).sin() + (t * 104_729.0).cos()).abs()
}

#[test]
fn steady_states_do_not_grow() {
    assert!(!backlog_grows(&[], 1.0));
    assert!(!backlog_grows(&[(0.0, 0.0)], 1.0));
    assert!(!grows(5.0, |_| 0.0));
    assert!(!grows(5.0, |_| 0.2));
    assert!(!grows(5.0, wobble));
    assert!(!grows(1.5, |t| 0.1 + wobble(t)));
}

#[test]
fn overload_grows_from_one_and_a_half_per_cent_up() {
    for overload in [0.015, 0.03, 0.1, 0.5, 0.9] {
        assert!(grows(5.0, |t| overload * t), "{overload}");
        assert!(grows(5.0, |t| overload * t + wobble(t)), "{overload} with wobble");
        assert!(grows(120.0, |t| overload * t), "{overload} in a soak");
    }
    assert!(!grows(5.0, |t| 0.005 * t));
    assert!(!grows(5.0, |t| 3.0 - 0.1 * t), "a backlog that is worked off");
}

#[test]
fn few_samples_show_only_gross_overload() {
    assert!(backlog_grows(&[(0.0, 0.0), (5.0, 3.0)], 1.0));
    assert!(!backlog_grows(&[(0.0, 0.0), (5.0, 2.0)], 1.0));
    let mut samples = sampled(5.0, 0.05, |t| 0.1 * t);
    samples.insert(3, (0.12, f64::NAN));
    assert!(backlog_grows(&samples, 1.0));
    samples.reverse();
    assert!(backlog_grows(&samples, 1.0), "the order in which they come does not matter");
}

#[test]
fn saw_teeth_of_flushes_do_not_grow() {
    for period in [0.1, 0.2, 0.33, 0.47, 0.5, 0.7, 0.93, 1.0, 1.3, 1.6] {
        for phase in 0..20 {
            let phase = f64::from(phase) / 20.0;
            assert!(!grows(5.0, |t| saw(t, period, phase)), "period {period} s, phase {phase}");
        }
    }
}

#[test]
fn overload_under_a_saw_tooth_grows() {
    for period in [0.1, 0.2, 0.5, 0.83] {
        for phase in 0..20 {
            let phase = f64::from(phase) / 20.0;
            assert!(grows(5.0, |t| 0.05 * t + saw(t, period, phase)), "period {period} s, phase {phase}");
        }
    }
}

#[test]
fn a_filled_pipeline_does_not_grow() {
    for filled_at in [0.2, 1.0, 2.2] {
        assert!(!grows(5.0, |t| t.min(filled_at) * 0.5 + wobble(t)), "{filled_at}");
    }
}

#[test]
fn one_stall_that_is_worked_off_does_not_grow() {
    let mut wrong = Vec::new();
    for at in 0..90 {
        let at = f64::from(at) / 20.0;
        for spare in [0.02, 0.05, 0.3] {
            if grows(5.0, |t| stall(t, at, 0.3, spare) + wobble(t)) {
                wrong.push((at, spare));
            }
        }
    }
    // Only where the stall is barely over at the end, or lies across a boundary: a few per cent.
    assert!(wrong.len() <= 270 * 3 / 100, "{wrong:?}");
    for at in 0..1170 {
        let at = f64::from(at) / 10.0;
        assert!(!grows(120.0, |t| stall(t, at, 0.3, 0.03) + wobble(t)), "soak, stall at {at} s");
    }
}

#[test]
fn many_stalls_beyond_the_mean_capacity_grow() {
    // 0.1 s in each second nothing is written, afterwards 5 % more than offered: short by 5.5 %.
    let backlog = |t: f64| {
        let (whole, part) = (t.floor(), t.fract());
        whole * 0.055 + part.min(0.1) - (part - 0.1).max(0.0) * 0.05
    };
    assert!(grows(5.0, backlog));
    // The same stalls, but worked off within their second.
    assert!(!grows(5.0, |t| (t.fract().min(0.1) - (t.fract() - 0.1).max(0.0) * 0.15).max(0.0)));
}

#[test]
fn capacity_that_drops_off_late_grows() {
    for at in [0.3, 0.5, 0.6, 0.7, 0.8] {
        assert!(grows(5.0, |t| (t - 5.0 * at).max(0.0) * 0.4 + wobble(t)), "{at}");
    }
}

proptest! {
    #[test]
    fn scaling_bytes_or_time_changes_nothing(
        overload in -0.1f64..0.3,
        period in 0.1f64..2.0,
        amplitude in 0.0f64..1.0,
        bytes in 1.0f64..1e10,
        seconds in 0.1f64..100.0,
        offset in 0.0f64..1e6,
    ) {
        let shape = sampled(5.0, 0.05, |t| (overload * t + amplitude * saw(t, period, 0.0)).max(0.0));
        // Powers of two scale without rounding.
        let (bytes, seconds) = (bytes.log2().round().exp2(), seconds.log2().round().exp2());
        let scaled: Vec<_> =
            shape.iter().map(|&(t, b)| (offset.round() * 5.0 * seconds + t * seconds, b * bytes)).collect();
        let verdict = backlog_grows(&shape, 1.0);
        // A rise that lies within rounding of the limit may go either way.
        let near = [1.0 + 1e-6, 1.0 - 1e-6].iter().any(|&rate| backlog_grows(&shape, rate) != verdict);
        prop_assert!(near || backlog_grows(&scaled, bytes / seconds) == verdict);
    }

    #[test]
    fn any_samples_get_a_verdict(samples in prop::collection::vec((any::<f64>(), any::<f64>()), 0..80)) {
        backlog_grows(&samples, 1.0);
    }
}
