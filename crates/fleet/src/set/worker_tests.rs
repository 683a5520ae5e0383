//! Hostile plans, and a part that is asked to end.
use std::fs;
use std::path::PathBuf;

use keepup_measure::clock::SystemClock;
use keepup_recording::set::{RecordingSet, SetRecording};

use super::super::plan::SetTask;
use super::super::testing::{Site, TestRecording, payload};
use super::*;
use crate::agent_loop::reports_for_test;

fn site() -> Site {
    Site::new(1, |host, volume| {
        let mut recording = TestRecording::create(volume, host);
        recording.block(0..3, payload);
        recording.cut_off()
    })
}

fn worker(site: &Site) -> SetWorker {
    SetWorker::new(Arc::new(SystemClock), Directories::open(&[site.volume(0)]).unwrap())
}

/// The answer to a plan.
fn outcome(worker: &mut SetWorker, plan: &SetPlan) -> Result<String, String> {
    let (reports, done) = reports_for_test();
    worker.prepare(1, &serde_json::to_string(plan).unwrap(), &reports);
    assert!(matches!(done.recv().unwrap(), Done::Prepared { run: 1, address: None }));
    worker.start(1, Duration::ZERO, &reports);
    match done.recv().unwrap() {
        Done::Finished { outcome, .. } => Ok(outcome),
        Done::Failed { why, .. } => Err(why),
        other => panic!("{other:?}"),
    }
}

/// One of each kind.
fn tasks() -> [SetTask; 4] {
    let (verify, digest) = (SetTask::Verify { threads: None }, SetTask::Digest(vec![(3, 0, 3, 1)]));
    [SetTask::Describe { with_segments: true }, verify, SetTask::Recover { without_locks: true }, digest]
}

fn plan(site: &Site, directory: PathBuf, task: SetTask) -> SetPlan {
    let entry = SetRecording { directories: vec![directory], ..site.set.recordings[0].clone() };
    SetPlan::new(&site.set, &entry, task).unwrap()
}

#[test]
fn paths_outside_the_volumes_are_refused_for_each_task() {
    let (own, other) = (site(), site());
    let outside = other.set.recordings[0].directories[0].clone();
    let journal = fs::read(outside.join("journal.jsonl")).unwrap();
    let link = own.volume(0).join("link");
    std::os::unix::fs::symlink(&outside, &link).unwrap();
    let up = own.volume(0).join("../..").join(outside.strip_prefix("/").unwrap());
    let mut worker = worker(&own);
    for path in [outside.clone(), link, up, "run-7".into()] {
        for task in tasks() {
            let why = outcome(&mut worker, &plan(&own, path.clone(), task)).unwrap_err();
            assert!(why.starts_with("cannot use "), "{path:?}: {why}");
        }
    }
    assert_eq!(fs::read(outside.join("journal.jsonl")).unwrap(), journal, "nothing was changed");
}

#[test]
fn a_recording_with_a_volume_outside_is_refused() {
    let outside = tempfile::tempdir().unwrap();
    let outside = outside.path().canonicalize().unwrap();
    let own = Site::new(1, |host, volume| {
        let volumes = [volume.to_owned(), outside.clone()];
        let [first, _] = [0, 1].map(|index| {
            let mut recording = TestRecording::create_on(&volumes, index, host);
            recording.block(u64::from(index) * 3..u64::from(index) * 3 + 3, payload);
            recording.cut_off()
        });
        first
    });
    let mut worker = worker(&own);
    let inside = own.set.recordings[0].directories[0].clone();
    for task in tasks() {
        let why = outcome(&mut worker, &plan(&own, inside.clone(), task)).unwrap_err();
        assert!(why.contains("outside the volumes of this host"), "{why}");
    }
    let own = Directories::open(&[own.volume(0), outside]).unwrap();
    let mut worker = SetWorker::new(Arc::new(SystemClock), own);
    assert!(outcome(&mut worker, &plan(&site(), inside, SetTask::Verify { threads: None })).is_ok());
}

#[test]
fn malformed_plans_are_refused() {
    let site = site();
    let mut worker = worker(&site);
    let two = RecordingSet {
        recordings: vec![
            site.set.recordings[0].clone(),
            SetRecording { host: "daq9".into(), id: None, ..site.set.recordings[0].clone() },
        ],
        ..site.set.clone()
    };
    let task = SetTask::Describe { with_segments: false };
    for (set, expected) in [
        ("{}".to_owned(), "malformed plan: it is not a recording set"),
        (two.to_text().unwrap(), "malformed plan: it needs one recording"),
    ] {
        let plan = SetPlan::Recording { set, taken: Vec::new(), task: task.clone() };
        assert_eq!(outcome(&mut worker, &plan).unwrap_err(), expected);
    }
    assert!(outcome(&mut worker, &SetPlan::Part { number: 5 }).unwrap_err().contains("no part 5"));
    let (reports, done) = reports_for_test();
    worker.prepare(1, "{\"recording\":{}}", &reports);
    let found = done.recv().unwrap();
    assert!(matches!(&found, Done::Failed { why, .. } if why.starts_with("malformed plan")), "{found:?}");
    // Too many digests are refused before anything is allocated.
    let own = site.set.recordings[0].directories[0].clone();
    let answer =
        outcome(&mut worker, &plan(&site, own, SetTask::Digest(vec![(3, 0, u64::MAX, 1), (3, 0, 3, 0)])));
    assert!(answer.is_ok(), "each request has its own result: {answer:?}");
}

#[test]
fn a_part_reports_at_once_when_it_is_asked_to_end() {
    let site = site();
    let (mut worker, (reports, done)) = (worker(&site), reports_for_test());
    let own = site.set.recordings[0].directories[0].clone();
    let plan = plan(&site, own, SetTask::Verify { threads: Some(1) });
    worker.prepare(1, &serde_json::to_string(&plan).unwrap(), &reports);
    assert!(matches!(done.recv().unwrap(), Done::Prepared { .. }));
    worker.finish(1, false, &reports);
    let failed = |done: Done| matches!(done, Done::Failed { run: 1, .. });
    assert!(failed(done.recv().unwrap()));
    assert!(failed(done.recv().unwrap()), "its thread has not started to read");
}

#[test]
fn the_bytes_read_are_counted() {
    let site = site();
    let mut worker = worker(&site);
    let own = site.set.recordings[0].directories[0].clone();
    outcome(&mut worker, &plan(&site, own, SetTask::Verify { threads: Some(1) })).unwrap();
    assert!(worker.counters().bytes >= 4096, "{:?}", worker.counters());
}
