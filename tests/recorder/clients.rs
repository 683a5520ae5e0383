//! Guarantees of the wire protocol: acknowledgements, take-over, limits, and the end of connections.
use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use keepup_stream::wire::{
    Ack, ControlMessage, ElementType, End, EndStream, FrameKind, Header, Hello, StreamInfo, Welcome,
};
use keepup_testkit::Program;
use keepup_testkit::cable::Cable;
use keepup_testkit::root::{allowed, skip};

use crate::common::{count, directory, json, keepup, number, recorded, recorder, until, verified};
use crate::recorder::raw_client::{acked, answer, connect, end, event, frame, hello, hello_to_resume};

fn welcome(payload: &str) -> Welcome {
    Welcome::from_payload(payload.as_bytes()).unwrap()
}

/// A connection for a stream whose earlier connection is closed. Of several intakes, another one than that of
/// the new connection must notice that first.
fn connect_again(to: SocketAddr, hello: &[u8]) -> (TcpStream, Welcome) {
    let accepted = RefCell::new(None);
    until("the stream is not released", || {
        let mut client = connect(to);
        client.write_all(hello).unwrap();
        let (header, payload) = frame(&mut client).unwrap();
        if header.kind == FrameKind::Welcome {
            accepted.replace(Some((client, welcome(&payload))));
            return true;
        }
        assert!(payload.contains("another connection sends it"), "{payload}");
        false
    });
    accepted.into_inner().unwrap()
}

