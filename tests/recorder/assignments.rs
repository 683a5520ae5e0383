//! A recorder that is one of several: its streams, the time in which it may accept events, and streams that
//! start where another recorder ended.
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use keepup_measure::clock::SystemClock;
use keepup_recorder::report::{Ended, RecordReport};
use keepup_recorder::{Assignment, Recorder, RecorderConfig, Target};
use keepup_recording::id::Id;
use keepup_recording::reader::Recording;
use keepup_recording::verify::{VerifyOptions, VerifyReport, verify};
use keepup_stream::client::Client;
use keepup_stream::source::{EventSize, Rate, SourceCounters, SourcePlan, run};
use keepup_stream::wire::{
    Ack, Bye, Continued, ControlMessage, End, EndStream, ErrorReply, FrameKind, Hello, Locate, Located,
    LocatedStream, Welcome, WelcomeStream,
};
use keepup_testkit::Program;
use keepup_testkit::root::{SmallDisk, allowed, skip};

use crate::common::{directory, json, keepup, number, recorder, until};
use crate::recorder::raw_client::{acked, answer, connect, event, frame, hello, hello_to_resume, streams};

/// Time limit of silent connections, and of hello where a test waits for it.
const PEER_TIMEOUT: Duration = Duration::from_secs(2);
const HELLO_TIMEOUT: Duration = Duration::from_secs(1);
/// A time limit that no test reaches.
const LONG: Duration = Duration::from_secs(60);

/// An assignment of streams 0 to 9 to this recorder, and of some others to another one.
#[derive(Debug)]
struct TestAssignment {
    is_open: AtomicBool,
    other: SocketAddr,
    /// Where stream 7 is.
    owner: Mutex<Option<SocketAddr>>,
}

impl Assignment for TestAssignment {
    fn is_open(&self, _now_ns: u64) -> bool {
        self.is_open.load(Relaxed)
    }

    fn takes(&self, stream: u32) -> bool {
        stream < 10
    }

    fn epoch(&self) -> u64 {
        7
    }

    fn locate(&self, stream: u32) -> Option<SocketAddr> {
        match stream {
            7 => *self.owner.lock().unwrap(),
            10..20 | 1000.. => Some(self.other),
            _ => None,
        }
    }
}

/// A recorder with its assignment.
struct Member {
    assignment: Arc<TestAssignment>,
    recorder: Recorder,
}

impl Member {
    fn start(volume: &Path, is_open: bool, intake_threads: usize, hello_timeout: Duration) -> Self {
        let target = Target::Volumes(vec![volume.to_path_buf()]);
        let mut config = RecorderConfig::new(([127, 0, 0, 1], 0).into(), target, "run");
        (config.pool_bytes, config.segment_bytes) = (intake_threads * (32 << 20), 16 << 20);
        (config.intake_threads, config.stay) = (intake_threads, true);
        (config.peer_timeout, config.hello_timeout) = (PEER_TIMEOUT, hello_timeout);
        let other = ([127, 0, 0, 9], 7611).into();
        let assignment = Arc::new(TestAssignment { is_open: is_open.into(), other, owner: Mutex::default() });
        config.assignment = Some(Arc::clone(&assignment) as Arc<dyn Assignment>);
        let recorder = Recorder::start(config, Id([7; 16]), Arc::new(SystemClock)).unwrap();
        Self { assignment, recorder }
    }

    fn connect(&self) -> TcpStream {
        connect(self.recorder.address())
    }

    fn set_open(&self, is_open: bool) {
        self.assignment.is_open.store(is_open, Relaxed);
    }

    /// Assigns stream 7.
    fn assign(&self, owner: SocketAddr) {
        *self.assignment.owner.lock().unwrap() = Some(owner);
    }

    /// Stops, and verifies the recording.
    fn stop(self) -> (RecordReport, VerifyReport) {
        let directories = self.recorder.directories();
        self.recorder.stopper().stop();
        let report = self.recorder.join().unwrap();
        assert_eq!(report.ended, Ended::Stopped);
        report.ledger.balance().unwrap();
        let recording = Recording::open(&directories).unwrap();
        let verified = verify(&recording, VerifyOptions { threads: 1 }, &|_| {});
        assert!(verified.is_intact(), "{verified:#?}");
        (report, verified)
    }
}

