//! Catalogs of the samples of every version, of copies, of damage, and of recordings.
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use keepup_live::{Catalog, Tone};
use keepup_measure::clock::Clock;
use keepup_recording::id::Id;
use keepup_recording::journal::{Journal, JournalRecord};
use keepup_recording::layout::FORMAT_VERSION;
use keepup_recording::manifest::{Manifest, Placement};
use keepup_results::RecordingState;

use super::DirectoryCatalog;

/// A clock that stands still until it is moved.
#[derive(Default)]
struct Still(AtomicU64);

impl Still {
    fn pass(&self, seconds: u64) {
        self.0.fetch_add(seconds * 1_000_000_000, Ordering::SeqCst);
    }
}

impl Clock for Still {
    fn now_ns(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn unix_ns(&self) -> u64 {
        1_700_000_000_000_000_000
    }

    fn sleep_until_ns(&self, deadline_ns: u64) {
        self.0.fetch_max(deadline_ns, Ordering::SeqCst);
    }
}

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../results/samples")
}

/// A result directory made of a sample.
fn put(root: &Path, name: &str, sample: &str) -> PathBuf {
    let directory = root.join(name);
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join(".keepup-result"), "x\n").unwrap();
    fs::write(directory.join("events.jsonl"), "").unwrap();
    fs::copy(samples().join(sample), directory.join("result.json")).unwrap();
    directory
}

fn catalog(root: &Path) -> (DirectoryCatalog, Arc<Still>) {
    let clock = Arc::new(Still::default());
    (DirectoryCatalog::new(vec![root.to_path_buf()], clock.clone()), clock)
}

/// One volume's part of a recording, with its journal.
fn volume(root: &Path, of: &str, recording: Id, index: u32) -> Journal {
    let volumes = vec![root.join("v0"), root.join("v1")];
    let manifest = Manifest {
        format_version: FORMAT_VERSION,
        name: "run".into(),
        recording,
        volume: recording.nth(index + 1),
        volume_index: index,
        volumes,
        placement: Placement::Free,
        created_unix_ns: 1_600_000_000_000_000_000 + u64::from(index),
        tool_version: "0.1.0".into(),
        keep: None,
        run: Some(7),
        reductions: Vec::new(),
        origin: None,
        metadata: [("sample".to_owned(), "quartz <b>".to_owned())].into(),
    };
    fs::create_dir_all(root.join(of)).unwrap();
    let directory = manifest.create(&root.join(of)).unwrap();
    Journal::create(&directory, &manifest).unwrap()
}

fn end(clean: bool) -> JournalRecord {
    JournalRecord::End { clean, reason: "asked to".into(), streams: Vec::new() }
}

#[test]
fn every_sample_is_listed_with_its_answer_and_its_page_can_be_had() {
    let place = tempfile::tempdir().unwrap();
    let mut count = 0;
    for file in fs::read_dir(samples()).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        put(place.path(), name.trim_end_matches(".json"), &name);
        count += 1;
    }
    let (catalog, _) = catalog(place.path());
    let list = catalog.list().unwrap().results;
    assert_eq!((list.entries.len(), list.unreadable.len()), (count, 0), "{:?}", list.unreadable);
    for entry in &list.entries {
        assert!(!entry.answer.is_empty() && !entry.kind.is_empty(), "{entry:?}");
        assert!(entry.id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'), "{entry:?}");
        let page = catalog.page(&entry.id).unwrap().unwrap();
        assert!(page.starts_with("<!DOCTYPE html>"), "{entry:?}");
    }
    let times: Vec<&String> = list.entries.iter().map(|entry| &entry.created).collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");
    let qualified = list.entries.iter().find(|entry| entry.directory.ends_with("qualify-v2")).unwrap();
    assert_ne!(qualified.tone, Tone::Plain);
    assert!(qualified.machine.as_ref().unwrap().contains("2 cores"), "{qualified:?}");
}

