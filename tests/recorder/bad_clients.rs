//! Misbehaving clients beside a good one: each is refused, logged, and has no effect on the good one.
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use keepup_stream::wire::{FrameKind, Header, MAX_CONTROL_BYTES, crc32};
use serde_json::Value;

use crate::common::{count, directory, json, keepup, recorder, start, until, verified};
use crate::recorder::raw_client::{acked, answer, connect, end, event, hello};

/// Everything that the recorder sends before it closes the connection, as text.
fn final_message(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A reset after the reply counts as its end.
    drop(stream.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Sends `bytes` on a new connection and returns the reply.
fn send_and_read(to: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = connect(to);
    // The recorder may close the connection before everything was sent.
    drop(stream.write_all(bytes));
    final_message(&mut stream)
}

#[test]
#[ignore = "system"]
fn bad_clients_are_refused_without_effect_on_a_good_one() {
    let directory = directory();
    let here = directory.path();
    let mut record = recorder(here, &["disk"], &["--max-connections", "600"]);
    let to = record.address();
    let good = start(
        here,
        &["source", "csl", "--to", &to.to_string(), "--rate", "8 MB/s", "--time", "10s", "--json"],
    );
    let journal = here.join("disk/run/journal.jsonl");
    until("it is there", || {
        std::fs::read_to_string(&journal).is_ok_and(|text| text.contains(r#""t":"stream""#))
    });

    assert!(send_and_read(to, &[0x55; 200]).contains("keepup"), "garbage");
    assert!(
        send_and_read(to, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nand then some more to fill a header")
            .to_lowercase()
            .contains("http")
    );
    let mut other_version = Header::control(FrameKind::Hello, b"").encode();
    other_version[5] = 9;
    let crc = crc32(&other_version[..60]).to_le_bytes();
    other_version[60..].copy_from_slice(&crc);
    assert!(send_and_read(to, &other_version).contains("version"), "another version");
    let absurd = Header { length: u64::MAX / 2, ..Header::control(FrameKind::Hello, b"") };
    assert!(send_and_read(to, &absurd.encode()).contains("error"), "an absurd length of a message");
    let huge = Header {
        kind: FrameKind::Event,
        stream: 100,
        sequence: 0,
        timestamp_ns: 0,
        length: 1 << 40,
        crc: 0,
        a: 0,
        b: 0,
    };
    assert!(
        send_and_read(to, &[hello(&[100]), huge.encode().to_vec()].concat()).contains("error"),
        "an absurd event"
    );
    assert!(send_and_read(to, &event(5, 0, b"x")).contains("hello"), "an event before hello");
    let entry = |name: &str| format!(r#"{{"id":7,"name":"{name}","element":"u8","shape":[]}}"#);
    let duplicate = format!(r#"{{"protocol":1,"client":"t","streams":[{},{}]}}"#, entry("a"), entry("b"));
    let duplicate = duplicate.as_bytes();
    let frame = [&Header::control(FrameKind::Hello, duplicate).encode()[..], duplicate].concat();
    assert!(send_and_read(to, &frame).contains('7'), "duplicate ids");
    assert!(send_and_read(to, &hello(&[0])).contains("another connection"), "a stream of another client");
    let backwards = [hello(&[101]), event(101, 5, b"five"), event(101, 4, b"four")].concat();
    assert!(send_and_read(to, &backwards).contains("backwards"));
    let mut wrong = event(102, 0, b"payload");
    *wrong.last_mut().unwrap() ^= 1;
    let mut damaged = connect(to);
    damaged.write_all(&[hello(&[102]), wrong, event(102, 1, b"whole")].concat()).unwrap();

    let mut half = connect(to);
    half.write_all(&hello(&[103])).unwrap();
    half.write_all(&event(103, 0, &[7; 300_000])[..150_000]).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    drop(half);

    let connections: Vec<TcpStream> = (0..500).filter_map(|_| TcpStream::connect(to).ok()).collect();
    assert!(connections.len() > 400);
    let mut deaf = connect(to);
    deaf.write_all(&hello(&[104])).unwrap();
    for sequence in 0..20_000 {
        deaf.write_all(&event(104, sequence, &[1; 100])).unwrap();
    }
    drop(connections);
    drop(damaged);

    let good = good.wait();
    // Closing with unread acknowledgements would discard data that the kernel still holds.
    drop(deaf);
    assert_eq!(good.code(), 0, "{good:#?}");
    std::thread::sleep(Duration::from_millis(500));
    record.signal("TERM");
    let record = record.wait();
    let report = json(&record);
    assert_eq!(count(&report["ledger"]["streams"]["0"]["durable"]), count(&json(&good)["sent"]));
    assert_eq!(count(&report["ledger"]["streams"]["104"]["received"]).0, 20_000);
    assert_eq!(count(&report["ledger"]["streams"]["103"]["received"]).0, 0, "half an event is not an event");
    assert_eq!(report["missing_events"]["bad_checksum"], 1);
    assert_eq!(report["received"], report["durable"]);
    let incidents = listed(&report);
    for what in ["keepup", "version", "backwards", "wrong checksum", "middle of event 0 of stream 103"] {
        assert!(incidents.contains(what), "no {what:?} in {incidents}");
    }
    let verify = keepup(here, &["verify", "disk/run", "--json"]);
    assert_eq!(json(&verify)["fault_count"], 0, "{verify:#?}");
}

fn listed(report: &Value) -> String {
    let listed = report["incidents"]["listed"].as_array().unwrap();
    listed.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_minimal_client_that_reconnects_loses_nothing() {
    let directory = directory();
    let here = directory.path();
    let mut record = recorder(here, &["disk"], &["--stay"]);
    let to = record.address();
    for turn in 0..3u64 {
        let mut client = connect(to);
        let events: Vec<u8> = (0..10).flat_map(|n| event(1, turn * 10 + n, &[n as u8; 1000])).collect();
        client.write_all(&[hello(&[1]), events].concat()).unwrap();
        std::thread::sleep(Duration::from_millis(1000));
        // Disconnects without a bye: received events count nevertheless.
        drop(client);
        std::thread::sleep(Duration::from_millis(500));
    }
    record.signal("TERM");
    let record = record.wait();
    assert_eq!(count(&json(&record)["durable"]), (30, 30_000));
    assert_eq!(record.code(), 0, "{record:#?}");
    assert_eq!(verified(here, "disk/run"), (30, 30_000));
}

#[test]
fn text_from_clients_is_escaped_in_messages() {
    // A message whose key and value would set the terminal's title, clear it, and forge a line of keepup.
    let hello =
        r#"{"protocol":1,"\u001b]0;title\u0007\nerror: forged\u009b2J\u202e":1,"client":"t","streams":[]}"#;
    let frame =
        [&Header::control(FrameKind::Hello, hello.as_bytes()).encode()[..], hello.as_bytes()].concat();
    let place = directory();
    let mut record = recorder(place.path(), &["disk"], &["--stay"]);
    let answer = send_and_read(record.address(), &frame);
    assert!(answer.contains("forged") && !answer.contains("\\u001b"), "{answer}");
    record.signal("TERM");
    let run = record.wait();
    assert!(run.stdout.contains("forged"), "the incident is reported: {run:#?}");
    for text in [&run.stderr, &run.stdout] {
        assert!(text.chars().all(|c| c == '\n' || !c.is_control() && c != '\u{202e}'), "{text:?}");
        assert!(!text.lines().any(|line| line.starts_with("error: forged")), "{text:?}");
    }
}

/// A hello of 8 MiB that lacks its last byte.
fn half_hello(to: SocketAddr) -> TcpStream {
    let body = vec![b' '; MAX_CONTROL_BYTES as usize];
    let mut stranger = connect(to);
    let frame = [&Header::control(FrameKind::Hello, &body).encode()[..], &body[..body.len() - 1]].concat();
    // The recorder may close the connection before everything was sent.
    drop(stranger.write_all(&frame));
    stranger
}

#[test]
fn strangers_share_bounded_memory_and_known_clients_lose_nothing() {
    let directory = directory();
    let here = directory.path();
    let mut record = recorder(here, &["disk"], &["--stay"]);
    let to = record.address();
    let mut known = connect(to);
    known.write_all(&[hello(&[1]), event(1, 0, b"a")].concat()).unwrap();
    acked(&mut known, 1);
    let mut strangers: Vec<TcpStream> = (0..12).map(|_| half_hello(to)).collect();
    // 32 MiB is the memory of four such messages: the first ones have to go.
    for stranger in &mut strangers[..4] {
        final_message(stranger);
    }
    known.write_all(&[event(1, 1, b"b"), end(1, 2, 2)].concat()).unwrap();
    answer(&mut known, FrameKind::Bye);
    let mut last = connect(to);
    last.write_all(&[hello(&[2]), event(2, 0, b"c")].concat()).unwrap();
    acked(&mut last, 1);
    drop(strangers);
    record.signal("TERM");
    let record = record.wait();
    let report = json(&record);
    assert_eq!(count(&report["durable"]), (3, 3));
    assert!(listed(&report).contains("too many messages before hello"), "{report:#}");
}

#[test]
fn silent_strangers_leave_their_places_to_clients() {
    let directory = directory();
    let mut record = recorder(directory.path(), &["disk"], &["--stay", "--max-connections", "4"]);
    let to = record.address();
    let mut known = connect(to);
    known.write_all(&[hello(&[1]), event(1, 0, b"a")].concat()).unwrap();
    acked(&mut known, 1);
    let silent: Vec<TcpStream> = (0..20).map(|_| connect(to)).collect();
    let mut new = connect(to);
    new.write_all(&[hello(&[2]), event(2, 0, b"b")].concat()).unwrap();
    acked(&mut new, 1);
    known.write_all(&event(1, 1, b"c")).unwrap();
    acked(&mut known, 2);
    drop(silent);
    record.signal("TERM");
    let report = json(&record.wait());
    assert_eq!(count(&report["durable"]), (3, 3));
    assert!(listed(&report).contains("too many connections"), "{report:#}");
}