#[test]
fn sequence_numbers_near_the_maximum_are_handled() {
    let directory = directory();
    let here = directory.path();
    let mut record = recorder(here, &["disk"], &["--stay"]);
    let mut good = connect(record.address());
    good.write_all(&[hello(&[1]), event(1, 0, b"first")].concat()).unwrap();
    for sequence in [1 << 63, u64::MAX - 1, u64::MAX] {
        let mut bad = connect(record.address());
        bad.write_all(&[hello(&[2]), event(2, sequence, b"x")].concat()).unwrap();
        assert!(answer(&mut bad, FrameKind::Error).1.contains("2^63"));
    }
    let mut bad = connect(record.address());
    bad.write_all(&hello(&[2])).unwrap();
    answer(&mut bad, FrameKind::Welcome);
    // `End::to_frame` refuses to encode this.
    let counts = r#""events":0,"bytes":0,"lost_events":0,"lost_bytes":0"#;
    let text = format!(r#"{{"streams":[{{"id":2,{counts},"next_sequence":{}}}]}}"#, u64::MAX);
    let header = Header::control(FrameKind::End, text.as_bytes()).encode();
    bad.write_all(&[&header[..], text.as_bytes()].concat()).unwrap();
    assert!(answer(&mut bad, FrameKind::Error).1.contains("2^63"));
    good.write_all(&[event(1, 1, b"second"), end(1, 2, 11)].concat()).unwrap();
    answer(&mut good, FrameKind::Bye);
    record.signal("TERM");
    record.wait();
    // Intact, and not complete: what the other clients sent was rejected.
    let verify = keepup(here, &["verify", "disk/run", "--json"]);
    let report = json(&verify);
    assert_eq!((verify.code(), recorded(&report), &report["fault_count"]), (1, (2, 11), &0.into()));
    let rows = report["rejected"].as_array().unwrap().iter();
    assert_eq!(rows.map(|row| number(row, "count")).fold(0, u64::saturating_add), 4, "{report:#}");
    let cat = keepup(here, &["cat", "disk/run", "--stream", "1"]);
    assert_eq!((cat.code(), cat.stdout.as_str()), (0, "firstsecond"), "{cat:#?}");
}

#[test]
fn an_event_that_does_not_match_its_shape_is_refused() {
    let directory = directory();
    let mut record = recorder(directory.path(), &["disk"], &["--stay"]);
    let info =
        StreamInfo { id: 1, name: "s1".into(), element: ElementType::U16, shape: vec![4], compression: None };
    let mut client = connect(record.address());
    let hello = Hello::new("test", vec![info]).to_frame().unwrap();
    client.write_all(&[hello, event(1, 0, &[0; 8]), event(1, 1, &[0; 3])].concat()).unwrap();
    assert!(answer(&mut client, FrameKind::Error).1.contains("it has 3 bytes, its shape says 8"));
    record.signal("TERM");
    assert_eq!(count(&json(&record.wait())["durable"]), (1, 8));
}

#[test]
fn acknowledgements_continue_after_a_damaged_event() {
    let directory = directory();
    let mut record = recorder(directory.path(), &["disk"], &["--stay"]);
    let mut client = connect(record.address());
    let mut damaged = event(1, 1, b"payload");
    *damaged.last_mut().unwrap() ^= 1;
    client.write_all(&[hello(&[1]), event(1, 0, b"a"), damaged, event(1, 2, b"c")].concat()).unwrap();
    let ack = acked(&mut client, 3);
    assert_eq!((ack.durable_next, ack.received_next, ack.lost_events), (3, 3, 1));
    // Also without a later event.
    let mut damaged = event(1, 3, b"payload");
    *damaged.last_mut().unwrap() ^= 1;
    client.write_all(&damaged).unwrap();
    let ack = acked(&mut client, 4);
    assert_eq!((ack.durable_next, ack.lost_events), (4, 2));
    drop(client);
    let (_again, welcome) = connect_again(record.address(), &hello(&[1]));
    let stream = welcome.streams[0];
    assert_eq!((stream.next_sequence, stream.durable_next, stream.lost_events), (4, 4, 2));
    record.signal("TERM");
    record.wait();
}

/// Events that become durable while no client is connected are acknowledged after the reconnect.
#[test]
fn a_reconnected_client_receives_acknowledgements_for_earlier_events() {
    let directory = directory();
    let mut record = recorder(directory.path(), &["disk"], &["--stay"]);
    let mut client = connect(record.address());
    client.write_all(&[hello(&[1]), event(1, 0, b"a"), event(1, 1, b"b")].concat()).unwrap();
    answer(&mut client, FrameKind::Welcome);
    drop(client);
    let (mut again, welcome) = connect_again(record.address(), &hello_to_resume(&[1], "it"));
    let stream = welcome.streams[0];
    assert_eq!(stream.next_sequence, 2);
    assert_eq!(acked(&mut again, 2).durable_next, 2, "without another event");
    record.signal("TERM");
    record.wait();
}

#[test]
fn the_recorder_closes_the_connection_after_bye() {
    let directory = directory();
    let mut record = recorder(directory.path(), &["disk"], &[]);
    let mut client = connect(record.address());
    client.write_all(&[hello(&[1]), event(1, 0, b"a"), end(1, 1, 1)].concat()).unwrap();
    answer(&mut client, FrameKind::Bye);
    assert!(frame(&mut client).is_none(), "nothing follows");
    // The client's side of the connection is still open.
    let record = record.wait();
    assert_eq!(record.code(), 0, "{record:#?}");
    drop(client);
}

/// As `nc -N` does, or a script that sends a file.
#[test]
fn a_client_that_closes_its_side_after_end_is_answered() {
    let directory = directory();
    let mut record = recorder(directory.path(), &["disk"], &[]);
    let mut client = connect(record.address());
    client.write_all(&[hello(&[1]), event(1, 0, b"a"), end(1, 1, 1)].concat()).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    answer(&mut client, FrameKind::Bye);
    assert!(frame(&mut client).is_none(), "nothing follows");
    let record = record.wait();
    assert_eq!((record.code(), count(&json(&record)["durable"])), (0, (1, 1)), "{record:#?}");
}

/// What it sent has arrived, so the recording is whole. Its kernel may reset the connection, because
/// acknowledgements are unread.
#[test]
fn a_client_that_is_gone_after_end_has_ended() {
    let directory = directory();
    let mut record = recorder(directory.path(), &["disk"], &[]);
    let mut client = connect(record.address());
    let events: Vec<u8> = (0..100).flat_map(|sequence| event(1, sequence, &[7; 300_000])).collect();
    client.write_all(&[hello(&[1]), events].concat()).unwrap();
    while Ack::from_header(&answer(&mut client, FrameKind::Ack).0).received_next < 100 {}
    client.write_all(&end(1, 100, 30_000_000)).unwrap();
    drop(client);
    let record = record.wait();
    let report = json(&record);
    assert_eq!((record.code(), count(&report["durable"])), (0, (100, 30_000_000)), "{record:#?}");
    assert_eq!(report["trouble"].as_array().unwrap().len(), 0, "{report:#}");
}

#[test]
fn contradictory_final_counts_are_refused() {
    let directory = directory();
    let mut record = recorder(directory.path(), &["disk"], &["--stay"]);
    let good = EndStream { id: 1, events: 2, bytes: 2, lost_events: 0, lost_bytes: 0, next_sequence: 2 };
    for (turn, (wrong, why)) in [
        (EndStream { events: 1, ..good }, "events is 1, and 2 arrived"),
        (EndStream { bytes: 3, ..good }, "bytes is 3, and 2 arrived"),
        (EndStream { events: 0, next_sequence: 1, ..good }, "next_sequence is 1, and event 1 has arrived"),
    ]
    .into_iter()
    .enumerate()
    {
        let id = turn as u32 + 1;
        let mut client = connect(record.address());
        let end = End { streams: vec![EndStream { id, ..wrong }] }.to_frame().unwrap();
        let events = [event(id, 0, b"a"), event(id, 1, b"b")].concat();
        client.write_all(&[hello(&[id]), events, end].concat()).unwrap();
        let error = answer(&mut client, FrameKind::Error).1;
        assert!(error.contains(why), "{error}");
    }
    record.signal("TERM");
    let report = json(&record.wait());
    assert_eq!(count(&report["durable"]), (6, 6), "received events are recorded: {report:#}");
    assert_eq!(report["trouble"].as_array().unwrap().len(), 0, "and counted: {report:#}");
}

/// A client that loses power sends nothing more, and its connection stays open on the recorder's side.
#[test]
#[ignore = "system"]
fn a_silent_connection_is_replaced_without_loss_of_acknowledged_events() {
    let directory = directory();
    let here = directory.path();
    let mut record = recorder(here, &["disk"], &["--peer-timeout", "1 s", "--stay"]);
    let mut silent = connect(record.address());
    silent.write_all(&[hello(&[1]), event(1, 0, b"a"), event(1, 1, b"b")].concat()).unwrap();
    acked(&mut silent, 2);
    let mut next = connect(record.address());
    // It is refused until the other client has been silent for the whole timeout.
    let begun = Instant::now();
    let stream = loop {
        next.write_all(&hello(&[1])).unwrap();
        match frame(&mut next).unwrap() {
            (header, payload) if header.kind == FrameKind::Welcome => break welcome(&payload).streams[0],
            (_, payload) => assert!(payload.contains("another connection"), "{payload}"),
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "it is never replaced");
        std::thread::sleep(Duration::from_millis(100));
        next = connect(record.address());
    };
    assert_eq!((stream.next_sequence, stream.durable_next), (2, 2));
    assert!(answer(&mut silent, FrameKind::Error).1.contains("replaced by the connection from"));
    assert!(frame(&mut silent).is_none());
    next.write_all(&event(1, 2, b"c")).unwrap();
    acked(&mut next, 3);
    record.signal("TERM");
    let record = record.wait();
    assert_eq!(count(&json(&record)["durable"]), (3, 3));
    assert_eq!(verified(here, "disk/run"), (3, 3));
}

/// The same identity proves that it is the same client: no timeout applies.
#[test]
fn a_client_with_the_same_identity_takes_over_at_once() {
    let directory = directory();
    let mut record = recorder(directory.path(), &["disk"], &["--peer-timeout", "1 h", "--stay"]);
    let mut old = connect(record.address());
    old.write_all(&[hello_to_resume(&[1, 2], "crate 7"), event(1, 0, b"a")].concat()).unwrap();
    acked(&mut old, 1);
    let mut stranger = connect(record.address());
    stranger.write_all(&hello_to_resume(&[1], "crate 8")).unwrap();
    assert!(answer(&mut stranger, FrameKind::Error).1.contains("another connection"));
    let mut new = connect(record.address());
    new.write_all(&hello_to_resume(&[1, 2], "crate 7")).unwrap();
    let streams = welcome(&answer(&mut new, FrameKind::Welcome).1).streams;
    assert_eq!((streams[0].next_sequence, streams[1].next_sequence), (1, 0));
    assert!(answer(&mut old, FrameKind::Error).1.contains("replaced"));
    let end = |id, events| EndStream {
        id,
        events,
        bytes: events,
        lost_events: 0,
        lost_bytes: 0,
        next_sequence: 2 * events,
    };
    let events = [event(1, 1, b"b"), end_of(&[end(1, 1), end(2, 0)])].concat();
    new.write_all(&events).unwrap();
    answer(&mut new, FrameKind::Bye);
    record.signal("TERM");
    let report = json(&record.wait());
    assert_eq!(count(&report["durable"]), (2, 2), "{report:#}");
    assert_eq!(report["missing_events"].as_object().unwrap().len(), 0, "{report:#}");
}

fn end_of(streams: &[EndStream]) -> Vec<u8> {
    End { streams: streams.to_vec() }.to_frame().unwrap()
}

/// A client that can resume sends a damaged event again, so that no gap remains.
#[test]
fn a_damaged_event_is_sent_again_by_a_resuming_client() {
    let directory = directory();
    let here = directory.path();
    let mut record = recorder(here, &["disk"], &["--stay"]);
    let mut client = connect(record.address());
    let mut damaged = event(1, 1, b"payload");
    *damaged.last_mut().unwrap() ^= 1;
    let events = [event(1, 0, b"a"), damaged, event(1, 2, b"c")].concat();
    client.write_all(&[hello_to_resume(&[1], "it"), events].concat()).unwrap();
    let error = answer(&mut client, FrameKind::Error).1;
    assert!(error.contains("wrong checksum"), "{error}");
    let mut again = connect(record.address());
    again.write_all(&hello_to_resume(&[1], "it")).unwrap();
    assert_eq!(welcome(&answer(&mut again, FrameKind::Welcome).1).streams[0].next_sequence, 1);
    again.write_all(&[event(1, 1, b"payload"), event(1, 2, b"c")].concat()).unwrap();
    let last = EndStream { id: 1, events: 2, bytes: 8, lost_events: 0, lost_bytes: 0, next_sequence: 3 };
    again.write_all(&end_of(&[last])).unwrap();
    answer(&mut again, FrameKind::Bye);
    record.signal("TERM");
    let report = json(&record.wait());
    assert_eq!(report["missing_events"].as_object().unwrap().len(), 0, "{report:#}");
    assert_eq!(verified(here, "disk/run"), (3, 9));
}

/// Two connections that end within large events hold no memory that a third one needs.
#[test]
fn memory_of_incomplete_events_is_released() {
    const EVENT: usize = 40 << 20;
    let directory = directory();
    let more = ["--pool", "128 MiB", "--segment", "64 MiB", "--stay"];
    let mut record = recorder(directory.path(), &["disk"], &more);
    let payload = vec![7; EVENT];
    for id in [1, 2, 3] {
        let mut half = connect(record.address());
        half.write_all(&hello(&[id])).unwrap();
        answer(&mut half, FrameKind::Welcome);
        half.write_all(&event(id, 0, &payload)[..EVENT / 2]).unwrap();
    }
    let mut whole = connect(record.address());
    whole.write_all(&[hello(&[9]), event(9, 0, &payload)].concat()).unwrap();
    acked(&mut whole, 1);
    record.signal("TERM");
    assert_eq!(count(&json(&record.wait())["durable"]), (1, EVENT as u64));
}

/// A client that stops within an event but keeps its connection holds memory for a bounded time.
#[test]
#[ignore = "system"]
fn a_client_that_stops_within_an_event_is_disconnected() {
    let directory = directory();
    let mut record = recorder(directory.path(), &["disk"], &["--peer-timeout", "1 s", "--stay"]);
    let mut stuck = connect(record.address());
    stuck.write_all(&hello(&[1])).unwrap();
    stuck.write_all(&event(1, 0, &[7; 100_000])[..50_000]).unwrap();
    assert!(answer(&mut stuck, FrameKind::Error).1.contains("a frame was not completed"));
    record.signal("TERM");
    let report = json(&record.wait());
    assert!(report["incidents"]["listed"].to_string().contains("middle of event 0"), "{report:#}");
}

/// The detector's computer loses power while its stream is idle, and reconnects.
#[test]
#[ignore = "system"]
fn a_detector_can_reconnect_after_a_power_loss() {
    let test = "a_detector_can_reconnect_after_a_power_loss";
    if !allowed(test) {
        return;
    }
    let directory = directory();
    let here = directory.path();
    let cable = match Cable::lay(&format!("ku{}", std::process::id())) {
        Ok(cable) => cable,
        Err(why) => return skip(test, &why),
    };
    let keepup = env!("CARGO_BIN_EXE_keepup");
    let at = |end: usize, arguments: &[&str]| {
        let all = [&cable.at(end)[1..], &[keepup], arguments].concat();
        Program::start("ip", &all, here)
    };
    std::fs::create_dir_all(here.join("disk")).unwrap();
    let listen = format!("{}:0", Cable::address(0));
    let record = ["record", "--listen", &listen, "--volume", "disk", "--name", "run", "--json", "--stay"];
    let mut record = at(0, &record);
    let to = record.address().to_string();
    let send = ["source", "csl", "--to", &to, "--json", "--time"];
    // An event every 13 s: the connection is idle, and the recorder's kernel has nothing to retransmit.
    let lost = at(1, &[&send[..], &["1 h", "--rate", "20 kB/s"]].concat());
    let journal = here.join("disk/run/journal.jsonl");
    until("something is durable", || {
        std::fs::read_to_string(&journal).is_ok_and(|text| text.contains("watermark"))
    });
    std::thread::sleep(Duration::from_secs(1));
    cable.cut().unwrap();
    lost.signal("KILL");
    lost.wait();
    cable.restart_machine().unwrap();
    let begun = Instant::now();
    let served = loop {
        let again = at(1, &[&send[..], &["1 s", "--rate", "2 MB/s"]].concat()).wait();
        if again.code() == 0 {
            break again;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{again:#?}");
    };
    record.signal("TERM");
    let (account, report) = (json(&served), json(&record.wait()));
    let (before, after) = (count(&report["durable"]), count(&account["durable"]));
    assert!(before.0 > after.0 && after.0 > 0, "{account:#} {report:#}");
    assert_eq!(count(&report["received"]), before);
    let verify = json(&crate::common::keepup(here, &["verify", "disk/run", "--json"]));
    assert_eq!(verify["fault_count"], 0, "{verify:#}");
}

/// Forwards connections to `to`, and closes each after a number of bytes from the client.
fn breaking_proxy(to: SocketAddr, limits: &'static [u64]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for &limit in limits {
            let (client, _) = listener.accept().unwrap();
            let recorder = TcpStream::connect(to).unwrap();
            let (mut answers, mut back) = (recorder.try_clone().unwrap(), client.try_clone().unwrap());
            let answering = std::thread::spawn(move || drop(std::io::copy(&mut answers, &mut back)));
            drop(std::io::copy(&mut (&client).take(limit), &mut &recorder));
            for socket in [&client, &recorder] {
                drop(socket.shutdown(Shutdown::Both));
            }
            answering.join().unwrap();
        }
    });
    address
}

