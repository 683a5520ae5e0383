//! Soak: counts add up, also across kills; every fault of a disk is detected and identified.
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use keepup_testkit::Run;
use keepup_testkit::disk::FaultyDisk;
use keepup_testkit::root::{SmallDisk, allowed, skip};
use serde_json::Value;

use crate::common::{FILE_SERVER, TestDirectory, directory, json, keepup, start};

const MIB: u64 = 1 << 20;

fn entries(directory: &Path) -> Vec<String> {
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn number(value: &Value, path: &str) -> u64 {
    value.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("no {path} in {value:#}"))
}

/// A faulty disk on `disk` in a new directory; `None` with a message if that is not possible.
fn faulty(test: &str) -> Option<(TestDirectory, FaultyDisk)> {
    if !allowed(test) {
        return None;
    }
    let place = directory();
    match FaultyDisk::mount(&place.path().join("disk"), FILE_SERVER) {
        Ok(disk) => Some((place, disk)),
        Err(why) => {
            skip(test, &why);
            None
        }
    }
}

#[test]
fn a_disk_without_faults_has_an_error_bound() {
    let place = directory();
    let here = place.path();
    for volume in ["a", "b"] {
        std::fs::create_dir(here.join(volume)).unwrap();
    }
    std::fs::write(here.join("mine"), vec![3; 100_001]).unwrap();
    let volumes = ["soak", "--volume", "a", "--volume", "b", "--copies", "5", "--json"];
    for (more, bytes) in [
        (&["--size", "64 KiB,1 MiB", "--digest", "md5"][..], 5 * 2 * (65_536 + MIB)),
        (&["--reference", "mine"], 5 * 2 * 100_001),
        (&["--mode", "stamp", "--size", "2 MiB"], 5 * 2 * 2 * MIB),
    ] {
        let run = keepup(here, &[&volumes[..], more].concat());
        assert_eq!(run.code(), 0, "{run:#?}");
        let found = json(&run);
        assert_eq!(number(&found, "/totals/turns"), 10);
        for part in ["source", "write", "read", "compare"] {
            assert_eq!(number(&found, &format!("/totals/{part}/bytes")), bytes, "{part}: {found:#}");
        }
        assert_eq!((number(&found, "/damage/mismatches"), number(&found, "/rate/bytes")), (0, bytes));
        let bound = found["rate"]["mismatches_per_bit"]["upper"].as_f64().unwrap();
        assert!((bound * 8.0 * bytes as f64 - 2.9957).abs() < 1e-3, "{bound}");
        assert!(!found["counters"].as_array().unwrap().is_empty());
        assert_eq!((&found["failure"], &found["interrupted"]), (&Value::Null, &Value::Bool(false)));
    }
    assert_eq!((entries(&here.join("a")).len(), entries(&here.join("b")).len()), (0, 0));
    let run = keepup(here, &["soak", "--volume", "a", "--reference", "gone"]);
    assert_eq!(run.code(), 2, "{run:#?}");
    let run = keepup(here, &["soak", "--volume", "a", "--dry-run"]);
    assert!(run.code() == 0 && run.stdout.contains("4000 rounds; at most 1145.6 GB"), "{run:#?}");
    let run = keepup(here, &["soak", "--volume", "a", "--quick", "--copies", "1"]);
    let found = "No error in 17,891,328 bytes read back: error rate below 1.67e-7 per byte, 2.09e-8 per bit";
    assert!(run.stdout.replace("\n  ", " ").contains(found), "{run:#?}");
}

/// Bytes read back according to the state file.
fn noted(state: &Path) -> u64 {
    let text = std::fs::read_to_string(state).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.rsplit_once(' '));
    let turns = lines.filter_map(|(line, _)| serde_json::from_str::<Value>(line).ok());
    turns.filter(|line| line["t"] == "turn").map(|line| number(&line, "/totals/read/bytes")).sum()
}

