//! List of recordings as text.
use keepup_live::Unreadable;

use super::*;

#[test]
fn a_recording_is_one_line_with_an_escaped_name() {
    let entry = RecordingEntry {
        id: "00ff".into(),
        name: "run\u{1b}[2J".into(),
        run: Some(17),
        metadata: Default::default(),
        created: "2026-11-21T03:30:00Z".into(),
        state: RecordingState::NeedsRecovery,
        ended: None,
        directories: vec![],
        missing_volumes: vec![],
        streams: 508,
        events: None,
        bytes: 2_500_000_000,
        missing_events: 3,
    };
    let unreadable = Unreadable { directory: "/data/x".into(), why: "it is damaged".into() };
    let list =
        Entries { entries: vec![entry], unreadable: vec![unreadable], left_out: Some("and more".into()) };
    let text = table(&list);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(!text.contains('\u{1b}') && lines[1].contains(r"run\u{1b}[2J"), "{text}");
    let words: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!(words[2..], ["17", "NOT", "RECOVERED", "2026-11-21T03:30:00Z", "508", "-", "2.500", "3"]);
    assert_eq!(lines[2..], ["cannot read /data/x: it is damaged", "and more"]);
}
