//! Damaged, mixed or truncated recordings: exit code 1, and an error with file, position and meaning. No
//! panics, and no changes outside the recording.
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use keepup_testkit::Run;

use crate::common::{directory, json, keepup, recorder, start};

const SEGMENT: &str = "a/run/segment-000000.mcap";
const JOURNAL: &str = "a/run/journal.jsonl";
const MANIFEST: &str = "a/run/keepup.json";
const ALL: [&str; 6] = ["verify", "info", "recover", "cat", "raw", "mcap"];

/// Records some events of one stream to two volumes, in several segments.
fn record(here: &Path) {
    let small = ["--block", "600 KiB", "--segment", "4 MiB"];
    let mut record = recorder(here, &["a", "b"], &small);
    let to = record.address().to_string();
    let source = ["source", "csl", "--to", &to, "--events", "64", "--rate", "max", "--json"];
    assert_eq!(keepup(here, &source).code(), 0);
    assert_eq!(record.wait().code(), 0);
}

/// Runs one of [`ALL`] on the recording.
fn run(here: &Path, verb: &str) -> Run {
    let out = here.join("outside").join(verb);
    let out = out.to_str().unwrap();
    match verb {
        "cat" => keepup(here, &["cat", "a/run", "--stream", "0", "--out", out]),
        "raw" | "mcap" => keepup(here, &["export", "a/run", "--to", verb, "--out", out]),
        verb => keepup(here, &[verb, "a/run"]),
    }
}

/// All files below a directory with their bytes.
fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => _ = found.insert(path.clone(), fs::read(&path).unwrap()),
        }
    }
    found
}

fn restore(here: &Path, good: &BTreeMap<PathBuf, Vec<u8>>) {
    for place in ["a", "b", "outside"] {
        let _ = fs::remove_dir_all(here.join(place));
        fs::create_dir(here.join(place)).unwrap();
    }
    for (path, bytes) in good {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    fs::write(here.join("outside/canary"), b"sings").unwrap();
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x20;
    fs::write(path, bytes).unwrap();
}

/// Damage, expected file and position in the error, and the commands that must fail.
type Case<'a> = (&'a str, Box<dyn Fn(&Path) + 'a>, &'a str, &'a str, &'a [&'a str]);

fn cases(data_bytes: usize, line: usize) -> Vec<Case<'static>> {
    let flipped = |file: &'static str, at: usize| -> Box<dyn Fn(&Path)> {
        Box::new(move |here| flip(&here.join(file), at))
    };
    let cut = |at: u64| -> Box<dyn Fn(&Path)> {
        Box::new(move |here| {
            fs::File::options().write(true).open(here.join(SEGMENT)).unwrap().set_len(at).unwrap()
        })
    };
    vec![
        (
            "a payload",
            flipped(SEGMENT, 8192 + 77),
            SEGMENT,
            "at offset 4096",
            &["verify", "cat", "raw", "mcap"],
        ),
        (
            "a header",
            flipped(SEGMENT, 4096 + 60),
            SEGMENT,
            "at offset 4096",
            &["verify", "cat", "raw", "mcap"],
        ),
        ("the preamble", flipped(SEGMENT, 150), SEGMENT, "at offset 0: ", &["verify", "mcap"]),
        ("its version", flipped(SEGMENT, 132), SEGMENT, "format version 33", &["verify", "mcap"]),
        ("the tail", flipped(SEGMENT, data_bytes + 12), SEGMENT, "the tail", &["verify"]),
        ("cut in the preamble", cut(100), SEGMENT, "at offset", &ALL),
        ("cut in a block", cut(8192 + 10), SEGMENT, "at offset", &ALL),
        (
            "cut in the tail",
            cut(data_bytes as u64 + 1),
            SEGMENT,
            "at offset",
            &["verify", "info", "recover", "cat", "raw"],
        ),
        ("gone", Box::new(|here| fs::remove_file(here.join(SEGMENT)).unwrap()), SEGMENT, ": ", &ALL),
        (
            "a link",
            Box::new(|here| {
                fs::rename(here.join(SEGMENT), here.join("outside/target")).unwrap();
                symlink("../../outside/target", here.join(SEGMENT)).unwrap();
            }),
            SEGMENT,
            "link",
            &ALL,
        ),
        (
            "of another volume",
            Box::new(|here| {
                fs::remove_file(here.join(SEGMENT)).unwrap();
                fs::copy(here.join("b/run/segment-000000.mcap"), here.join(SEGMENT)).unwrap();
            }),
            SEGMENT,
            "another segment",
            &["verify", "mcap"],
        ),
        ("a line of the journal", flipped(JOURNAL, line), JOURNAL, "line 3", &ALL),
        (
            "an empty journal",
            Box::new(|here| fs::write(here.join(JOURNAL), b"").unwrap()),
            JOURNAL,
            "at offset 0: ",
            &ALL,
        ),
        (
            "the journal of another volume",
            Box::new(|here| _ = fs::copy(here.join("b/run/journal.jsonl"), here.join(JOURNAL)).unwrap()),
            JOURNAL,
            "another recording or volume",
            &ALL,
        ),
        (
            "no journal",
            Box::new(|here| fs::remove_file(here.join(JOURNAL)).unwrap()),
            JOURNAL,
            "missing",
            &ALL,
        ),
        ("the manifest", flipped(MANIFEST, 5), MANIFEST, "line 2", &ALL),
    ]
}

