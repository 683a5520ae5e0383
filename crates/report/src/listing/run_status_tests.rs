//! Every field is shown, without control characters.
use keepup_results::Count;
use keepup_results::live::{RunCommand, RunState, RunVolume};

use unicode_width::UnicodeWidthStr;

use super::*;

#[test]
fn the_status_lists_every_field() {
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
    let page = run_status(&shown, Style { colour: false, width: 80 });
    for expected in [
        "error, run 12, quartz",
        "revision 7",
        "cannot listen\n",
        "another port\n",
        "/data/a: free space unknown",
        "sample       α",
        "stops after  5 events",
        "run 11, before: stopped on request",
        "NOT COMPLETE",
        "2 events, sequence gap",
        "configure, reset",
    ] {
        assert!(page.contains(expected), "{expected} is not in\n{page}");
    }
    assert!(!page.contains('\u{1b}'), "control characters are escaped");
    assert!(page.lines().all(|line| line.width() <= 80), "{page}");
}
