//! Volumes that stall, slow down to nothing or break in mid-run, for real: what the pool holds is not lost,
//! and what is lost is counted to the event.
use std::path::Path;
use std::time::Duration;

use keepup_testkit::disk::FaultyDisk;
use keepup_testkit::root::{ThrottledWrites, allowed, skip};
use keepup_testkit::{Program, Run};
use serde_json::Value;

use crate::common::{
    FILE_SERVER, TestDirectory, count, directory, events, exclusive_directory, json, keepup, mcap_messages,
    recorded, recorder, segments, start, until, verified,
};

/// What the source sends, in bytes per second.
const RATE: u64 = 20_000_000;
/// Of the source: for what is due while the machine stands still. What was in the recorder's pool is told.
const BUFFER: &str = "64 MiB";
/// Far less than it sends in one second.
const SMALL_BUFFER: &str = "4 MiB";
/// Pause before a fault and after it.
const CALM: Duration = Duration::from_secs(1);

/// Another disk beside the faulty one, on `other`: in memory as well, so that only one of the two stalls.
fn another(place: &TestDirectory) -> FaultyDisk {
    FaultyDisk::mount(&place.path().join("other"), FILE_SERVER).unwrap()
}

/// A faulty disk on `disk` below a place of its own, or a visible skip.
fn faulty(test: &str) -> Option<(TestDirectory, FaultyDisk)> {
    if !allowed(test) {
        return None;
    }
    let place = exclusive_directory();
    match FaultyDisk::mount(&place.path().join("disk"), FILE_SERVER) {
        Ok(disk) => Some((place, disk)),
        Err(why) => {
            skip(test, &why);
            None
        }
    }
}

fn source(here: &Path, record: &mut Program, rate: u64, length: Duration, buffer: &str) -> Program {
    let (to, rate) = (record.address().to_string(), format!("{rate} B/s"));
    let length = format!("{} ms", length.as_millis());
    let arguments = ["source", "csl", "--to", &to, "--rate", &rate, "--duration", &length];
    start(here, &[&arguments[..], &["--buffer", buffer, "--json"]].concat())
}

