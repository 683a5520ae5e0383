//! `keepup trial`: sent events are recorded, verified and read back; losses are reported.
use std::path::Path;
use std::time::Duration;

use keepup_results::{LedgerSummary, RecordPlacement, RecordRun, RecordSummary};
use keepup_testkit::Run;
use keepup_testkit::root::{SmallDisk, allowed, skip};

use crate::common::{
    TestDirectory, busy_directory, directory, json, keep_disk_full, keepup, segments, start, until,
};

/// Small files, little memory.
const SMALL: [&str; 4] = ["--pool", "64 MiB", "--segment", "32 MiB"];

fn volumes(place: &TestDirectory, names: &[&str]) {
    names.iter().for_each(|name| std::fs::create_dir(place.path().join(name)).unwrap());
}

/// The printed result, parsed with its types.
fn summary(run: &Run) -> RecordSummary {
    typed(json(run))
}

/// A result with its checksum, parsed with its types.
fn typed(mut result: serde_json::Value) -> RecordSummary {
    result.as_object_mut().unwrap().remove("checksum").unwrap();
    serde_json::from_value(result).unwrap()
}

/// The only run of a trial that ends with `code`.
fn only(place: &TestDirectory, arguments: &[&str], code: i32) -> RecordRun {
    let run = keepup(place.path(), &[&["trial"], &SMALL[..], arguments, &["--json"]].concat());
    assert_eq!(run.code(), code, "{run:#?}");
    let mut runs = summary(&run).runs;
    assert_eq!(runs.len(), 1, "{run:#?}");
    runs.remove(0)
}

/// Checks a ledger: every event is durable or lost, and the causes add up.
fn balanced(ledger: &LedgerSummary) {
    let due = ledger.sent.events + ledger.lost_at_source.events;
    assert_eq!(due, ledger.durable.events + ledger.lost.events, "{ledger:#?}");
    let by_cause: u64 = ledger.lost_by_cause.values().map(|count| count.events).sum();
    assert_eq!(by_cause, ledger.lost.events, "{ledger:#?}");
}

/// Whether a recording on `volume` has its first segment.
fn has_segments(volume: &Path) -> bool {
    let mut parts = std::fs::read_dir(volume).unwrap().map(|entry| entry.unwrap().path());
    parts.any(|part| part.is_dir() && !segments(&part).is_empty())
}

fn is_empty(place: &TestDirectory, volume: &str) -> bool {
    std::fs::read_dir(place.path().join(volume)).unwrap().count() == 0
}

