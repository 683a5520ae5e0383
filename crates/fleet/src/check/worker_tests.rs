//! Checks of this machine, with malformed plans and early ends.
use std::net::TcpListener;
use std::sync::mpsc::Receiver;

use keepup_measure::clock::SystemClock;
use keepup_results::DoctorSeverity;

use super::super::{CheckPlan, HostOutcome, SourceAddress};
use super::*;
use crate::agent_loop::reports_for_test;
use crate::host::Done;
use crate::message::Role;

fn worker(volume: &std::path::Path) -> CheckWorker {
    let directories = Directories::open(&[volume.to_owned()]).unwrap();
    CheckWorker::new(Arc::new(SystemClock), directories, &Token::new("the-token-of-this-fleet").unwrap())
}

fn plan(role: Role, volume: &std::path::Path) -> CheckPlan {
    CheckPlan {
        role,
        profile: None,
        stall_ns: 100_000_000,
        volumes: if role == Role::Source { Vec::new() } else { vec![volume.to_owned()] },
        data: Some([127, 0, 0, 1].into()),
        listen: None,
        sources: Vec::new(),
    }
}

fn text(plan: &CheckPlan) -> String {
    serde_json::to_string(plan).unwrap()
}

fn outcome(done: &Receiver<Done>) -> HostOutcome {
    match done.recv().unwrap() {
        Done::Finished { run: 1, outcome } => serde_json::from_str(&outcome).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn prepared(done: &Receiver<Done>) {
    let found = done.recv().unwrap();
    assert!(matches!(found, Done::Prepared { run: 1, address: Some(_) }), "{found:?}");
}

#[test]
fn a_recorder_reaches_a_source_of_its_fleet() {
    let volume = tempfile::tempdir().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let [(mut source, from_source), (mut recorder, from_recorder)] =
        [(); 2].map(|()| (worker(volume.path()), reports_for_test()));
    let listen = Some(free.clone());
    source.prepare(1, &text(&CheckPlan { listen, ..plan(Role::Source, volume.path()) }), &from_source.0);
    prepared(&from_source.1);
    let sources = vec![SourceAddress { name: "cam".to_owned(), address: free }];
    recorder.prepare(
        1,
        &text(&CheckPlan { sources, ..plan(Role::Recorder, volume.path()) }),
        &from_recorder.0,
    );
    prepared(&from_recorder.1);
    recorder.start(1, Duration::ZERO, &from_recorder.0);
    let found = outcome(&from_recorder.1);
    source.finish(1, false, &from_source.0);
    let path = &found.facts.paths[0];
    assert!(path.failure.is_none() && path.from_source_bytes.is_some(), "{path:?}");
    assert_eq!(found.facts.interfaces[0].name, "lo");
    assert_eq!(found.facts.volumes[0].path, volume.path().canonicalize().unwrap().display().to_string());
    let of_source = outcome(&from_source.1);
    assert_eq!(of_source.facts.interfaces[0].name, "lo");
    // Settings of reception and of disks are not judged for a source.
    let receives = |outcome: &HostOutcome| outcome.findings.iter().any(|f| f.setting.contains("rmem_max"));
    assert_eq!((receives(&found), receives(&of_source)), (true, false));
}

#[test]
fn a_check_that_ends_before_its_start_still_has_facts() {
    let volume = tempfile::tempdir().unwrap();
    let (mut worker, (reports, done)) = (worker(volume.path()), reports_for_test());
    let sources = vec![SourceAddress { name: "cam".to_owned(), address: "127.0.0.1:1".to_owned() }];
    worker.prepare(1, &text(&CheckPlan { sources, ..plan(Role::Spare, volume.path()) }), &reports);
    prepared(&done);
    worker.finish(1, false, &reports);
    let found = outcome(&done);
    assert!(found.facts.paths.is_empty() && !found.findings.is_empty(), "{found:?}");
}

#[test]
fn a_source_whose_port_is_taken_has_a_finding() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let volume = tempfile::tempdir().unwrap();
    let (mut worker, (reports, done)) = (worker(volume.path()), reports_for_test());
    let listen = Some(taken.local_addr().unwrap().to_string());
    worker.prepare(1, &text(&CheckPlan { listen, ..plan(Role::Source, volume.path()) }), &reports);
    prepared(&done);
    let found = outcome(&done);
    assert_eq!(found.findings[0].severity, DoctorSeverity::Harmful);
    assert!(found.findings[0].why.contains("in use"), "{found:?}");
}

#[test]
fn plans_outside_the_rules_are_refused() {
    let volume = tempfile::tempdir().unwrap();
    let outside = CheckPlan { volumes: vec!["/etc".into()], ..plan(Role::Recorder, volume.path()) };
    let profile = Some("extends = \"csl\"".to_owned());
    let profile = CheckPlan { profile, ..plan(Role::Recorder, volume.path()) };
    for (plan, wanted) in [
        (text(&outside), "outside the volumes of this host"),
        (text(&profile), "the plan of the controller: name: it is missing"),
        ("{}".to_owned(), "malformed plan"),
    ] {
        let (mut worker, (reports, done)) = (worker(volume.path()), reports_for_test());
        worker.prepare(1, &plan, &reports);
        let why = done.iter().take(2).find_map(|done| match done {
            Done::Failed { run: 1, why } => Some(why),
            _ => None,
        });
        assert!(why.as_ref().is_some_and(|why| why.contains(wanted)), "{plan}: {why:?}");
    }
    let (mut worker, (reports, done)) = (worker(volume.path()), reports_for_test());
    worker.finish(9, false, &reports);
    assert!(matches!(done.recv().unwrap(), Done::Failed { run: 9, .. }));
}