#[test]
#[ignore = "system"]
fn a_killed_soak_resumes_where_it_stopped() {
    let place = directory();
    let here = place.path();
    let (state, volume) = (here.join("state"), here.join("keepup-data"));
    let wanted = ["soak", "--size", "256 KiB,1 MiB", "--state", "state", "--json", "--copies"];
    let endless = [&wanted[..], &["1000000"]].concat();
    let mut known = 0;
    for kill in 0..4u64 {
        let soak = start(here, &endless);
        // Until there is progress after the last kill.
        while noted(&state) <= known {
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(17 * kill));
        soak.signal("KILL");
        assert_eq!(soak.wait().code(), -1);
        known = noted(&state);
    }
    assert_eq!(entries(&volume).len(), 1, "a kill leaves the scratch directory");
    let other =
        keepup(here, &[&["soak", "--size", "1 MiB", "--state", "state"][..], &["--copies", "9"]].concat());
    assert!(other.code() == 2 && other.stderr.contains("references is"), "{other:#?}");
    // An interrupted soak keeps its results too.
    let soak = start(here, &endless);
    while noted(&state) <= known {
        std::thread::sleep(Duration::from_millis(20));
    }
    soak.signal("INT");
    let run = soak.wait();
    assert_eq!(run.code(), 130, "{run:#?}");
    let found = json(&run);
    assert_eq!((number(&found, "/sittings"), number(&found, "/totals/read/bytes")), (5, noted(&state)));
    let turns = number(&found, "/totals/turns");
    assert!(turns >= 5 && number(&found, "/totals/files") >= 2 * turns, "{found:#}");
    // To the end: every round counted once, and then nothing is left to do.
    for _ in 0..2 {
        let run = keepup(here, &[&wanted[..], &[&(turns + 3).to_string()]].concat());
        assert_eq!(run.code(), 0, "{run:#?}");
        let found = json(&run);
        assert_eq!(number(&found, "/totals/turns"), turns + 3);
        assert_eq!(number(&found, "/totals/read/bytes"), noted(&state));
        assert_eq!(number(&found, "/sittings"), 6);
    }
    assert!(entries(&volume).is_empty(), "files left by the kills are removed");
    let mut bytes = std::fs::read(&state).unwrap();
    bytes[40] ^= 1;
    std::fs::write(&state, &bytes).unwrap();
    let run = keepup(here, &endless);
    assert!(run.code() == 1 && run.stderr.contains("cannot use line 1 of the state"), "{run:#?}");
    assert_eq!(std::fs::read(&state).unwrap(), bytes, "a damaged state is not changed");
}

/// The one mismatch of a soak that found it.
fn mismatch(run: &Run) -> Value {
    assert_eq!(run.code(), 1, "{run:#?}");
    let found = json(run);
    assert_eq!(number(&found, "/damage/mismatches"), 1, "{found:#}");
    found["mismatches"][0].clone()
}

#[test]
#[ignore = "system"]
fn transfer_errors_and_medium_errors_are_distinguished() {
    let Some((place, mut disk)) = faulty("a_bit_that_flips") else { return };
    let here = place.path();
    let soak = ["soak", "--volume", "disk", "--size", "1536 KiB", "--copies", "6", "--json"];
    for (what, where_is) in [("flip-read", "path"), ("flip-write", "medium")] {
        let offset = MIB + 4321;
        disk.do_wrong("copy", offset, 2, what).unwrap();
        let found = mismatch(&keepup(here, &soak));
        assert_eq!((&found["place"], number(&found, "/bits")), (&Value::from(where_is), 1), "{found:#}");
        assert_eq!((number(&found, "/ranges/0/offset"), number(&found, "/turn")), (offset, 3), "{found:#}");
        assert_eq!(
            (&found["ranges"][0]["xor"], &found["ranges"][0]["kind"]),
            (&"01".into(), &"flipped".into())
        );
        // After a transfer error the test file need not be kept.
        assert_eq!(found["kept"].is_string(), what == "flip-write", "{found:#}");
    }
    assert_eq!(entries(&here.join("disk")).len(), 1, "only the damaged copy remains");
}

#[test]
#[ignore = "system"]
fn lost_and_misplaced_writes_are_identified() {
    let Some((place, mut disk)) = faulty("lost_and_misplaced_writes") else { return };
    let here = place.path();
    let soak = ["soak", "--mode", "stamp", "--volume", "disk", "--size", "3 MiB", "--copies", "4", "--json"];
    let lines = |found: &Value| -> Vec<(String, u64, u64)> {
        let ranges = found["ranges"].as_array().unwrap();
        let mut lines: Vec<_> = ranges
            .iter()
            .map(|r| {
                (r["kind"].as_str().unwrap().into(), number(r, "/offset"), number(r, "/origin/generation"))
            })
            .collect();
        lines.sort_by_key(|line| line.1);
        lines
    };
    // The second generation is lost at this offset, so the first one is read.
    disk.do_wrong("stamped", 2 * MIB, 1, "lose").unwrap();
    let found = mismatch(&keepup(here, &soak));
    let lost = lines(&found);
    assert!(
        lost.iter().all(|(kind, _, generation)| (kind.as_str(), *generation) == ("stale", 1)),
        "{found:#}"
    );
    assert!(lost[0].1 >= 2 * MIB && number(&found, "/turn") == 2, "{found:#}");
    // It was written to the start of the file instead, over earlier data.
    disk.do_wrong("stamped", 2 * MIB, 1, "move 0").unwrap();
    let found = mismatch(&keepup(here, &soak));
    let moved = lines(&found);
    assert_eq!((moved[0].0.as_str(), moved[0].2), ("misplaced", 2), "{found:#}");
    assert!(moved[0].1 < MIB && number(&found, "/ranges/0/origin/offset") >= MIB, "{found:#}");
    assert_eq!((moved.last().unwrap().0.as_str(), moved.last().unwrap().2), ("stale", 1), "{found:#}");
    assert_eq!(found["place"], "medium");
}