/// Runs the second client of `docs/wire-protocol.md`.
#[test]
#[ignore = "system"]
fn the_documented_client_resumes_after_a_broken_connection() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        return skip("the_documented_client_resumes_after_a_broken_connection", "no python3");
    }
    let page = include_str!("../../docs/wire-protocol.md");
    let resumes = page.split("```python\n").nth(2).unwrap().split_once("```").unwrap().0;
    let directory = directory();
    let here = directory.path();
    let mut record = recorder(here, &["disk"], &[]);
    let proxy = breaking_proxy(record.address(), &[20_000, 50_010, 128, u64::MAX]);
    let client = Program::start("python3", &["-c", resumes, &proxy.to_string()], here).wait();
    assert_eq!(client.code(), 0, "{client:#?}");
    assert!(client.stderr.lines().count() >= 3 && client.stdout.contains("lost: 0"), "{client:#?}");
    let report = json(&record.wait());
    assert_eq!(count(&report["durable"]), (1000, 64_000), "{report:#}");
    assert_eq!(report["missing_events"].as_object().unwrap().len(), 0, "{report:#}");
    assert_eq!(verified(here, "disk/run"), (1000, 64_000));
}

/// Consecutive damaged events take one line of the journal, and a sender of many gaps waits for the journal.
#[test]
fn a_flood_of_damaged_events_is_bounded() {
    const EVENTS: u64 = 200_000;
    let directory = directory();
    let here = directory.path();
    let mut record = recorder(here, &["disk"], &["--stay"]);
    let mut client = connect(record.address());
    client.write_all(&hello(&[1])).unwrap();
    let bad = |sequence| {
        let mut bad = event(1, sequence, b"x");
        *bad.last_mut().unwrap() ^= 1;
        bad
    };
    for first in (0..EVENTS).step_by(1000) {
        let frames: Vec<u8> = (first..first + 1000).flat_map(bad).collect();
        client.write_all(&frames).unwrap();
    }
    // Then every second one is intact: each damaged one is a separate gap.
    let mixed = |at: u64| if at.is_multiple_of(2) { event(1, at, b"x") } else { bad(at) };
    let frames: Vec<u8> = (EVENTS..EVENTS + 20_000).flat_map(mixed).collect();
    client.write_all(&frames).unwrap();
    let ack = acked(&mut client, EVENTS + 20_000);
    assert_eq!(ack.lost_events, EVENTS + 10_000);
    record.signal("TERM");
    let report = json(&record.wait());
    assert_eq!(report["missing_events"]["bad_checksum"], EVENTS + 10_000, "{report:#}");
    let journal = std::fs::read_to_string(here.join("disk/run/journal.jsonl")).unwrap();
    let lines = journal.lines().filter(|line| line.contains(r#""t":"gap""#)).count() as u64;
    assert!((10_000..10_000 + EVENTS / 20).contains(&lines), "{lines} lines for {EVENTS} in a row");
    let verify = json(&keepup(here, &["verify", "disk/run", "--json"]));
    assert_eq!(verify["fault_count"], 0, "{verify:#}");
}

/// Small events do not overtake a large event that waits for memory indefinitely.
#[test]
fn small_events_do_not_starve_a_large_one() {
    const LARGE: usize = 30 << 20;
    let directory = directory();
    let mut record = recorder(directory.path(), &["disk"], &["--segment", "64 MiB", "--stay"]);
    let to = record.address();
    let stop = Arc::new(AtomicBool::new(false));
    let small: Vec<_> = (10..42)
        .map(|id| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                let mut client = connect(to);
                client.write_all(&hello(&[id])).unwrap();
                let payload = vec![id as u8; 1 << 20];
                let mut sequence = 0;
                while !stop.load(Relaxed) {
                    client.write_all(&event(id, sequence, &payload)).unwrap();
                    sequence += 1;
                }
                sequence
            })
        })
        .collect();
    let mut large = connect(to);
    large.write_all(&hello(&[1])).unwrap();
    for sequence in 0..3 {
        large.write_all(&event(1, sequence, &vec![1; LARGE])).unwrap();
    }
    acked(&mut large, 3);
    stop.store(true, Relaxed);
    let sent: u64 = small.into_iter().map(|thread| thread.join().unwrap()).sum();
    // About 1,300 if the large event gets its turn; 50,000 and more if it only gets what the others leave.
    assert!((1..10_000).contains(&sent), "{sent} small events came first");
    record.signal("TERM");
    record.wait();
}

