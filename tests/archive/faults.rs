//! Faults of the server: what was durable stays durable, and the message names the cause.
use std::path::Path;

use super::copies::{drained, record, restored};
use super::server::{Fault, Rule, Server};
use crate::common::{TestDirectory, directory, json, number, verified};

/// A recording of a few parts, and a server.
fn scene() -> (TestDirectory, Server, (u64, u64)) {
    let place = directory();
    let server = Server::start(&place.path().join("s3"));
    let made = record(place.path(), &["a"], "240", &[]);
    (place, server, made)
}

/// Restores with the original out of the way.
fn assert_restored(server: &Server, here: &Path, made: (u64, u64)) {
    std::fs::rename(here.join("a"), here.join("away")).unwrap();
    assert_eq!(restored(server, here), made);
}

#[test]
fn requests_that_fail_for_a_while_are_repeated() {
    let (place, server, made) = scene();
    let here = place.path();
    let fail = |part, fault, times| Rule { part, fault, pass: 0, times };
    server.fail(&[
        fail("partNumber=1", Fault::Status(500, "InternalError"), 2),
        fail("partNumber=2", Fault::Cut, 1),
        fail("partNumber=3", Fault::Corrupt, 1),
        fail("POST", Fault::Status(503, "SlowDown"), 1),
        fail("journal.jsonl", Fault::Status(503, "SlowDown"), 2),
        fail("keepup-archive.json", Fault::Status(500, "InternalError"), 1),
    ]);
    let run = drained(&server, here, &[]);
    assert_eq!(run.code(), 0, "{run:#?}");
    let part = server.requests("partNumber=1&");
    assert!(part.len() > 2, "{part:#?}");
    server.fail(&[fail("GET", Fault::Status(503, "SlowDown"), 2), fail("GET", Fault::Cut, 1)]);
    assert_restored(&server, here, made);
}

#[test]
fn a_part_that_changes_on_the_way_is_noticed_without_a_signature_of_the_data() {
    let (place, server, made) = scene();
    let here = place.path();
    // The server accepts the part: it does not know the checksum in its header.
    server.fail(&[Rule { part: "partNumber=2", fault: Fault::Corrupt, pass: 0, times: 1 }]);
    let drain = ["drain", "a/run", "--to", "s3://bucket/pre", "--json"];
    let run = server.keepup_with(here, &["AWS_UNSIGNED_PAYLOAD=true"], &drain);
    assert_eq!(run.code(), 0, "{run:#?}");
    let wanted = "segment-000000.mcap: checksum mismatch: SHA-256 is";
    assert!(run.stderr.contains(wanted) && run.stderr.contains("sending it again"), "{run:#?}");
    assert!(server.requests("partNumber=2&").len() > 1);
    assert_restored(&server, here, made);
}

#[test]
fn expired_credentials_end_the_copy_with_a_hint_and_it_continues() {
    let (place, server, made) = scene();
    let here = place.path();
    for (status, code, hint) in [
        (403, "RequestTimeTooSkewed", "hint: timedatectl set-ntp true"),
        (400, "ExpiredToken", "hint: renew the credentials"),
    ] {
        let rule = Rule { part: "PUT", fault: Fault::Status(status, code), pass: 3, times: usize::MAX };
        server.fail(&[rule]);
        let run = drained(&server, here, &["--connections", "1"]);
        assert_eq!(run.code(), 4, "{run:#?}");
        assert!(run.stderr.contains("error: cannot write s3://bucket/pre/run/"), "{run:#?}");
        assert!(run.stderr.contains(code) && run.stderr.contains(hint), "{run:#?}");
        assert!(!here.join("s3/bucket/pre/run/keepup-archive.json").exists());
    }
    server.fail(&[]);
    let run = drained(&server, here, &[]);
    assert_eq!(run.code(), 0, "{run:#?}");
    assert!(number(&json(&run), "known_bytes") >= 16 << 20, "{run:#?}");
    verified(here, "a/run");
    assert_restored(&server, here, made);
}

#[test]
fn a_request_with_a_wrong_time_is_signed_again() {
    let (place, server, made) = scene();
    let skewed = |part| {
        let fault = Fault::Status(403, "RequestTimeTooSkewed");
        server.fail(&[Rule { part, fault, pass: 1, times: 1 }]);
    };
    skewed("PUT");
    let run = drained(&server, place.path(), &[]);
    assert_eq!(run.code(), 0, "{run:#?}");
    skewed("GET");
    assert_restored(&server, place.path(), made);
}

#[test]
fn a_completion_that_fails_in_the_body_of_a_success_is_reported_as_such() {
    let (place, server, made) = scene();
    let here = place.path();
    let complete = |times| {
        let fault = Fault::Status(200, "EntityTooSmall");
        server.fail(&[Rule { part: ".mcap?uploadId=", fault, pass: 0, times }]);
    };
    complete(usize::MAX);
    let run = drained(&server, here, &[]);
    assert_eq!(run.code(), 4, "{run:#?}");
    assert!(run.stderr.contains("error: cannot write s3://bucket/pre/run/segment-000000.mcap: "), "{run:#?}");
    assert!(!run.stderr.contains("checksum mismatch"), "{run:#?}");
    assert!(!server.object("pre/run/keepup-archive.json").exists());
    complete(1);
    let run = drained(&server, here, &[]);
    assert_eq!(run.code(), 0, "{run:#?}");
    assert_restored(&server, here, made);
}