#[test]
fn a_qualification_is_listed_with_both_ends_of_what_it_found() {
    let place = tempfile::tempdir().unwrap();
    let path = put(place.path(), "one", "qualify-v2.json").join("result.json");
    let answer = |root: &Path| catalog(root).0.list().unwrap().results.entries[0].answer.clone();
    assert_eq!(answer(place.path()), "FIT 1.42 GB/s");
    let mut summary: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    summary["failed_above"] = serde_json::json!({
        "bytes_per_second": 1.61e9, "seconds": 30.0, "lost_events": 51, "condition": "events were lost"
    });
    fs::write(&path, summary.to_string()).unwrap();
    assert_eq!(answer(place.path()), "FIT 1.42 GB/s, failed 1.61 GB/s");
}

#[test]
fn copies_have_ids_of_their_own_that_stay() {
    let place = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"] {
        put(place.path(), name, "disk-v4.json");
    }
    let (catalog, clock) = catalog(place.path());
    let ids = |catalog: &DirectoryCatalog| -> Vec<String> {
        catalog.list().unwrap().results.entries.into_iter().map(|entry| entry.id).collect()
    };
    let first = ids(&catalog);
    assert_eq!(first.iter().collect::<std::collections::BTreeSet<_>>().len(), 3, "{first:?}");
    clock.pass(2);
    assert_eq!(ids(&catalog), first);
    // Each is compared with another, not with itself; and a comparison of a result with itself is refused.
    let page = catalog.compare(&first[0], &first[1]).unwrap().unwrap();
    assert!(page.starts_with("<!DOCTYPE html>"));
    assert!(catalog.compare(&first[0], &first[0]).unwrap_err().to_string().contains("with itself"));
    assert_eq!(catalog.compare(&first[0], "unknown"), Ok(None));
}

#[test]
fn results_that_have_nothing_in_common_are_not_compared() {
    let place = tempfile::tempdir().unwrap();
    put(place.path(), "a", "disk-v4.json");
    put(place.path(), "b", "qualify-v2.json");
    let (catalog, _) = catalog(place.path());
    let entries = catalog.list().unwrap().results.entries;
    assert!(catalog.compare(&entries[0].id, &entries[1].id).is_err());
}

#[test]
fn what_cannot_be_read_is_listed_with_why_and_has_no_page() {
    let place = tempfile::tempdir().unwrap();
    let damaged = put(place.path(), "damaged", "disk-v4.json");
    fs::write(damaged.join("result.json"), "{\"kind\":\"disk\"").unwrap();
    let empty = put(place.path(), "empty", "disk-v4.json");
    fs::remove_file(empty.join("result.json")).unwrap();
    put(place.path(), "good", "disk-v4.json");
    let (catalog, clock) = catalog(place.path());
    let list = catalog.list().unwrap().results;
    assert_eq!((list.entries.len(), list.unreadable.len()), (1, 2), "{list:?}");
    assert!(list.unreadable.iter().all(|one| !one.why.is_empty()));
    // Mended, it is read again; before that it is not looked at within the same second.
    fs::copy(samples().join("disk-v3.json"), damaged.join("result.json")).unwrap();
    assert_eq!(catalog.list().unwrap().results.entries.len(), 1);
    clock.pass(1);
    assert_eq!(catalog.list().unwrap().results.entries.len(), 2);
}

#[test]
fn a_measurement_under_way_is_told_by_its_beginning() {
    let place = tempfile::tempdir().unwrap();
    let begun = keepup_results::Begun {
        id: "0011aabb".into(),
        tool_version: "0.1.0".into(),
        created_unix_ns: 1_700_000_000_000_000_000,
        command: "keepup disk sweep".into(),
        workload: "sweep".into(),
        plan: serde_json::Value::Null,
        environment: serde_json::Value::Null,
    };
    let kind = keepup_results::Kind::Disk;
    keepup_results::ResultDirectory::begin(place.path(), kind, 4, &begun).unwrap();
    let (catalog, _) = catalog(place.path());
    let list = catalog.list().unwrap().results;
    let [entry] = &list.entries[..] else { panic!("{list:?}") };
    assert_eq!(
        (entry.id.as_str(), entry.workload.as_str(), entry.tone),
        ("0011aabb", "sweep", Tone::Doubtful)
    );
    assert!(entry.answer.contains("not finished") && entry.created == "2023-11-14T22:13:20Z", "{entry:?}");
}