/// Hello of a client that continues streams at these sequence numbers.
fn continued(places: &[(u32, u64)], resume: Option<&str>) -> Vec<u8> {
    let ids: Vec<u32> = places.iter().map(|&(id, _)| id).collect();
    let continued = places.iter().map(|&(id, next_sequence)| Continued { id, next_sequence }).collect();
    let resume = resume.map(str::to_owned);
    Hello { continued, resume, ..Hello::new("test", streams(&ids)) }.to_frame().unwrap()
}

/// Sends hello and returns what the welcome says of each stream.
fn welcomed(client: &mut TcpStream, hello: &[u8]) -> Vec<WelcomeStream> {
    client.write_all(hello).unwrap();
    let (_, payload) = answer(client, FrameKind::Welcome);
    Welcome::from_payload(payload.as_bytes()).unwrap().streams
}

fn refused(client: &mut TcpStream) -> ErrorReply {
    ErrorReply::from_payload(answer(client, FrameKind::Error).1.as_bytes()).unwrap()
}

fn question(ids: &[u32]) -> Vec<u8> {
    Locate::new("test", ids.to_vec()).to_frame().unwrap()
}

fn located(client: &mut TcpStream) -> Located {
    let (header, payload) = frame(client).unwrap();
    assert_eq!(header.kind, FrameKind::Located, "{payload}");
    Located::from_payload(payload.as_bytes()).unwrap()
}

/// Last frame of a client that sent these events of one stream.
fn end(id: u32, events: u64, next_sequence: u64) -> Vec<u8> {
    let last = EndStream { id, events, bytes: events, lost_events: 0, lost_bytes: 0, next_sequence };
    End { streams: vec![last] }.to_frame().unwrap()
}

