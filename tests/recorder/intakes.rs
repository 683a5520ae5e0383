//! Several intake threads: connections and streams that move between them, and one account of all.
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use keepup_stream::wire::{Ack, ControlMessage, End, EndStream, FrameKind, Hello, Welcome, WelcomeStream};
use keepup_testkit::root::skip;

use crate::common::{count, directory, json, keepup, recorded, recorder, until, verified};
use crate::recorder::raw_client::{acked, answer, connect, event, frame, hello, hello_to_resume, streams};

/// A client that declared streams and was welcomed.
fn welcomed(to: SocketAddr, hello: &[u8]) -> (TcpStream, Vec<WelcomeStream>) {
    let mut client = connect(to);
    client.write_all(hello).unwrap();
    let (_, payload) = answer(&mut client, FrameKind::Welcome);
    (client, Welcome::from_payload(payload.as_bytes()).unwrap().streams)
}

/// The same for a client that the recorder may refuse at first, because it has not noticed yet that others
/// are gone.
fn welcomed_at_last(to: SocketAddr, hello: &[u8]) -> (TcpStream, Vec<WelcomeStream>) {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let mut client = connect(to);
        client.write_all(hello).unwrap();
        let (header, payload) = frame(&mut client).unwrap();
        if header.kind == FrameKind::Welcome {
            return (client, Welcome::from_payload(payload.as_bytes()).unwrap().streams);
        }
        assert!(payload.contains("another connection") && Instant::now() < until, "{payload}");
    }
}

/// Next sequence number and lost events of each stream.
fn places(streams: &[WelcomeStream]) -> Vec<(u32, u64, u64)> {
    streams.iter().map(|s| (s.id, s.next_sequence, s.lost_events)).collect()
}

/// Last frame of a client that sent these events and bytes on each stream up to the sequence number.
fn ended(streams: &[(u32, u64, u64, u64)]) -> Vec<u8> {
    let stream = |&(id, events, bytes, next_sequence): &(u32, u64, u64, u64)| EndStream {
        id,
        events,
        bytes,
        lost_events: 0,
        lost_bytes: 0,
        next_sequence,
    };
    End { streams: streams.iter().map(stream).collect() }.to_frame().unwrap()
}

#[test]
fn every_intake_receives_and_the_account_is_one() {
    let directory = directory();
    let here = directory.path();
    let mut record = recorder(here, &["a", "b"], &["--intake-threads", "4", "--pool", "64 MiB"]);
    let to = record.address().to_string();
    let source = [
        "source",
        "csl",
        "--to",
        &to,
        "--rate",
        "max",
        "--streams",
        "10",
        "--connections",
        "5",
        "--events",
        "2000",
    ];
    let source = keepup(here, &[&source[..], &["--json"]].concat());
    assert_eq!(source.code(), 0, "{source:#?}");
    let run = record.wait();
    assert_eq!(run.code(), 0, "{run:#?}");
    let account = json(&run);
    let names: Vec<&str> =
        account["intakes_cpu"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["ku-intake-0", "ku-intake-1", "ku-intake-2", "ku-intake-3"]);
    let sent = count(&json(&source)["sent"]);
    assert_eq!(sent.0, 2000);
    assert_eq!((count(&account["received"]), count(&account["durable"])), (sent, sent));
    assert_eq!(account["ledger"]["streams"].as_object().unwrap().len(), 10);
    assert_eq!(verified(here, "a/run"), sent);
}

/// Waits until the threads of a process with this name have these CPUs. The address is announced before
/// every thread runs, and a thread takes its name and its CPUs itself.
fn await_cpus(process: u32, name: &str, wanted: &[&str]) {
    until(&format!("{name}: {wanted:?}"), || cpus_of(process, name) == wanted);
}

/// Threads of a process by name, with the CPUs that they may use.
fn cpus_of(process: u32, name: &str) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let mut found = Vec::new();
    for task in tasks.map(|task| task.unwrap().path()) {
        let Ok(text) = std::fs::read_to_string(task.join("status")) else { continue };
        let field =
            |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).unwrap().trim().to_owned();
        if field("Name:").starts_with(name) {
            found.push(format!("{} {}", field("Name:"), field("Cpus_allowed_list:")));
        }
    }
    found.sort();
    found
}

