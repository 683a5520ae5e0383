//! Comparison of targets.
use keepup_results::{LatencyFigures, ReplayFidelity, ReplayTimes};

use super::*;

fn pass(trace: &str, place: &str, number: u32, mean_ns: f64) -> ReplayPass {
    let figures = LatencyFigures { mean_ns, p50_ns: 1, p99_ns: 1, p99_9_ns: 1, max_ns: 1 };
    let response = LatencyFigures { mean_ns: 2.0 * mean_ns, ..figures };
    let times =
        ReplayTimes { requests: 1, service: figures, service_p95_ns: 1, response, response_p95_ns: 1 };
    ReplayPass {
        trace: trace.into(),
        place: place.into(),
        mode: "dep".into(),
        pass: number,
        is_cold: number == 1,
        seconds: 1.0,
        busy_seconds: 1.0,
        requests: 1,
        bytes_read: 0,
        bytes_written: 0,
        failed: 0,
        failure: None,
        outstanding_mean: 1.0,
        outstanding_max: 1,
        outstanding_limit: 1,
        blocked: 0,
        reordered: 0,
        all: Some(times),
        reads: None,
        writes: None,
        flushes: None,
        discards: None,
        devices: Vec::new(),
        lateness: None,
        fidelity: None,
        check: None,
        cpu_seconds: 0.0,
        machine_cpu_seconds: None,
        steal_seconds: None,
        io_pressure_percent: None,
        interrupts: None,
        loads: Vec::new(),
    }
}

/// Two traces on two targets; the second takes twice and half as long, and the first pass is an
/// outlier.
fn passes() -> Vec<ReplayPass> {
    let mut all = Vec::new();
    for number in 1..=4 {
        let cold = if number == 1 { 50.0 } else { 1.0 };
        for (trace, place, mean_ns) in [
            ("x", "a", 100.0),
            ("x", "b", 200.0),
            ("y", "a", 300.0),
            ("y", "b", 75.0),
            ("z", "a", 10.0),
            ("z", "b", 10.0),
        ] {
            all.push(pass(trace, place, number, mean_ns * cold));
        }
    }
    all
}

#[test]
fn the_index_is_the_geometric_mean_of_the_ratios() {
    let index = compare(&passes(), "a").unwrap();
    let [a, b] = &index.places[..] else { panic!("{index:?}") };
    assert_eq!((a.index, a.lower, a.loss_percent), (Some(1.0), None, Some(0.0)));
    let close =
        |value: Option<f64>, wanted: f64| assert!((value.unwrap() - wanted).abs() < 1e-9, "{value:?}");
    // Ratios 0.5, 4 and 1.
    close(b.index, 2.0_f64.powf(1.0 / 3.0));
    close(b.arithmetic_mean, 5.5 / 3.0);
    close(b.lower, 2.0_f64.powf(1.0 / 3.0));
    close(b.loss_percent, 100.0 * (1.0 - 2.0_f64.powf(1.0 / 3.0)));
    assert_eq!((b.best.as_deref(), b.worst.as_deref()), (Some("y"), Some("x")));
    assert!(b.ratios.iter().all(|ratio| ratio.passes == 3 && !ratio.is_noisy));
}

#[test]
fn which_one_is_the_baseline_does_not_change_the_ranking() {
    let index = |baseline: &str| compare(&passes(), baseline).unwrap().places;
    let (of_a, of_b) = (index("a"), index("b"));
    let ratio = |places: &[ReplayPlace]| places[1].index.unwrap() / places[0].index.unwrap();
    assert!((ratio(&of_a) - ratio(&of_b)).abs() < 1e-9);
}

#[test]
fn passes_that_differ_are_noisy_and_widen_the_interval() {
    let mut all = passes();
    for pass in all.iter_mut().filter(|p| p.trace == "x" && p.place == "b") {
        let times = pass.all.as_mut().unwrap();
        times.service.mean_ns *= 1.0 + 0.1 * f64::from(pass.pass);
    }
    let index = compare(&all, "a").unwrap();
    let b = &index.places[1];
    assert!(b.ratios[0].is_noisy && b.ratios[0].half_width_ns.unwrap() > 0.0 && !b.ratios[1].is_noisy);
    assert!(b.lower.unwrap() < b.index.unwrap() && b.index.unwrap() < b.upper.unwrap(), "{b:?}");
}

#[test]
fn modes_are_never_mixed() {
    let mut all = passes();
    all[3].mode = "afap".into();
    assert_eq!(compare(&all, "a"), None);
    assert_eq!(compare(&passes(), "c"), None);
    assert_eq!(compare(&[], "a"), None);
}

#[test]
fn a_pass_that_lost_its_time_is_left_out_and_none_left_is_no_index() {
    let lost = ReplayFidelity {
        is_kept: false,
        span_asked_seconds: 1.0,
        span_seconds: 2.0,
        span_error: 1.0,
        lateness_allowed_ns: 1,
        is_target: true,
        why: vec!["late".into()],
    };
    let mut all = passes();
    for pass in &mut all {
        pass.mode = "timed".into();
        if pass.place == "b" && pass.trace == "x" && pass.pass != 3 {
            pass.fidelity = Some(lost.clone());
        }
    }
    let index = compare(&all, "a").unwrap();
    assert_eq!(index.metric, ReplayMetric::MeanResponse);
    let ratio = &index.places[1].ratios[0];
    assert_eq!((ratio.passes, ratio.ratio, ratio.mean_ns), (1, Some(0.5), Some(400.0)));
    // The spread of a single pass is unknown.
    assert_eq!((index.places[1].lower, index.places[1].index.is_some()), (None, true));
    for pass in all.iter_mut().filter(|p| p.place == "b" && p.trace == "x") {
        pass.fidelity = Some(lost.clone());
    }
    let index = compare(&all, "a").unwrap();
    assert_eq!((index.places[1].index, index.places[1].ratios[0].ratio), (None, None));
    assert!(index.places[1].ratios[0].why.as_deref().unwrap().contains("slower than the trace: late"));
}
