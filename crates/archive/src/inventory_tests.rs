//! An inventory names only files of a recording.
use keepup_recording::archived::archive_path;

use super::*;

fn inventory(paths: &[&str]) -> Inventory {
    let file = |path: &&str| ArchivedFile {
        path: (*path).to_owned(),
        bytes: 5,
        sha256: "0".repeat(64),
        modified_unix_ns: 1,
    };
    Inventory {
        version: INVENTORY_VERSION,
        name: "run".to_owned(),
        recording: Id([1; 16]),
        run: Some(3),
        archived_unix_ns: 2,
        tool_version: "0".to_owned(),
        files: paths.iter().map(file).collect(),
    }
}

fn parse(inventory: &Inventory) -> Result<Inventory, String> {
    Inventory::parse(&serde_json::to_vec(inventory).unwrap())
}

#[test]
fn an_inventory_is_read_as_it_was_written() {
    let files = ["keepup.json", "journal.jsonl", "segment-000000.mcap", "volume-1/keepup.json"];
    let written = inventory(&files);
    assert_eq!(parse(&written).unwrap(), written);
    assert_eq!(written.bytes(), 20);
}

#[test]
fn hostile_paths_are_refused() {
    let hostile = [
        "",
        "/etc/passwd",
        "../keepup.json",
        "volume-1/../keepup.json",
        "volume-0/keepup.json",
        "volume-01/keepup.json",
        "volume-99999/keepup.json",
        "volume-1//keepup.json",
        "volume-1/volume-2/keepup.json",
        "segment-0.mcap",
        "segment-000000.mcap/x",
        "keepup.json\0",
        ".",
        "..",
        "recording.nxs",
    ];
    for path in hostile {
        assert_eq!(split_path(path), None, "{path:?}");
        let refused = parse(&inventory(&["keepup.json", path])).unwrap_err();
        assert!(refused.contains("is not the path of a file"), "{refused}");
    }
}

#[test]
fn contradictions_are_refused() {
    type Change = fn(&mut Inventory);
    let broken: [(Change, &str); 6] = [
        (|i| i.version = 2, "version 2"),
        (|i| i.files[0].sha256 = "x".repeat(64), "64 hex digits"),
        (|i| i.files[0].path = "journal.jsonl".to_owned(), "twice"),
        (|i| i.files[0].bytes = u64::MAX, "overflows"),
        (|i| i.files[0].path = "segment-000001.mcap".to_owned(), "no keepup.json"),
        (|i| i.files[1].path = "volume-2/journal.jsonl".to_owned(), "no keepup.json"),
    ];
    for (break_it, wanted) in broken {
        let mut inventory = inventory(&["keepup.json", "journal.jsonl"]);
        break_it(&mut inventory);
        let refused = parse(&inventory).unwrap_err();
        assert!(refused.contains(wanted), "{refused}");
    }
    let text = serde_json::to_string(&inventory(&["keepup.json"])).unwrap();
    let unknown = text.replacen('{', "{\"more\": 1, ", 1);
    assert!(Inventory::parse(unknown.as_bytes()).unwrap_err().contains("unknown field"));
}

#[test]
fn paths_of_volumes_are_read_back() {
    for (volume, name) in [(0, "keepup.json"), (1, "journal.jsonl"), (12, "segment-000123.mcap")] {
        assert_eq!(split_path(&archive_path(volume, name)), Some((volume, name)));
    }
}
