//! Reduction within the pipeline: real sockets, real files, raw and reduced streams side by side.
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use keepup_measure::clock::SystemClock;
use keepup_plan::Element;
use keepup_plan::reduction::{Reduction, Samples};
use keepup_recorder::reduce::Chain;
use keepup_recorder::report::{Ended, RecordReport};
use keepup_recorder::{Recorder, RecorderConfig, Target};
use keepup_recording::access::{From, StreamReader};
use keepup_recording::id::Id;
use keepup_recording::reader::Recording;
use keepup_recording::verify::{VerifyOptions, verify};
use keepup_stream::ledger::Count;
use keepup_stream::source::{EventSize, Rate, SourceCounters, SourcePlan, SourceReport, run};
use keepup_stream::wire::{
    Compression, ControlMessage, ElementType, End, EndStream, FrameKind, HEADER_BYTES, Header, Hello,
    StreamInfo, crc32,
};

const SHAPE: [u64; 2] = [3, 128];
const EVENT_BYTES: u64 = 3 * 128 * 2;

fn plan(streams: u32, events: u64) -> SourcePlan {
    SourcePlan {
        streams,
        connections: 2,
        events: Some(events),
        element: ElementType::I16,
        shape: SHAPE.to_vec(),
        ..SourcePlan::new(EventSize::Fixed(EVENT_BYTES), Rate::Max)
    }
}

fn config(volume: &Path, reductions: &[&str]) -> RecorderConfig {
    let target = Target::Volumes(vec![volume.to_path_buf()]);
    let mut config = RecorderConfig::new(([127, 0, 0, 1], 0).into(), target, "run");
    config.pool_bytes = 32 << 20;
    config.segment_bytes = 16 << 20;
    config.reductions = reductions.iter().map(|text| text.parse().unwrap()).collect();
    config
}

fn record(config: RecorderConfig, plan: &SourcePlan) -> (SourceReport, RecordReport, PathBuf) {
    let recorder = Recorder::start(config, Id([7; 16]), Arc::new(SystemClock)).unwrap();
    let directory = recorder.directories()[0].clone();
    let counters = SourceCounters::default();
    let source = run(plan, recorder.address(), &AtomicBool::new(false), &counters).unwrap();
    (source, recorder.join().unwrap(), directory)
}

type Events = Vec<(u64, u64, Vec<u8>)>;

/// Streams with their events: sequence number, time, payload.
fn read(directory: &Path) -> BTreeMap<u32, (StreamInfo, Events)> {
    let recording = Recording::open(&[directory.to_path_buf()]).unwrap();
    let report = verify(&recording, VerifyOptions { threads: 1 }, &|_| {});
    assert!(report.is_intact(), "{report:#?}");
    let events = |id: u32| {
        let mut reader = StreamReader::open(&recording, id).unwrap().unwrap();
        let mut events = Vec::new();
        let each = &mut |event: keepup_recording::reader::Event<'_>| {
            events.push((event.sequence, event.timestamp_ns, event.payload.to_vec()));
            std::ops::ControlFlow::Continue(())
        };
        reader.read(From::Sequence(0), each).unwrap();
        events
    };
    recording.streams().into_iter().map(|(id, info)| (id, (info.clone(), events(id)))).collect()
}

/// Expected reduction of events.
fn expected(reduction: &str, raw: &Events) -> Events {
    let reduction: Reduction = reduction.parse().unwrap();
    let input = Samples { element: Element::I16, shape: SHAPE.to_vec(), compressed: false };
    let mut chain = Chain::new(&reduction.steps, &input).unwrap();
    let mut output = vec![0; chain.output_bytes_max()];
    let mut reduced = |payload: &[u8]| {
        let bytes = chain.run(payload, &mut output).unwrap();
        output[..bytes].to_vec()
    };
    raw.iter().map(|(sequence, time, payload)| (*sequence, *time, reduced(payload))).collect()
}

fn bytes(events: &Events) -> Count {
    let bytes = events.iter().map(|(_, _, payload)| payload.len() as u64).sum();
    Count { events: events.len() as u64, bytes }
}

