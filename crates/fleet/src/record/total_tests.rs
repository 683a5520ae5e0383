//! The set and the table of a recording on several hosts.
use super::*;
use crate::controller::Phase;

fn outcome(streams: u64, is_whole: bool) -> RecordOutcome {
    RecordOutcome {
        recording: Id([streams as u8; 16]),
        directories: vec!["/a/run-7".into()],
        ended: "stopped on request".to_owned(),
        is_whole,
        streams,
        received_events: 1_234_567,
        received_bytes: 80_000_000_000,
        durable_events: 1_234_567,
        durable_bytes: 80_000_000_000,
        missing_events: 0,
        missing: Default::default(),
        elapsed_ns: 1_000_000_000_000,
        cpu_ns: 0,
        incidents: Vec::new(),
        drain: None,
    }
}

fn recorder(host: &str, end: Option<&PartEnd>) -> RecorderResult {
    let mut result = RecorderResult {
        host: host.to_owned(),
        directories: vec!["/a/run-7".into()],
        outcome: None,
        failure: Some(NOT_REPORTED.to_owned()),
        end: SetEnd::Lost,
        had_streams: true,
        is_spare: false,
    };
    end.iter().for_each(|end| result.enter(end));
    result
}

fn finished(outcome: &RecordOutcome) -> PartEnd {
    PartEnd::Finished(serde_json::to_string(outcome).unwrap())
}

fn recording(recorders: Vec<RecorderResult>) -> FleetRecording {
    FleetRecording {
        fleet: "hall".to_owned(),
        name: "run-7".to_owned(),
        run: 7,
        id: Id([9; 16]),
        created_unix_ns: 1,
        recorders,
        moves: vec![Moved { from: "b".to_owned(), to: Some("x".to_owned()), epoch: 2, at_unix_ns: 5 }],
        drains: Vec::new(),
        ended_early: None,
    }
}

#[test]
fn every_end_becomes_an_entry_of_a_valid_set() {
    let empty = RecordOutcome { directories: Vec::new(), ..outcome(3, true) };
    let all = recording(vec![
        recorder("a", Some(&finished(&outcome(1, true)))),
        recorder("b", Some(&PartEnd::Lost)),
        recorder("x", Some(&finished(&empty))),
        recorder("c", Some(&PartEnd::Failed("disk\nfull".repeat(2000)))),
        recorder("d", Some(&PartEnd::Absent)),
        recorder("e", Some(&PartEnd::TimedOut(Phase::FinishingRecorders))),
        recorder("f", None),
        recorder("g", Some(&PartEnd::Finished("nonsense".to_owned()))),
    ]);
    let set = all.set();
    set.validate().unwrap();
    let ends: Vec<SetEnd> = set.recordings.iter().map(|recording| recording.end).collect();
    use SetEnd::{Absent, Failed, Finished, Lost};
    assert_eq!(ends, [Finished, Lost, Absent, Failed, Absent, Failed, Lost, Failed]);
    assert_eq!(set.recordings[0].id, Some(Id([1; 16])));
    assert_eq!((set.recordings[2].id, set.recordings[2].directories.len()), (None, 0));
    assert_eq!(set.recordings[1].directories, [PathBuf::from("/a/run-7")]);
    assert!(!all.is_whole());
}

#[test]
fn a_recording_is_whole_if_every_recorder_is() {
    let whole = recorder("a", Some(&finished(&outcome(1, true))));
    assert!(recording(vec![whole.clone(), recorder("b", Some(&finished(&outcome(2, true))))]).is_whole());
    assert!(!recording(vec![whole.clone(), recorder("b", Some(&finished(&outcome(2, false))))]).is_whole());
    assert!(!recording(vec![whole.clone(), recorder("b", None)]).is_whole());
    let ended_early = Some("no recorder is left".to_owned());
    assert!(!FleetRecording { ended_early, ..recording(vec![whole]) }.is_whole());
}

#[test]
fn the_table_fits_a_terminal_and_names_what_happened() {
    let all = recording(vec![
        recorder("a", Some(&finished(&outcome(508, true)))),
        recorder("b", Some(&PartEnd::Lost)),
    ]);
    let table = all.table();
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    for text in
        ["1,234,567", "80.0 GB", "80.0 MB/s", "b: no heartbeat until its lease", "streams of b moved to x"]
    {
        assert!(table.contains(text), "{text} in\n{table}");
    }
}

#[test]
fn a_recorder_without_streams_has_no_recording() {
    let without = |is_spare, end: &PartEnd| {
        let mut result = RecorderResult { had_streams: false, is_spare, ..recorder("x", None) };
        result.enter(end);
        result
    };
    for end in [PartEnd::Lost, PartEnd::Failed("the directory exists".to_owned()), PartEnd::Absent] {
        let spare = without(true, &end);
        let entry = spare.recording();
        assert_eq!((entry.end, entry.directories.len()), (SetEnd::Absent, 0), "{end:?}");
        assert!(entry.why.is_some() && spare.is_whole());
        assert!(!without(false, &end).is_whole(), "{end:?}");
    }
    let mut used = without(true, &PartEnd::Lost);
    used.take_streams();
    assert_eq!((used.recording().end, used.recording().directories.len()), (SetEnd::Lost, 1));
    assert!(!used.is_whole());
}
