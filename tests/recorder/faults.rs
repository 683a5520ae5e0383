//! Volumes that stall, are throttled or break during a recording: events in the pool are not lost, and
//! lost events are counted exactly.
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use keepup_stream::wire::FrameKind;
use keepup_testkit::disk::FaultyDisk;
use keepup_testkit::root::{ThrottledWrites, allowed, skip};
use keepup_testkit::{Program, Run};
use serde_json::Value;

use crate::common::{
    FILE_SERVER, TestDirectory, busy_directory, count, directory, events, json, keepup, mcap_messages,
    recorded, recorder, segments, start, until, verified,
};
use crate::recorder::raw_client;

/// Rate of the source, bytes per second.
const RATE: u64 = 20_000_000;
/// Buffer of the source, for stalls of the machine. The use of the recorder's pool is reported separately.
const BUFFER: &str = "64 MiB";
/// Far less than the source sends in one second.
const SMALL_BUFFER: &str = "4 MiB";
/// Streams of the acoustic camera, whose events have 4 KiB; other sources send one stream of large events.
const MANY: u32 = 508;
/// Pause before a fault and after it.
const CALM: Duration = Duration::from_secs(1);

/// Another disk on `other`, also in memory, so that only one of the two stalls.
fn another(place: &TestDirectory) -> FaultyDisk {
    FaultyDisk::mount(&place.path().join("other"), FILE_SERVER).unwrap()
}

/// A faulty disk on `disk` in a new directory; `None` with a message if that is not possible.
fn faulty(test: &str) -> Option<(TestDirectory, FaultyDisk)> {
    if !allowed(test) {
        return None;
    }
    let place = busy_directory();
    match FaultyDisk::mount(&place.path().join("disk"), FILE_SERVER) {
        Ok(disk) => Some((place, disk)),
        Err(why) => {
            skip(test, &why);
            None
        }
    }
}

fn source(
    here: &Path,
    record: &mut Program,
    streams: u32,
    rate: u64,
    length: Duration,
    buffer: &str,
) -> Program {
    let (to, rate) = (record.address().to_string(), format!("{rate} B/s"));
    let length = format!("{} ms", length.as_millis());
    let arguments =
        ["source", "csl", "--to", &to, "--rate", &rate, "--time", &length, "--buffer", buffer, "--json"];
    let many = streams.to_string();
    let shape = ["--streams", &many, "--event", "4 KiB"];
    start(here, &[&arguments[..], if streams > 1 { &shape } else { &[] }].concat())
}

