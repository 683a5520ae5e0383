//! Series of detectors as runs, and simulated detectors that wait for the recorder.
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::path::Path;

use keepup_testkit::program::Program;

use super::detectors::{IMAGE_BYTES, accepted, end_of_series, frame, image_of_series, start_of_series};
use crate::common::{count, directory, json, keepup, start, verified};

fn record(here: &Path, from: &str, more: &[&str]) -> Program {
    std::fs::create_dir_all(here.join("a")).unwrap();
    let settings = ["record", "--from", from, "--volume", "a", "--pool", "64 MiB", "--segment", "32 MiB"];
    start(here, &[&settings, more].concat())
}

fn try_sends(peer: &mut TcpStream, series: u64, mut images: Range<u64>) -> std::io::Result<()> {
    peer.write_all(&frame(&start_of_series(series, images.end)))?;
    images.try_for_each(|image| peer.write_all(&frame(&image_of_series(series, image))))
}

fn sends(peer: &mut TcpStream, series: u64, images: Range<u64>) {
    try_sends(peer, series, images).unwrap();
}

fn ends(peer: &mut TcpStream, series: u64) {
    peer.write_all(&frame(&end_of_series(series))).unwrap();
}

/// Events and bytes of a series of two channels.
fn of(images: u64) -> (u64, u64) {
    (2 * images, 2 * images * IMAGE_BYTES)
}

#[test]
fn series_that_follow_at_once_become_runs() {
    let directory = directory();
    let here = directory.path();
    let detector = TcpListener::bind("127.0.0.1:0").unwrap();
    let from = format!("zmq://{}", detector.local_addr().unwrap());
    let program = record(here, &from, &["--series", "3", "--name", "sample"]);
    let mut peer = accepted(&detector);
    // The detector does not wait between series; it is armed again before the end of the second one.
    let sender = std::thread::spawn(move || {
        sends(&mut peer, 1, 0..200);
        ends(&mut peer, 1);
        sends(&mut peer, 2, 0..300);
        sends(&mut peer, 3, 0..100);
        ends(&mut peer, 3);
        peer
    });
    let run = program.wait();
    assert_eq!(run.code(), 0, "{run:#?}");
    let mut peer = sender.join().unwrap();
    for (number, images) in [(1, 200), (2, 300), (3, 100)] {
        assert_eq!(verified(here, &format!("a/sample-{number}")), of(images));
        let manifest = std::fs::read(here.join(format!("a/sample-{number}/keepup.json"))).unwrap();
        let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
        assert_eq!(
            (&manifest["run"], &manifest["metadata"]["series_id"]),
            (&number.into(), &number.to_string().into())
        );
    }
    // The last run has closed the connection, so that no other series goes to a recorder that has ended.
    let mut rest = Vec::new();
    let closed = std::io::Read::read_to_end(&mut peer, &mut rest);
    assert!(closed.is_err() || rest.is_empty());
}

#[test]
fn all_series_are_recorded_until_the_recorder_is_stopped() {
    let directory = directory();
    let here = directory.path();
    let detector = TcpListener::bind("127.0.0.1:0").unwrap();
    let from = format!("zmq://{}", detector.local_addr().unwrap());
    let mut program = record(here, &from, &["--series", "all", "--name", "sample"]);
    let mut peer = accepted(&detector);
    for series in 1..=2 {
        sends(&mut peer, series, 0..20);
        ends(&mut peer, series);
    }
    program.line_that(|line| line.contains("sample-3"), "the directory of the third run");
    program.signal("TERM");
    let run = program.wait();
    assert_eq!(run.code(), 0, "{run:#?}");
    assert_eq!((verified(here, "a/sample-1"), verified(here, "a/sample-2")), (of(20), of(20)));
    assert!(!here.join("a/sample-3").exists(), "a run without events is removed");
}

#[test]
fn a_series_between_two_connections_is_a_run() {
    let directory = directory();
    let here = directory.path();
    let detector = TcpListener::bind("127.0.0.1:0").unwrap();
    let from = format!("zmq://{}", detector.local_addr().unwrap());
    let program = record(here, &from, &["--series", "2", "--name", "sample"]);
    for series in 1..=2 {
        // The detector restarts after each series.
        let mut peer = accepted(&detector);
        sends(&mut peer, series, 0..20);
        ends(&mut peer, series);
    }
    let run = program.wait();
    assert_eq!(run.code(), 0, "{run:#?}");
    assert_eq!((verified(here, "a/sample-1"), verified(here, "a/sample-2")), (of(20), of(20)));
}

#[test]
fn a_series_that_arrived_with_the_end_of_another_is_recorded() {
    let directory = directory();
    let here = directory.path();
    let detector = TcpListener::bind("127.0.0.1:0").unwrap();
    let from = format!("zmq://{}", detector.local_addr().unwrap());
    let program = record(here, &from, &["--series", "2", "--name", "sample"]);
    let mut peer = accepted(&detector);
    // All in one packet; nothing follows, and the connection stays open.
    let series = |series| {
        [
            frame(&start_of_series(series, 1)),
            frame(&image_of_series(series, 0)),
            frame(&end_of_series(series)),
        ]
    };
    peer.write_all(&[series(1), series(2)].concat().concat()).unwrap();
    let run = program.wait();
    assert_eq!(run.code(), 0, "{run:#?}");
    assert_eq!((verified(here, "a/sample-1"), verified(here, "a/sample-2")), (of(1), of(1)));
}