#[test]
fn raw_and_reduced_streams_agree() {
    let volume = tempfile::tempdir().unwrap();
    let reductions =
        ["streams=0-1 keep=both: spectrum window=hann", "streams=2 keep=both: threshold at=9000 | lz4"];
    let (source, report, directory) = record(config(volume.path(), &reductions), &plan(4, 3000));
    let streams = read(&directory);
    assert_eq!(streams.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3, 32768, 32769, 32770]);
    // Connections are accepted in any order, and ids follow that order.
    let derived = |id: u32| {
        let name = format!("{}/reduced", streams[&id].0.name);
        streams.values().find(|(info, _)| info.name == name).unwrap()
    };
    for (id, reduction) in [(0, reductions[0]), (1, reductions[0]), (2, reductions[1])] {
        let ((raw, events), (_, reduced)) = (&streams[&id], derived(id));
        assert_eq!((raw.element, &raw.shape[..]), (ElementType::I16, &SHAPE[..]));
        assert!(events.len() > 500 && *reduced == expected(reduction, events), "stream {id}");
    }
    assert_eq!((derived(0).0.element, &derived(0).0.shape[..]), (ElementType::F32, &[3, 65][..]));
    assert_eq!(derived(2).0.compression, Some(Compression::BitshuffleLz4));
    let total = report.ledger.total();
    assert_eq!(source.total(|s| s.sent), total.durable);
    assert_eq!(report.ledger.streams.len(), 4, "derived streams are no source's");
    let kept = report.ledger.streams[&2].reduced.unwrap();
    assert_eq!((kept.durable, kept.raw_kept, kept.lost_events), (bytes(&derived(2).1), true, 0));
    let stored = streams.values().fold(Count::default(), |sum, (_, events)| sum + bytes(events));
    assert_eq!(report.ledger.stored(), stored);
    report.ledger.balance().unwrap();
    assert!(report.is_whole() && report.ended == Ended::EndOfRun && report.reducers_cpu.len() == 1);
}

#[test]
fn reduced_streams_do_not_depend_on_the_number_of_threads() {
    let reduction = "streams=0-6: bin by=3x4 | lz4";
    for threads in [1, 3] {
        let volumes = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let raw = record(config(volumes[0].path(), &[]), &plan(8, 20_000)).2;
        let config = RecorderConfig { reduce_threads: threads, ..config(volumes[1].path(), &[reduction]) };
        let (source, report, directory) = record(config, &plan(8, 20_000));
        assert_eq!(report.reducers_cpu.len(), threads);
        let (raw, reduced) = (read(&raw), read(&directory));
        for (id, (info, events)) in &raw {
            let (made_info, made) = &reduced[id];
            assert_eq!(made_info.name, info.name);
            // Times differ between runs.
            let payloads =
                |events: &Events| -> Vec<_> { events.iter().map(|e| (e.0, e.2.clone())).collect() };
            let account = &report.ledger.streams[id];
            if *id == 7 {
                assert_eq!((made_info, payloads(made), account.reduced), (info, payloads(events), None));
                continue;
            }
            assert_eq!((made_info.element, &made_info.shape[..]), (ElementType::I32, &[1, 32][..]));
            assert_eq!(payloads(made), payloads(&expected(reduction, events)), "stream {id}");
            assert_eq!((account.received, account.durable), (bytes(events), bytes(events)));
            assert_eq!(account.reduced.unwrap().durable, bytes(made));
        }
        assert_eq!(source.total(|s| s.sent), report.ledger.total().durable);
        report.ledger.balance().unwrap();
        assert!(report.is_whole());
    }
}

#[test]
fn a_minimal_pool_is_enough() {
    let volume = tempfile::tempdir().unwrap();
    let reductions = ["streams=0-5 keep=both: spectrum", "streams=6-11: lz4"];
    let config = RecorderConfig {
        pool_bytes: 10 << 20,
        block_bytes: 64 << 10,
        reduce_threads: 2,
        ..config(volume.path(), &reductions)
    };
    let (source, report, directory) = record(config, &plan(12, 60_000));
    assert_eq!(source.total(|s| s.sent), report.ledger.total().durable);
    assert!(report.is_whole());
    assert_eq!(read(&directory).len(), 18);
}

fn info(id: u32, shape: &[u64]) -> StreamInfo {
    let name = format!("s{id}");
    StreamInfo { id, name, element: ElementType::I16, shape: shape.to_vec(), compression: None }
}

/// A connection that has declared `streams`.
fn connected(recorder: &Recorder, streams: &[StreamInfo]) -> TcpStream {
    let mut socket = TcpStream::connect(recorder.address()).unwrap();
    socket.write_all(&Hello::new("test", streams.to_vec()).to_frame().unwrap()).unwrap();
    socket
}

/// FrameKind and payload of the next answer, skipping acknowledgements.
fn answer(socket: &mut TcpStream) -> (FrameKind, String) {
    loop {
        let mut header = [0; HEADER_BYTES];
        socket.read_exact(&mut header).unwrap();
        let header = Header::decode(&header).unwrap();
        let mut payload = vec![0; header.length as usize];
        socket.read_exact(&mut payload).unwrap();
        if header.kind != FrameKind::Ack {
            return (header.kind, String::from_utf8(payload).unwrap());
        }
    }
}

fn event(stream: u32, sequence: u64, payload: &[u8]) -> Vec<u8> {
    let (length, crc) = (payload.len() as u64, crc32(payload));
    let head = Header { kind: FrameKind::Event, stream, sequence, timestamp_ns: 1, length, crc, a: 0, b: 0 };
    [&head.encode()[..], payload].concat()
}

