//! Plans reach the worker that they name.
use std::sync::{Arc, Mutex};

use super::*;
use crate::agent_loop::reports_for_test;

#[derive(Clone, Default)]
struct Scribe(Arc<Mutex<Vec<String>>>);

impl Scribe {
    fn note(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }
}

struct Noting(&'static str, Scribe);

impl Worker for Noting {
    fn prepare(&mut self, run: u64, plan: &str, _reports: &Reports) {
        self.1.note(format!("{} prepares {run} {plan}", self.0));
    }

    fn start(&mut self, run: u64, _until: Duration, _reports: &Reports) {
        self.1.note(format!("{} starts {run}", self.0));
    }

    fn finish(&mut self, run: u64, _at_once: bool, _reports: &Reports) {
        self.1.note(format!("{} finishes {run}", self.0));
    }

    fn moved(&mut self, view: &View) {
        self.1.note(format!("{} has epoch {}", self.0, view.epoch));
    }

    fn leased(&mut self, _until_ns: u64) {
        self.1.note(format!("{} is leased", self.0));
    }

    fn counters(&self) -> Counters {
        Counters { events: self.0.len() as u64, ..Counters::default() }
    }
}

#[test]
fn a_plan_reaches_its_worker() {
    let scribe = Scribe::default();
    let worker = |name| (name, Box::new(Noting(name, scribe.clone())) as Box<dyn Worker>);
    let mut jobs = Jobs::new(vec![worker(TRIAL), worker(RECORD)]);
    let (reports, done) = reports_for_test();
    jobs.prepare(7, &encode(RECORD, &[1, 2]).unwrap(), &reports);
    jobs.moved(&View { epoch: 3, ..View::default() });
    jobs.leased(0);
    jobs.start(7, Duration::ZERO, &reports);
    jobs.finish(7, false, &reports);
    let expected = [
        "record prepares 7 [1,2]",
        "trial has epoch 3",
        "record has epoch 3",
        "record is leased",
        "record starts 7",
        "record finishes 7",
    ];
    assert_eq!(*scribe.0.lock().unwrap(), expected);
    assert_eq!(jobs.counters().events, RECORD.len() as u64);
    assert!(done.try_recv().is_err());
}

#[test]
fn an_unknown_job_fails() {
    let mut jobs = Jobs::new(Vec::new());
    let (reports, done) = reports_for_test();
    for plan in ["", "dance\n{}", &"x".repeat(1 << 20)] {
        jobs.prepare(7, plan, &reports);
        let Ok(Done::Failed { run: 7, why }) = done.try_recv() else { panic!("no failure") };
        assert!(why.contains("no job") && why.len() < 100, "{why}");
    }
}