#[test]
fn a_limit_ends_all_series() {
    let directory = directory();
    let here = directory.path();
    let detector = TcpListener::bind("127.0.0.1:0").unwrap();
    let from = format!("zmq://{}", detector.local_addr().unwrap());
    let limits = ["--series", "all", "--name", "sample", "--stop-after", "10 events"];
    let program = record(here, &from, &limits);
    let mut peer = accepted(&detector);
    // The recorder may have ended before the last image.
    let _ = try_sends(&mut peer, 1, 0..20);
    let run = program.wait();
    assert!(here.join("a/sample-1").exists() && !here.join("a/sample-2").exists(), "{run:#?}");
}

#[test]
fn a_name_without_space_for_every_run_number_is_refused_before_the_first_run() {
    let directory = directory();
    let here = directory.path();
    let run = |bytes: usize| {
        let name = "x".repeat(bytes);
        let arguments = ["--series", "2", "--run", "9", "--name", &name];
        record(here, "zmq://127.0.0.1:1", &arguments)
    };
    let refused = run(198).wait();
    assert_eq!(refused.code(), 2, "{refused:#?}");
    assert!(refused.stderr.contains("--name may have 183 bytes, because the run number"), "{refused:#?}");
    assert!(refused.stderr.contains("hint: a shorter --name"), "{refused:#?}");
    assert_eq!(std::fs::read_dir(here.join("a")).unwrap().count(), 0);
    let mut accepted = run(183);
    accepted.line("writing with ");
    accepted.signal("INT");
    accepted.wait();
}

#[test]
fn sources_without_series_are_refused() {
    let directory = directory();
    for from in ["udp://127.0.0.1:0", "vdif://127.0.0.1:0,frames-per-second=8"] {
        let run = keepup(directory.path(), &["record", "--from", from, "--to-null", "--series", "2"]);
        assert_eq!(run.code(), 2, "{run:#?}");
        assert!(run.stderr.contains("a source does not send series"), "{run:#?}");
    }
}

#[test]
fn simulated_detectors_wait_for_the_recorder() {
    let directory = directory();
    let here = directory.path();
    for version in ["dectris-v1", "dectris-v2"] {
        let listen = ["--listen", "127.0.0.1:0", "--events", "40", "--rate", "max"];
        let arguments = [&["source", "eiger2-4m-8bit", "--as", version, "--json"], &listen[..]].concat();
        let mut source = start(here, &arguments);
        let line = source.line("waiting for a recorder: ");
        let from = line.rsplit(' ').next().unwrap().trim_end_matches('`').to_owned();
        let run = record(here, &from, &["--name", version, "--json"]).wait();
        assert_eq!(run.code(), 0, "{run:#?}");
        assert_eq!(verified(here, &format!("a/{version}")), (40, 40 * 2048 * 2048));
        let sent = source.wait();
        assert_eq!((sent.code(), count(&json(&sent)["sent"])), (0, (40, 40 * 2048 * 2048)), "{sent:#?}");
    }
}

/// Runs a simulated detector with compressed images and a recording of it; returns the events and bytes sent.
fn compressed_images(here: &Path, version: &str) -> (u64, u64) {
    let listen = ["--listen", "127.0.0.1:0", "--events", "12", "--rate", "max", "--json"];
    let mut source = start(here, &[&["source", "eiger2-16m-bslz4", "--as", version], &listen[..]].concat());
    let line = source.line("waiting for a recorder: ");
    let from = line.rsplit(' ').next().unwrap().trim_end_matches('`').to_owned();
    let run = record(here, &from, &["--name", version, "--json"]).wait();
    assert_eq!(run.code(), 0, "{run:#?}");
    let sent = source.wait();
    assert_eq!(sent.code(), 0, "{sent:#?}");
    count(&json(&sent)["sent"])
}

#[test]
fn compressed_images_are_counted_to_the_byte() {
    let directory = directory();
    let here = directory.path();
    let both = ["dectris-v1", "dectris-v2"].map(|version| {
        let sent = compressed_images(here, version);
        assert_eq!(verified(here, &format!("a/{version}")), sent);
        let info = keepup(here, &["info", &format!("a/{version}"), "--json"]);
        assert_eq!(json(&info)["streams"]["0"]["compression"], "bslz4", "{info:#?}");
        sent
    });
    assert_eq!(both[0], both[1], "the same seed gives other images");
    assert!(both[0].0 == 12 && (12 * 3_620_000..12 * 12_100_000).contains(&both[0].1), "{both:?}");
}

#[test]
fn trials_use_the_transport_of_the_detector() {
    let directory = directory();
    let here = directory.path();
    std::fs::create_dir(here.join("a")).unwrap();
    for (profile, size) in [
        ("eiger2-4m-8bit", "1 stream of 4194304 bytes over"),
        ("eiger2-16m-bslz4", "at most 12100000 bytes (images of 36187152 bytes, compressed) over"),
    ] {
        let trial = ["trial", profile, "--rate", "40 MB/s", "--time", "2s", "--volume", "a", "--json"];
        let run = keepup(here, &trial);
        assert_eq!(run.code(), 0, "{run:#?}");
        assert!(run.stderr.contains("over 1 connection, protocol dectris-v2;"), "{run:#?}");
        assert!(run.stderr.contains(size), "{run:#?}");
        let ledger = &json(&run)["runs"][0]["ledger"];
        assert!(count(&ledger["verified"]).0 > 0, "{run:#?}");
        assert_eq!(count(&ledger["verified"]), count(&ledger["sent"]), "{run:#?}");
    }
}