#[test]
fn a_client_finds_the_recorder_of_its_streams() {
    let volume = directory();
    let member = Member::start(volume.path(), true, 1, LONG);
    let address = member.assignment.other;
    let timeout = Duration::from_secs(60);
    let answer = Client::locate(member.recorder.address(), &Locate::new("c", vec![12, 30]), timeout).unwrap();
    assert_eq!(answer, Located { epoch: 7, streams: vec![LocatedStream { id: 12, address }] });
    // Questions, then hello, also without waiting for the answers.
    let mut client = member.connect();
    client.write_all(&[question(&[30]), question(&[15, 12]), hello(&[1])].concat()).unwrap();
    assert_eq!(located(&mut client).streams, []);
    assert_eq!(located(&mut client).streams.iter().map(|s| s.id).collect::<Vec<_>>(), [15, 12]);
    assert_eq!(frame(&mut client).unwrap().0.kind, FrameKind::Welcome);
    client.write_all(&event(1, 0, b"a")).unwrap();
    acked(&mut client, 1);
    // No question after hello.
    client.write_all(&question(&[1])).unwrap();
    assert!(refused(&mut client).error.contains("locate"));
    // All streams of a hello are taken, or none.
    let mut client = member.connect();
    client.write_all(&hello(&[2, 12])).unwrap();
    let refusal = refused(&mut client);
    assert!(refusal.error.contains("stream 12: it is assigned to another recorder"), "{refusal:?}");
    assert!(refusal.hint.contains("send locate"), "{refusal:?}");
    let mut client = member.connect();
    assert_eq!(welcomed(&mut client, &hello(&[2]))[0].next_sequence, 0);
    let (report, verified) = member.stop();
    assert_eq!(report.ledger.streams.keys().copied().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(verified.streams[&1].recorded.events, 1);
}

#[test]
fn questions_are_limited() {
    let volume = directory();
    let member = Member::start(volume.path(), true, 1, LONG);
    let mut curious = member.connect();
    for _ in 0..32 {
        curious.write_all(&question(&[12])).unwrap();
        assert_eq!(located(&mut curious).streams.len(), 1);
    }
    curious.write_all(&question(&[12])).unwrap();
    assert!(refused(&mut curious).error.contains("cannot answer locate: too many"));
    // One that reads no answers is refused once the kernel takes no more of them.
    let all: Vec<u32> = (1000..61_000).collect();
    let mut deaf = member.connect();
    deaf.set_write_timeout(Some(LONG)).unwrap();
    let mut questions = 0;
    while deaf.write_all(&question(&all)).is_ok() {
        questions += 1;
        assert!(questions < 1000, "it is never refused");
    }
    let mut other = member.connect();
    assert_eq!(welcomed(&mut other, &hello(&[1])).len(), 1, "others are served");
    drop(deaf);
    let (report, _) = member.stop();
    let incidents = &report.incidents.listed;
    let refused = incidents.iter().filter(|what| what.contains("cannot answer locate: too many")).count();
    assert_eq!((refused, incidents.len()), (2, 2), "{incidents:#?}");
}

#[test]
fn questions_do_not_extend_the_time_for_hello() {
    let volume = directory();
    let member = Member::start(volume.path(), true, 1, HELLO_TIMEOUT);
    let mut slow = member.connect();
    let refusal = loop {
        std::thread::sleep(HELLO_TIMEOUT / 4);
        // The connection may be closed already.
        let _ = slow.write_all(&question(&[12]));
        match frame(&mut slow).expect("a reason before it is closed") {
            (header, _) if header.kind == FrameKind::Located => {}
            (_, payload) => break payload,
        }
    };
    assert!(refusal.contains("no hello within the time limit"), "{refusal}");
    member.stop();
}

#[test]
fn a_recorder_without_an_assignment_refuses_questions() {
    let directory = directory();
    let mut record = recorder(directory.path(), &["disk"], &["--stay"]);
    let mut client = connect(record.address());
    client.write_all(&question(&[1])).unwrap();
    let refusal = refused(&mut client);
    assert!(refusal.error.contains("not part of a fleet") && refusal.hint.contains("hello"), "{refusal:?}");
    record.signal("TERM");
    record.wait();
}

/// Whether nothing arrives on a connection for a while.
fn is_quiet(client: &mut TcpStream, time: Duration) -> bool {
    client.set_read_timeout(Some(time)).unwrap();
    let outcome = client.read(&mut [0]);
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    outcome.is_err_and(|why| why.kind() == ErrorKind::WouldBlock)
}

#[test]
fn nothing_is_read_before_the_gate_opens() {
    let volume = directory();
    let member = Member::start(volume.path(), false, 1, HELLO_TIMEOUT);
    let mut client = member.connect();
    client.write_all(&[hello(&[1]), event(1, 0, b"a")].concat()).unwrap();
    let mut curious = member.connect();
    curious.write_all(&question(&[12])).unwrap();
    let mut mute = member.connect();
    // Longer than the time limit for hello.
    assert!(is_quiet(&mut client, HELLO_TIMEOUT * 3 / 2));
    assert!(is_quiet(&mut curious, Duration::from_millis(1)));
    assert!(is_quiet(&mut mute, Duration::from_millis(1)));
    let counters = member.recorder.counters();
    assert_eq!((counters.received_bytes(), counters.connections()), (0, 3));
    member.set_open(true);
    answer(&mut client, FrameKind::Welcome);
    acked(&mut client, 1);
    assert_eq!(located(&mut curious).streams.len(), 1);
    assert!(refused(&mut mute).error.contains("no hello within the time limit"), "from now on");
    let (_, verified) = member.stop();
    assert_eq!(verified.streams[&1].recorded.events, 1);
}

#[test]
fn a_closed_gate_holds_events_back_and_closes_no_connection() {
    std::thread::scope(|scope| {
        scope.spawn(|| close_and_open(1));
        scope.spawn(|| close_and_open(3));
    });
}

/// Streams 0 and 1 are under load, 2 is in the middle of an event, and 3 is silent.
fn close_and_open(intakes: usize) {
    let volume = directory();
    let member = Member::start(volume.path(), true, intakes, LONG);
    let to = member.recorder.address();
    let load = SourcePlan {
        streams: 2,
        connections: 2,
        events: Some(4000),
        ..SourcePlan::new(EventSize::Fixed(4000), Rate::EventsPerSecond(1000.0))
    };
    let source = std::thread::spawn(move || {
        run(&load, to, &AtomicBool::new(false), &SourceCounters::default()).unwrap()
    });
    let mut half = member.connect();
    welcomed(&mut half, &hello(&[2]));
    let whole = event(2, 0, &[5; 100_000]);
    half.write_all(&whole[..50_000]).unwrap();
    let counters = member.recorder.counters();
    until("the source sends", || counters.received_events() > 100);
    let mut silent = member.connect();
    welcomed(&mut silent, &hello(&[3]));
    silent.write_all(&[event(3, 0, b"a"), event(3, 1, b"b")].concat()).unwrap();
    let before = counters.received_events();
    // Several ticks later, those of the silent stream have arrived too.
    until("the events arrive", || counters.received_events() > before + 300);
    member.set_open(false);
    let mut held = 0;
    while std::mem::replace(&mut held, counters.received_bytes()) != held {
        std::thread::sleep(Duration::from_millis(300));
    }
    assert_eq!(acked(&mut silent, 2).durable_next, 2, "what was received before is acknowledged");
    half.write_all(&whole[50_000..60_000]).unwrap();
    let mut next = member.connect();
    next.write_all(&hello(&[3])).unwrap();
    let idle = |at: usize| counters.intakes[at].idle_ns.load(Relaxed);
    let idle_before: Vec<u64> = (0..intakes).map(idle).collect();
    let begin = Instant::now();
    assert!(is_quiet(&mut next, PEER_TIMEOUT * 5 / 4));
    let waited_ns = begin.elapsed().as_nanos() as u64;
    for (at, before) in idle_before.into_iter().enumerate() {
        assert!(idle(at) - before > waited_ns / 2, "intake {at} is busy behind a closed gate");
    }
    assert_eq!((counters.received_bytes(), counters.connections()), (held, 5));
    member.set_open(true);
    // The time in which nothing was read does not make a connection silent.
    assert!(refused(&mut next).error.contains("another connection sends it"));
    half.write_all(&whole[60_000..]).unwrap();
    acked(&mut half, 1);
    silent.write_all(&event(3, 2, b"c")).unwrap();
    acked(&mut silent, 3);
    let sent = source.join().unwrap();
    let (report, verified) = member.stop();
    // The refusal.
    assert_eq!(report.incidents.total, 1, "{:#?}", report.incidents);
    for stream in &sent.streams {
        assert!(stream.sent.events > 0);
        assert_eq!(verified.streams[&stream.id].recorded, stream.sent);
    }
    assert_eq!([2, 3].map(|id| verified.streams[&id].recorded.events), [1, 3]);
    assert_eq!(verified.lost_events(), 0);
}

#[test]
fn a_recorder_stops_behind_a_closed_gate() {
    let volume = directory();
    let member = Member::start(volume.path(), true, 2, LONG);
    let mut client = member.connect();
    client.write_all(&[hello(&[1]), event(1, 0, b"a")].concat()).unwrap();
    acked(&mut client, 1);
    client.write_all(&event(1, 1, b"b")).unwrap();
    let counters = member.recorder.counters();
    until("the event arrives", || counters.received_events() == 2);
    member.set_open(false);
    std::thread::sleep(Duration::from_millis(100));
    client.write_all(&event(1, 2, b"c")).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let (report, verified) = member.stop();
    let counts = &report.ledger.streams[&1];
    assert_eq!((counts.received.events, counts.durable.events), (2, 2));
    assert_eq!(verified.streams[&1].recorded.events, 2);
}

#[test]
fn a_stream_starts_where_another_recorder_ended() {
    for intakes in [1, 3] {
        let volume = directory();
        let member = Member::start(volume.path(), true, intakes, LONG);
        let place = |stream: &WelcomeStream| (stream.next_sequence, stream.durable_next, stream.lost_events);
        let mut first = member.connect();
        assert_eq!(
            welcomed(&mut first, &continued(&[(1, 1000)], Some("a"))).iter().map(place).next().unwrap(),
            (1000, 1000, 0)
        );
        first.write_all(&[event(1, 1000, b"a"), event(1, 1003, b"b")].concat()).unwrap();
        assert_eq!(acked(&mut first, 1004).lost_events, 0);
        let mut second = member.connect();
        welcomed(&mut second, &continued(&[(2, 1 << 40)], Some("a")));
        second.write_all(&event(2, 1 << 40, b"x")).unwrap();
        acked(&mut second, (1 << 40) + 1);
        // Both on one connection; what this recorder knows already is ignored.
        let mut both = member.connect();
        let hello = continued(&[(2, (1 << 40) + 1), (1, 990), (3, 5)], Some("a"));
        let streams = welcomed(&mut both, &hello);
        let places: BTreeMap<u32, _> = streams.iter().map(|stream| (stream.id, place(stream))).collect();
        let next = (1 << 40) + 1;
        assert_eq!(places, [(1, (1004, 1004, 0)), (2, (next, next, 0)), (3, (5, 5, 0))].into());
        assert!(refused(&mut first).error.contains("replaced"));
        both.write_all(&event(1, 1003, b"b")).unwrap();
        assert!(refused(&mut both).error.contains("goes backwards"));
        // An acknowledgement of an event that is due here.
        let mut ahead = member.connect();
        ahead.write_all(&continued(&[(1, 1005)], Some("a"))).unwrap();
        let refusal = refused(&mut ahead);
        assert!(refusal.error.contains("stream 1 at event 1005: event 1004 is due"), "{refusal:?}");
        let mut last = member.connect();
        welcomed(&mut last, &hello_to_resume(&[1], "a"));
        last.write_all(&[event(1, 1005, b"c"), end(1, 1, 1007)].concat()).unwrap();
        let bye = Bye::from_payload(answer(&mut last, FrameKind::Bye).1.as_bytes()).unwrap().streams[0];
        assert_eq!((bye.received_events, bye.durable_events, bye.lost_events), (1, 1, 2));
        let (report, verified) = member.stop();
        let counts = &report.ledger.streams[&1];
        assert_eq!((counts.durable.events, counts.gap_events.values().sum::<u64>()), (3, 4));
        let found = |id: u32| (verified.streams[&id].recorded.events, verified.streams[&id].lost_events);
        assert_eq!([1, 2, 3].map(found), [(3, 4), (1, 0), (0, 0)]);
    }
}

/// Its journal says that no event is missing at the end of the stream.
#[test]
fn a_recording_that_continues_a_stream_is_kept_without_an_event() {
    for (place, is_kept) in [(100, true), (0, false)] {
        let volume = directory();
        let member = Member::start(volume.path(), true, 1, LONG);
        let mut client = member.connect();
        let hello = if is_kept { continued(&[(1, place)], None) } else { hello(&[1]) };
        welcomed(&mut client, &hello);
        client.write_all(&end(1, 0, place)).unwrap();
        answer(&mut client, FrameKind::Bye);
        let made = member.recorder.directories();
        member.recorder.stopper().stop();
        let report = member.recorder.join_unless_empty().unwrap();
        assert_eq!((report.removed, made[0].exists()), (!is_kept, is_kept));
    }
}

/// Whether everything before `next` is acknowledged; otherwise the connection has ended. Nothing may be
/// acknowledged as lost.
fn is_durable(client: &mut TcpStream, next: u64) -> bool {
    while let Some((header, _)) = frame(client).filter(|(header, _)| header.kind != FrameKind::Error) {
        if header.kind == FrameKind::Ack {
            let ack = Ack::from_header(&header);
            assert_eq!(ack.lost_events, 0, "{ack:?}");
            if ack.durable_next >= next {
                return true;
            }
        }
    }
    false
}

/// The client must send it to the next recorder.
#[test]
#[ignore = "system"]
fn what_is_lost_with_the_last_volume_is_not_acknowledged() {
    if !allowed("recfull") {
        return;
    }
    for intakes in [1, 3] {
        let place = directory();
        let disk = SmallDisk::mount(&place.path().join(format!("volume-recfull-{intakes}")), 40).unwrap();
        let member = Member::start(disk.path(), true, intakes, LONG);
        let mut clients: Vec<TcpStream> = (0..3).map(|_| member.connect()).collect();
        for (id, client) in (1..).zip(&mut clients) {
            welcomed(client, &hello(&[id]));
        }
        let payload = vec![7; 2 << 20];
        let mut next = [0; 3];
        'full: loop {
            for (id, client) in (0..3).zip(&mut clients) {
                // Alone in its block, which is sealed for its age.
                let sent = client.write_all(&event(id as u32 + 1, next[id], &payload));
                if sent.is_err() || !is_durable(client, next[id] + 1) {
                    break 'full;
                }
                next[id] += 1;
            }
        }
        for (client, next) in clients.iter_mut().zip(next) {
            assert!(!is_durable(client, next + 2));
        }
        member.recorder.stopper().stop();
        let report = member.recorder.join().unwrap();
        assert!(matches!(report.ended, Ended::VolumesFailed(_)) && next[0] >= 4, "{next:?} {report:#?}");
    }
}

