//! Drains that follow a recording one of whose volumes breaks, fills up, cannot be read or rests: they go on with
//! everything else, what they have is removed, and what they lack is listed.
use std::path::Path;
use std::time::Duration;

use keepup_testkit::disk::FaultyDisk;
use keepup_testkit::root::{allowed, skip};
use keepup_testkit::{Program, Run};
use serde_json::Value;

use crate::common::{Place, count, directory_alone, json, keepup, recorded, recorder, start, until};

/// What the source sends, in bytes per second.
const RATE: u64 = 8_000_000;
/// What is kept, on both volumes together.
const KEEP: [&str; 6] = ["--keep", "32 MiB", "--segment", "2 MiB", "--block", "256 KiB"];

/// Two disks in memory, of which the first can fail, with a recording that is drained to a recorder.
struct Scene {
    record: Program,
    source: Program,
    drain: Program,
    sink: Program,
    // Last: the disks go when nobody uses them any more.
    disk: FaultyDisk,
    _other: FaultyDisk,
    place: Place,
}

/// What all of them said in the end.
struct Outcome {
    record: Run,
    drain: Run,
    place: Place,
    _disks: [FaultyDisk; 2],
}

impl Scene {
    /// Records for `length`; a visible skip where there can be no such disks.
    fn begin(test: &str, length: Duration, more: &[&str]) -> Option<Self> {
        if !allowed(test) {
            return None;
        }
        let place = directory_alone();
        let here = place.path();
        let mount = |name: &str| FaultyDisk::mount(&here.join(name), "faults::file_server");
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
        let arguments = ["source", "csl", "--to", &to, "--rate", &rate, "--duration", &length, "--json"];
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

    /// Waits until segments of the second volume went that were there, beyond the first `known`.
    fn await_removal(&self, known: u64) {
        let journal = self.place.path().join("other/run");
        until("drained segments go", || removed(&journal) > known);
    }

    /// Of the second volume, how many segments went.
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

fn removed(part: &Path) -> u64 {
    let text = std::fs::read_to_string(part.join("removed.jsonl")).unwrap_or_default();
    let line: Option<Value> = text.rsplit_once(' ').and_then(|(line, _)| serde_json::from_str(line).ok());
    line.map_or(0, |line| line["first_segment"].as_u64().unwrap())
}

impl Outcome {
    /// The sink has what the drain says, whole and in order, and each event that it lacks is listed with a cause
    /// that has one of `causes` in it. Returns how many those are.
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
        assert_eq!(verify["fault_count"], 0, "whole and in order: {verify:#}");
        assert_eq!(recorded(&verify), count(&drained["sent"]));
        let received = count(&report["received"]).0;
        assert_eq!(recorded(&verify).0 + missing, received, "{report:#} {drained:#}");
        let failed = missing > 0 || drained["faults"]["total"] != 0;
        assert_eq!(self.drain.code(), i32::from(failed), "{:#?}", self.drain);
        let told = |span: &Value| self.drain.stderr.contains(span["cause"].as_str().unwrap());
        assert!(listed.iter().take(20).all(told), "{:#?}", self.drain);
        missing
    }
}

/// The first volume takes no writes any more. Segments of the other go on being removed.
fn outlives(test: &str, fault: fn(&mut FaultyDisk) -> std::io::Result<()>, causes: &[&str]) {
    let Some(mut scene) = Scene::begin(test, Duration::from_secs(40), &[]) else { return };
    fault(&mut scene.disk).unwrap();
    let journal = scene.place.path().join("other/run/journal.jsonl");
    until("the volume is given up", || {
        std::fs::read_to_string(&journal).unwrap().contains("\"state\":\"failed\"")
    });
    // More than what was on its way at that time.
    scene.await_removal(scene.removed() + 16);
    let outcome = scene.end();
    assert!(outcome.drain.stderr.contains("disk/run failed"), "{:#?}", outcome.drain);
    outcome.check(causes);
}

#[test]
fn a_volume_that_breaks_leaves_the_drain_going() {
    let causes = ["volume failed", "disk/run failed: "];
    outlives("a_volume_that_breaks", FaultyDisk::break_down, &causes);
}

#[test]
fn a_volume_that_fills_up_leaves_the_drain_going() {
    let causes = ["space exhausted", "disk/run failed: "];
    outlives("a_volume_that_fills_up", FaultyDisk::fill_up, &causes);
}

#[test]
fn a_volume_that_can_neither_be_written_nor_read_leaves_the_drain_going() {
    let both = |disk: &mut FaultyDisk| disk.break_down().and_then(|()| disk.fail_reads());
    let causes = ["volume failed", "Input/output error", "disk/run failed: "];
    outlives("a_volume_that_can_neither_be_written_nor_read", both, &causes);
}

#[test]
fn a_volume_that_rests_is_waited_for_and_nothing_is_missing() {
    let test = "a_volume_that_rests_is_waited_for";
    let more = ["--slow-after", "500 ms"];
    let Some(mut scene) = Scene::begin(test, Duration::from_secs(20), &more) else { return };
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
