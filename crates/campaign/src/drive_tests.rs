//! The loop, with a made-up runner.
use keepup_measure::clock::{Clock, SystemClock};
use keepup_results::{Begun, ResultDirectory};

use super::*;
use crate::forecast::Forecasts;
use crate::state::tests::campaign;

/// Ends every run with the code that it is told to, and wants an end at one of them.
struct Made<'a> {
    code: &'a dyn Fn(u32) -> i32,
    interrupt_at: Option<usize>,
    ran: Vec<u32>,
    told: Vec<String>,
}

impl Runner for Made<'_> {
    fn run(&mut self, cell: &Cell, run_directory: &Path) -> Result<RunReport, CampaignError> {
        ResultDirectory::create(&run_directory.join("sweep-1"), "ab").unwrap();
        if self.interrupt_at == Some(self.ran.len()) {
            return Ok(RunReport { exit_code: 130, why: None, is_interrupted: true });
        }
        self.ran.push(cell.number);
        let exit_code = (self.code)(cell.number);
        Ok(RunReport {
            exit_code,
            why: (exit_code != 0).then(|| "no run_directory".into()),
            is_interrupted: false,
        })
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn report(&mut self, event: &CampaignEvent<'_>) {
        self.told.push(match event {
            CampaignEvent::RunStarted { name, repetition, .. } => format!("begins {name} r{repetition}"),
            CampaignEvent::RunEnded { name, progress, .. } => format!("ended {name}, {} left", progress.left),
        });
    }
}

fn made(code: &dyn Fn(u32) -> i32) -> Made<'_> {
    Made { code, interrupt_at: None, ran: Vec::new(), told: Vec::new() }
}

fn directory(out: &Path) -> CampaignDirectory {
    let campaign = campaign(3, 2, "");
    let begun = Begun {
        id: "0123abcd".into(),
        tool_version: "0.1.0".into(),
        created_unix_ns: SystemClock.unix_ns(),
        command: "keepup campaign run c.toml".into(),
        workload: "c".into(),
        plan: serde_json::to_value(&campaign).unwrap(),
        environment: serde_json::Value::Null,
    };
    CampaignDirectory::create(out, "", &begun).unwrap()
}

#[test]
fn every_run_is_written_down_with_its_result() {
    let place = tempfile::tempdir().unwrap();
    let mut directory = directory(place.path());
    let mut state = State::new(campaign(3, 2, ""), Forecasts::default());
    let code = |cell| if cell == 2 { 4 } else { 0 };
    let mut runner = made(&code);
    let ending = drive(&mut state, &mut directory, &mut runner, &SystemClock).unwrap();
    assert_eq!(ending, DriveOutcome::default());
    assert_eq!(runner.ran, [1, 2, 3, 1, 2, 3]);
    assert_eq!(runner.told[..3], ["begins 0 r1", "ended 0, 5 left", "begins 1 r1"]);
    let found = CampaignDirectory::read(directory.path()).unwrap();
    let told: Vec<_> = found.runs.iter().map(|run| (run.cell, run.exit_code, run.why.as_deref())).collect();
    assert_eq!(told[..3], [(1, 0, None), (2, 4, Some("no run_directory")), (3, 0, None)]);
    assert_eq!(found.runs[5].directory.as_deref(), Some("cells/3-r2/sweep-1"));
}

#[test]
fn a_run_that_was_interrupted_is_made_again() {
    let place = tempfile::tempdir().unwrap();
    let mut directory = directory(place.path());
    let path = directory.path().to_owned();
    let mut state = State::new(campaign(3, 2, ""), Forecasts::default());
    let code = |_| 0;
    let mut runner = Made { interrupt_at: Some(4), ..made(&code) };
    let ending = drive(&mut state, &mut directory, &mut runner, &SystemClock).unwrap();
    assert!(ending.is_interrupted);
    drop(directory);
    let found = CampaignDirectory::read(&path).unwrap();
    let mut state = State::new(found.campaign, Forecasts::default());
    found.runs.into_iter().for_each(|run| state.take(run));
    let mut directory = CampaignDirectory::resume(&path).unwrap();
    let mut rest = made(&code);
    drive(&mut state, &mut directory, &mut rest, &SystemClock).unwrap();
    assert_eq!([runner.ran, rest.ran].concat(), [1, 2, 3, 1, 2, 3]);
    assert!(path.join("cells/2-r2-cut/sweep-1").is_dir() && path.join("cells/2-r2/sweep-1").is_dir());
    assert_eq!(state.progress().left, 0);
}
