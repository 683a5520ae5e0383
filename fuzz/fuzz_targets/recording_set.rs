//! A set file of arbitrary bytes: refused, or a valid set that survives a roundtrip.
#![no_main]

use std::fs;
use std::sync::OnceLock;

use keepup_recording::set::{LocalDirectories, OpenSet, RecordingSet, SET_FILE, describe_set};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(set) = RecordingSet::parse(text) else { return };
    set.validate().expect("a parsed set is valid");
    let root = ROOT.get_or_init(|| tempfile::tempdir().expect("make a directory"));
    let path = root.path().join(SET_FILE);
    // A text of the greatest length may be longer once it is indented.
    if set.write(&path).is_ok() {
        assert_eq!(RecordingSet::read(&path).expect("read the set"), set);
    }
    // Directories are those of the set: only inside an empty directory here.
    let mut inside = set.clone();
    let directories = inside.recordings.iter_mut().flat_map(|entry| &mut entry.directories);
    directories.for_each(|directory| *directory = root.path().join("none"));
    fs::remove_file(&path).ok();
    if inside.write(&path).is_ok() {
        let open = OpenSet::open(&path, &LocalDirectories::new()).expect("open the set");
        assert_eq!(open.members.len(), set.recordings.len());
        assert_eq!(describe_set(&open, false).recordings.len(), set.recordings.len());
    }
});

static ROOT: OnceLock<TempDir> = OnceLock::new();