#[test]
fn intakes_and_writers_have_their_cpus() {
    let directory = directory();
    let here = directory.path();
    if std::thread::available_parallelism().unwrap().get() < 2 {
        return skip("intakes_and_writers_have_their_cpus", "the machine has one CPU");
    }
    let more = ["--intake-threads", "2", "--intake-cpus", "0,1", "--writer-cpus", "1", "--stay"];
    let mut record = recorder(here, &["a"], &more);
    record.address();
    await_cpus(record.id(), "ku-intake", &["ku-intake-0 0", "ku-intake-1 1"]);
    await_cpus(record.id(), "ku-writer", &["ku-writer-0 1"]);
    record.signal("TERM");
    record.wait();
    let mut record = recorder(here, &["b"], &["--intake-threads", "3", "--intake-cpus", "0-1", "--stay"]);
    record.address();
    // Fewer CPUs than threads.
    await_cpus(record.id(), "ku-intake", &["ku-intake-0 0-1", "ku-intake-1 0-1", "ku-intake-2 0-1"]);
    record.signal("TERM");
    record.wait();
}

#[test]
fn impossible_numbers_of_intakes_are_refused() {
    let directory = directory();
    let here = directory.path();
    for (flags, wanted) in [
        (&["--intake-threads", "0"][..], "0 intake threads: 1 to 64"),
        (&["--intake-threads", "65"], "65 intake threads: 1 to 64"),
        (&["--intake-threads", "8", "--pool", "16 MiB"], "or fewer --intake-threads"),
        (&["--intake-threads", "2", "--intake-cpus", "4000"], "4000"),
    ] {
        let listen = ["record", "--to-null", "--listen", "127.0.0.1:0"];
        let run = keepup(here, &[&listen, flags].concat());
        assert_ne!(run.code(), 0, "{run:#?}");
        assert!(run.stderr.contains(wanted), "{run:#?}");
    }
}

