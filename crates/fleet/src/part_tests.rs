//! Parts that end well, fail, panic, or are asked to end.
use std::sync::mpsc;

use super::*;
use crate::agent_loop::reports_for_test;

#[test]
fn a_part_waits_for_its_start_and_reports() {
    let (reports, done) = reports_for_test();
    let mut part = LatestPart::default();
    part.prepare((4, "7"), &reports, |plan: &u32, control| {
        control.report(Done::Prepared { run: control.run, address: None });
        let until = control.wait().ok_or("ended before the start")?;
        Ok(format!("{plan} after {until:?}"))
    });
    assert_eq!(done.recv().unwrap(), Done::Prepared { run: 4, address: None });
    part.start(3, Duration::ZERO);
    assert!(done.try_recv().is_err());
    part.start(4, Duration::from_secs(1));
    assert_eq!(done.recv().unwrap(), Done::Finished { run: 4, outcome: "7 after 1s".to_owned() });
}

#[test]
fn a_part_that_is_asked_to_end_does_so_before_its_start() {
    let (reports, done) = reports_for_test();
    let mut part = LatestPart::default();
    part.prepare((1, "7"), &reports, |_: &u32, control| {
        control.wait().map(|_| String::new()).ok_or_else(|| "ended before the start".to_owned())
    });
    part.finish(1, false, &reports);
    part.finish(1, false, &reports);
    assert_eq!(done.recv().unwrap(), Done::Failed { run: 1, why: "ended before the start".to_owned() });
}

#[test]
fn what_cannot_be_done_is_reported() {
    let why = |plan: &'static str, work: fn(&u32) -> Result<String, String>| {
        let (reports, done) = reports_for_test();
        let mut part = LatestPart::default();
        part.prepare((2, plan), &reports, move |plan: &u32, _| work(plan));
        match done.recv().unwrap() {
            Done::Failed { run: 2, why } => why,
            other => panic!("{other:?}"),
        }
    };
    assert!(why("{}", |_| Ok(String::new())).starts_with("malformed plan: "));
    assert_eq!(why("7", |_| Err("no disk".to_owned())), "no disk");
    assert_eq!(why("7", |_| panic!("on purpose")), "its thread panicked");
    let (reports, done) = reports_for_test();
    LatestPart::default().finish(9, false, &reports);
    let why = "it has no part in this run".to_owned();
    assert_eq!(done.recv().unwrap(), Done::Failed { run: 9, why });
}

#[test]
fn a_new_part_replaces_one_that_has_ended() {
    let (reports, done) = reports_for_test();
    let mut part = LatestPart::default();
    for run in 1..3 {
        let (go, gone) = mpsc::channel::<()>();
        part.prepare((run, "0"), &reports, move |_: &u32, _| {
            gone.recv().map_err(|error| error.to_string())?;
            Ok(String::new())
        });
        go.send(()).unwrap();
        assert_eq!(done.recv().unwrap(), Done::Finished { run, outcome: String::new() });
    }
}
