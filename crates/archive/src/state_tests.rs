//! The state survives a crash at any byte.
use keepup_error::{Diagnostic as _, ErrorClass};

use super::*;

const TO: &str = "s3://bucket/run";
const RECORDING: Id = Id([7; 16]);

fn archived(path: &str) -> ArchivedFile {
    ArchivedFile { path: path.to_owned(), bytes: 9, sha256: "0".repeat(64), modified_unix_ns: 5 }
}

fn known(path: &str, etag: Option<&str>) -> KnownFile {
    KnownFile { file: archived(path), etag: etag.map(str::to_owned), intact: Some(true) }
}

fn local(path: &str) -> LocalFile {
    LocalFile { path: path.into(), archive_path: path.to_owned(), bytes: 9, modified_unix_ns: 5, check: None }
}

fn checks() -> PartChecks {
    PartChecks { crc64: "0".repeat(16), has_crc64: false, has_md5: true, has_sha256: false }
}

fn open(dir: &Path) -> ArchiveState {
    ArchiveState::open(dir, RECORDING, TO).unwrap()
}

/// A state with a file, and an upload with two parts.
fn fill(dir: &Path) -> PathBuf {
    let mut state = open(dir);
    assert!(!state.is_resumed && state.is_kept());
    state.add_file(known("keepup.json", Some("\"a\""))).unwrap();
    state.begin_upload(&local("segment-000000.mcap"), "upload".to_owned(), 4).unwrap();
    state.add_part("segment-000000.mcap", 1, "one".to_owned(), checks()).unwrap();
    state.add_part("segment-000000.mcap", 0, "zero".to_owned(), checks()).unwrap();
    state.path.clone()
}

#[test]
fn an_upload_in_progress_is_found_again() {
    let place = tempfile::tempdir().unwrap();
    fill(place.path());
    let mut state = open(place.path());
    assert!(state.is_resumed);
    assert_eq!(state.files["keepup.json"], known("keepup.json", Some("\"a\"")));
    let upload = state.upload("segment-000000.mcap").unwrap().clone();
    assert!(upload.is_of(&local("segment-000000.mcap"), 4));
    assert!(!upload.is_of(&local("segment-000000.mcap"), 5));
    assert_eq!(upload.parts.keys().copied().collect::<Vec<_>>(), [0, 1]);
    state.add_file(known("segment-000000.mcap", None)).unwrap();
    drop(state);
    let state = open(place.path());
    assert!(state.uploads.is_empty() && state.files.len() == 2);
}

#[test]
fn every_cut_leaves_a_usable_state() {
    let place = tempfile::tempdir().unwrap();
    let path = fill(place.path());
    let whole = std::fs::read(&path).unwrap();
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        let mut state = open(place.path());
        let count = state.files.len();
        state.add_file(known("journal.jsonl", None)).unwrap();
        drop(state);
        assert_eq!(open(place.path()).files.len(), count + 1, "cut at {length}");
    }
}

#[test]
fn lines_of_an_upload_behind_its_file_are_dropped() {
    let place = tempfile::tempdir().unwrap();
    let path = fill(place.path());
    let before = std::fs::read(&path).unwrap();
    let mut state = open(place.path());
    state.add_file(known("segment-000000.mcap", None)).unwrap();
    drop(state);
    // As after a crash between the line of the file and the cut.
    let mut text = std::fs::read(&path).unwrap();
    text.extend_from_slice(&before[before.len().min(text.len())..]);
    std::fs::write(&path, text).unwrap();
    let state = open(place.path());
    assert!(state.uploads.is_empty() && state.files.len() == 2);
}

#[test]
fn two_copies_to_one_archive_exclude_each_other() {
    let place = tempfile::tempdir().unwrap();
    let first = open(place.path());
    let refused = ArchiveState::open(place.path(), RECORDING, TO).unwrap_err().to_string();
    assert!(refused.contains("another drain"), "{refused}");
    let busy = ArchiveState::open(place.path(), RECORDING, TO).unwrap_err();
    assert_eq!(busy.class(), ErrorClass::Environment, "nothing is lost");
    assert!(!busy.hint().unwrap().contains("remove"), "the state of the first one must stay: {busy:?}");
    ArchiveState::open(place.path(), RECORDING, "s3://bucket/other").unwrap();
    drop(first);
    let refused = ArchiveState::open(place.path(), Id([8; 16]), TO).unwrap_err().to_string();
    assert!(refused.contains("another recording"), "{refused}");
}

#[test]
fn a_file_is_entered_while_the_next_one_is_sent() {
    let place = tempfile::tempdir().unwrap();
    fill(place.path());
    let mut state = open(place.path());
    state.add_file(known("journal.jsonl", None)).unwrap();
    state.add_part("segment-000000.mcap", 2, "two".to_owned(), checks()).unwrap();
    drop(state);
    let mut state = open(place.path());
    assert_eq!((state.files.len(), state.uploads[0].parts.len()), (2, 3));
    state.begin_upload(&local("segment-000001.mcap"), "next".to_owned(), 4).unwrap();
    state.add_part("segment-000001.mcap", 0, "zero".to_owned(), checks()).unwrap();
    state.add_part("segment-000000.mcap", 3, "three".to_owned(), checks()).unwrap();
    drop(state);
    let mut state = open(place.path());
    let parts = |state: &ArchiveState| state.uploads.iter().map(|u| u.parts.len()).collect::<Vec<_>>();
    assert_eq!(parts(&state), [4, 1]);
    state.forget_upload("segment-000000.mcap").unwrap();
    drop(state);
    let mut state = open(place.path());
    assert_eq!(parts(&state), [1]);
    state.forget_upload("segment-000001.mcap").unwrap();
    drop(state);
    let state = open(place.path());
    assert!(state.uploads.is_empty() && state.files.len() == 2);
}

#[test]
fn a_file_that_the_archive_lost_is_forgotten_for_good() {
    let place = tempfile::tempdir().unwrap();
    fill(place.path());
    let mut state = open(place.path());
    state.forget_file("keepup.json").unwrap();
    drop(state);
    let mut state = open(place.path());
    assert!(state.files.is_empty() && state.forgotten.contains("keepup.json"));
    assert_eq!(state.uploads[0].parts.len(), 2, "the upload goes on");
    state.add_file(known("keepup.json", None)).unwrap();
    drop(state);
    let state = open(place.path());
    assert!(state.files.len() == 1 && state.forgotten.is_empty());
}
