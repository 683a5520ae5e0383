//! The set file: roundtrip, truncated and hostile input.

use proptest::prelude::*;

use super::*;

fn recording(host: &str, byte: u8) -> SetRecording {
    SetRecording {
        host: host.to_owned(),
        id: Some(Id([byte; 16])),
        directories: vec![format!("/data/{host}/run-17").into()],
        end: SetEnd::Finished,
        why: None,
    }
}

fn set() -> RecordingSet {
    let lost = SetRecording {
        id: None,
        end: SetEnd::Lost,
        why: Some("no heartbeat for 600 ms".into()),
        ..recording("daq2", 2)
    };
    RecordingSet {
        name: "run-17".into(),
        run: Some(17),
        id: Id([0xAB; 16]),
        created_unix_ns: 1_700_000_000_000_000_000,
        fleet: "hall-3".into(),
        recordings: vec![recording("daq1", 1), lost],
        moves: vec![SetMove { from: "daq2".into(), to: Some("daq1".into()), epoch: 2, at_unix_ns: 5 }],
    }
}

fn text_of(set: &RecordingSet) -> String {
    serde_json::to_string(&set.to_form()).unwrap()
}

fn problem(text: &str) -> String {
    RecordingSet::parse(text).unwrap_err().to_string()
}

#[test]
fn a_set_is_replaced_atomically_and_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(SET_FILE);
    set().write(&path).unwrap();
    let second = RecordingSet { run: None, moves: Vec::new(), ..set() };
    second.write(&path).unwrap();
    assert_eq!(RecordingSet::read(&path).unwrap(), second);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"format\": \"keepup-set\""), "{text}");
    assert!(text.contains("\"end\": \"lost\""), "{text}");
}

#[test]
fn a_changed_set_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(SET_FILE);
    set().write(&path).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    // Control: the file as written, and reformatted.
    assert_eq!(RecordingSet::read_checked(&path).unwrap(), (set(), true));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(RecordingSet::parse_checked(&value.to_string()).unwrap(), (set(), true));
    for (from, to) in [("run-17\"", "run-18\""), ("\"lost\"", "\"failed\""), ("\"epoch\": 2", "\"epoch\": 3")]
    {
        let cause = RecordingSet::parse(&text.replacen(from, to, 1)).unwrap_err();
        assert!(cause.to_string().starts_with("it was changed after it was written"), "{cause}");
        assert!(cause.hint().unwrap().contains("remove its field `checksum`"));
    }
    // Written by an earlier version or by hand.
    assert_eq!(RecordingSet::parse_checked(&text_of(&set())).unwrap(), (set(), false));
}

#[test]
fn an_invalid_set_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(SET_FILE);
    let invalid = RecordingSet { recordings: Vec::new(), ..set() };
    let error = invalid.write(&path).unwrap_err().to_string();
    assert!(error.ends_with("keepup-set.json: it has no recordings"), "{error}");
    assert!(!path.exists());
}

#[test]
fn other_files_are_refused() {
    let text = text_of(&set());
    let other = text.replace("\"version\":1", "\"version\":2");
    let cause = RecordingSet::parse(&other).unwrap_err();
    assert_eq!(cause.to_string(), "it has another format version");
    assert!(cause.hint().unwrap().contains("the keepup that wrote"));
    // A later version may have other keys: the version is named before them.
    let later = other.replace("\"run\":17", "\"run\":17,\"site\":\"north\"");
    assert_eq!(problem(&later), "it has another format version");
    assert_eq!(problem(&text.replace("keepup-set", "keepup-map")), "it is not a recording set");
    assert_eq!(problem("{}"), "it is not a recording set");
    assert!(problem(&text.replace("\"run\":17", "\"runs\":17")).contains("unknown field `runs`"));
    assert!(problem(&text.replace("\"run\":17", "\"run\":17,\"run\":18")).contains("duplicate field"));
    assert!(problem(&text.replace("\"epoch\"", "\"age\"")).contains("unknown field `age`"));
    assert!(problem("").contains("EOF"));
    let long = format!("{text}{}", " ".repeat(SET_BYTES_MAX as usize));
    assert_eq!(problem(&long), "it is longer than 4194304 bytes");
    let deep = format!("{{\"format\":{}", "[".repeat(100_000));
    assert!(RecordingSet::parse(&deep).is_err());
}

#[test]
fn links_and_directories_are_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let (path, link) = (dir.path().join("real"), dir.path().join(SET_FILE));
    set().write(&path).unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(RecordingSet::read(&link).unwrap_err().to_string().contains("symbolic link"));
    assert!(RecordingSet::read(dir.path()).is_err());
    assert!(RecordingSet::read(&dir.path().join("none")).unwrap_err().to_string().contains("missing"));
}