/// Two clients, each at its own intake, are replaced by one that sends the streams of both, with gaps and a
/// damaged event.
#[test]
fn streams_of_two_intakes_continue_on_one_connection() {
    let directory = directory();
    let here = directory.path();
    let mut record = recorder(here, &["a", "b"], &["--intake-threads", "2", "--stay"]);
    let to = record.address();
    let (mut left, _) = welcomed(to, &hello(&[1, 4]));
    let (mut right, _) = welcomed(to, &hello(&[2]));
    let mut damaged = event(1, 5, b"x");
    *damaged.last_mut().unwrap() ^= 1;
    let frames = [event(1, 0, b"one"), event(4, 0, b"4"), event(1, 3, b"four"), damaged];
    left.write_all(&frames.concat()).unwrap();
    right.write_all(&[event(2, 0, b"two"), event(2, 1, b"2")].concat()).unwrap();
    assert_eq!(acked(&mut right, 2).durable_next, 2);
    // The damaged event counts once its entry in the journal is on stable storage.
    assert_eq!(acked(&mut left, 6).lost_events, 1);
    drop((left, right));
    let (mut both, streams) = welcomed_at_last(to, &hello(&[2, 1, 3]));
    assert_eq!(places(&streams), [(2, 2, 0), (1, 6, 1), (3, 0, 0)]);
    let frames = [event(1, 6, b"seven"), event(3, 0, b"new"), event(2, 2, b"three")];
    both.write_all(&frames.concat()).unwrap();
    both.write_all(&ended(&[(1, 1, 5, 7), (2, 1, 5, 3), (3, 1, 3, 1)])).unwrap();
    let bye = answer(&mut both, FrameKind::Bye).1;
    assert!(bye.contains(r#""id":1,"received_events":1,"received_bytes":5,"durable_events":1"#), "{bye}");
    let (_again, streams) = welcomed(to, &hello(&[4]));
    assert_eq!(places(&streams), [(4, 1, 0)], "it stayed where it was");
    record.signal("TERM");
    let run = record.wait();
    assert_eq!(run.code(), 1, "events are missing: {run:#?}");
    let account = json(&run);
    let stream = &account["ledger"]["streams"]["1"];
    assert_eq!(count(&stream["received"]), (3, 12));
    assert_eq!(stream["gap_events"].to_string(), r#"{"bad_checksum":1,"sequence_gap":3}"#.to_owned());
    assert_eq!(count(&account["durable"]), (8, 25));
    let report = json(&keepup(here, &["verify", "b/run", "--json"]));
    assert_eq!(recorded(&report), (8, 25));
    assert_eq!(
        (report["fault_count"].as_u64(), report["streams"]["1"]["lost_events"].as_u64()),
        (Some(0), Some(4))
    );
    let cat = keepup(here, &["cat", "a/run", "--stream", "1"]);
    assert_eq!((cat.code(), cat.stdout.as_str()), (0, "onefourseven"), "{cat:#?}");
}

/// The stream derived from a reduced one moves with it, and keeps its id.
#[test]
fn a_reduced_stream_moves_with_its_reduced_form() {
    let directory = directory();
    let here = directory.path();
    let more = ["--intake-threads", "2", "--stay", "--reduce", "streams=1-2 keep=both: lz4"];
    let mut record = recorder(here, &["a"], &more);
    let to = record.address();
    let images = |ids: &[u32]| {
        let mut streams = streams(ids);
        streams.iter_mut().for_each(|info| info.shape = vec![512]);
        Hello::new("test", streams).to_frame().unwrap()
    };
    for (id, events) in [(1, 3), (2, 2)] {
        let (mut client, _) = welcomed_at_last(to, &images(&[id]));
        (0..events).for_each(|at| client.write_all(&event(id, at, &[id as u8; 512])).unwrap());
        acked(&mut client, events);
    }
    let (mut both, streams) = welcomed_at_last(to, &images(&[2, 1]));
    assert_eq!(places(&streams), [(2, 2, 0), (1, 3, 0)]);
    both.write_all(&[event(1, 3, &[9; 512]), event(2, 2, &[8; 512])].concat()).unwrap();
    both.write_all(&ended(&[(1, 1, 512, 4), (2, 1, 512, 3)])).unwrap();
    answer(&mut both, FrameKind::Bye);
    record.signal("TERM");
    let run = record.wait();
    assert_eq!(run.code(), 0, "{run:#?}");
    let account = json(&run);
    assert_eq!(count(&account["durable"]), (7, 7 * 512));
    for (id, events) in [("1", 4), ("2", 3)] {
        let reduced = &account["ledger"]["streams"][id]["reduced"];
        assert_eq!(count(&reduced["durable"]).0, events, "{reduced}");
    }
    let report = json(&keepup(here, &["verify", "a/run", "--json"]));
    let events: Vec<(&str, u64)> = report["streams"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(id, stream)| (id.as_str(), count(&stream["recorded"]).0))
        .collect();
    assert_eq!(events, [("1", 4), ("2", 3), ("32768", 4), ("32769", 3)]);
}

/// A client that declares streams of two intakes is refused when somebody sends one of them, and neither
/// stream is harmed.
#[test]
fn a_stream_that_another_client_sends_does_not_move() {
    let directory = directory();
    let here = directory.path();
    let mut record = recorder(here, &["a"], &["--intake-threads", "2", "--stay"]);
    let to = record.address();
    let (mut busy, _) = welcomed(to, &hello(&[1]));
    let (mut gone, _) = welcomed(to, &hello(&[2, 5]));
    gone.write_all(&[event(2, 0, b"b"), event(5, 0, b"e")].concat()).unwrap();
    acked(&mut gone, 1);
    drop(gone);
    for ids in [&[2, 5, 1][..], &[1, 2], &[5, 1, 9]] {
        let mut client = connect(to);
        client.write_all(&hello(ids)).unwrap();
        let (_, refused) = answer(&mut client, FrameKind::Error);
        assert!(refused.contains("another connection"), "{ids:?}: {refused}");
        assert!(frame(&mut client).is_none(), "closed");
    }
    busy.write_all(&event(1, 0, b"a")).unwrap();
    acked(&mut busy, 1);
    drop(busy);
    let all = hello_to_resume(&[1, 2, 5, 9], "it");
    let (client, streams) = welcomed_at_last(to, &all);
    assert_eq!(places(&streams), [(1, 1, 0), (2, 1, 0), (5, 1, 0), (9, 0, 0)]);
    drop(client);
    record.signal("TERM");
    let run = record.wait();
    assert_eq!(run.code(), 0, "{run:#?}");
    assert_eq!(count(&json(&run)["durable"]), (3, 3));
    assert_eq!(verified(here, "a/run"), (3, 3));
}

/// Streams that were refused leave nothing behind: they are not tied to the intake that refused them.
#[test]
fn a_refused_client_leaves_no_trace_of_its_streams() {
    let directory = directory();
    let more = ["--intake-threads", "2", "--stay", "--pool", "16 MiB", "--block", "64 KiB"];
    let mut record = recorder(directory.path(), &["a"], &more);
    let to = record.address();
    let many: Vec<u32> = (1..200).collect();
    let mut client = connect(to);
    client.write_all(&hello(&many)).unwrap();
    assert!(answer(&mut client, FrameKind::Error).1.contains("they need a pool of"));
    // One client at each intake, then a refused stream beside those of the second.
    let (_first, _) = welcomed(to, &hello(&[301]));
    let (mut second, _) = welcomed(to, &hello(&[302, 303]));
    second.write_all(&event(302, 0, b"x")).unwrap();
    acked(&mut second, 1);
    drop(second);
    let (_third, streams) = welcomed_at_last(to, &hello(&[302, 303, 7]));
    assert_eq!(places(&streams), [(302, 1, 0), (303, 0, 0), (7, 0, 0)]);
    record.signal("TERM");
    assert_eq!(count(&json(&record.wait())["durable"]), (1, 1));
}

/// A client whose streams do not fit one intake is refused before they move, and can go on with two
/// connections.
#[test]
fn streams_that_do_not_fit_one_intake_stay_where_they_are() {
    let directory = directory();
    let more = ["--intake-threads", "2", "--stay", "--pool", "32 MiB", "--block", "64 KiB"];
    let mut record = recorder(directory.path(), &["a"], &more);
    let to = record.address();
    let (left, right) = ((1..71).collect::<Vec<u32>>(), (71..141).collect::<Vec<u32>>());
    let both = [&left[..], &right].concat();
    for _ in 0..2 {
        let halves = [&left, &right].map(|ids| welcomed_at_last(to, &hello_to_resume(ids, "it")).0);
        let mut client = connect(to);
        client.write_all(&hello_to_resume(&both, "it")).unwrap();
        let (_, refused) = answer(&mut client, FrameKind::Error);
        assert!(refused.contains("140 streams") && refused.contains("for their intake thread"), "{refused}");
        drop(halves);
    }
    record.signal("TERM");
    assert_eq!(record.wait().code(), 0);
}

/// A source that lost its connections without the recorder noticing comes back with another division of its
/// streams.
#[test]
fn a_client_that_resumes_takes_its_streams_from_every_intake() {
    let directory = directory();
    let mut record = recorder(directory.path(), &["a"], &["--intake-threads", "2", "--stay"]);
    let to = record.address();
    let (mut first, _) = welcomed(to, &hello_to_resume(&[1], "it"));
    let (mut second, _) = welcomed(to, &hello_to_resume(&[2], "it"));
    first.write_all(&event(1, 0, b"a")).unwrap();
    second.write_all(&event(2, 0, b"whole")[..50]).unwrap();
    acked(&mut first, 1);
    let (mut both, streams) = welcomed(to, &hello_to_resume(&[1, 2], "it"));
    assert_eq!(places(&streams), [(1, 1, 0), (2, 0, 0)]);
    for old in [&mut first, &mut second] {
        let (_, why) = answer(old, FrameKind::Error);
        assert!(why.contains("replaced by the connection from"), "{why}");
    }
    both.write_all(&[event(2, 0, b"whole"), event(1, 1, b"b")].concat()).unwrap();
    let mut next = [1, 0];
    while next != [2, 1] {
        let ack = Ack::from_header(&answer(&mut both, FrameKind::Ack).0);
        next[ack.stream as usize - 1] = ack.durable_next;
    }
    record.signal("TERM");
    let report = json(&record.wait());
    assert_eq!(count(&report["durable"]), (3, 7));
}

/// Clients come and go with random streams, and the recorder is stopped among them: everything acknowledged
/// is in the recording, and no stream has two owners.
#[test]
#[ignore = "system"]
fn nothing_acknowledged_is_lost_while_streams_move() {
    const STREAMS: u32 = 12;
    let directory = directory();
    let here = directory.path();
    let more = ["--intake-threads", "4", "--stay", "--pool", "64 MiB", "--block", "64 KiB"];
    let mut record = recorder(here, &["a", "b"], &more);
    let to = record.address();
    let (is_over, moves) = (&AtomicBool::new(false), &AtomicUsize::new(0));
    let acknowledged: Vec<Vec<u64>> = std::thread::scope(|scope| {
        let wander = move |seed| wander(to, STREAMS, fastrand::Rng::with_seed(seed), is_over, moves);
        let clients: Vec<_> = (0..6).map(|seed| scope.spawn(move || wander(seed))).collect();
        // At least 6 s, and longer where acknowledgements wait for a busy disk.
        let since = Instant::now();
        let has_moved = || moves.load(Relaxed) > 2 * STREAMS as usize;
        while since.elapsed() < Duration::from_secs(6)
            || !has_moved() && since.elapsed() < Duration::from_secs(120)
        {
            std::thread::sleep(Duration::from_millis(100));
        }
        record.signal("TERM");
        is_over.store(true, Relaxed);
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    let run = record.wait();
    let account = json(&run);
    // An event in whose middle a client left, and which none sent again, is missing.
    let missing = account["missing_events"].as_object().unwrap();
    let cut_off = missing.get("connection_lost").map_or(0, |events| events.as_u64().unwrap());
    assert!(missing.keys().all(|cause| cause == "connection_lost"), "{run:#?}");
    assert!(cut_off <= STREAMS.into(), "{run:#?}");
    assert_eq!(run.code(), i32::from(cut_off > 0), "{run:#?}");
    let mut events = 0;
    for stream in 0..STREAMS {
        let ledger = &account["ledger"]["streams"][stream.to_string()];
        let (received, durable) = (count(&ledger["received"]), count(&ledger["durable"]));
        assert_eq!(received, durable, "stream {stream}");
        let next: Vec<u64> = acknowledged.iter().map(|next| next[stream as usize]).collect();
        let most = next.iter().max().unwrap();
        assert!(durable.0 >= *most, "stream {stream}: {} durable, {next:?} acknowledged", durable.0);
        events += durable.0;
    }
    assert!(
        moves.load(Relaxed) > 2 * STREAMS as usize,
        "the streams stayed with one client: {acknowledged:?}"
    );
    let report = json(&keepup(here, &["verify", "a/run", "--json"]));
    assert_eq!((&report["fault_count"], recorded(&report).0), (&0.into(), events), "{report:#}");
}

/// Connects again and again with random streams, and sends events until the end. Returns the highest
/// acknowledgement of each stream. Counts each stream with acknowledged events in `moves`.
fn wander(
    to: SocketAddr,
    streams: u32,
    mut random: fastrand::Rng,
    is_over: &AtomicBool,
    moves: &AtomicUsize,
) -> Vec<u64> {
    let mut acknowledged = vec![0; streams as usize];
    while !is_over.load(Relaxed) {
        let mut ids: Vec<u32> = (0..streams).collect();
        random.shuffle(&mut ids);
        ids.truncate(random.usize(1..5));
        let Ok(mut client) = TcpStream::connect(to) else { break };
        client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        if client.write_all(&hello(&ids)).is_err() {
            continue;
        }
        let Some((header, payload)) = frame(&mut client) else { continue };
        if header.kind != FrameKind::Welcome {
            assert!(payload.contains("another connection") || payload.contains("stopped"), "{payload}");
            std::thread::sleep(Duration::from_millis(random.u64(1..20)));
            continue;
        }
        let welcome = Welcome::from_payload(payload.as_bytes()).unwrap();
        let mut frames = Vec::new();
        let events = random.u64(0..200);
        for stream in &welcome.streams {
            for at in 0..events {
                let payload = vec![stream.id as u8; random.usize(0..2000)];
                frames.extend(event(stream.id, stream.next_sequence + at, &payload));
            }
        }
        // The recorder may be stopped meanwhile.
        drop(client.write_all(&frames));
        let waits = random.bool() && events > 0;
        while waits && welcome.streams.iter().any(|s| acknowledged[s.id as usize] < s.next_sequence + events)
        {
            let ack = frame(&mut client).filter(|(header, _)| header.kind == FrameKind::Ack);
            let Some((header, _)) = ack else { break };
            let ack = Ack::from_header(&header);
            let next = &mut acknowledged[ack.stream as usize];
            if *next == 0 && ack.durable_next > 0 {
                moves.fetch_add(1, Relaxed);
            }
            *next = ack.durable_next;
        }
    }
    acknowledged
}