#[test]
#[ignore = "system"]
fn every_command_reports_file_and_position_of_damage() {
    let place = directory();
    let here = place.path();
    record(here);
    let good: BTreeMap<_, _> = files(&here.join("a")).into_iter().chain(files(&here.join("b"))).collect();
    let journal = std::str::from_utf8(&good[&here.join(JOURNAL)]).unwrap();
    let end = journal.split("\"data_bytes\":").nth(1).unwrap();
    let data_bytes = end[..end.find(',').unwrap()].parse().unwrap();
    // Lines differ in length, but this is in the third one.
    let line = journal.split_inclusive('\n').take(2).map(str::len).sum::<usize>() + 10;
    for (what, damage, file, position, failing) in cases(data_bytes, line) {
        for verb in ALL {
            restore(here, &good);
            damage(here);
            let outside = files(&here.join("outside"));
            let ran = run(here, verb);
            let text = format!("{}{}", ran.stdout, ran.stderr);
            let expected = i32::from(failing.contains(&verb));
            assert!(!text.contains("panicked") && (0..=1).contains(&ran.code()), "{what}, {verb}: {ran:#?}");
            if expected == 1 {
                assert_eq!(ran.code(), 1, "{what}, {verb}: {ran:#?}");
                let names = text.lines().any(|said| said.contains(file) && said.contains(position));
                assert!(names, "{what}, {verb}: {position:?} of {file} is not reported: {ran:#?}");
            }
            let after = files(&here.join("outside"));
            assert!(outside.iter().all(|(path, bytes)| after.get(path) == Some(bytes)), "{what}, {verb}");
        }
    }
}

#[test]
fn blocks_are_found_without_index_and_journal() {
    let place = directory();
    let here = place.path();
    record(here);
    let whole = json(&keepup(here, &["info", "a/run", "--json"]))["streams"]["0"]["events"].clone();
    assert_eq!(whole, 64);
    fs::write(here.join(JOURNAL), b"").unwrap();
    let first = keepup(here, &["recover", "a/run", "--json"]);
    assert_eq!(
        (first.code(), &json(&first)["streams"]["0"]["recorded"]["events"]),
        (1, &whole),
        "{first:#?}"
    );
    let second = keepup(here, &["recover", "a/run", "--json"]);
    assert_eq!((second.code(), &json(&second)["changed"]), (0, &false.into()), "{second:#?}");
    let verify = json(&keepup(here, &["verify", "a/run", "--json"]));
    assert_eq!((&verify["fault_count"], &verify["streams"]["0"]["recorded"]["events"]), (&0.into(), &whole));
}

#[test]
fn a_recording_in_progress_is_not_reported_as_truncated() {
    let place = directory();
    let here = place.path();
    let mut record = recorder(here, &["a"], &["--stay"]);
    let to = record.address().to_string();
    let sent = ["source", "csl", "--to", &to, "--events", "8", "--rate", "max"];
    assert_eq!(keepup(here, &sent).code(), 0);
    let live = keepup(here, &["verify", "a/run"]);
    assert_eq!(live.code(), 1, "{live:#?}");
    assert!(
        live.stdout.contains("the run is in progress") && !live.stdout.contains("recover with"),
        "{live:#?}"
    );
    record.signal("KILL");
    drop(record.wait());
    let dead = start(here, &["verify", "a/run"]).wait();
    assert_eq!(dead.code(), 1, "{dead:#?}");
    assert!(dead.stdout.contains("the run was cut off"), "{dead:#?}");
    assert!(dead.stdout.contains(" keepup recover a/run\n"), "{dead:#?}");
}
