//! Reading a recording back: past the page cache, in part, and after an interruption.
use std::path::Path;

use serde_json::Value;

use crate::common::{count, directory, json, keepup, mcap_messages, recorder, segments};

/// Records 200 MB to segments of 8 MiB; returns the number of events.
fn record(here: &Path, volumes: &[&str]) -> u64 {
    let mut record = recorder(here, volumes, &["--segment", "8 MiB", "--block", "256 KiB"]);
    let to = record.address().to_string();
    let source = ["source", "csl", "--to", &to, "--events", "800", "--rate", "max", "--json"];
    let source = keepup(here, &source);
    assert_eq!((source.code(), record.wait().code()), (0, 0), "{source:#?}");
    count(&json(&source)["sent"]).0
}

fn verify(here: &Path, flags: &[&str]) -> Value {
    let run = keepup(here, &[&["verify", "a/run", "--json"], flags].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
    json(&run)
}

/// Pages of the files that are in the page cache, by `fincore` of util-linux; `None` without it.
fn cached_pages(files: &[std::path::PathBuf]) -> Option<u64> {
    let run = std::process::Command::new("fincore").args(["-n", "-o", "PAGES"]).args(files).output().ok()?;
    let text = String::from_utf8(run.stdout).ok()?;
    run.status.success().then(|| text.split_whitespace().filter_map(|pages| pages.parse::<u64>().ok()).sum())
}

/// Whether the file system of `file` has direct I/O.
fn has_direct(file: &Path) -> bool {
    let from = format!("if={}", file.display());
    let run =
        std::process::Command::new("dd").args([&from, "of=/dev/null", "iflag=direct", "bs=1M"]).output();
    run.is_ok_and(|run| run.status.success())
}

#[test]
fn a_recording_with_more_segments_than_open_files_is_exported() {
    let place = directory();
    let here = place.path();
    let mut record = recorder(here, &["a"], &["--segment", "512 KiB", "--block", "64 KiB"]);
    let to = record.address().to_string();
    let source = ["source", "csl", "--to", &to, "--events", "100", "--rate", "max"];
    assert_eq!((keepup(here, &source).code(), record.wait().code()), (0, 0));
    let files = segments(&here.join("a/run")).len();
    assert!(files > 40, "{files} segments");
    let export = format!(
        "ulimit -n 32 && exec '{}' export a/run --to mcap --out all.mcap",
        env!("CARGO_BIN_EXE_keepup")
    );
    let run = keepup_testkit::Program::start("sh", &["-c", &export], here).wait();
    assert_eq!(run.code(), 0, "{run:#?}");
    let (messages, _) = mcap_messages(&std::fs::read(here.join("all.mcap")).unwrap());
    assert_eq!(messages, 100, "{run:#?}");
}

#[test]
fn a_recording_is_read_past_the_page_cache() {
    let place = directory();
    let here = place.path();
    let events = record(here, &["a"]);
    let files = segments(&here.join("a/run"));
    let info = json(&keepup(here, &["info", "a/run", "--json"]));
    assert_eq!(info["streams"]["0"]["events"], events);
    let before = cached_pages(&files);
    let report = verify(here, &[]);
    assert_eq!(report["streams"]["0"]["recorded"]["events"], events, "{report:#}");
    let cat = keepup(here, &["cat", "a/run", "--stream", "0", "--out", "all"]);
    assert_eq!(cat.code(), 0, "{cat:#?}");
    std::fs::create_dir(here.join("copy")).unwrap();
    let drain = keepup(here, &["drain", "a/run", "--to", "copy"]);
    assert_eq!(drain.code(), 0, "{drain:#?}");
    let Some((before, after)) = before.zip(cached_pages(&files)) else { return };
    // An index, a superblock, and the rest of a last page may be read through it: not the events.
    let pages = files.iter().map(|file| std::fs::metadata(file).unwrap().len() / 4096).sum::<u64>();
    assert!(
        !has_direct(&files[0]) || after < before + pages / 20,
        "{before} before, {after} of {pages} after"
    );
}

#[test]
fn a_sample_says_what_it_proves() {
    let place = directory();
    let here = place.path();
    record(here, &["a", "b"]);
    let report = verify(here, &["--sample", "20 %"]);
    let number = |key: &str| report[key].as_u64().unwrap();
    let all = number("segments") + number("unread_segments");
    assert_eq!(number("segments"), all.div_ceil(5), "{report:#}");
    assert_eq!((number("faulty_segments"), number("fault_count")), (0, 0));
    let run = keepup(here, &["verify", "a/run", "--sample", "20 %"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    assert!(run.stdout.contains(&format!("of {all} segments; completeness was not checked")), "{run:#?}");
    assert!(run.stdout.contains("with 95 % confidence fewer than"), "{run:#?}");
    // A sample of everything finds what is damaged.
    let first = &segments(&here.join("b/run"))[1];
    let mut bytes = std::fs::read(first).unwrap();
    bytes[100_000] ^= 1;
    std::fs::write(first, bytes).unwrap();
    let run = keepup(here, &["verify", "a/run", "--sample", "100 %", "--json"]);
    assert_eq!((run.code(), &json(&run)["faulty_segments"]), (1, &1.into()), "{run:#?}");
    for (flags, words) in [
        (&["--sample", "0 %"][..], "it must be above 0"),
        (&["--sample", "5 %", "--resume", "state"], "cannot be used with"),
    ] {
        let run = keepup(here, &[&["verify", "a/run"], flags].concat());
        assert!(run.code() == 2 && run.stderr.contains(words), "{run:#?}");
    }
}

#[test]
fn an_interrupted_verification_is_resumed() {
    let place = directory();
    let here = place.path();
    record(here, &["a", "b"]);
    let whole = verify(here, &[]);
    // What a killed verification leaves: the results of some segments, and a line that was cut off.
    let kept = here.join("state");
    let linked = here.join("linked");
    let run = crate::common::start(here, &["verify", "a/run", "--resume", "state", "--threads", "1"]);
    let begin = || std::fs::read_to_string(&kept).unwrap_or_default();
    crate::common::until("some results are there", || {
        // The file goes away at the end: a second name keeps it.
        let _ = std::fs::hard_link(&kept, &linked);
        begin().lines().count() > 3 || !kept.exists() && linked.exists()
    });
    run.signal("KILL");
    drop(run.wait());
    let text = std::fs::read_to_string(&linked).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() > 3, "{lines:#?}");
    let _ = std::fs::remove_file(&kept);
    std::fs::write(&kept, format!("{}\n{}", lines[..3].join("\n"), &lines[3][..20])).unwrap();
    let run = keepup(here, &["verify", "a/run", "--resume", "state", "--json"]);
    assert!(run.code() == 0 && run.stderr.contains("2 segments read before"), "{run:#?}");
    assert_eq!(json(&run), whole);
    assert!(!kept.exists(), "it is removed at the end");
    // The state of another recording is refused and not changed.
    std::fs::write(&kept, text.replacen("\"recording\":\"", "\"recording\":\"0", 1)).unwrap();
    let run = keepup(here, &["verify", "a/run", "--resume", "state"]);
    assert!(run.code() != 0 && run.stderr.contains("not the state of a verification"), "{run:#?}");
    assert!(kept.exists());
}