#[test]
#[ignore = "system"]
fn a_small_trial_loses_nothing_and_keeps_its_result() {
    let place = busy_directory();
    volumes(&place, &["disk"]);
    let arguments = ["trial", "csl", "--rate", "40 MB/s", "--time", "1s", "--volume", "disk"];
    let more = ["--first", "50", "--drain", "40 MB/s", "--out", "results", "--json"];
    let run = keepup(place.path(), &[&arguments[..], &more, &SMALL].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
    let found = summary(&run);
    let one = &found.runs[0];
    balanced(&one.ledger);
    assert_eq!((one.ledger.lost.events, one.faults, one.to_null), (0, Some(0), false));
    assert_eq!(one.ledger.verified, Some(one.ledger.durable), "it was read back");
    assert!(one.ledger.drained.is_some() && one.read_back.is_none());
    assert!(one.asked_bytes_per_second.is_some_and(|rate| (rate - 40e6).abs() < 1.0), "{one:#?}");
    let first = one.first.unwrap();
    let durable = first.durable.unwrap();
    assert!(first.received.events >= 50 && durable.events >= 50, "{first:?}");
    assert!(first.received.seconds <= durable.seconds && durable.seconds <= one.seconds, "{one:#?}");
    assert!(one.source_seconds <= one.seconds && one.cpu.seconds_per_gb.is_some());
    assert!(is_empty(&place, "disk"), "the recording is removed");
    let result = std::fs::read_dir(place.path().join("results")).unwrap().next().unwrap().unwrap().path();
    let kept = serde_json::from_slice(&std::fs::read(result.join("result.json")).unwrap()).unwrap();
    assert_eq!(typed(kept), found);
    let events = std::fs::read_to_string(result.join("events.jsonl")).unwrap();
    let of =
        |kind: &str| events.lines().filter(|line| line.contains(&format!("\"event\":\"{kind}\""))).count();
    assert_eq!((of("started"), of("record_run"), of("finished")), (1, 1, 1), "{events}");
    assert!(of("sample") > 10, "the samples are stored");
}

#[test]
#[ignore = "system"]
fn a_trial_without_disks_writes_nothing() {
    let place = busy_directory();
    let run = only(&place, &["csl", "--rate", "max", "--events", "2000", "--to-null"], 0);
    balanced(&run.ledger);
    assert_eq!((run.ledger.received.events, run.to_null), (2000, true));
    assert_eq!((run.durable_bytes_per_second, &run.engine, run.faults), (None, &None, None));
    assert_eq!((run.asked_bytes_per_second, run.ledger.verified), (None, None));
    let first = run.first.unwrap();
    assert!(first.durable.is_none() && first.received.events >= first.events, "{first:?}");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
#[ignore = "system"]
fn every_trial_has_the_requested_number_of_events() {
    let place = busy_directory();
    volumes(&place, &["disk"]);
    let arguments =
        ["trial", "csl", "--rate", "max", "--events", "777", "--event", "10000 B", "--volume", "disk"];
    let run = keepup(place.path(), &[&arguments[..], &["--repeats", "2", "--json"], &SMALL].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
    let runs = summary(&run).runs;
    assert_eq!(runs.iter().map(|run| run.repeat).collect::<Vec<_>>(), [1, 2]);
    for run in &runs {
        assert_eq!((run.ledger.sent.events, run.ledger.sent.bytes), (777, 7_770_000), "{run:#?}");
        assert_eq!(run.ledger.verified, Some(run.ledger.sent), "{run:#?}");
        assert_eq!((run.event_bytes, run.first), (10_000, None), "fewer than a thousand events");
    }
    assert!(runs[0].begin_seconds + runs[0].seconds <= runs[1].begin_seconds, "runs are sequential");
}

#[test]
#[ignore = "system"]
fn events_read_back_equal_those_sent() {
    let place = busy_directory();
    volumes(&place, &["a", "b"]);
    let sent = ["csl", "--rate", "max", "--events", "600", "--streams", "5", "--placement", "free"];
    let more = ["--volume", "a", "--volume", "b", "--read-back", "--no-verify"];
    let run = only(&place, &[&sent[..], &more].concat(), 0);
    let read = run.read_back.as_ref().unwrap();
    assert_eq!((read.events, read.bytes), (run.ledger.sent.events, run.ledger.sent.bytes), "{run:#?}");
    assert_eq!((read.events, read.streams, read.threads), (600, 5, 2));
    assert!(read.cpu_seconds > 0.0 && read.seconds > 0.0);
    assert_eq!((run.faults, run.ledger.verified), (None, None), "--no-verify");
    assert!(is_empty(&place, "a") && is_empty(&place, "b"));
}

#[test]
#[ignore = "system"]
fn pinned_streams_are_read_back_separately() {
    let place = busy_directory();
    volumes(&place, &["a", "b", "c"]);
    let sent = ["romanis", "--rate", "max", "--events", "5080", "--streams", "508", "--event", "16 KiB"];
    let disks = ["--volume", "a", "--volume", "b", "--volume", "c", "--placement", "pinned"];
    let more = ["--connections", "4", "--read-back", "--pool", "256 MiB"];
    let run = only(&place, &[&sent[..], &disks, &more].concat(), 0);
    balanced(&run.ledger);
    assert_eq!((run.streams, run.connections, run.placement), (508, 4, RecordPlacement::Pinned));
    let read = run.read_back.as_ref().unwrap();
    assert_eq!((read.streams, read.threads, read.events), (508, 3, 5080), "{run:#?}");
    assert_eq!(read.bytes, 5080 << 14);
    assert!(run.pool_bytes_used_max <= run.pool_bytes, "memory is bounded");
}

#[test]
#[ignore = "system"]
fn losses_are_reported_with_their_cause_and_exit_code_1() {
    let place = busy_directory();
    // Too fast for loopback: the source's buffer overflows.
    let run = only(&place, &["csl", "--rate", "200 GB/s", "--time", "500 ms", "--to-null"], 1);
    balanced(&run.ledger);
    assert!(
        run.ledger.lost.events > 0 && run.ledger.lost_by_cause.contains_key("lost at source"),
        "{run:#?}"
    );
}

#[test]
#[ignore = "system"]
fn a_full_disk_ends_the_trial_and_is_cleaned_up() {
    const TEST: &str = "a_disk_that_fills_up_breaks_off";
    if !allowed(TEST) {
        return;
    }
    let place = directory();
    let disk = match SmallDisk::mount(&place.path().join("disk"), 300) {
        Ok(disk) => disk,
        Err(why) => return skip(TEST, &why),
    };
    let arguments = ["trial", "csl", "--rate", "30 MB/s", "--time", "4s", "--volume", "disk"];
    let program = start(place.path(), &[&arguments[..], &["--json"], &SMALL].concat());
    until("it records", || has_segments(disk.path()));
    let run = keep_disk_full(disk.path(), program);
    assert_eq!(run.code(), 1, "{run:#?}");
    let one = &summary(&run).runs[0];
    balanced(&one.ledger);
    assert!(one.ledger.lost.events > 0 && one.broken_off.is_some(), "{run:#?}");
    let left: Vec<_> = std::fs::read_dir(disk.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["others"], "the recording is removed");
}

#[test]
#[ignore = "system"]
fn an_interrupted_trial_keeps_the_run() {
    let place = busy_directory();
    volumes(&place, &["disk"]);
    let arguments = ["trial", "csl", "--rate", "5 MB/s", "--time", "2m", "--volume", "disk", "--json"];
    let program = start(place.path(), &[&arguments[..], &SMALL].concat());
    until("it records", || has_segments(&place.path().join("disk")));
    std::thread::sleep(Duration::from_millis(1500));
    program.signal("INT");
    let run = program.wait();
    assert_eq!(run.code(), 130, "{run:#?}");
    let found = summary(&run);
    assert!(found.interrupted);
    balanced(&found.runs[0].ledger);
    assert!(found.runs[0].ledger.durable.events > 0 && is_empty(&place, "disk"), "{run:#?}");
}

#[test]
fn impossible_trials_are_refused_before_the_first_write() {
    let place = directory();
    volumes(&place, &["disk"]);
    let cases: [(&[&str], i32, &str); 6] = [
        (&["--event", "2 GiB"], 2, "event.size"),
        (&["--streams", "0"], 2, "source.streams"),
        (&["--to-null", "--read-back"], 2, "cannot be used"),
        (&["--time", "1s", "--events", "5"], 2, "cannot be used"),
        (&["--events", "4000000000"], 4, "are needed"),
        (&["--pool", "1 MiB"], 2, "pool"),
    ];
    for (arguments, code, reason) in cases {
        let to = if arguments.contains(&"--to-null") { &[][..] } else { &["--volume", "disk"] };
        let run = keepup(place.path(), &[&["trial", "csl"], to, arguments].concat());
        assert_eq!(run.code(), code, "{run:#?}");
        assert!(run.stderr.contains(reason), "{run:#?}");
    }
    let run = keepup(place.path(), &["trial", "csl", "--rate", "max", "--volume", "disk", "--dry-run"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    assert!(run.stdout.contains("at most") && run.stdout.contains("full speed"), "{run:#?}");
    assert!(is_empty(&place, "disk"));
}

#[test]
#[ignore = "system"]
fn what_a_killed_trial_left_is_named_by_the_next_one() {
    let place = busy_directory();
    volumes(&place, &["disk"]);
    let arguments = ["trial", "csl", "--rate", "20 MB/s", "--volume", "disk", "--time"];
    let program = start(place.path(), &[&arguments[..], &["60s"], &SMALL].concat());
    let disk = place.path().join("disk");
    until("it records", || has_segments(&disk));
    program.signal("KILL");
    drop(program.wait());
    let left = std::fs::read_dir(&disk).unwrap().next().unwrap().unwrap().file_name();
    let left = left.to_str().unwrap();
    let next = || keepup(place.path(), &[&arguments[..], &["1s"], &SMALL].concat());
    let run = next();
    assert_eq!(run.code(), 0, "{run:#?}");
    let hint = format!("rm -r disk/{left}");
    assert!(
        run.stderr.lines().any(|line| line.starts_with("warning: ") && line.ends_with(&hint)),
        "{run:#?}"
    );
    std::fs::remove_dir_all(disk.join(left)).unwrap();
    let run = next();
    assert!(run.code() == 0 && !run.stderr.contains("killed"), "{run:#?}");
    assert!(is_empty(&place, "disk"));
}