/// Events of a stream and those missing, in the summary of a recording.
fn summary(here: &Path, recording: &str, id: &str) -> (u64, u64, usize) {
    let info = json(&keepup(here, &["info", recording, "--json"]));
    let stream = &info["streams"][id];
    let missing = stream["missing"].as_object().unwrap().len();
    (number(stream, "first_sequence"), number(stream, "events"), missing)
}

#[test]
fn a_killed_recorder_of_a_continued_stream_is_recovered_and_drained() {
    let directory = directory();
    let here = directory.path();
    let mut record = recorder(here, &["disk"], &["--stay"]);
    let mut client = connect(record.address());
    let mut sent = continued(&[(7, 500), (8, 300)], None);
    (500..600).for_each(|sequence| sent.extend(event(7, sequence, b"payload")));
    client.write_all(&sent).unwrap();
    acked(&mut client, 600);
    record.signal("KILL");
    record.wait();
    let recovered = json(&keepup(here, &["recover", "disk/run", "--json"]));
    assert_eq!(recovered["complete"], true, "{recovered:#}");
    assert_eq!(recovered["streams"]["7"]["missing"].as_object().unwrap().len(), 0, "{recovered:#}");
    let verified = |recording| json(&keepup(here, &["verify", recording, "--json"]));
    let original = verified("disk/run");
    assert_eq!((&original["fault_count"], number(&original["streams"]["7"], "lost_events")), (&0.into(), 0));
    assert_eq!(summary(here, "disk/run", "7"), (500, 100, 0));
    // A copy starts at the same events.
    let mut sink = recorder(here, &["tape"], &[]);
    let to = format!("tcp://{}", sink.address());
    let drained = keepup(here, &["drain", "disk/run", "--to", &to, "--json"]);
    assert_eq!(drained.code(), 0, "{drained:#?}");
    let report = json(&drained);
    assert_eq!(number(&report["durable"], "events"), 100, "{report:#}");
    assert_eq!(report["missing"].as_array().map(Vec::len), Some(0), "{report:#}");
    let account = json(&sink.wait());
    assert_eq!(account["missing_events"].as_object().unwrap().len(), 0, "{account:#}");
    let copy = verified("tape/run");
    assert_eq!(copy["fault_count"], 0, "{copy:#}");
    assert_eq!(copy["streams"]["8"]["recorded"], original["streams"]["8"]["recorded"]);
    assert_eq!(summary(here, "tape/run", "7"), (500, 100, 0));
}