/// A change of a set, and the problem that it causes.
type Case = (&'static str, fn(&mut RecordingSet));

#[test]
fn every_rule_refuses_its_case() {
    let cases: [Case; 12] = [
        ("not a file name", |set| set.name = "../run".into()),
        ("\"\" is not a valid name of a fleet", |set| set.fleet.clear()),
        ("no recordings", |set| set.recordings.clear()),
        ("two recordings have the host \"daq1\"", |set| set.recordings[1].host = "daq1".into()),
        ("also of another host", |set| set.recordings[1].id = set.recordings[0].id),
        ("\"daq1=x\" is not a valid name of a host", |set| set.recordings[0].host = "daq1=x".into()),
        ("it has no directories", |set| set.recordings[0].directories.clear()),
        ("not a valid path", |set| set.recordings[0].directories.push("".into())),
        ("257 directories of host daq1, limit 256", |set| {
            set.recordings[0].directories = vec!["/d".into(); 257];
        }),
        ("reason is longer", |set| set.recordings[1].why = Some("x".repeat(4097))),
        ("names the host \"daq9\"", |set| set.moves[0].to = Some("daq9".into())),
        ("to itself", |set| set.moves[0].to = Some("daq2".into())),
    ];
    for (expected, change) in cases {
        let mut invalid = set();
        change(&mut invalid);
        let found = problem(&text_of(&invalid));
        assert!(found.contains(expected), "{found}");
    }
    let mut absent = set();
    absent.recordings[1] =
        SetRecording { directories: Vec::new(), end: SetEnd::Absent, ..absent.recordings[1].clone() };
    absent.validate().unwrap();
}

fn any_recording() -> impl Strategy<Value = SetRecording> {
    let end =
        prop_oneof![Just(SetEnd::Finished), Just(SetEnd::Failed), Just(SetEnd::Lost), Just(SetEnd::Absent)];
    let directories = prop::collection::vec("/[a-z0-9 /é]{1,20}".prop_map(PathBuf::from), 1..4);
    let why = prop::option::of("\\PC{0,40}");
    ("[a-z][a-z0-9.-]{0,10}", prop::option::of(any::<[u8; 16]>()), directories, end, why).prop_map(
        |(host, id, directories, end, why)| SetRecording { host, id: id.map(Id), directories, end, why },
    )
}

prop_compose! {
    fn any_set()(
        name in "[^/\u{0}]{1,40}",
        run in any::<Option<u64>>(),
        id in any::<[u8; 16]>(),
        created_unix_ns in any::<u64>(),
        fleet in "[a-z]{1,10}",
        mut recordings in prop::collection::vec(any_recording(), 1..6),
        moves in prop::collection::vec((any::<u64>(), any::<u64>(), any::<bool>()), 0..4),
    ) -> RecordingSet {
        for (at, recording) in recordings.iter_mut().enumerate() {
            recording.host.push_str(&format!("-{at}"));
            recording.id = recording.id.filter(|_| at == 0);
        }
        let (first, last) = (recordings[0].host.clone(), recordings[recordings.len() - 1].host.clone());
        let moves = moves.into_iter().map(|(epoch, at_unix_ns, is_taken)| {
            let to = (is_taken && first != last).then(|| last.clone());
            SetMove { from: first.clone(), to, epoch, at_unix_ns }
        });
        let name = if matches!(&*name, "." | "..") { "run".to_owned() } else { name };
        RecordingSet { name, run, id: Id(id), created_unix_ns, fleet, moves: moves.collect(), recordings }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_valid_set_survives_a_roundtrip(set in any_set()) {
        prop_assert_eq!(RecordingSet::parse(&text_of(&set)).unwrap(), set);
    }

    #[test]
    fn a_truncated_file_is_refused(set in any_set(), at in any::<prop::sample::Index>()) {
        let text = text_of(&set);
        let cut = (0..=at.index(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        prop_assert!(RecordingSet::parse(&text[..cut]).is_err());
    }

    #[test]
    fn a_damaged_file_never_becomes_an_invalid_set(
        at in any::<prop::sample::Index>(),
        byte in 0x20_u8..0x7f,
    ) {
        let mut text = text_of(&set()).into_bytes();
        let at = at.index(text.len());
        text[at] = byte;
        if let Ok(set) = RecordingSet::parse(std::str::from_utf8(&text).unwrap()) {
            prop_assert!(set.validate().is_ok());
        }
    }
}