#[test]
fn an_impossible_reduction_is_refused_without_side_effects() {
    let volume = tempfile::tempdir().unwrap();
    let reductions = ["streams=0-9: bin by=5", "streams=10-19 keep=both: lz4"];
    let config = RecorderConfig { stay: true, ..config(volume.path(), &reductions) };
    let recorder = Recorder::start(config, Id([7; 16]), Arc::new(SystemClock)).unwrap();
    let mut good = connected(&recorder, &[info(10, &[8]), info(20, &[])]);
    assert_eq!(answer(&mut good).0, FrameKind::Welcome);
    for (declared, why) in [
        (info(0, &[128]), "cannot reduce stream 0 by"),
        (info(0, &[128]), "5 does not divide 128"),
        (info(1, &[]), "known shape"),
        (StreamInfo { compression: Some(Compression::Lz4), ..info(11, &[8]) }, "compressed"),
        (StreamInfo { name: "n".repeat(250), ..info(12, &[8]) }, "too long to append"),
        (info(13, &[30 << 20]), "can be recorded"),
        (info(32_768, &[8]), "makes \\\"s10/reduced\\\" with that id itself"),
    ] {
        let (kind, answer_text) = answer(&mut connected(&recorder, &[declared]));
        assert!(kind == FrameKind::Error && answer_text.contains(why), "{answer_text}");
    }
    let mut long = connected(&recorder, &[info(14, &[8])]);
    assert_eq!(answer(&mut long).0, FrameKind::Welcome);
    long.write_all(&[event(14, 0, &[1; 16]), event(14, 1, &[1; 18])].concat()).unwrap();
    let (kind, answer_text) = answer(&mut long);
    let why = "event 1 of stream 14: it has 18 bytes, its shape says 16";
    assert!(kind == FrameKind::Error && answer_text.contains(why), "{answer_text}");
    good.write_all(&[event(10, 0, &[2; 16]), event(20, 0, &[3; 5])].concat()).unwrap();
    let end = EndStream { events: 1, lost_events: 0, lost_bytes: 0, next_sequence: 1, id: 10, bytes: 16 };
    let end = End { streams: vec![end, EndStream { id: 20, bytes: 5, ..end }] };
    good.write_all(&end.to_frame().unwrap()).unwrap();
    assert_eq!(answer(&mut good).0, FrameKind::Bye);
    let directory = recorder.directories()[0].clone();
    recorder.stopper().stop();
    let report = recorder.join().unwrap();
    assert!(report.ledger.is_whole() && report.trouble.is_empty(), "{report:?}");
    // The event that contradicts its stream arrived and is not recorded.
    assert!(report.rejected.len() == 1 && !report.is_whole(), "{report:?}");
    let streams = read(&directory);
    assert_eq!(streams[&14].1, [(0, 1, vec![1; 16])]);
    assert_eq!(streams[&10].1, [(0, 1, vec![2; 16])]);
    assert_eq!(streams[&20].1, [(0, 1, vec![3; 5])]);
    let made: Vec<_> = streams.values().filter(|(info, _)| info.name.ends_with("/reduced")).collect();
    assert!(made.len() == 2 && made.iter().all(|(_, events)| events.len() == 1));
}

#[test]
fn old_events_are_reduced_while_the_next_event_arrives() {
    let volume = tempfile::tempdir().unwrap();
    let config =
        RecorderConfig { seal_after: Duration::from_millis(30), ..config(volume.path(), &["bin by=4"]) };
    let recorder = Recorder::start(config, Id([7; 16]), Arc::new(SystemClock)).unwrap();
    let mut socket = connected(&recorder, &[info(0, &[50_000])]);
    let (first, second) = ([1; 100_000], [2; 100_000]);
    socket.write_all(&[&event(0, 0, &first)[..], &event(0, 1, &second)[..60_000]].concat()).unwrap();
    assert_eq!(answer(&mut socket).0, FrameKind::Welcome);
    let deadline = Instant::now() + Duration::from_secs(20);
    while recorder.counters().durable_events() == 0 {
        assert!(Instant::now() < deadline, "the first event does not become durable");
        std::thread::sleep(Duration::from_millis(5));
    }
    socket.write_all(&event(0, 1, &second)[60_000..]).unwrap();
    let end = EndStream { id: 0, events: 2, bytes: 200_000, lost_events: 0, lost_bytes: 0, next_sequence: 2 };
    socket.write_all(&End { streams: vec![end] }.to_frame().unwrap()).unwrap();
    assert_eq!(answer(&mut socket).0, FrameKind::Bye);
    let directory = recorder.directories()[0].clone();
    drop(socket);
    recorder.join().unwrap();
    let (_, events) = &read(&directory)[&0];
    let sums = |sample: i32| (0..12_500).flat_map(|_| (4 * sample).to_le_bytes()).collect::<Vec<u8>>();
    assert_eq!(*events, [(0, 1, sums(0x0101)), (1, 1, sums(0x0202))]);
}
