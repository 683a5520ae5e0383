//! Which directory has the recording of which host.

use super::*;
use crate::set::testing::{TestSet, id, move_to};

fn problem(member: &SetMember) -> String {
    match &member.presence {
        Presence::NotHere(why) => why.clone(),
        other => panic!("{other:?}"),
    }
}

fn ended() -> TestSet {
    let mut test = TestSet::new(15);
    test.end();
    test
}

#[test]
fn a_path_names_a_set_unless_it_is_a_recording() {
    let test = ended();
    assert_eq!(set_path(test.root.path()), None);
    test.set.write(&test.path()).unwrap();
    assert_eq!(set_path(test.root.path()), Some(test.path()));
    assert_eq!(set_path(&test.path()), Some(test.path()));
    let named = test.root.path().join("run-17.keepup-set.json");
    test.set.write(&named).unwrap();
    assert_eq!(set_path(&named), Some(named));
    assert_eq!(set_path(&test.root.path().join("none").join(SET_FILE)), None);
    let recording = &test.recordings[0].dirs()[0];
    test.set.write(&recording.join(SET_FILE)).unwrap();
    assert_eq!(set_path(recording), None, "a recording stays one");
}

#[test]
fn recordings_are_found_where_the_set_says_and_where_at_says() {
    let test = ended();
    let open = test.open();
    assert_eq!(open.recordings().count(), 2);
    assert!(open.incomplete_hosts().is_empty());
    // Both volumes of daq1 move: not here, until their new place is given.
    let moved = test.root.path().join("mounted");
    move_to(test.recordings[0].root.path(), &moved);
    let open = test.open();
    assert_eq!(open.incomplete_hosts(), ["daq1"]);
    assert!(problem(&open.members[0]).starts_with("no recording in "));
    let at = LocalDirectories::from([("daq1".to_owned(), vec![moved.join("disk0/run 7")])]);
    let open = test.open_at(&at);
    assert!(open.incomplete_hosts().is_empty(), "the second volume was moved together with the first");
    std::fs::create_dir(test.recordings[0].root.path()).unwrap();
}

#[test]
fn a_relative_directory_starts_at_the_set_file() {
    let mut test = ended();
    let moved = test.root.path().join("daq2");
    move_to(&test.recordings[1].dirs()[0], &moved);
    test.set.recordings[1].directories = vec!["daq2".into()];
    assert_eq!(test.open().recordings().count(), 2);
}

#[test]
fn the_same_path_on_another_host_is_not_its_recording() {
    let mut test = ended();
    // daq2's directories exist here, with the recording of daq1.
    test.set.recordings[1].directories = test.recordings[0].dirs();
    let open = test.open();
    assert_eq!(open.incomplete_hosts(), ["daq2"]);
    assert!(problem(&open.members[1]).contains("has another recording"));
    // The same when the controller never learned the identity.
    test.set.recordings[1].id = None;
    assert!(problem(&test.open().members[1]).contains("has another recording"));
    // Not either one's when no identity is known: the first entry gets it.
    test.set.recordings[0].id = None;
    assert_eq!(test.open().incomplete_hosts(), ["daq2"]);
    // An unknown identity of the same run.
    test.set.recordings[1].directories = test.recordings[1].dirs();
    assert_eq!(test.open().recordings().count(), 2);
    test.set.run = Some(8);
    assert_eq!(test.open().recordings().count(), 0);
}

#[test]
fn a_recording_without_a_known_identity_needs_the_name_and_the_run_of_the_set() {
    let mut test = ended();
    test.set.recordings[1].id = None;
    assert_eq!(test.open().recordings().count(), 2);
    let path = test.recordings[1].dirs()[0].join(MANIFEST_FILE);
    let text = fs::read_to_string(&path).unwrap();
    let write = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
        change(&mut manifest);
        fs::write(&path, manifest.to_string()).unwrap();
    };
    let is_other = |test: &TestSet| {
        let open = test.open();
        open.recordings().count() == 1 && problem(&open.members[1]).contains("has another recording")
    };
    write(&|manifest| drop(manifest.as_object_mut().unwrap().remove("run")));
    assert!(is_other(&test), "it has no run number");
    test.set.run = None;
    assert_eq!(test.open().recordings().count(), 2, "the set has none either");
    write(&|manifest| manifest["name"] = "run 8".into());
    assert!(is_other(&test), "another name");
    test.set.recordings[1].id = Some(id(2));
    assert_eq!(test.open().recordings().count(), 2, "the identity is enough");
}

#[test]
fn a_damaged_manifest_and_a_missing_volume_are_stated() {
    let mut test = ended();
    std::fs::remove_dir_all(&test.recordings[0].dirs()[1]).unwrap();
    std::fs::write(test.recordings[1].dirs()[0].join(MANIFEST_FILE), "{}").unwrap();
    let open = test.open();
    assert_eq!(open.incomplete_hosts(), ["daq1", "daq2"]);
    assert_eq!(open.members[0].recording().unwrap().missing().len(), 1);
    assert!(matches!(&open.members[1].presence, Presence::Unusable(_)));
    test.set.recordings[1] = SetRecording {
        id: Some(id(9)),
        directories: Vec::new(),
        end: SetEnd::Absent,
        ..test.set.recordings[1].clone()
    };
    let open = test.open();
    assert!(matches!(open.members[1].presence, Presence::Absent));
    assert_eq!(open.incomplete_hosts(), ["daq1"], "a host without a recording is not incomplete");
}
