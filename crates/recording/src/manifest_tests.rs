//! The manifest, and what may not be overwritten.

use std::os::unix::fs::symlink;

use super::*;

fn manifest(name: &str) -> Manifest {
    let own = crate::fixture::manifest(vec!["/data/a".into(), "b".into()], 1);
    Manifest { name: name.to_owned(), recording: Id([0xAB; 16]), ..own }
}

#[test]
fn a_manifest_round_trips() {
    let volume = tempfile::tempdir().unwrap();
    let dir = manifest("run").create(volume.path()).unwrap();
    assert_eq!(dir, volume.path().join("run"));
    assert_eq!(Manifest::read(&dir).unwrap(), manifest("run"));
    let text = fs::read_to_string(dir.join(MANIFEST_FILE)).unwrap();
    assert!(text.contains("\"recording\": \"abababababababababababababababab\""), "{text}");
    assert!(text.contains("\"placement\": \"free\""), "{text}");
}

#[test]
fn run_and_metadata_are_optional() {
    let volume = tempfile::tempdir().unwrap();
    let metadata = BTreeMap::from([("sample".to_owned(), "α-quartz 4".to_owned())]);
    let written = Manifest { run: Some(17), metadata, ..manifest("numbered") };
    let dir = written.create(volume.path()).unwrap();
    assert_eq!(Manifest::read(&dir).unwrap(), written);
    // A manifest without them has the same format as before.
    let dir = manifest("plain").create(volume.path()).unwrap();
    let text = fs::read_to_string(dir.join(MANIFEST_FILE)).unwrap();
    assert!(!text.contains("run\":") && !text.contains("metadata"), "{text}");
}

#[test]
fn what_the_master_needs_precedes_other_metadata() {
    let volume = tempfile::tempdir().unwrap();
    let own = BTreeMap::from([("pixel_size_y".to_owned(), "1".to_owned())]);
    let dir = Manifest { metadata: own, ..manifest("full") }.create(volume.path()).unwrap();
    let others = (0..100).map(|at| (format!("a{at}"), "other".to_owned()));
    let needed = ["series_id", "eiger1:31001/pixel_size_x", "pixel_size_y"]
        .map(|key| (key.to_owned(), "2".to_owned()));
    let metadata = Manifest::read(&dir).unwrap().with_metadata(&others.chain(needed).collect()).metadata;
    assert_eq!(metadata.len(), METADATA_MAX);
    assert_eq!((&*metadata["series_id"], &*metadata["eiger1:31001/pixel_size_x"]), ("2", "2"));
    assert_eq!(metadata["pixel_size_y"], "1", "the own entry stays");
}

#[test]
fn a_copy_names_its_original() {
    let volume = tempfile::tempdir().unwrap();
    let metadata = BTreeMap::from([("sample".to_owned(), "α-quartz 4".to_owned())]);
    let original = Manifest { run: Some(17), metadata, created_unix_ns: 99, ..manifest("original") };
    let dir = Manifest { run: Some(1), ..manifest("copy") }.create(volume.path()).unwrap();
    Manifest::read(&dir).unwrap().with_origin(&original.sent()).replace(&dir).unwrap();
    let copy = Manifest::read(&dir).unwrap();
    assert_eq!((copy.name.as_str(), copy.run, &copy.metadata), ("copy", Some(17), &original.metadata));
    let origin = copy.origin.as_ref().unwrap();
    assert_eq!((origin.name.as_str(), origin.created_unix_ns), ("original", 99));
    assert_eq!(copy.sent(), original.sent(), "a copy of a copy is a copy of the original");
    crate::remove::remove(&dir).unwrap();
    assert!(!dir.exists());
}

#[test]
fn only_an_empty_directory_may_be_used() {
    let volume = tempfile::tempdir().unwrap();
    assert_eq!(new_recording_dir(volume.path(), "run").unwrap(), volume.path().join("run"));
    manifest("run").create(volume.path()).unwrap();
    assert!(matches!(new_recording_dir(volume.path(), "run"), Err(RecordingError::Exists { .. })));
    assert!(matches!(new_recording_dir(volume.path(), "../run"), Err(RecordingError::Name { .. })));
}

#[test]
fn nothing_is_ever_overwritten() {
    let volume = tempfile::tempdir().unwrap();
    manifest("run").create(volume.path()).unwrap();
    assert!(matches!(manifest("run").create(volume.path()), Err(RecordingError::Exists { .. })));
    fs::create_dir(volume.path().join("mine")).unwrap();
    fs::write(volume.path().join("mine/thesis.tex"), "x").unwrap();
    assert!(matches!(manifest("mine").create(volume.path()), Err(RecordingError::Foreign { .. })));
    fs::write(volume.path().join("file"), "x").unwrap();
    assert!(matches!(manifest("file").create(volume.path()), Err(RecordingError::Foreign { .. })));
    // A link is not followed, even to an empty directory.
    fs::create_dir(volume.path().join("empty")).unwrap();
    symlink(volume.path().join("empty"), volume.path().join("link")).unwrap();
    assert!(matches!(manifest("link").create(volume.path()), Err(RecordingError::Foreign { .. })));
    manifest("empty").create(volume.path()).unwrap();
    // A missing volume is not created: it may be a disk that is not mounted.
    let absent = manifest("run").create(&volume.path().join("absent"));
    assert!(matches!(absent, Err(RecordingError::Io { .. })));
}

#[test]
fn names_stay_inside_the_volume() {
    let volume = tempfile::tempdir().unwrap();
    for name in ["", ".", "..", "../x", "a/b", "/etc", "nul\0", &"x".repeat(300)] {
        let refused = manifest(name).create(volume.path());
        assert!(matches!(refused, Err(RecordingError::Name { .. })), "`{name}` was taken");
    }
    assert_eq!(fs::read_dir(volume.path()).unwrap().count(), 0);
}

#[test]
fn foreign_and_damaged_manifests_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(MANIFEST_FILE);
    assert!(matches!(Manifest::read(dir.path()), Err(RecordingError::NotARecording { .. })));
    let good = serde_json::to_string(&manifest("run")).unwrap();
    let bad = [
        "{}".to_owned(),
        good.replace("\"format_version\":1", "\"format_version\":2"),
        good.replace("\"volume_index\":1", "\"volume_index\":2"),
        good.replace("\"name\":\"run\"", "\"name\":\"../run\""),
        good.replace("\"name\"", "\"extra\":1,\"name\""),
        good.replace("abab", "ABAB"),
        good[..good.len() - 1].to_owned(),
        format!("{good}{}", " ".repeat(MANIFEST_BYTES_MAX as usize)),
    ];
    for text in bad {
        fs::write(&path, &text).unwrap();
        let found = Manifest::read(dir.path());
        assert!(matches!(found, Err(RecordingError::Manifest { .. })), "{:.300} gives {found:?}", text);
    }
    fs::write(dir.path().join("elsewhere"), &good).unwrap();
    fs::remove_file(&path).unwrap();
    symlink(dir.path().join("elsewhere"), &path).unwrap();
    assert!(matches!(Manifest::read(dir.path()), Err(RecordingError::File { .. })));
}
