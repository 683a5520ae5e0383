//! List of recordings as text.

use super::*;

#[test]
fn a_recording_is_listed_by_its_id_with_an_escaped_name() {
    let entry = RecordingEntry {
        id: "00ff".repeat(8),
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
    let text = recordings(&list, Style { colour: false, width: 80 });
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    assert!(!text.contains('\u{1b}') && lines[0].starts_with(&format!("{}  ", "00ff".repeat(8))), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let facts = r"run\u{1b}[2J, run 17, NOT RECOVERED, started 2026-11-21T03:30:00Z, 508 streams,";
    assert!(words.contains(facts), "{text}");
    assert!(
        words.contains(
            "events not counted, 2.50 GB, 3 events missing cannot read /data/x: it is damaged and more"
        ),
        "{text}"
    );
}