/// Another client's end, such as a stranger's, does not end the recording of a client that will be back.
#[test]
fn a_client_that_lost_its_connection_is_awaited() {
    let directory = directory();
    let here = directory.path();
    let mut record = recorder(here, &["disk"], &[]);
    let mut client = connect(record.address());
    client.write_all(&[hello_to_resume(&[1], "it"), event(1, 0, b"a")].concat()).unwrap();
    acked(&mut client, 1);
    drop(client);
    let mut stranger = connect(record.address());
    stranger.write_all(&[hello(&[9]), end(9, 0, 0)].concat()).unwrap();
    answer(&mut stranger, FrameKind::Bye);
    drop(stranger);
    let (mut again, welcome) = connect_again(record.address(), &hello_to_resume(&[1], "it"));
    assert_eq!(welcome.streams[0].next_sequence, 1);
    let last = EndStream { id: 1, events: 1, bytes: 1, lost_events: 0, lost_bytes: 0, next_sequence: 2 };
    again.write_all(&[event(1, 1, b"b"), end_of(&[last])].concat()).unwrap();
    answer(&mut again, FrameKind::Bye);
    let record = record.wait();
    assert_eq!(count(&json(&record)["durable"]), (2, 2), "{record:#?}");
    assert_eq!(verified(here, "disk/run"), (2, 2));
}

