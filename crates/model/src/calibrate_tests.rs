//! Calibration from stored qualifications, and rejection of unsuitable ones.
use super::*;
use crate::predict::{Ask, predict};

fn measured() -> ResultSummary {
    serde_json::from_str(include_str!("../../results/samples/qualify-v2.json")).unwrap()
}

/// A result with all required figures.
fn whole() -> ResultSummary {
    let mut result = measured();
    result.kind = Kind::Qualify;
    result.interrupted = false;
    result.verdict = Verdict::Fit;
    result.ceilings.network_bytes_per_second = Some(2e9);
    result.ceilings.volumes.iter_mut().for_each(|volume| volume.bytes_per_second = Some(3e8));
    result.cpu.seconds_per_gb = Some(0.5);
    result.cpu.source_seconds_per_gb = Some(0.25);
    result.cpu.recorder_threads =
        vec![ThreadCpu { name: INTAKE.into(), seconds: 2.0, run_delay_seconds: None }];
    result.ledger.received.bytes = 10_000_000_000;
    result
}

fn ask(path: &str) -> Ask {
    Ask {
        path: Some(path.to_owned()),
        operation_bytes: Some(1e6),
        event_bytes: None,
        required_bytes_per_second: Some(100e6),
        headroom: 1.0,
        outstanding: None,
        stall_seconds: Vec::new(),
        stall_every_seconds: None,
        buffer_bytes: None,
        samples: 100,
        seed: 1,
    }
}

#[test]
fn a_calibrated_machine_reads_back_and_is_limited_by_what_was_measured() {
    let result = whole();
    let volumes = result.ceilings.volumes.len() as f64;
    let machine = calibrate(&result, "here", "results/one").unwrap();
    let text = machine.to_toml().unwrap();
    assert_eq!(Machine::parse(&text, "here.toml").unwrap_or_else(|error| panic!("{error}\n{text}")), machine);
    let found = predict(&machine, &ask("record"), "").unwrap();
    assert_eq!(found.parts[0].name, "volumes");
    assert!((found.bytes_per_second / (3e8 * volumes) - 1.0).abs() < 1e-9, "{found:#?}");
    let cores = found.cores_busy_at_required.unwrap();
    assert!((cores - 0.1 * 0.5).abs() < 1e-9, "{cores}");
    let cores = predict(&machine, &ask("simulated"), "").unwrap().cores_busy_at_required.unwrap();
    assert!((cores - 0.1 * 0.75).abs() < 1e-9, "{cores}");
}

#[test]
fn one_thread_of_the_recorder_is_a_limit_of_its_own() {
    let mut result = whole();
    result.cpu.recorder_threads[0].seconds = 50.0;
    let found = predict(&calibrate(&result, "here", "one").unwrap(), &ask("record"), "").unwrap();
    assert_eq!(found.parts[0].name, "intake");
    assert!((found.bytes_per_second / 0.2e9 - 1.0).abs() < 1e-9, "5 s for a GB: {found:#?}");
}

#[test]
fn several_intakes_share_the_work() {
    let mut result = whole();
    let thread =
        |index| ThreadCpu { name: format!("{INTAKE}-{index}"), seconds: 50.0, run_delay_seconds: None };
    result.cpu.recorder_threads = (0..4).map(thread).collect();
    let found = predict(&calibrate(&result, "here", "one").unwrap(), &ask("record"), "").unwrap();
    let intake = found.parts.iter().find(|part| part.name == "intake").unwrap();
    assert_eq!(intake.count, 4);
    assert!((found.bytes_per_second / 0.2e9 - 1.0).abs() < 1e-9, "20 s for a GB on four threads: {found:#?}");
}

#[test]
fn what_says_nothing_of_a_machine_is_refused() {
    let refused = |change: &dyn Fn(&mut ResultSummary)| {
        let mut result = whole();
        change(&mut result);
        calibrate(&result, "here", "results/one").unwrap_err().to_string()
    };
    assert!(refused(&|result| result.verdict = Verdict::Inconclusive).contains("inconclusive"));
    assert!(refused(&|result| result.interrupted = true).contains("interrupted"));
    assert!(refused(&|result| result.ceilings.network_bytes_per_second = None).contains("network"));
    assert!(refused(&|result| result.ceilings.volumes.clear()).contains("volume"));
    assert!(refused(&|result| result.cpu.seconds_per_gb = None).contains("recorder"));
    assert!(refused(&|result| result.kind = Kind::Record).contains("not a qualification"));
}