#[test]
fn volumes_of_a_recording_are_one_entry_and_its_state_follows_its_recorder() {
    let place = tempfile::tempdir().unwrap();
    let id = Id([7; 16]);
    let mut journals = [volume(place.path(), "v0", id, 0), volume(place.path(), "v1", id, 1)];
    let (catalog, clock) = catalog(place.path());
    let only = || {
        let list = catalog.list().unwrap().recordings;
        assert_eq!((list.entries.len(), list.unreadable.len()), (1, 0), "{list:?}");
        list.entries.into_iter().next().unwrap()
    };
    let entry = only();
    assert_eq!((entry.state, entry.events), (RecordingState::BeingWritten, None));
    assert_eq!((entry.name.as_str(), entry.id), ("run", id.to_string()));
    assert_eq!(entry.directories.len(), 2);
    assert_eq!((entry.run, entry.metadata["sample"].as_str()), (Some(7), "quartz <b>"));
    for journal in &mut journals {
        journal.append_durable(&end(true)).unwrap();
    }
    drop(journals);
    // One that grew is read again after a while only.
    clock.pass(2);
    assert_eq!(only().state, RecordingState::BeingWritten);
    clock.pass(5);
    let entry = only();
    assert_eq!((entry.state, entry.events, entry.ended.as_deref()), (RecordingState::Sealed, Some(0), None));
    let info = catalog.recording(&id.to_string()).unwrap().unwrap();
    assert_eq!((&info["name"], &info["state"]["state"]), (&"run".into(), &"clean".into()));
    assert_eq!(catalog.recording(&Id([8; 16]).to_string()), Ok(None));
}

#[test]
fn a_recording_that_was_cut_off_needs_recovery_and_one_that_ended_badly_says_why() {
    let place = tempfile::tempdir().unwrap();
    let (cut, bad) = (Id([1; 16]), Id([2; 16]));
    for index in 0..2 {
        drop(volume(&place.path().join("x"), &format!("v{index}"), cut, index));
        volume(&place.path().join("y"), &format!("v{index}"), bad, index)
            .append_durable(&end(false))
            .unwrap();
    }
    let (catalog, _) = catalog(place.path());
    let list = catalog.list().unwrap().recordings.entries;
    let of = |id: Id| list.iter().find(|entry| entry.id == id.to_string()).unwrap();
    assert_eq!((of(cut).state, of(cut).events), (RecordingState::NeedsRecovery, None));
    assert_eq!((of(bad).state, of(bad).ended.as_deref()), (RecordingState::Sealed, Some("asked to")));
}

#[test]
fn a_copy_of_a_recording_is_another_entry_and_a_lost_volume_is_told() {
    let place = tempfile::tempdir().unwrap();
    let id = Id([3; 16]);
    for root in ["here", "there"] {
        let root = place.path().join(root);
        for index in 0..2 {
            drop(volume(&root, &format!("v{index}"), id, index));
        }
    }
    // Manifests name volumes by where they were recorded; in a copy all of them are of the original.
    for index in 0..2 {
        let part = |root: &str| place.path().join(root).join(format!("v{index}/run/keepup.json"));
        fs::copy(part("here"), part("there")).unwrap();
    }
    let (catalog, clock) = catalog(place.path());
    let list = catalog.list().unwrap().recordings;
    assert_eq!((list.entries.len(), list.unreadable.len()), (2, 0), "{list:?}");
    let ids: Vec<&str> = list.entries.iter().map(|entry| entry.id.as_str()).collect();
    assert!(ids.contains(&id.to_string().as_str()) && ids[0] != ids[1], "{ids:?}");
    fs::remove_dir_all(place.path().join("there")).unwrap();
    fs::remove_dir_all(place.path().join("here/v1/run")).unwrap();
    clock.pass(10);
    let list = catalog.list().unwrap().recordings;
    let [entry] = &list.entries[..] else { panic!("{list:?}") };
    assert_eq!((entry.directories.len(), entry.missing_volumes.len()), (1, 1), "{entry:?}");
}