#[test]
fn the_wait_for_a_lost_client_has_a_limit() {
    let directory = directory();
    let mut record = recorder(directory.path(), &["disk"], &["--return-timeout", "200 ms"]);
    let mut lost = connect(record.address());
    lost.write_all(&[hello(&[1]), event(1, 0, b"a")].concat()).unwrap();
    acked(&mut lost, 1);
    drop(lost);
    let mut other = connect(record.address());
    other.write_all(&[hello(&[2]), event(2, 0, b"b"), end(2, 1, 1)].concat()).unwrap();
    answer(&mut other, FrameKind::Bye);
    let record = record.wait();
    let report = json(&record);
    assert_eq!(count(&report["durable"]), (2, 2), "{record:#?}");
    assert!(report["incidents"].to_string().contains("ended after its time limit"), "{report:#}");
    assert!(record.stderr.contains("the recording waits for stream s1"), "{record:#?}");
}

#[test]
fn expected_clients_end_the_recording_and_no_others() {
    let directory = directory();
    let mut record = recorder(directory.path(), &["disk"], &["--expect", "s1", "--expect", "s2"]);
    let to = record.address();
    let whole = |id: u32| {
        let mut client = connect(to);
        client.write_all(&[hello(&[id]), event(id, 0, b"a"), end(id, 1, 1)].concat()).unwrap();
        answer(&mut client, FrameKind::Bye);
    };
    // One that is not expected is lost, and not awaited.
    let mut other = connect(to);
    other.write_all(&[hello(&[3]), event(3, 0, b"a")].concat()).unwrap();
    acked(&mut other, 1);
    drop(other);
    for id in [4, 1, 2] {
        whole(id);
    }
    let record = record.wait();
    assert_eq!(count(&json(&record)["durable"]), (4, 4), "{record:#?}");
}

