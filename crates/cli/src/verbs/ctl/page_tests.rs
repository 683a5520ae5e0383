//! What the status says, and that it says no more than text.
use keepup_results::Count;
use keepup_results::live::{RunCommand, RunState, RunVolume};

use super::*;

#[test]
fn everything_that_matters_is_said() {
    let mut shown = RunStatus {
        state: RunState::Error,
        revision: 7,
        commands: vec![RunCommand::Configure, RunCommand::Reset],
        run: Some(12),
        name: Some("quartz\u{1b}[2J".into()),
        error: Some("cannot listen\nhint: another port".into()),
        volumes: vec![RunVolume { path: "/data/a".into(), free_bytes: None }],
        ..RunStatus::default()
    };
    shown.settings.metadata.insert("sample".into(), "α".into());
    shown.settings.stop.events = Some(5);
    let count = Count { events: 3, bytes: 3000 };
    shown.last = Some(RunOutcome {
        run: Some(11),
        name: "before".into(),
        ended: "stopped on request".into(),
        received: count,
        durable: count,
        missing: [("sequence gap".to_owned(), 2)].into(),
        seconds: 1.0,
        incidents: vec![],
        directories: vec![],
        master: None,
        whole: false,
    });
    let page = status(&shown);
    for expected in [
        "error run 12, quartz",
        "revision 7",
        "error: cannot listen\nhint: another port",
        "volume /data/a: room unknown",
        "sample: α",
        "stops after 5 events",
        "last: run 11, before: stopped on request",
        "NOT WHOLE",
        "missing: 2 events, sequence gap",
        "possible now: configure, reset",
    ] {
        assert!(page.contains(expected), "{expected} is not in\n{page}");
    }
    assert!(!page.contains('\u{1b}'), "what others wrote is text");
}