fn u64_of(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// Longest write of the first volume.
fn longest_write(record: &Value) -> Duration {
    Duration::from_nanos(u64_of(&record["volumes"][0]["write_latency"]["max_ns"]))
}

/// The pool has room for what is sent during `stall`: nothing is lost, and the account tells the stall.
fn bridged(here: &Path, mut record: Program, stall: Duration, fault: impl FnOnce()) {
    let source = source(here, &mut record, RATE, CALM + stall + CALM, BUFFER);
    std::thread::sleep(CALM);
    fault();
    let (source, record) = (source.wait(), record.wait());
    assert_eq!((source.code(), record.code()), (0, 0), "{source:#?} {record:#?}");
    let (account, report) = (json(&source), json(&record));
    let sent = count(&account["sent"]);
    assert_eq!(count(&account["lost_at_source"]), (0, 0));
    assert_eq!(count(&account["due"]), sent);
    assert_eq!(count(&account["durable"]), sent);
    assert_eq!((count(&report["received"]), count(&report["durable"])), (sent, sent));
    assert_eq!(verified(here, "disk/run"), sent);
    assert!(longest_write(&report) > stall / 2, "a stall of {stall:?}: {report:#}");
    let held = u64_of(&report["pool_bytes_used_max"]);
    let came = RATE * stall.as_millis() as u64 / 1000;
    assert!(held > came / 2, "of {came} bytes that came meanwhile {held} were in the pool");
}

fn bridges_a_frozen_volume(test: &str, stall: Duration) {
    let Some((place, disk)) = faulty(test) else { return };
    let record = recorder(place.path(), &["disk"], &["--pool", "256 MiB"]);
    bridged(place.path(), record, stall, || disk.freeze(stall));
}

#[test]
#[ignore = "system"]
fn the_pool_bridges_a_volume_frozen_for_half_a_second() {
    bridges_a_frozen_volume("the_pool_bridges_a_volume_frozen_for_half_a_second", Duration::from_millis(500));
}

#[test]
#[ignore = "system"]
fn the_pool_bridges_a_volume_frozen_for_2_seconds() {
    bridges_a_frozen_volume("the_pool_bridges_a_volume_frozen_for_2_seconds", Duration::from_secs(2));
}

#[test]
#[ignore = "system"]
fn the_pool_bridges_a_volume_frozen_for_8_seconds() {
    bridges_a_frozen_volume("the_pool_bridges_a_volume_frozen_for_8_seconds", Duration::from_secs(8));
}

/// A place whose writes can be throttled for those who are entered, or a visible skip.
fn throttled(test: &str) -> Option<(TestDirectory, ThrottledWrites)> {
    if !allowed(test) {
        return None;
    }
    let place = exclusive_directory();
    let name = format!("keepup-test-{}", std::process::id());
    match ThrottledWrites::create(&name, place.path(), 0) {
        Ok(throttle) => Some((place, throttle)),
        Err(why) => {
            skip(test, &why);
            None
        }
    }
}

/// A block takes a minute at this limit, unless it is lifted before.
fn let_next_to_nothing_through(throttle: &ThrottledWrites, stall: Duration) {
    throttle.limit(16 << 10).unwrap();
    std::thread::sleep(stall);
    throttle.limit(0).unwrap();
}

fn bridges_a_throttled_volume(test: &str, stall: Duration) {
    let Some((place, throttle)) = throttled(test) else { return };
    let record = recorder(place.path(), &["disk"], &["--pool", "256 MiB"]);
    std::fs::write(throttle.entry(), record.id().to_string()).unwrap();
    bridged(place.path(), record, stall, || let_next_to_nothing_through(&throttle, stall));
}

#[test]
#[ignore = "system"]
fn the_pool_bridges_a_volume_throttled_for_half_a_second() {
    bridges_a_throttled_volume(
        "the_pool_bridges_a_volume_throttled_for_half_a_second",
        Duration::from_millis(500),
    );
}

#[test]
#[ignore = "system"]
fn the_pool_bridges_a_volume_throttled_for_2_seconds() {
    bridges_a_throttled_volume("the_pool_bridges_a_volume_throttled_for_2_seconds", Duration::from_secs(2));
}

/// The pool has far less room than the stall needs: each event is either durable or lost at the source.
/// Returns what the recorder said, and the events sent and lost.
fn overflows(here: &Path, mut record: Program, stall: Duration, fault: impl FnOnce()) -> (Run, u64, u64) {
    let source = source(here, &mut record, 3 * RATE, CALM + stall + CALM, SMALL_BUFFER);
    std::thread::sleep(CALM);
    fault();
    let (source, record) = (source.wait(), record.wait());
    assert_eq!((source.code(), record.code()), (1, 1), "{source:#?} {record:#?}");
    let account = json(&source);
    let (sent, lost) = (count(&account["sent"]), count(&account["lost_at_source"]));
    assert!(lost.0 > 0, "{account:#}");
    assert_eq!(count(&account["due"]), (sent.0 + lost.0, sent.1 + lost.1));
    assert_eq!(count(&account["durable"]), sent);
    let verify = keepup(here, &["verify", "disk/run", "--json"]);
    assert_eq!(verify.code(), 1, "events are missing: {verify:#?}");
    let verify = json(&verify);
    assert_eq!((&verify["fault_count"], &verify["ending"]["state"]), (&0.into(), &"clean".into()));
    assert_eq!(verify["streams"]["0"]["lost_events"], lost.0);
    assert_eq!(recorded(&verify), sent);
    (record, sent.0, lost.0)
}

#[test]
#[ignore = "system"]
fn a_frozen_volume_and_a_small_pool_lose_events_at_the_source() {
    let Some((place, disk)) = faulty("a_frozen_volume_and_a_small_pool_lose_events_at_the_source") else {
        return;
    };
    let stall = Duration::from_secs(2);
    let record = recorder(place.path(), &["disk"], &["--pool", "16 MiB"]);
    let (record, sent, lost) = overflows(place.path(), record, stall, || disk.freeze(stall));
    let report = json(&record);
    assert_eq!((count(&report["received"]).0, count(&report["durable"]).0), (sent, sent));
    assert_eq!(report["missing_events"], serde_json::json!({ "source": lost }));
    assert!(u64_of(&report["pool_wait_ns"]) > 0, "it was the memory that was short");
    assert!(longest_write(&report) > stall / 2, "a stall of {stall:?}: {report:#}");
}

#[test]
#[ignore = "system"]
fn a_throttled_volume_and_a_small_pool_lose_events_at_the_source() {
    let Some((place, throttle)) = throttled("a_throttled_volume_and_a_small_pool_lose_events_at_the_source")
    else {
        return;
    };
    let here = place.path();
    let stall = Duration::from_secs(2);
    std::fs::create_dir(here.join("disk")).unwrap();
    let arguments = ["record", "--listen", "127.0.0.1:0", "--name", "run", "--volume", "disk"];
    let record = start(here, &[&arguments[..], &["--pool", "16 MiB", "--segment", "32 MiB"]].concat());
    std::fs::write(throttle.entry(), record.id().to_string()).unwrap();
    let (record, _, lost) = overflows(here, record, stall, || let_next_to_nothing_through(&throttle, stall));
    let said = |line: &str| line.contains(&format!("{lost} events")) && line.contains("lost at source");
    assert!(record.stdout.lines().any(said), "people are told as well: {record:#?}");
    assert!(record.stdout.contains("--pool"), "and what helps: {record:#?}");
    assert!(record.stderr.contains("memory are full"), "and while it lasts: {record:#?}");
}

/// Events in the segments of a recording, also behind the last watermark of its journal.
fn on_disk(recording: &Path) -> u64 {
    segments(recording).iter().map(|s| mcap_messages(&std::fs::read(s).unwrap()).0).sum()
}

/// Records to `volumes`, of which the first breaks in mid-run in the way of `fault`.
fn breaks(
    place: &TestDirectory,
    disk: &mut FaultyDisk,
    volumes: &[&str],
    more: &[&str],
    fault: fn(&mut FaultyDisk) -> std::io::Result<()>,
) -> (Run, Run) {
    let mut record = recorder(place.path(), volumes, more);
    // Some writes are under way at any time, so also when it breaks.
    disk.slow_down(Duration::from_millis(20)).unwrap();
    let source = source(place.path(), &mut record, RATE, 4 * CALM, BUFFER);
    std::thread::sleep(2 * CALM);
    let journal = place.path().join("disk/run/journal.jsonl");
    until("something is durable", || std::fs::read_to_string(&journal).unwrap().contains("watermark"));
    fault(disk).unwrap();
    let (source, record) = (source.wait(), record.wait());
    let report = json(&record);
    let failure = report["volumes"][0]["failure"].as_str().unwrap();
    assert!(failure.contains("Input/output error"), "{report:#}");
    assert!(report["incidents"]["listed"].to_string().contains("disk/run"), "{report:#}");
    (source, record)
}

/// Events that were received and went down with a volume; each event received is durable or among them.
fn lost_with_a_volume(report: &Value) -> u64 {
    let missing = report["missing_events"].as_object().unwrap();
    assert!(missing.keys().all(|cause| cause == "volume_failed"), "{report:#}");
    let lost = missing.values().map(u64_of).sum();
    assert_eq!(count(&report["received"]).0, count(&report["durable"]).0 + lost, "{report:#}");
    lost
}

#[test]
#[ignore = "system"]
fn losses_on_the_only_volume_are_counted() {
    let Some((place, mut disk)) = faulty("losses_on_the_only_volume_are_counted") else { return };
    let (source, record) = breaks(&place, &mut disk, &["disk"], &[], FaultyDisk::break_down);
    assert_eq!((source.code(), record.code()), (1, 1), "{source:#?} {record:#?}");
    let (account, report) = (json(&source), json(&record));
    assert!(account["durable"]["bytes"].is_null(), "nobody said how many: {account:#}");
    assert!(report["ended"].as_str().unwrap().contains("no volume"), "{report:#}");
    assert!(source.stderr.contains("Input/output error"), "the source is told: {source:#?}");
    lost_with_a_volume(&report);
    assert!(count(&report["received"]).0 <= count(&account["sent"]).0);
    let (acknowledged, durable) = (events(&account["durable"]), count(&report["durable"]).0);
    assert!(0 < acknowledged && acknowledged <= durable, "{acknowledged} of {durable}");
    let verify = json(&keepup(place.path(), &["verify", "disk/run", "--json"]));
    assert_eq!(verify["fault_count"], 0, "{verify:#}");
    // The last watermark may not have reached the journal any more; the blocks themselves are there.
    let on_disk = on_disk(&place.path().join("disk/run"));
    assert!(on_disk >= durable, "{on_disk} of {durable} durable events are on disk");
    assert!(recorded(&verify).0 <= durable, "{verify:#}");
}

#[test]
#[ignore = "system"]
fn the_other_volume_takes_over_after_one_breaks() {
    let Some((place, mut disk)) = faulty("the_other_volume_takes_over_after_one_breaks") else { return };
    outlived_by_the_other(&place, &mut disk, FaultyDisk::break_down);
}

/// What a failed flush should have made durable is written to the other volume, although a later flush of
/// the same file succeeds.
#[test]
#[ignore = "system"]
fn the_other_volume_takes_over_after_a_failed_flush() {
    let Some((place, mut disk)) = faulty("the_other_volume_takes_over_after_a_failed_flush") else { return };
    outlived_by_the_other(&place, &mut disk, FaultyDisk::fail_a_flush);
}

/// Without memory for them, blocks that are written and not flushed go down with their volume, and are
/// counted.
#[test]
#[ignore = "system"]
fn unflushed_blocks_without_copies_are_counted_as_lost() {
    let test = "unflushed_blocks_without_copies_are_counted_as_lost";
    let Some((place, mut disk)) = faulty(test) else { return };
    let _other = another(&place);
    let more = ["--unflushed", "0 B"];
    let (source, record) = breaks(&place, &mut disk, &["disk", "other"], &more, FaultyDisk::fail_a_flush);
    let lost = lost_with_a_volume(&json(&record));
    assert!(lost > 0, "the last half second is not known to be on the disk");
    assert_eq!((source.code(), record.code()), (1, 1), "{source:#?} {record:#?}");
}

/// The first volume fails: what it did not make durable is written to the other, which takes the rest too.
fn outlived_by_the_other(
    place: &TestDirectory,
    disk: &mut FaultyDisk,
    fault: fn(&mut FaultyDisk) -> std::io::Result<()>,
) {
    let _other = another(place);
    let (source, record) = breaks(place, disk, &["disk", "other"], &[], fault);
    let (account, report) = (json(&source), json(&record));
    assert!(!report["ended"].as_str().unwrap().contains("no volume"), "{report:#}");
    assert!(report["volumes"][1]["failure"].is_null(), "{report:#}");
    let (sent, durable) = (count(&account["sent"]), count(&report["durable"]));
    assert_eq!(count(&account["lost_at_source"]).0, 0, "it went on");
    assert_eq!(count(&report["received"]), sent);
    assert_eq!(count(&account["durable"]), durable);
    // Half a second of data is far less than the part of the pool that is kept for this.
    assert_eq!(lost_with_a_volume(&report), 0);
    assert_eq!(source.code(), 0, "{source:#?}");
    let (code, whole, trouble) = (record.code(), &report["whole"], report["trouble"].to_string());
    assert!(code == 1 && *whole == false && trouble.contains("disk/run"), "a volume failed: {report:#}");
    // What was written twice counts once.
    assert!(!trouble.contains("does not add up"), "{report:#}");
    let verify = json(&keepup(place.path(), &["verify", "disk/run", "--json"]));
    assert_eq!(verify["fault_count"], 0, "{verify:#}");
    let stream = &verify["streams"]["0"];
    let elsewhere = u64_of(&stream["lost_events"]) + u64_of(&stream["unsettled_events"]);
    assert_eq!(recorded(&verify).0 + elsewhere, sent.0, "{verify:#}");
    let parts = ["disk/run", "other/run"].map(|part| on_disk(&place.path().join(part)));
    assert!(parts[0] + parts[1] >= durable.0, "{parts:?} of {durable:?} durable events are on disk");
    assert!(parts[1] > sent.0 / 3, "the other volume took over: {parts:?}");
}

/// The first of two volumes answers nothing for longer than the pool has room for: its stream goes to the
/// other, and comes back.
fn stands_in(test: &str, placement: &str) {
    let Some((place, disk)) = faulty(test) else { return };
    let here = place.path();
    let _other = another(&place);
    let more = ["--pool", "48 MiB", "--slow-after", "500 ms", "--placement", placement];
    let mut record = recorder(here, &["disk", "other"], &more);
    let stall = Duration::from_secs(4);
    let source = source(here, &mut record, RATE, CALM + stall + CALM, BUFFER);
    std::thread::sleep(CALM);
    disk.freeze(stall);
    let (source, record) = (source.wait(), record.wait());
    assert_eq!((source.code(), record.code()), (0, 0), "{source:#?} {record:#?}");
    let (account, report) = (json(&source), json(&record));
    let sent = count(&account["sent"]);
    assert_eq!((count(&account["lost_at_source"]), count(&account["durable"])), ((0, 0), sent));
    assert!(sent.1 > RATE * 5, "{account:#}");
    assert_eq!(verified(here, "disk/run"), sent);
    assert!(report["incidents"]["listed"].to_string().contains("disk/run: taken out"), "{report:#}");
    let parts = ["disk/run", "other/run"].map(|part| on_disk(&here.join(part)));
    assert!(parts[1] > sent.0 / 3 && parts[0] > 0, "the other volume took over: {parts:?}");
    let info = json(&keepup(here, &["info", "disk/run", "--json"]));
    let of = |rotation: &Value| (u64_of(&rotation["volume"]), rotation["state"].as_str().unwrap().to_owned());
    let rotations: Vec<_> = info["rotations"].as_array().unwrap().iter().map(of).collect();
    // Should the machine stand still as well, any of the two is slow for a moment.
    for volume in [0, 1] {
        let states = rotations.iter().filter(|of| of.0 == volume).map(|of| of.1.as_str());
        let states: Vec<&str> = states.collect();
        assert!(states.chunks(2).all(|pair| pair == ["slow", "back"]), "{info:#}");
        assert!(volume == 1 || !states.is_empty(), "{info:#}");
    }
    let other = std::fs::read_to_string(here.join("other/run/journal.jsonl")).unwrap();
    let lines = other.lines().filter(|line| line.contains("rotation")).count();
    assert_eq!(lines, rotations.len(), "{other}");
}

#[test]
#[ignore = "system"]
fn a_frozen_volume_is_out_of_rotation_temporarily() {
    stands_in("a_frozen_volume_is_out_of_rotation_temporarily", "free");
}

#[test]
#[ignore = "system"]
fn a_pinned_stream_leaves_a_frozen_volume_temporarily() {
    stands_in("a_pinned_stream_leaves_a_frozen_volume_temporarily", "pinned");
}

/// Everything is durable, and then the volume goes: the end cannot be journalled, nor the segment sealed.
#[test]
#[ignore = "system"]
fn a_volume_that_fails_at_the_end_is_an_error() {
    let Some((place, mut disk)) = faulty("a_volume_that_fails_at_the_end_is_an_error") else { return };
    let mut record = recorder(place.path(), &["disk"], &["--stay"]);
    let source = source(place.path(), &mut record, RATE, CALM, BUFFER).wait();
    assert_eq!(source.code(), 0, "{source:#?}");
    disk.break_down().unwrap();
    record.signal("TERM");
    let record = record.wait();
    let report = json(&record);
    assert_eq!(report["received"], report["durable"], "{report:#}");
    assert_eq!((record.code(), &report["whole"]), (1, &Value::Bool(false)), "{report:#}");
    assert!(report["trouble"].to_string().contains("disk/run"), "{report:#}");
}

/// Where locks do not show it, a recording that is still being made could be cut off.
#[test]
#[ignore = "system"]
fn a_recording_without_locks_is_recovered_only_if_forced() {
    let test = "a_recording_without_locks_is_recovered_only_if_forced";
    if !allowed(test) {
        return;
    }
    let place = directory();
    let here = place.path();
    let _disk = match FaultyDisk::mount_without_locks(&here.join("disk"), FILE_SERVER) {
        Ok(disk) => disk,
        Err(why) => return skip(test, &why),
    };
    let mut record = recorder(here, &["disk"], &["--stay"]);
    let source = source(here, &mut record, RATE, CALM, BUFFER).wait();
    let sent = count(&json(&source)["sent"]);
    let refused = keepup(here, &["recover", "disk/run"]);
    assert!(refused.code() != 0 && refused.stderr.contains("--without-locks"), "{refused:#?}");
    record.signal("KILL");
    record.wait();
    let recovered = keepup(here, &["recover", "disk/run", "--without-locks"]);
    assert_eq!(recovered.code(), 0, "{recovered:#?}");
    let verify = json(&keepup(here, &["verify", "disk/run", "--json"]));
    assert_eq!((recorded(&verify), u64_of(&verify["fault_count"])), (sent, 0), "{verify:#}");
}
