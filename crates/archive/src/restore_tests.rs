//! A directory is used only if nothing in it can be overwritten.
use keepup_recording::id::Id;

use super::*;
use crate::inventory::INVENTORY_VERSION;

fn inventory(paths: &[&str]) -> Inventory {
    let file = |path: &&str| ArchivedFile {
        path: (*path).to_owned(),
        bytes: 1,
        sha256: "0".repeat(64),
        modified_unix_ns: 0,
    };
    Inventory {
        version: INVENTORY_VERSION,
        name: "run".to_owned(),
        recording: Id::default(),
        run: None,
        archived_unix_ns: 0,
        tool_version: String::new(),
        files: paths.iter().map(file).collect(),
    }
}

#[test]
fn only_the_files_of_an_interrupted_restore_are_accepted() {
    let place = tempfile::tempdir().unwrap();
    let inventory = inventory(&["keepup.json", "journal.jsonl", "volume-1/keepup.json"]);
    let to = place.path().join("back");
    prepare(&to, &inventory).unwrap();
    assert!(to.join("volume-1").is_dir());
    for name in ["journal.jsonl", "keepup.json.new", "volume-1/keepup.json"] {
        std::fs::write(to.join(name), "x").unwrap();
        prepare(&to, &inventory).unwrap();
    }
    for name in ["keepup.json", "notes.txt", "volume-1/notes.txt", "volume-2"] {
        std::fs::write(to.join(name), "x").unwrap();
        let refused = prepare(&to, &inventory).unwrap_err();
        assert!(matches!(refused, ArchiveError::Occupied { .. }), "{refused}");
        std::fs::remove_file(to.join(name)).unwrap();
    }
}

#[test]
fn a_link_in_the_place_of_a_volume_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("back");
    std::fs::create_dir(&to).unwrap();
    std::os::unix::fs::symlink(place.path(), to.join("volume-1")).unwrap();
    let refused = prepare(&to, &inventory(&["keepup.json", "volume-1/keepup.json"])).unwrap_err();
    assert!(matches!(refused, ArchiveError::Occupied { .. }), "{refused}");
}