/// Without free descriptors, silent connections give way; clients wait in the kernel's queue for a free one.
#[test]
fn without_free_descriptors_the_recorder_serves_existing_clients() {
    let directory = directory();
    let here = directory.path();
    let limited = format!(
        "ulimit -n 40; exec {} record --listen 127.0.0.1:0 --volume . --name run --json --stay --pool 64MiB",
        env!("CARGO_BIN_EXE_keepup")
    );
    let mut record = Program::start("sh", &["-c", &limited], here);
    let to = record.address();
    let mut first = connect(to);
    first.write_all(&[hello(&[1]), event(1, 0, b"a")].concat()).unwrap();
    acked(&mut first, 1);
    let silent: Vec<TcpStream> = (0..60).map(|_| connect(to)).collect();
    let mut second = connect(to);
    second.write_all(&[hello(&[2]), event(2, 0, b"c")].concat()).unwrap();
    acked(&mut second, 1);
    drop(silent);
    let waiting: Vec<TcpStream> = (100..160)
        .map(|id| {
            let mut client = connect(to);
            client.write_all(&hello(&[id])).unwrap();
            client
        })
        .collect();
    first.write_all(&event(1, 1, b"b")).unwrap();
    acked(&mut first, 2);
    drop(waiting);
    let mut last = connect(to);
    last.write_all(&[hello(&[3]), event(3, 0, b"d")].concat()).unwrap();
    acked(&mut last, 1);
    record.signal("TERM");
    let report = json(&record.wait());
    assert_eq!(count(&report["durable"]), (4, 4));
    let incidents = report["incidents"].to_string();
    assert!(incidents.contains("closed before its hello, no free descriptor"), "{incidents}");
}

