//! Drains that follow a recording with a volume that breaks, fills up, is unreadable or stalls: they
//! continue with the rest, drained segments are removed, and missing events are listed.
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use keepup_testkit::disk::FaultyDisk;
use keepup_testkit::root::{allowed, skip};
use keepup_testkit::{Program, Run};
use serde_json::Value;

use crate::common::{
    FILE_SERVER, TestDirectory, count, directory, json, keepup, recorded, recorder, start, until, verified,
};

/// Rate of the source, bytes per second.
const RATE: u64 = 8_000_000;
/// Retention limit of both volumes together.
const KEEP: [&str; 6] = ["--keep", "32 MiB", "--segment", "2 MiB", "--block", "256 KiB"];

/// Two disks in memory, the first of which can fail, with a recording that is drained to a sink.
struct Setup {
    record: Program,
    source: Program,
    drain: Program,
    sink: Program,
    // Last field: the disks are unmounted after their users have ended.
    disk: FaultyDisk,
    _other: FaultyDisk,
    place: TestDirectory,
}

/// Results of all programs.
struct Outcome {
    record: Run,
    drain: Run,
    place: TestDirectory,
    _disks: [FaultyDisk; 2],
}

impl Setup {
    /// Starts a recording of `length`; `None` with a message if such disks are not possible.
    fn begin(test: &str, length: Duration, more: &[&str]) -> Option<Self> {
        if !allowed(test) {
            return None;
        }
        let place = directory();
        let here = place.path();
        let mount = |name: &str| FaultyDisk::mount(&here.join(name), FILE_SERVER);
        let (disk, other) = match (mount("disk"), mount("other")) {
            (Ok(disk), Ok(other)) => (disk, other),
            (Err(why), _) | (_, Err(why)) => {
                skip(test, &why);
                return None;
            }
        };
        let mut record = recorder(here, &["disk", "other"], &[&KEEP, more].concat());
        let to = record.address().to_string();
        let (rate, length) = (format!("{RATE} B/s"), format!("{} ms", length.as_millis()));
        let arguments = ["source", "csl", "--to", &to, "--rate", &rate, "--time", &length, "--json"];
        let source = start(here, &[&arguments[..], &["--buffer", "256 MiB"]].concat());
        std::fs::create_dir(here.join("tape")).unwrap();
        let listen = ["record", "--listen", "127.0.0.1:0", "--name", "copy", "--volume", "tape", "--stay"];
        let mut sink = start(here, &listen);
        let to = format!("tcp://{}", sink.address());
        let drain = start(here, &["drain", "other/run", "--follow", "--json", "--to", &to]);
        let scene = Self { record, source, drain, sink, disk, _other: other, place };
        scene.await_removal(0);
        Some(scene)
    }

    /// Waits until more than `known` segments of the second volume are removed.
    fn await_removal(&self, known: u64) {
        let journal = self.place.path().join("other/run");
        until("drained segments go", || removed(&journal) > known);
    }

    /// Number of removed segments of the second volume.
    fn removed(&self) -> u64 {
        removed(&self.place.path().join("other/run"))
    }

    fn end(self) -> Outcome {
        let source = self.source.wait();
        assert!([0, 1].contains(&source.code()), "{source:#?}");
        let (record, drain) = (self.record.wait(), self.drain.wait());
        self.sink.signal("INT");
        let sink = self.sink.wait();
        assert!([0, 1].contains(&sink.code()), "{sink:#?}");
        Outcome { record, drain, place: self.place, _disks: [self.disk, self._other] }
    }
}

/// Number of removed segments of a part of a recording.
fn removed(part: &Path) -> u64 {
    removed_file(part)["first_segment"].as_u64().unwrap_or(0)
}

fn removed_file(part: &Path) -> Value {
    let text = std::fs::read_to_string(part.join("removed.jsonl")).unwrap_or_default();
    text.rsplit_once(' ').and_then(|(line, _)| serde_json::from_str(line).ok()).unwrap_or_default()
}