/// Runs the third client of `docs/wire-protocol.md`, which continues at another recorder.
#[test]
#[ignore = "system"]
fn the_documented_client_of_a_fleet_changes_its_recorder() {
    const NAME: &str = "the_documented_client_of_a_fleet_changes_its_recorder";
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        return skip(NAME, "no python3");
    }
    let page = include_str!("../../docs/wire-protocol.md");
    let block = |n: usize| page.split("```python\n").nth(n).unwrap().split_once("```").unwrap().0;
    // The resuming client with another `connect`, and more events.
    let (head, rest) = block(2).split_once("def connect():").unwrap();
    let (_, tail) = rest.split_once("def take_ack").unwrap();
    let client = [head, block(3), "\ndef take_ack", tail].concat().replace("1000", "10000");
    let volumes = [directory(), directory()];
    let [old, new] = volumes.each_ref().map(|volume| Member::start(volume.path(), true, 1, LONG));
    let [from, to] = [&old, &new].map(|member| member.recorder.address());
    old.assign(from);
    new.assign(from);
    let recorders = format!("{from},{to}");
    let client = Program::start("python3", &["-c", &client, &recorders], volumes[0].path());
    let counters = old.recorder.counters();
    until("events arrive", || counters.received_events() > 500);
    old.set_open(false);
    let durable = || counters.volumes[0].durable_payload_bytes.load(Relaxed);
    until("they are durable", || durable() == counters.received_bytes());
    // Their acknowledgements arrive.
    std::thread::sleep(Duration::from_millis(500));
    old.assign(to);
    new.assign(to);
    let directory = new.recorder.directories();
    let (_, before) = old.stop();
    let client = client.wait();
    assert_eq!(client.code(), 0, "{client:#?}");
    assert!(client.stdout.contains("'lost_events': 0"), "{client:#?}");
    let (_, after) = new.stop();
    let start = Recording::open(&directory).unwrap().starts()[&7];
    assert!((500..=before.streams[&7].recorded.events).contains(&start), "{start}: {before:#?}");
    assert_eq!(start + after.streams[&7].recorded.events, 10_000);
    assert_eq!((before.lost_events(), after.lost_events()), (0, 0));
}
