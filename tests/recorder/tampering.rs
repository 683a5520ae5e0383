//! Another program removes, replaces or cuts files of a recording in progress: the volume fails, and
//! nothing more is acknowledged.
use std::fs::{self, File};
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;

use keepup_stream::wire::{Ack, FrameKind};
use keepup_testkit::program::Run;
use keepup_testkit::root::{SmallDisk, allowed, skip};

use crate::common::{directory, json, keepup, recorder};
use crate::recorder::raw_client::{acked, connect, end, event, frame, hello};

/// Most events, sent one after another, that are acknowledged before the keeper has seen the first watermark.
const ACKED_MAX: u64 = 100;

/// Sends an event; whether it is acknowledged.
fn is_acked(client: &mut TcpStream, sequence: u64) -> bool {
    if client.write_all(&event(7, sequence, &[1; 1000])).is_err() {
        return false;
    }
    while let Some((header, _)) = frame(client) {
        if header.kind == FrameKind::Ack && Ack::from_header(&header).durable_next > sequence {
            return true;
        } else if header.kind == FrameKind::Error {
            return false;
        }
    }
    false
}

/// Records in `here` until the recorder refuses to go on after `tamper` was called with its directory.
fn recorded_with(here: &Path, tamper: impl FnOnce(&Path)) -> Run {
    let mut record = recorder(here, &["disk"], &[]);
    let mut client = connect(record.address());
    client.write_all(&hello(&[7])).unwrap();
    client.write_all(&event(7, 0, &[1; 1000])).unwrap();
    acked(&mut client, 1);
    tamper(&here.join("disk/run"));
    let refused = (1..=ACKED_MAX).find(|&sequence| !is_acked(&mut client, sequence));
    assert!(refused.is_some(), "{ACKED_MAX} events were acknowledged, and nothing holds them");
    record.wait()
}

fn check(what: &str, run: &Run) {
    assert_eq!(run.code(), 1, "{what}: {run:#?}");
    let report = json(run);
    assert_eq!(report["whole"], false, "{what}: {run:#?}");
    let failure = report["volumes"][0]["failure"].as_str().unwrap();
    assert!(
        failure.contains("another program") && failure.contains("hint: leave the files"),
        "{what}: {failure}"
    );
}

/// What another program does, and to the directory of a running recording.
type Tampering = (&'static str, fn(&Path));

#[test]
fn a_removed_or_replaced_file_fails_the_volume() {
    let tamperings: [Tampering; 5] = [
        ("rm -rf", |run| fs::remove_dir_all(run).unwrap()),
        ("mv and replace", |run| {
            fs::rename(run, run.with_extension("old")).unwrap();
            fs::create_dir(run).unwrap();
        }),
        ("unlink segment", |run| fs::remove_file(run.join("segment-000000.mcap")).unwrap()),
        ("replace journal", |run| {
            fs::copy(run.join("journal.jsonl"), run.join("copy")).unwrap();
            fs::rename(run.join("copy"), run.join("journal.jsonl")).unwrap();
        }),
        ("cut journal", |run| drop(File::create(run.join("journal.jsonl")).unwrap())),
    ];
    for (what, tamper) in tamperings {
        let directory = directory();
        check(what, &recorded_with(directory.path(), tamper));
    }
}

#[test]
fn a_journal_that_was_cut_before_the_end_is_no_success() {
    let directory = directory();
    let here = directory.path();
    for cuts in [false, true] {
        let volume = if cuts { "cut" } else { "whole" };
        let mut record = recorder(here, &[volume], &[]);
        let mut client = connect(record.address());
        client.write_all(&hello(&[7])).unwrap();
        client.write_all(&event(7, 0, &[1; 1000])).unwrap();
        acked(&mut client, 1);
        if cuts {
            let journal = File::options().write(true).open(here.join("cut/run/journal.jsonl")).unwrap();
            journal.set_len(10).unwrap();
        }
        client.write_all(&end(7, 1, 1000)).unwrap();
        let run = record.wait();
        assert_eq!(run.code(), i32::from(cuts), "{run:#?}");
        assert_eq!(json(&run)["whole"], !cuts, "{run:#?}");
        let verify = keepup(here, &["verify", &format!("{volume}/run")]);
        assert_eq!(verify.code(), i32::from(cuts), "{verify:#?}");
    }
}

#[test]
#[ignore = "system"]
fn a_mount_over_the_volume_fails_it() {
    const TEST: &str = "a_mount_over_the_volume_fails_it";
    if !allowed(TEST) {
        return;
    }
    let directory = directory();
    let here = directory.path();
    if let Err(why) = SmallDisk::mount(&here.join("probe"), 20) {
        return skip(TEST, &why);
    }
    let mut mounted = None;
    let run = recorded_with(here, |_| mounted = Some(SmallDisk::mount(&here.join("disk"), 20).unwrap()));
    check("mount", &run);
}