#[test]
fn a_damaged_manifest_is_listed_with_why() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("run")).unwrap();
    fs::write(place.path().join("run/keepup.json"), "{}").unwrap();
    let (catalog, _) = catalog(place.path());
    let list = catalog.list().unwrap().recordings;
    assert_eq!((list.entries.len(), list.unreadable.len()), (0, 1), "{list:?}");
    assert!(list.unreadable[0].directory.ends_with("run"));
}

#[test]
fn names_that_are_no_unicode_are_found_all_the_same() {
    use std::os::unix::ffi::OsStrExt as _;
    let place = tempfile::tempdir().unwrap();
    let odd = place.path().join(std::ffi::OsStr::from_bytes(b"odd-\xff\xfe"));
    fs::rename(put(place.path(), "even", "disk-v4.json"), odd).unwrap();
    let (catalog, _) = catalog(place.path());
    let list = catalog.list().unwrap().results;
    assert_eq!(list.entries.len(), 1, "{list:?}");
    assert!(catalog.page(&list.entries[0].id).unwrap().is_some());
}

#[test]
fn pipes_links_and_giants_in_place_of_files_are_told_and_hold_up_nothing() {
    let place = tempfile::tempdir().unwrap();
    let damaged = |name: &str, file: &str| {
        let path = put(place.path(), name, "disk-v4.json").join(file);
        fs::remove_file(&path).unwrap();
        path
    };
    keepup_testkit::pipe(&damaged("pipe", "result.json"));
    keepup_testkit::pipe(&damaged("pipe-log", "events.jsonl"));
    std::os::unix::fs::symlink(samples().join("disk-v4.json"), damaged("link", "result.json")).unwrap();
    fs::File::create(damaged("giant", "result.json")).unwrap().set_len(1 << 40).unwrap();
    // One whose summary is missing is told by its log.
    let both = damaged("pipes", "events.jsonl");
    fs::remove_file(both.with_file_name("result.json")).unwrap();
    keepup_testkit::pipe(&both);
    let (tell, told) = std::sync::mpsc::channel();
    let root = place.path().to_path_buf();
    std::thread::spawn(move || {
        let (catalog, _) = catalog(&root);
        let list = catalog.list().unwrap().results;
        let page = catalog.page(&list.entries[0].id);
        tell.send((list, page)).unwrap();
    });
    let (list, page) = told.recv_timeout(std::time::Duration::from_secs(60)).expect("the catalog hangs");
    let unreadable: Vec<&str> = list.unreadable.iter().map(|one| one.why.as_str()).collect();
    assert_eq!((list.entries.len(), unreadable.len()), (1, 4), "{list:?}");
    assert!(list.entries[0].directory.ends_with("pipe-log"), "{list:?}");
    for why in ["not a regular file", "symbolic link", "larger than"] {
        assert!(unreadable.iter().any(|told| told.contains(why)), "{why}: {unreadable:?}");
    }
    // Its summary is enough for a page.
    assert!(page.unwrap().is_some());
}

/// A clock on which every look takes a minute.
#[derive(Default)]
struct Slow(Still);

impl Clock for Slow {
    fn now_ns(&self) -> u64 {
        let now_ns = self.0.now_ns();
        self.0.pass(60);
        now_ns
    }

    fn unix_ns(&self) -> u64 {
        self.0.unix_ns()
    }

    fn sleep_until_ns(&self, deadline_ns: u64) {
        self.0.sleep_until_ns(deadline_ns);
    }
}

#[test]
fn where_looking_takes_long_it_is_done_seldom() {
    let place = tempfile::tempdir().unwrap();
    put(place.path(), "a", "disk-v4.json");
    let catalog = DirectoryCatalog::new(vec![place.path().to_path_buf()], Arc::new(Slow::default()));
    let count = || catalog.list().unwrap().results.entries.len();
    assert_eq!(count(), 1);
    put(place.path(), "b", "disk-v4.json");
    // Each call finds a minute passed; a look of a minute is due again after nine more.
    let looks: Vec<usize> = (0..12).map(|_| count()).collect();
    assert_eq!((looks[..7].iter().max(), looks.last()), (Some(&1), Some(&2)), "{looks:?}");
}