/// The first connection states how many streams will follow on the others.
#[test]
fn streams_of_all_connections_are_refused_with_the_first() {
    let directory = directory();
    let here = directory.path();
    for intakes in ["1", "2"] {
        let send = |to: &SocketAddr, streams: &str| {
            let to = to.to_string();
            let profile = ["--streams", streams, "--connections", "4", "--events", "1000", "--rate", "max"];
            keepup(here, &[&["source", "csl", "--to", &to][..], &profile].concat())
        };
        let start = |volume: &str, pool: &str| {
            recorder(here, &[volume], &["--pool", pool, "--intake-threads", intakes, "--stay"])
        };
        let mut record = start(&format!("small-{intakes}"), "16 MiB");
        let refused = send(&record.address(), "129");
        assert_ne!(refused.code(), 0, "{refused:#?}");
        assert!(refused.stderr.contains("cannot open connection 0"), "{refused:#?}");
        assert!(refused.stderr.contains("need a pool of"), "{refused:#?}");
        let hint = refused.stderr.split("--pool ").nth(1).unwrap().split_whitespace().next().unwrap();
        record.signal("TERM");
        record.wait();
        let mut record = start(&format!("large-{intakes}"), hint);
        let sent = send(&record.address(), "129");
        assert_eq!(sent.code(), 0, "{hint}: {sent:#?}");
        record.signal("TERM");
        assert_eq!(count(&json(&record.wait())["durable"]).0, 1000);
    }
}
