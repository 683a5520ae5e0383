//! Directories of qualifications that end, fail, or never begin.
use std::fs::OpenOptions;

use keepup_results::{Headed as _, Stored, StoredResult, Verdict};

use super::*;

fn begun() -> Begun {
    Begun {
        id: "0a1b2c3d".to_owned(),
        tool_version: "0.1.0".to_owned(),
        created_unix_ns: 0,
        command: "keepup qualify --fleet hall.toml csl".to_owned(),
        workload: "csl".to_owned(),
        plan: serde_json::Value::Null,
        environment: serde_json::Value::Null,
    }
}

fn trial() -> FleetTrialResult {
    FleetTrialResult {
        phase: "target".to_owned(),
        asked_bytes_per_second: Some(80e6),
        seconds: 1.0,
        achieved_bytes_per_second: 80e6,
        lost_events: 0,
        passed: true,
        failed_condition: None,
        control_bytes: 500,
        parts: Vec::new(),
    }
}

/// The result before the first trial.
fn summary() -> FleetQualifySummary {
    let limits = vec!["not tested, because of --recorders: r1".to_owned()];
    FleetQualifySummary { limits, ..FleetQualifySummary::begun(&begun()) }
}

fn store(out: &Path) -> Store {
    Store::create(out, summary(), &begun()).unwrap()
}

fn traffic(bytes: u64) -> ControlTraffic {
    ControlTraffic { bytes, payload_bytes: 80_000_000 }
}

/// Makes every append to a file fail: sets its size, without disk space, to the file system's maximum.
fn fill(path: &Path) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    let (mut possible, mut too_large) = (file.metadata().unwrap().len(), i64::MAX as u64);
    if file.set_len(too_large).is_ok() {
        return;
    }
    while too_large - possible > 1 {
        let size = u64::midpoint(possible, too_large);
        match file.set_len(size) {
            Ok(()) => possible = size,
            Err(_) => too_large = size,
        }
    }
    file.set_len(possible).unwrap();
}

fn directories(out: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(out).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_failure_before_the_first_trial_leaves_nothing() {
    let out = tempfile::tempdir().unwrap();
    store(out.path()).fail(&anyhow::anyhow!("no agent joined"));
    assert_eq!(directories(out.path()), Vec::<PathBuf>::new());
}

#[test]
fn a_later_failure_keeps_the_trials() {
    let out = tempfile::tempdir().unwrap();
    let mut store = store(out.path());
    store.keep(&trial(), 7_000_000, traffic(500));
    store.keep(&trial(), 9_000_000, traffic(900));
    store.fail(&anyhow::anyhow!("the controller is lost"));
    let stored = StoredResult::open(&directories(out.path())[0]).unwrap();
    assert_eq!(stored.summary.head().failure, Some("the controller is lost"));
    let Stored::QualifyFleet(found) = stored.summary else { panic!("another kind") };
    assert_eq!((found.trials, found.verdict), (vec![trial(), trial()], Verdict::Inconclusive));
    assert_eq!((found.bytes_written, found.control), (9_000_000, traffic(900)));
    assert_eq!(found.limits, summary().limits);
}

#[test]
fn the_log_has_every_trial() {
    let out = tempfile::tempdir().unwrap();
    let mut store = store(out.path());
    store.keep(&trial(), 0, traffic(500));
    let found = FleetQualifySummary { verdict: Verdict::Fit, ..FleetQualifySummary::begun(&begun()) };
    let directory = store.finish(&found).unwrap();
    let stored = StoredResult::open(&directory).unwrap();
    let events: Vec<Event> = stored.directory().unwrap().events().unwrap().map(Result::unwrap).collect();
    assert!(matches!(&events[1], Event::FleetTrial { trial: kept, .. } if **kept == trial()), "{events:?}");
    assert!(matches!(events[2], Event::Finished { verdict: Some(Verdict::Fit), .. }), "{events:?}");
    assert_eq!(stored.summary, Stored::QualifyFleet(Box::new(found)));
}

#[test]
fn a_log_that_fails_does_not_lose_the_result() {
    let out = tempfile::tempdir().unwrap();
    let mut store = store(out.path());
    let events = directories(out.path())[0].join("events.jsonl");
    fill(&events);
    let size = events.metadata().unwrap().len();
    store.keep(&trial(), 0, traffic(500));
    let found = FleetQualifySummary { verdict: Verdict::Fit, ..summary() };
    let directory = store.finish(&found).unwrap();
    assert_eq!(events.metadata().unwrap().len(), size, "the log took an event");
    let stored = StoredResult::open(&directory).unwrap();
    assert_eq!(stored.summary, Stored::QualifyFleet(Box::new(found)));
}
