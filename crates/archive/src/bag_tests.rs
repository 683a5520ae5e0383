//! A bag has every file with its checksum, and a copy that fails leaves none.
use std::collections::BTreeSet;

use keepup_recording::fixture::{scene, scene_segment};
use keepup_recording::recover::{RecoverOptions, recover};

use super::*;

/// A recording that has ended, and the directory of its future bag.
fn recording(place: &Path) -> (PathBuf, PathBuf) {
    let root = place.join("volume");
    fs::create_dir(&root).unwrap();
    let dir = scene(&root, &scene_segment(40).unwrap()).unwrap();
    recover(std::slice::from_ref(&dir), RecoverOptions::default(), &mut |_| {}).unwrap();
    (dir, place.join("bag"))
}

fn make(dir: &Path, to: &Path, stop: bool) -> Result<BagReport, ArchiveError> {
    let recording = Recording::open(&[dir.to_path_buf()]).unwrap();
    bag(&recording, to, "2026-11-26", &AtomicBool::new(stop), &ArchiveCounters::default())
}

/// Paths of a manifest, after its checksums were compared.
fn checked(bag: &Path, manifest: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(bag.join(manifest)).unwrap();
    let paths = text.lines().map(|line| {
        let (sha256, path) = line.split_once("  ").unwrap();
        assert_eq!(hex(&Sha256::digest(fs::read(bag.join(path)).unwrap())), sha256, "{path}");
        path.to_owned()
    });
    paths.collect()
}

#[test]
fn a_bag_lists_every_file_with_its_checksum() {
    let place = tempfile::tempdir().unwrap();
    let (dir, to) = recording(place.path());
    let report = make(&dir, &to, false).unwrap();
    assert_eq!((report.files, report.damaged_segments), (3, 0));
    let payload = ["journal.jsonl", "keepup.json", "segment-000000.mcap"].map(|name| format!("data/{name}"));
    assert_eq!(checked(&to, "manifest-sha256.txt"), BTreeSet::from(payload));
    let tags = ["bag-info.txt", "bagit.txt", "manifest-sha256.txt"].map(str::to_owned);
    assert_eq!(checked(&to, "tagmanifest-sha256.txt"), BTreeSet::from(tags));
    let info = fs::read_to_string(to.join("bag-info.txt")).unwrap();
    assert!(info.contains(&format!("Payload-Oxum: {}.3\n", report.bytes)), "{info}");
    assert!(info.contains("Bagging-Date: 2026-11-26\n"), "{info}");
    let copy = Recording::open(&[to.join("data")]).unwrap();
    assert_eq!(copy.manifest().recording, Recording::open(&[dir]).unwrap().manifest().recording);
}

#[test]
fn a_copy_that_fails_leaves_no_bag() {
    let place = tempfile::tempdir().unwrap();
    let (dir, to) = recording(place.path());
    assert!(matches!(make(&dir, &to, true), Err(ArchiveError::Stopped)));
    assert!(!to.exists());
    fs::create_dir(&to).unwrap();
    fs::write(to.join("mine"), "x").unwrap();
    let refused = make(&dir, &to, false);
    assert!(matches!(refused, Err(ArchiveError::Recording(RecordingError::Taken { .. }))), "{refused:?}");
    assert_eq!(fs::read(to.join("mine")).unwrap(), b"x", "nothing is removed that was there before");
}

#[test]
fn a_recording_that_is_not_sealed_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("volume");
    fs::create_dir(&root).unwrap();
    let dir = scene(&root, &scene_segment(4).unwrap()).unwrap();
    let refused = make(&dir, &place.path().join("bag"), false);
    assert!(matches!(refused, Err(ArchiveError::Recording(RecordingError::NotSealed { .. }))), "{refused:?}");
}

#[test]
fn metadata_cannot_add_lines() {
    assert_eq!(one_line(" sample=x\nPayload-Oxum: 1.1\r\u{1b} "), "sample=x Payload-Oxum: 1.1");
}
