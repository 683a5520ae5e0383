//! Run numbers in use.
use proptest::prelude::*;

use super::*;
use crate::fixture::manifest;

fn recorded(volume: &Path, name: &str, run: Option<u64>) {
    let manifest = Manifest { name: name.into(), run, ..manifest(vec![volume.to_path_buf()], 0) };
    manifest.create(volume).unwrap();
}

#[test]
fn the_next_run_is_one_more_than_the_highest_on_any_volume() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let collect = || runs([a.path(), b.path()]).unwrap();
    assert_eq!(collect().next(), Some(1));
    recorded(a.path(), "old", None);
    assert_eq!(collect().next(), Some(1), "a recording without a number counts for nothing");
    recorded(a.path(), "one", Some(7));
    recorded(b.path(), "two", Some(3));
    assert_eq!(collect().next(), Some(8));
    assert_eq!(collect().taken, BTreeSet::from([3, 7]));
}

#[test]
fn other_directories_are_skipped() {
    let volume = tempfile::tempdir().unwrap();
    recorded(volume.path(), "one", Some(4));
    fs::write(volume.path().join("file"), "x").unwrap();
    for (name, text) in [("empty", ""), ("foreign", "{}"), ("run", "{\"run\": 99}")] {
        fs::create_dir(volume.path().join(name)).unwrap();
        fs::write(volume.path().join(name).join(MANIFEST_FILE), text).unwrap();
    }
    // Not directly below the volume.
    fs::create_dir(volume.path().join("deep")).unwrap();
    recorded(&volume.path().join("deep"), "two", Some(50));
    assert_eq!(runs([volume.path()]).unwrap().next(), Some(5));
    assert!(matches!(runs([volume.path().join("absent").as_path()]), Err(RecordingError::Io { .. })));
}

#[test]
fn an_unknown_next_run_number_is_none() {
    let runs = |taken: &[u64], is_complete| Runs { taken: taken.iter().copied().collect(), is_complete };
    assert_eq!(runs(&[1], false).next(), None);
    assert_eq!(runs(&[RUN_MAX - 1], true).next(), Some(RUN_MAX));
    assert_eq!(runs(&[RUN_MAX], true).next(), None);
    assert_eq!(runs(&[u64::MAX], true).next(), None);
}

proptest! {
    #[test]
    fn the_next_run_is_not_taken(taken in prop::collection::btree_set(0..RUN_MAX, 0..20)) {
        let next = Runs { taken: taken.clone(), is_complete: true }.next().unwrap();
        prop_assert!(!taken.contains(&next));
    }
}