#[test]
#[ignore = "system"]
fn a_broken_disk_ends_the_soak_and_keeps_its_results() {
    for what in ["cannot write to", "cannot read"] {
        let Some((place, mut disk)) = faulty("a_disk_that_breaks") else { return };
        let here = place.path();
        let soak =
            ["soak", "--volume", "disk", "--size", "256 KiB", "--time", "60 s", "--json", "--state", "state"];
        let run = start(here, &soak);
        while noted(&here.join("state")) == 0 {
            std::thread::sleep(Duration::from_millis(20));
        }
        match what {
            "cannot write to" => disk.break_down().unwrap(),
            _ => disk.fail_reads().unwrap(),
        }
        let run = run.wait();
        assert_eq!(run.code(), 4, "{run:#?}");
        let found = json(&run);
        let failure = found["failure"].as_str().unwrap();
        assert!(failure.contains(what) && failure.contains("Input/output error"), "{failure}");
        assert!(number(&found, "/totals/turns") > 0, "{found:#}");
        assert_eq!(number(&found, "/totals/read/bytes"), noted(&here.join("state")));
        assert!(entries(&here.join("disk")).is_empty(), "its files are removed");
    }
}

#[test]
#[ignore = "system"]
fn a_full_disk_ends_the_soak_cleanly() {
    let test = "a_full_disk_ends_the_soak_cleanly";
    if !allowed(test) {
        return;
    }
    let place = directory();
    let here = place.path();
    let disk = match SmallDisk::mount(&here.join("small"), 48) {
        Ok(disk) => disk,
        Err(why) => return skip(test, &why),
    };
    let soak =
        ["soak", "--volume", "small", "--size", "8 MiB", "--time", "60 s", "--json", "--state", "state"];
    let run = start(here, &soak);
    while noted(&here.join("state")) == 0 {
        std::thread::sleep(Duration::from_millis(20));
    }
    let is_over = AtomicBool::new(false);
    let run = std::thread::scope(|scope| {
        // Another program takes all free space, including space that the soak frees.
        scope.spawn(|| {
            let mut files = 0;
            while !is_over.load(Ordering::Relaxed) {
                drop(std::fs::write(disk.path().join(format!("other-{files}")), vec![1; 1 << 20]));
                files += 1;
            }
        });
        let run = run.wait();
        is_over.store(true, Ordering::Relaxed);
        run
    });
    assert_eq!(run.code(), 4, "{run:#?}");
    let found = json(&run);
    assert!(found["failure"].as_str().unwrap().contains("No space left"), "{found:#}");
    assert!(number(&found, "/totals/turns") > 0 && number(&found, "/damage/mismatches") == 0, "{found:#}");
    let left = entries(disk.path());
    assert!(left.iter().all(|name| name.starts_with("other-")), "its files are removed: {left:?}");
}

#[test]
#[ignore = "system"]
fn a_state_file_on_a_full_disk_can_be_resumed() {
    let test = "a_state_whose_disk_is_full";
    if !allowed(test) {
        return;
    }
    let place = directory();
    let here = place.path();
    let disk = match SmallDisk::mount(&here.join("small"), 1) {
        Ok(disk) => disk,
        Err(why) => return skip(test, &why),
    };
    let (state, filler) = (disk.path().join("state"), disk.path().join("filler"));
    // Space for a few lines.
    drop(std::fs::write(&filler, vec![1; (1 << 20) - 8192]));
    let soak = ["soak", "--size", "4 KiB", "--state", "small/state", "--json", "--copies"];
    let run = keepup(here, &[&soak[..], &["1000000"]].concat());
    assert_eq!(run.code(), 4, "{run:#?}");
    assert!(run.stderr.contains("append to the state") && run.stderr.contains("No space left"), "{run:#?}");
    let (found, known) = (json(&run), noted(&state));
    assert!(
        known > 0 && number(&found, "/totals/read/bytes") > known,
        "the result contains the last round too"
    );
    assert_eq!(std::fs::read(&state).unwrap().last(), Some(&b'\n'), "no truncated line");
    std::fs::remove_file(&filler).unwrap();
    let turns = known / 4096 + 5;
    let run = keepup(here, &[&soak[..], &[&turns.to_string()]].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
    assert_eq!((number(&json(&run), "/totals/turns"), noted(&state)), (turns, turns * 4096));
}