impl Outcome {
    /// Checks that the sink has the drained events, intact and in order, and that each missing event is
    /// listed with one of `causes`. Returns the number of missing events.
    fn check(&self, causes: &[&str]) -> u64 {
        let here = self.place.path();
        let (report, drained) = (json(&self.record), json(&self.drain));
        assert_eq!(drained["complete"], true, "{:#?}", self.drain);
        assert_eq!(drained["durable"], drained["sent"], "{drained:#}");
        let missing = drained["missing_events"].as_u64().unwrap();
        let listed = drained["missing"].as_array().unwrap();
        let sum: u64 = listed.iter().map(|span| span["events"].as_u64().unwrap()).sum();
        assert_eq!(sum, missing, "{drained:#}");
        for span in listed {
            let cause = span["cause"].as_str().unwrap();
            assert!(causes.iter().any(|known| cause.contains(known)), "{span:#}");
        }
        let verify = keepup(here, &["verify", "tape/copy", "--json"]);
        assert_eq!(verify.code(), i32::from(missing > 0), "{verify:#?}");
        let verify = json(&verify);
        assert_eq!(verify["fault_count"], 0, "intact and in order: {verify:#}");
        assert_eq!(recorded(&verify), count(&drained["sent"]));
        let received = count(&report["received"]).0;
        assert_eq!(recorded(&verify).0 + missing, received, "{report:#} {drained:#}");
        let failed = missing > 0 || drained["faults"]["total"] != 0;
        assert_eq!(self.drain.code(), i32::from(failed), "{:#?}", self.drain);
        let expected = |span: &Value| self.drain.stderr.contains(span["cause"].as_str().unwrap());
        assert!(listed.iter().take(20).all(expected), "{:#?}", self.drain);
        missing
    }
}

/// Makes the first volume fail. Segments of the other one must still be removed.
fn drain_continues(test: &str, fault: fn(&mut FaultyDisk) -> std::io::Result<()>, causes: &[&str]) {
    let Some(mut scene) = Setup::begin(test, Duration::from_secs(40), &[]) else { return };
    fault(&mut scene.disk).unwrap();
    let journal = scene.place.path().join("other/run/journal.jsonl");
    until("the volume is given up", || {
        std::fs::read_to_string(&journal).unwrap().contains("\"state\":\"failed\"")
    });
    // More than was in transit at that time.
    scene.await_removal(scene.removed() + 16);
    let outcome = scene.end();
    assert!(outcome.drain.stderr.contains("disk/run failed"), "{:#?}", outcome.drain);
    outcome.check(causes);
}

#[test]
#[ignore = "system"]
fn a_drain_continues_after_a_volume_breaks() {
    let causes = ["volume failed", "disk/run failed: "];
    drain_continues("a_volume_that_breaks", FaultyDisk::break_down, &causes);
}

#[test]
#[ignore = "system"]
fn a_drain_continues_after_a_volume_fills_up() {
    let causes = ["space exhausted", "disk/run failed: "];
    drain_continues("a_volume_that_fills_up", FaultyDisk::fill_up, &causes);
}

#[test]
#[ignore = "system"]
fn a_drain_continues_without_an_unreadable_volume() {
    let both = |disk: &mut FaultyDisk| disk.break_down().and_then(|()| disk.fail_reads());
    let causes = ["volume failed", "Input/output error", "disk/run failed: "];
    drain_continues("a_volume_that_can_neither_be_written_nor_read", both, &causes);
}

#[test]
#[ignore = "system"]
fn a_drain_waits_for_a_stalled_volume_and_misses_nothing() {
    let test = "a_volume_that_rests_is_waited_for";
    let more = ["--slow-after", "500 ms"];
    let Some(mut scene) = Setup::begin(test, Duration::from_secs(20), &more) else { return };
    scene.disk.slow_down(Duration::from_secs(3)).unwrap();
    let journal = scene.place.path().join("other/run/journal.jsonl");
    until("it is taken out of rotation", || {
        std::fs::read_to_string(&journal).unwrap().contains("\"state\":\"slow\"")
    });
    scene.disk.slow_down(Duration::ZERO).unwrap();
    until("it is back", || std::fs::read_to_string(&journal).unwrap().contains("\"state\":\"back\""));
    scene.await_removal(scene.removed() + 2);
    let outcome = scene.end();
    assert_eq!(outcome.check(&[]), 0);
    assert_eq!(outcome.drain.code(), 0, "{:#?}", outcome.drain);
}

/// Forwards everything between a drain and `sink`, and flips one bit of the drain's data per connection,
/// after `behind` bytes.
fn damaging_proxy(sink: SocketAddr, behind: &'static [usize]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (connection, drain) in listener.incoming().enumerate() {
            let (Ok(drain), Ok(sink)) = (drain, TcpStream::connect(sink)) else { return };
            let (from, to) = (drain.try_clone().unwrap(), sink.try_clone().unwrap());
            std::thread::spawn(move || forward(&sink, &drain, None));
            std::thread::spawn(move || forward(&from, &to, behind.get(connection).copied()));
        }
    });
    address
}