#[test]
fn what_is_no_manifest_is_said() {
    let (place, server, _) = scene();
    let here = place.path();
    let object = server.object("pre/run/keepup.json");
    std::fs::create_dir_all(object.parent().unwrap()).unwrap();
    std::fs::write(object, "<html>Log in</html>").unwrap();
    let run = drained(&server, here, &[]);
    assert_eq!(run.code(), 4, "{run:#?}");
    assert!(run.stderr.contains("keepup.json: it is not a manifest: "), "{run:#?}");
    assert!(run.stderr.contains("hint: check AWS_ENDPOINT_URL"), "{run:#?}");
}

#[test]
fn a_bucket_that_does_not_exist_is_said() {
    let (place, server, _) = scene();
    let fault = Fault::Status(404, "NoSuchBucket");
    server.fail(&[Rule { part: "GET", fault, pass: 0, times: usize::MAX }]);
    let run = server.keepup(place.path(), &["restore", "s3://bucket/pre/run", "back"]);
    assert_eq!(run.code(), 4, "{run:#?}");
    assert!(run.stderr.contains("the server answers NoSuchBucket"), "{run:#?}");
}

#[test]
fn a_server_without_checksums_is_used() {
    let (place, server, made) = scene();
    let here = place.path();
    let drain = ["drain", "a/run", "--to", "s3://bucket/pre"];
    let run = server.keepup_with(here, &["AWS_CHECKSUM_ALGORITHM=none"], &drain);
    assert_eq!(run.code(), 0, "{run:#?}");
    assert_restored(&server, here, made);
}

#[test]
fn a_changed_object_is_noticed() {
    let (place, server, made) = scene();
    let here = place.path();
    assert_eq!(drained(&server, here, &[]).code(), 0);
    let object = server.object("pre/run/segment-000000.mcap");
    let good = std::fs::read(&object).unwrap();
    let mut bad = good.clone();
    bad[good.len() / 2] ^= 1;
    std::fs::write(&object, bad).unwrap();
    std::fs::rename(here.join("a"), here.join("away")).unwrap();
    let run = server.keepup(here, &["restore", "s3://bucket/pre/run", "back"]);
    assert_eq!(run.code(), 1, "{run:#?}");
    let wanted = "cannot restore s3://bucket/pre/run/segment-000000.mcap: checksum mismatch: SHA-256 is";
    assert!(run.stderr.contains(wanted), "{run:#?}");
    assert!(!here.join("back/keepup.json").exists() && !here.join("back/segment-000000.mcap").exists());
    std::fs::write(&object, good).unwrap();
    assert_eq!(restored(&server, here), made, "the restore continues");
}

#[test]
fn a_lost_object_is_sent_again() {
    let (place, server, made) = scene();
    let here = place.path();
    assert_eq!(drained(&server, here, &[]).code(), 0);
    std::fs::remove_file(server.object("pre/run/segment-000000.mcap")).unwrap();
    let run = server.keepup(here, &["restore", "s3://bucket/pre/run", "back"]);
    assert_eq!(run.code(), 4, "{run:#?}");
    std::fs::remove_dir_all(here.join("back")).unwrap();
    let run = drained(&server, here, &[]);
    assert_eq!(run.code(), 0, "{run:#?}");
    assert!(run.stderr.contains("segment-000000.mcap has changed in the archive"), "{run:#?}");
    assert_restored(&server, here, made);
}

#[test]
fn another_recording_of_the_same_name_is_not_overwritten() {
    let (place, server, _) = scene();
    let here = place.path();
    assert_eq!(drained(&server, here, &[]).code(), 0);
    std::fs::rename(here.join("a"), here.join("away")).unwrap();
    record(here, &["a"], "40", &[]);
    server.requests("");
    let run = drained(&server, here, &[]);
    assert_eq!(run.code(), 3, "{run:#?}");
    assert!(run.stderr.contains("another recording of this name"), "{run:#?}");
    assert_eq!(server.requests("PUT"), Vec::<String>::new());
}

#[test]
fn a_body_without_an_end_is_not_received() {
    let (place, server, _) = scene();
    let here = place.path();
    assert_eq!(drained(&server, here, &[]).code(), 0);
    server.fail(&[Rule {
        part: "GET /bucket/pre/run/seg",
        fault: Fault::Endless,
        pass: 0,
        times: usize::MAX,
    }]);
    let run = server.keepup(here, &["restore", "s3://bucket/pre/run", "back", "--connections", "1"]);
    assert!(run.code() != 0 && run.stderr.contains("sends more than the"), "{run:#?}");
    assert!(server.endless_bytes() > 0);
    assert!(server.endless_bytes() < 256 << 20, "{} bytes were received", server.endless_bytes());
}

#[test]
fn a_hostile_inventory_writes_nothing() {
    let (place, server, _) = scene();
    let here = place.path();
    assert_eq!(drained(&server, here, &[]).code(), 0);
    let object = server.object("pre/run/keepup-archive.json");
    let text = std::fs::read_to_string(&object).unwrap();
    for (from, to) in [("\"journal.jsonl\"", "\"../journal.jsonl\""), ("\"journal.jsonl\"", "\"/tmp/x\"")] {
        assert!(text.contains(from));
        std::fs::write(&object, text.replace(from, to)).unwrap();
        let run = server.keepup(here, &["restore", "s3://bucket/pre/run", "back"]);
        assert_eq!(run.code(), 1, "{run:#?}");
        assert!(run.stderr.contains("is not the path of a file of a recording"), "{run:#?}");
        assert!(!here.join("back").exists() && !here.join("journal.jsonl").exists());
    }
}
