//! Pages of sets: lines that fit, hosts that are not here, faults.

use std::path::PathBuf;

use keepup_recording::fixture::{scene, scene_segment};
use keepup_recording::id::Id;
use keepup_recording::manifest::Manifest;
use keepup_recording::recover::RecoverOptions;
use keepup_recording::set::{
    LocalDirectories, OpenSet, RecordingSet, SET_FILE, SetRecording, describe_set, recover_set, verify_set,
};
use keepup_recording::verify::VerifyOptions;
use unicode_width::UnicodeWidthStr as _;

use super::*;

const NARROW: Style = Style { colour: false, width: 80 };

/// A cut-off recording, one that is not here, and a host without one.
fn sample() -> (tempfile::TempDir, OpenSet) {
    let place = tempfile::tempdir().unwrap();
    let here = scene(place.path(), &scene_segment(3).unwrap()).unwrap();
    let id = Manifest::read(&here).unwrap().recording;
    let entry = |host: &str, directories: Vec<PathBuf>, end, why: Option<&str>| SetRecording {
        host: host.to_owned(),
        id: (host == "daq1").then_some(id),
        directories,
        end,
        why: why.map(str::to_owned),
    };
    let set = RecordingSet {
        name: "run\u{1b}[2J of the second week".into(),
        run: Some(17),
        id: Id([7; 16]),
        created_unix_ns: 1_700_000_000_000_000_000,
        fleet: "hall-3".into(),
        recordings: vec![
            entry("daq1", vec![here], SetEnd::Lost, Some("no heartbeat for 600 ms")),
            entry("daq2", vec!["/none/run".into()], SetEnd::Finished, None),
            entry("daq3", Vec::new(), SetEnd::Absent, Some("it did not join")),
        ],
        moves: vec![SetMove {
            from: "daq1".into(),
            to: None,
            epoch: 2,
            at_unix_ns: 1_700_000_001_000_000_000,
        }],
    };
    let path = place.path().join(SET_FILE);
    set.write(&path).unwrap();
    (place, OpenSet::open(&path, &LocalDirectories::new()).unwrap())
}

/// An account with long names, many streams and large figures.
fn full(account: &mut SetAccount) {
    for id in 0..30 {
        let mut stream = SetStream {
            name: format!("module {id} of the left detector wing \u{202e}"),
            hosts: (0..9).map(|host| format!("daq{host}.beamline.facility")).collect(),
            events: u64::MAX / 64,
            duplicates: 1 << 40,
            different: Some(1 << 40),
            payload_bytes: Some(123_456_789_012_345),
            unexplained: 1 << 40,
            removed: 5,
            ..SetStream::default()
        };
        stream.missing.insert(keepup_stream::ledger::LossCause::SequenceGap, 1_000_000);
        account.streams.insert(65_000 + id, stream);
    }
    account.faults = vec!["stream 1: 2 events are missing".into(); 25];
}

fn check(text: &str) {
    for line in text.lines() {
        // Paths are never split.
        assert!(line.width() <= NARROW.width || line.contains('/'), "{} columns: {line}", line.width());
        assert!(!line.contains(|c: char| c.is_control() || c == '\u{202e}'), "{line:?}");
    }
}

#[test]
fn info_names_each_host_and_its_state() {
    let (_place, open) = sample();
    let mut info = describe_set(&open, false);
    let text = set_info(&info, NARROW);
    check(&text);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let found = words(&text);
    for expected in [
        "here 1 of 2 recordings",
        "daq1 CUT OFF 1",
        "daq2 NOT HERE - - - -",
        "daq3 none - - - -",
        "daq1: lost, or its end is unknown: no heartbeat for 600 ms",
        "daq2: no recording in /none/run",
        "streams of daq1 to the other recorders, epoch 2",
        "NOT HERE all or a part of the recording of daq2",
    ] {
        assert!(found.contains(expected), "{expected}: {text}");
    }
    full(&mut info.account);
    let text = set_info(&info, NARROW);
    check(&text);
    let found = words(&text);
    assert!(found.contains("... and 11 more streams (--json lists all)"), "{text}");
    assert!(found.contains("events, may be on daq2"), "{text}");
    assert!(found.contains("FAULT ... 25 in total (--json lists all)"), "{text}");
    info.account.incomplete_hosts.clear();
    assert!(words(&set_info(&info, NARROW)).contains("events, in no recording"));
}

#[test]
fn verification_and_recovery_have_a_part_for_each_host() {
    let (_place, open) = sample();
    let mut report = verify_set(&open, VerifyOptions { threads: 1 }, &|| 1, &|_| {});
    let text = set_verification(&report, None, NARROW);
    check(&text);
    assert!(text.contains("\nhost daq2\n") && text.contains("\nhost daq3\n"), "{text}");
    assert!(text.contains("recover with"), "{text}");
    assert!(text.ends_with("no faults, but NOT COMPLETE\n"), "{text}");
    full(&mut report.account);
    let text = set_verification(&report, None, NARROW);
    check(&text);
    assert!(text.contains("DIFFERENT") && text.ends_with("25 FAULTS\n"), "{text}");
    (report.whole, report.account) = (true, SetAccount::default());
    let text = set_verification(&report, None, NARROW);
    assert!(text.ends_with("no faults; all events of all streams are present\n"), "{text}");
    let mut recovered = recover_set(&open, RecoverOptions::default(), &mut |_| {});
    // Another test's child process may hold the journal's lock for a moment.
    for _ in 0..2000 {
        if recovered.recordings[0].report.is_some() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
        recovered = recover_set(&open, RecoverOptions::default(), &mut |_| {});
    }
    let text = set_recovery(&recovered, NARROW);
    check(&text);
    assert!(text.contains("recovered; events after the last") && text.contains("NOT COMPLETE"), "{text}");
}

#[test]
fn a_recording_of_another_host_is_recovered_through_its_agent() {
    let (_place, open) = sample();
    let mut report = verify_set(&open, VerifyOptions { threads: 1 }, &|| 1, &|_| {});
    let text = set_verification(&report, Some("keepup recover run-17 --fleet hall.toml"), NARROW);
    check(&text);
    assert!(text.contains(" keepup recover run-17 --fleet hall.toml\n"), "{text}");
    assert_eq!(text.matches("keepup recover").count(), 1, "{text}");
    // Its directory is unknown.
    report.recordings[0].facts = None;
    assert!(!set_verification(&report, None, NARROW).contains("recover with"));
}

#[test]
fn figures_of_other_hosts_are_added_without_overflow() {
    let (_place, open) = sample();
    let mut report = verify_set(&open, VerifyOptions { threads: 1 }, &|| 1, &|_| {});
    let found = report.recordings[0].report.as_mut().unwrap();
    (found.fault_count, found.unread_segments) = (u64::MAX, u64::MAX);
    let mut stream = found.streams.values().next().unwrap().clone();
    (stream.recorded.events, stream.recorded.bytes) = (u64::MAX, u64::MAX);
    found.streams.extend([(900, stream.clone()), (901, stream)]);
    let stream = SetStream { payload_bytes: Some(u64::MAX), ..SetStream::default() };
    report.account.streams.extend([(900, stream.clone()), (901, stream)]);
    report.account.faults.push("stream 900: 2 events are missing".into());
    let text = set_verification(&report, None, NARROW);
    assert!(text.ends_with("18446744073709551615 FAULTS\n"), "{text}");
}