fn forward(mut from: &TcpStream, mut to: &TcpStream, flip_at: Option<usize>) {
    let (mut buffer, mut passed) = (vec![0; 64 << 10], 0);
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if let Some(at) = flip_at.filter(|at| (passed..passed + read).contains(at)) {
            buffer[at - passed] ^= 4;
        }
        passed += read;
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

#[test]
#[ignore = "system"]
fn events_damaged_in_transit_are_sent_again_before_removal() {
    let place = directory();
    let here = place.path();
    let mut record = recorder(here, &["disk", "other"], &KEEP);
    let to = record.address().to_string();
    let rate = format!("{RATE} B/s");
    let arguments = ["source", "csl", "--to", &to, "--rate", &rate, "--time", "10 s", "--json"];
    let source = start(here, &[&arguments[..], &["--buffer", "256 MiB"]].concat());
    std::fs::create_dir(here.join("tape")).unwrap();
    let mut sink =
        start(here, &["record", "--listen", "127.0.0.1:0", "--name", "copy", "--volume", "tape", "--stay"]);
    // In the first seconds, immediately after the hello, and late.
    let proxy = damaging_proxy(sink.address(), &[10_000_000, 20_000, 40_000_000]);
    let drain =
        keepup(here, &["drain", "other/run", "--follow", "--json", "--to", &format!("tcp://{proxy}")]);
    let (source, record) = (source.wait(), record.wait());
    assert_eq!((source.code(), record.code(), drain.code()), (0, 0, 0), "{record:#?} {drain:#?}");
    assert_eq!(drain.stderr.matches("wrong checksum").count(), 3, "{drain:#?}");
    let (sent, drained) = (count(&json(&source)["sent"]), json(&drain));
    assert_eq!((count(&drained["sent"]), count(&drained["durable"])), (sent, sent));
    sink.signal("INT");
    let sink = sink.wait();
    assert_eq!(verified(here, "tape/copy"), sent, "{sink:#?}");
    assert!(removed(&here.join("other/run")) > 0, "drained segments may be removed");
}

/// Events that the sink received and lost exist only here: nothing from there on is removed.
#[test]
#[ignore = "system"]
fn events_lost_by_the_sink_are_not_removed() {
    let test = "events_lost_by_the_sink_are_not_removed";
    if !allowed(test) {
        return;
    }
    let place = directory();
    let here = place.path();
    let mut tape = match FaultyDisk::mount(&here.join("tape"), FILE_SERVER) {
        Ok(disk) => disk,
        Err(why) => return skip(test, &why),
    };
    let mut record = recorder(here, &["disk", "other"], &KEEP);
    let to = record.address().to_string();
    let rate = format!("{RATE} B/s");
    let arguments = ["source", "csl", "--to", &to, "--rate", &rate, "--time", "15 s", "--json"];
    let source = start(here, &[&arguments[..], &["--buffer", "256 MiB"]].concat());
    std::fs::create_dir(here.join("second")).unwrap();
    // The stream stays on the first volume, so that the next flush there has something to lose.
    let placement = ["--volume", "tape", "--volume", "second", "--placement", "pinned"];
    // The faulty disk keeps its files in memory: to preallocate 1 GiB takes seconds on a busy machine.
    // No copies remain in memory to write to the second volume after the first has failed.
    let sizes = ["--unflushed", "0 B", "--segment", "256 MiB"];
    let listen = ["record", "--listen", "127.0.0.1:0", "--name", "copy", "--stay", "--json"];
    let mut sink = start(here, &[&listen[..], &placement, &sizes].concat());
    let to = format!("tcp://{}", sink.address());
    let drain = start(here, &["drain", "other/run", "--follow", "--json", "--to", &to]);
    until("drained segments go", || removed(&here.join("other/run")) > 0);
    tape.fail_a_flush().unwrap();
    let sink_journal = here.join("second/copy/journal.jsonl");
    until("a loss is recorded", || std::fs::read_to_string(&sink_journal).unwrap().contains("\"t\":\"gap\""));
    let (source, record, drain) = (source.wait(), record.wait(), drain.wait());
    sink.signal("INT");
    let sink = json(&sink.wait());
    let lost = sink["missing_events"]["volume_failed"].as_u64().unwrap();
    assert!(lost > 0, "{sink:#}");
    assert_eq!((source.code(), record.code(), drain.code()), (0, 0, 1), "{record:#?} {drain:#?}");
    let expected = format!("the other side lost {lost} events of stream 0");
    assert!(drain.stderr.contains(&expected), "{drain:#?}");
    let journal = std::fs::read_to_string(&sink_journal).unwrap();
    let lines =
        journal.lines().filter_map(|line| serde_json::from_str::<Value>(line.rsplit_once(' ')?.0).ok());
    let gaps = lines.filter(|line| line["t"] == "gap").map(|gap| gap["first_sequence"].as_u64().unwrap());
    let first_lost = gaps.min().unwrap();
    for part in ["disk/run", "other/run"] {
        let end = removed_file(&here.join(part))["streams"]["0"]["end_sequence"].as_u64().unwrap();
        assert!(end <= first_lost, "{part} went up to {end}, {first_lost} is nowhere else");
    }
    assert_eq!(keepup(here, &["verify", "other/run"]).code(), 0, "removed segments are no loss");
}