fn u64_of(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// Longest write to the first volume, of a block or an end mark.
fn longest_write(record: &Value) -> Duration {
    Duration::from_nanos(u64_of(&record["stalls"]["volumes"][0]["write_ns"]))
}

/// Records during a stall that fits into the pool: nothing is lost, and the report shows the stall.
fn record_through_stall(
    here: &Path,
    mut record: Program,
    streams: u32,
    stall: Duration,
    fault: impl FnOnce(),
) {
    let source = source(here, &mut record, streams, RATE, CALM + stall + CALM, BUFFER);
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
    assert!(held > came / 2, "only {held} of {came} bytes received during the stall were in the pool");
}

fn pool_bridges_a_frozen_volume(test: &str, streams: u32, stall: Duration) {
    let Some((place, disk)) = faulty(test) else { return };
    let record = recorder(place.path(), &["disk"], &["--pool", "256 MiB"]);
    record_through_stall(place.path(), record, streams, stall, || disk.freeze(stall));
}

#[test]
#[ignore = "system"]
fn the_pool_bridges_a_volume_frozen_for_half_a_second() {
    pool_bridges_a_frozen_volume(
        "the_pool_bridges_a_volume_frozen_for_half_a_second",
        1,
        Duration::from_millis(500),
    );
}

#[test]
#[ignore = "system"]
fn the_pool_bridges_a_volume_frozen_for_2_seconds() {
    pool_bridges_a_frozen_volume("the_pool_bridges_a_volume_frozen_for_2_seconds", 1, Duration::from_secs(2));
}

#[test]
#[ignore = "system"]
fn the_pool_bridges_a_volume_frozen_for_8_seconds() {
    pool_bridges_a_frozen_volume("the_pool_bridges_a_volume_frozen_for_8_seconds", 1, Duration::from_secs(8));
}

#[test]
#[ignore = "system"]
fn the_pool_bridges_a_frozen_volume_of_508_streams() {
    pool_bridges_a_frozen_volume(
        "the_pool_bridges_a_frozen_volume_of_508_streams",
        MANY,
        Duration::from_secs(2),
    );
}

/// A directory with writes that can be throttled per process; `None` with a message if that is not possible.
fn throttled(test: &str) -> Option<(TestDirectory, ThrottledWrites)> {
    if !allowed(test) {
        return None;
    }
    let place = busy_directory();
    let name = format!("keepup-test-{}", std::process::id());
    match ThrottledWrites::create(&name, place.path(), 0) {
        Ok(throttle) => Some((place, throttle)),
        Err(why) => {
            skip(test, &why);
            None
        }
    }
}

/// Throttles writes so that a block would take a minute, for the time of `stall`.
fn throttle_to_minimum(throttle: &ThrottledWrites, stall: Duration) {
    throttle.limit(16 << 10).unwrap();
    std::thread::sleep(stall);
    throttle.limit(0).unwrap();
}

fn pool_bridges_a_throttled_volume(test: &str, stall: Duration) {
    let Some((place, throttle)) = throttled(test) else { return };
    let record = recorder(place.path(), &["disk"], &["--pool", "256 MiB"]);
    std::fs::write(throttle.entry(), record.id().to_string()).unwrap();
    record_through_stall(place.path(), record, 1, stall, || throttle_to_minimum(&throttle, stall));
}

#[test]
#[ignore = "system"]
fn the_pool_bridges_a_volume_throttled_for_half_a_second() {
    pool_bridges_a_throttled_volume(
        "the_pool_bridges_a_volume_throttled_for_half_a_second",
        Duration::from_millis(500),
    );
}

#[test]
#[ignore = "system"]
fn the_pool_bridges_a_volume_throttled_for_2_seconds() {
    pool_bridges_a_throttled_volume(
        "the_pool_bridges_a_volume_throttled_for_2_seconds",
        Duration::from_secs(2),
    );
}

#[test]
#[ignore = "system"]
fn recovery_waits_for_writes_of_a_killed_recorder() {
    let Some((place, throttle)) = throttled("recovery_waits_for_writes_of_a_killed_recorder") else { return };
    let here = place.path();
    let mut record = recorder(here, &["disk"], &["--slow-after", "1 m"]);
    std::fs::write(throttle.entry(), record.id().to_string()).unwrap();
    let mut client = raw_client::connect(record.address());
    client.write_all(&raw_client::hello(&[0])).unwrap();
    raw_client::answer(&mut client, FrameKind::Welcome);
    // The journal is durable before the volume stalls: no thread of the killed recorder waits for the disk.
    client.write_all(&raw_client::event(0, 0, &[7; 1 << 20])).unwrap();
    raw_client::acked(&mut client, 1);
    std::thread::sleep(CALM);
    throttle.limit(16 << 10).unwrap();
    for sequence in 1..5 {
        client.write_all(&raw_client::event(0, sequence, &[7; 1 << 20])).unwrap();
    }
    std::thread::sleep(CALM);
    record.signal("KILL");
    drop(record.wait());
    let (recovered, ended, released) = std::thread::scope(|scope| {
        let recovery = scope.spawn(|| (keepup(here, &["recover", "disk/run", "--json"]), Instant::now()));
        std::thread::sleep(CALM);
        let released = Instant::now();
        throttle.limit(0).unwrap();
        let (recovered, ended) = recovery.join().unwrap();
        (recovered, ended, released)
    });
    assert_eq!(recovered.code(), 0, "{recovered:#?}");
    assert!(ended > released, "recovery ended while writes were in flight");
    let verify = json(&keepup(here, &["verify", "disk/run", "--json"]));
    assert_eq!(verify["fault_count"], 0, "{verify:#}");
}

/// Records during a stall far beyond the size of the pool: each event is either durable or lost at the
/// source. Returns the recorder's output, and the numbers of events sent and lost.
fn record_through_long_stall(
    here: &Path,
    mut record: Program,
    stall: Duration,
    fault: impl FnOnce(),
) -> (Run, u64, u64) {
    let source = source(here, &mut record, 1, 3 * RATE, CALM + stall + CALM, SMALL_BUFFER);
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
    let (record, sent, lost) = record_through_long_stall(place.path(), record, stall, || disk.freeze(stall));
    let report = json(&record);
    assert_eq!((count(&report["received"]).0, count(&report["durable"]).0), (sent, sent));
    assert_eq!(report["missing_events"], serde_json::json!({ "source": lost }));
    assert!(u64_of(&report["pool_wait_ns"]) > 0, "memory was the limit");
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
    let (record, _, lost) =
        record_through_long_stall(here, record, stall, || throttle_to_minimum(&throttle, stall));
    let said = |line: &str| {
        line.replace(',', "").contains(&format!("{lost} events")) && line.contains("lost at source")
    };
    assert!(record.stdout.lines().any(said), "missing in the text output: {record:#?}");
    assert!(record.stdout.contains("--pool"), "and the hint: {record:#?}");
    assert!(record.stderr.contains("memory are full"), "and during the stall: {record:#?}");
}

/// Events in the segments of a recording, including those after the journal's last watermark.
fn on_disk(recording: &Path) -> u64 {
    segments(recording).iter().map(|s| mcap_messages(&std::fs::read(s).unwrap()).0).sum()
}

/// Records to `volumes`, and applies `fault` to the first one during the recording.
fn breaks(
    place: &TestDirectory,
    disk: &mut FaultyDisk,
    volumes: &[&str],
    streams: u32,
    more: &[&str],
    fault: fn(&mut FaultyDisk) -> std::io::Result<()>,
) -> (Run, Run) {
    let mut record = recorder(place.path(), volumes, more);
    // Some writes are in flight at any time, also when it breaks. Many streams have more and smaller ones.
    disk.slow_down(Duration::from_millis(if streams > 1 { 1 } else { 20 })).unwrap();
    let source = source(place.path(), &mut record, streams, RATE, 4 * CALM, BUFFER);
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

/// Events lost with a volume. Every received event is durable or among them.
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
    losses_on_the_only_volume("losses_on_the_only_volume_are_counted", 1);
}

#[test]
#[ignore = "system"]
fn losses_of_508_streams_on_the_only_volume_are_counted() {
    losses_on_the_only_volume("losses_of_508_streams_on_the_only_volume_are_counted", MANY);
}

fn losses_on_the_only_volume(test: &str, streams: u32) {
    let Some((place, mut disk)) = faulty(test) else { return };
    let (source, record) = breaks(&place, &mut disk, &["disk"], streams, &[], FaultyDisk::break_down);
    assert_eq!((source.code(), record.code()), (1, 1), "{source:#?} {record:#?}");
    let (account, report) = (json(&source), json(&record));
    assert!(account["durable"]["bytes"].is_null(), "the number is unknown: {account:#}");
    assert!(report["ended"].as_str().unwrap().contains("no volume"), "{report:#}");
    assert!(source.stderr.contains("Input/output error"), "the source reports it: {source:#?}");
    lost_with_a_volume(&report);
    assert!(count(&report["received"]).0 <= count(&account["sent"]).0);
    let (acknowledged, durable) = (events(&account["durable"]), count(&report["durable"]).0);
    assert!(0 < acknowledged && acknowledged <= durable, "{acknowledged} of {durable}");
    let verify = json(&keepup(place.path(), &["verify", "disk/run", "--json"]));
    assert_eq!(verify["fault_count"], 0, "{verify:#}");
    // The last watermark may be missing in the journal, but the blocks exist, and recovery finds them.
    assert!(recorded(&verify).0 <= durable, "{verify:#}");
    let elsewhere = place.path().join("elsewhere/run");
    std::fs::create_dir_all(&elsewhere).unwrap();
    for file in std::fs::read_dir(place.path().join("disk/run")).unwrap().map(Result::unwrap) {
        std::fs::copy(file.path(), elsewhere.join(file.file_name())).unwrap();
    }
    let recovered = keepup(place.path(), &["recover", "elsewhere/run"]);
    assert_eq!(recovered.code(), 0, "{recovered:#?}");
    let on_disk = on_disk(&elsewhere);
    assert!(on_disk >= durable, "{on_disk} of {durable} durable events are on disk");
}

#[test]
#[ignore = "system"]
fn the_other_volume_takes_over_after_one_breaks() {
    let Some((place, mut disk)) = faulty("the_other_volume_takes_over_after_one_breaks") else { return };
    other_volume_takes_over(&place, &mut disk, 1, FaultyDisk::break_down);
}

#[test]
#[ignore = "system"]
fn the_other_volume_takes_over_508_streams_after_one_breaks() {
    let test = "the_other_volume_takes_over_508_streams_after_one_breaks";
    let Some((place, mut disk)) = faulty(test) else { return };
    other_volume_takes_over(&place, &mut disk, MANY, FaultyDisk::break_down);
}

/// Blocks of a failed flush are written to the other volume, although a later flush of the same file
/// succeeds.
#[test]
#[ignore = "system"]
fn the_other_volume_takes_over_after_a_failed_flush() {
    let Some((place, mut disk)) = faulty("the_other_volume_takes_over_after_a_failed_flush") else { return };
    other_volume_takes_over(&place, &mut disk, 1, FaultyDisk::fail_a_flush);
}

/// Without copies in memory, blocks that are written but not flushed are lost with their volume, and counted.
#[test]
#[ignore = "system"]
fn unflushed_blocks_without_copies_are_counted_as_lost() {
    let test = "unflushed_blocks_without_copies_are_counted_as_lost";
    let Some((place, mut disk)) = faulty(test) else { return };
    let _other = another(&place);
    let more = ["--unflushed", "0 B"];
    let (source, record) = breaks(&place, &mut disk, &["disk", "other"], 1, &more, FaultyDisk::fail_a_flush);
    let lost = lost_with_a_volume(&json(&record));
    assert!(lost > 0, "the last half second is not durable");
    assert_eq!((source.code(), record.code()), (1, 1), "{source:#?} {record:#?}");
}

/// Checks that the other volume takes over the blocks that a failed volume had not made durable, and all
/// later ones.
fn other_volume_takes_over(
    place: &TestDirectory,
    disk: &mut FaultyDisk,
    streams: u32,
    fault: fn(&mut FaultyDisk) -> std::io::Result<()>,
) {
    let _other = another(place);
    let (source, record) = breaks(place, disk, &["disk", "other"], streams, &[], fault);
    let (account, report) = (json(&source), json(&record));
    assert!(!report["ended"].as_str().unwrap().contains("no volume"), "{report:#}");
    assert!(report["volumes"][1]["failure"].is_null(), "{report:#}");
    let (sent, durable) = (count(&account["sent"]), count(&report["durable"]));
    assert_eq!(count(&account["lost_at_source"]).0, 0, "the recording continued");
    assert_eq!(count(&report["received"]), sent);
    assert_eq!(count(&account["durable"]), durable);
    // Half a second of data is far less than the reserved part of the pool.
    assert_eq!(lost_with_a_volume(&report), 0);
    assert_eq!(source.code(), 0, "{source:#?}");
    let (code, whole, trouble) = (record.code(), &report["whole"], report["trouble"].to_string());
    assert!(code == 1 && *whole == false && trouble.contains("disk/run"), "a volume failed: {report:#}");
    // Blocks written twice count once.
    assert!(!trouble.contains("does not add up"), "{report:#}");
    let verify = json(&keepup(place.path(), &["verify", "disk/run", "--json"]));
    assert_eq!(verify["fault_count"], 0, "{verify:#}");
    let accounts = verify["streams"].as_object().unwrap().values();
    let elsewhere: u64 =
        accounts.map(|of| u64_of(&of["lost_events"]) + u64_of(&of["unsettled_events"])).sum();
    assert_eq!(recorded(&verify).0 + elsewhere, sent.0, "{verify:#}");
    let parts = ["disk/run", "other/run"].map(|part| on_disk(&place.path().join(part)));
    assert!(parts[0] + parts[1] >= durable.0, "{parts:?} of {durable:?} durable events are on disk");
    assert!(parts[1] > sent.0 / 3, "the other volume took over: {parts:?}");
}

/// Stalls the first of two volumes for longer than the pool bridges: its stream moves to the other volume and
/// returns.
fn stream_moves_and_returns(test: &str, placement: &str) {
    let Some((place, disk)) = faulty(test) else { return };
    let here = place.path();
    let _other = another(&place);
    let more = ["--pool", "48 MiB", "--slow-after", "500 ms", "--placement", placement];
    let mut record = recorder(here, &["disk", "other"], &more);
    let stall = Duration::from_secs(4);
    let source = source(here, &mut record, 1, RATE, CALM + stall + CALM, BUFFER);
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
    // If the machine stalls too, either volume may be slow for a moment.
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
    stream_moves_and_returns("a_frozen_volume_is_out_of_rotation_temporarily", "free");
}

#[test]
#[ignore = "system"]
fn a_pinned_stream_leaves_a_frozen_volume_temporarily() {
    stream_moves_and_returns("a_pinned_stream_leaves_a_frozen_volume_temporarily", "pinned");
}

/// The volume fails after everything is durable: the end cannot be journalled, nor the segment sealed.
#[test]
#[ignore = "system"]
fn a_volume_that_fails_at_the_end_is_an_error() {
    let Some((place, mut disk)) = faulty("a_volume_that_fails_at_the_end_is_an_error") else { return };
    let mut record = recorder(place.path(), &["disk"], &["--stay"]);
    let source = source(place.path(), &mut record, 1, RATE, CALM, BUFFER).wait();
    assert_eq!(source.code(), 0, "{source:#?}");
    disk.break_down().unwrap();
    record.signal("TERM");
    let record = record.wait();
    let report = json(&record);
    assert_eq!(report["received"], report["durable"], "{report:#}");
    assert_eq!((record.code(), &report["whole"]), (1, &Value::Bool(false)), "{report:#}");
    assert!(report["trouble"].to_string().contains("disk/run"), "{report:#}");
}

/// Without locks, a recording in progress looks like a truncated one.
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
    let source = source(here, &mut record, 1, RATE, CALM, BUFFER).wait();
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
