//! Repeated kills of the recorder at random moments: after recovery all acknowledged events exist, byte
//! for byte, and no event exists that was not sent.
use std::collections::BTreeMap;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use keepup_recording::reader::{Recording, SegmentReader};
use keepup_stream::client::Client;
use keepup_stream::wire::{Compression, Continued, ElementType, FrameKind, Header, Hello, StreamInfo, crc32};

use crate::common::{TestDirectory, directory, json, keepup, start};

/// Number of streams of a recording, in turns, and the pool.
const STREAMS: [(u32, &str); 2] = [(5, "16 MiB"), (508, "96 MiB")];
const VOLUMES: [&str; 3] = ["a", "b", "c"];
/// Default number of kills; see `KEEPUP_KILLS`.
const KILLS: u64 = 12;
const WORKERS: u64 = 4;

/// First sequence number of a stream: two are continued from other recorders.
fn start_of(stream: u32) -> u64 {
    match stream {
        3 => 1000,
        4 => 1 << 40,
        _ => 0,
    }
}

/// Progress of a source per stream: one past the last event started, and one past the last acknowledged.
type Progress = Vec<(u64, u64)>;

fn info(id: u32) -> StreamInfo {
    // One stream of arrays, one marked as compressed, and the others with events of any size.
    let (shape, compression) = match id {
        0 => (vec![16, 32], None),
        1 => (vec![64, 64], Some(Compression::BitshuffleLz4)),
        _ => (vec![], None),
    };
    StreamInfo { id, name: format!("s{id}"), element: ElementType::U16, shape, compression }
}

/// Payload of event `sequence` of a stream.
fn payload(stream: u32, sequence: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(sequence << 8 | u64::from(stream));
    let length = match stream {
        0 => 16 * 32 * 2,
        1 => random.usize(200..4000),
        2 => random.usize(0..200),
        3 => random.usize(1000..60_000),
        4 => random.usize(30_000..200_000),
        _ => random.usize(500..6000),
    };
    let mut bytes = vec![0; length];
    random.fill(&mut bytes);
    bytes
}

/// Sends to the recorder until it is killed.
fn send(to: SocketAddr, streams: u32, gone: &AtomicBool) -> Progress {
    let starts = (0..streams).map(|id| Continued { id, next_sequence: start_of(id) });
    let continued = starts.filter(|stream| stream.next_sequence > 0).collect();
    let hello = Hello { continued, ..Hello::new("kills", (0..streams).map(info).collect()) };
    let mut begun: Vec<u64> = (0..streams).map(start_of).collect();
    // Nothing is acknowledged before the recorder's welcome.
    let Ok((mut client, _)) = Client::connect(to, &hello, Duration::from_secs(10)) else {
        return begun.iter().map(|&start| (start, start)).collect();
    };
    let mut random = fastrand::Rng::with_seed(7);
    loop {
        let stream = random.u32(..streams);
        let sequence = begun[stream as usize];
        let payload = payload(stream, sequence);
        begun[stream as usize] += 1;
        let head = Header {
            kind: FrameKind::Event,
            stream,
            sequence,
            timestamp_ns: sequence,
            length: payload.len() as u64,
            crc: crc32(&payload),
            a: 0,
            b: 0,
        };
        let head = head.encode();
        let mut slices = [IoSlice::new(&head), IoSlice::new(&payload)];
        let mut on_blocked = || match gone.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let sent = client.send(&mut &mut slices[..], &mut on_blocked);
        if sent.is_err() || gone.load(Ordering::Relaxed) || client.poll_acks().is_err() {
            // Acknowledgements received before the disconnect are valid.
            drop(client.poll_acks());
            return begun.iter().zip(client.acks()).map(|(begun, ack)| (*begun, ack.durable_next)).collect();
        }
    }
}

/// Records `streams` streams, and kills the recorder after `delay`. Returns the source's progress.
fn record_and_kill(here: &Path, (streams, pool): (u32, &str), delay: Duration) -> Progress {
    let mut arguments = vec!["record", "--listen", "127.0.0.1:0", "--name", "run", "--pool", pool];
    arguments.extend(["--block", "64 KiB", "--segment", "2 MiB"]);
    for volume in VOLUMES {
        std::fs::create_dir_all(here.join(volume)).unwrap();
        arguments.extend(["--volume", volume]);
    }
    let mut record = start(here, &arguments);
    let to = record.address();
    let gone = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let source = scope.spawn(|| send(to, streams, &gone));
        std::thread::sleep(delay);
        record.signal("KILL");
        drop(record.wait());
        gone.store(true, Ordering::Relaxed);
        source.join().unwrap()
    })
}

/// Compares every event of the recording with the one sent. Returns the sequence numbers.
fn read_back(here: &Path, progress: &Progress) -> BTreeMap<u32, Vec<u64>> {
    let recording = Recording::open(&[here.join("a/run")]).unwrap();
    assert!(recording.is_ended());
    let mut found: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for volume in recording.volumes() {
        for segment in volume.segments() {
            let mut reader = SegmentReader::open(volume, segment, 1 << 20).unwrap();
            while let Some(block) = reader.next_block(segment.readable_bytes()).unwrap() {
                let stream = block.header.stream;
                for event in block.events() {
                    assert!(
                        event.sequence < progress[stream as usize].0,
                        "{} was never sent",
                        event.sequence
                    );
                    assert_eq!(event.timestamp_ns, event.sequence);
                    assert!(event.payload == payload(stream, event.sequence), "{stream}/{}", event.sequence);
                    found.entry(stream).or_default().push(event.sequence);
                }
            }
        }
    }
    found.values_mut().for_each(|sequences| sequences.sort_unstable());
    found
}

fn kill_once(place: &TestDirectory, streams: (u32, &str), delay: Duration) -> u64 {
    let here = place.path();
    let progress = record_and_kill(here, streams, delay);
    let recovered = keepup(here, &["recover", "a/run", "--json"]);
    assert_eq!(recovered.code(), 0, "{recovered:#?}");
    let report = json(&recovered);
    let found = read_back(here, &progress);
    for (stream, &(_, acknowledged)) in (0..).zip(&progress) {
        let start = start_of(stream);
        let sequences = found.get(&stream).map(Vec::as_slice).unwrap_or_default();
        let there = sequences.iter().take_while(|&&sequence| sequence < acknowledged).count() as u64;
        assert_eq!(there, acknowledged - start, "stream {stream} after {delay:?}: {report:#}");
        assert!(sequences.windows(2).all(|pair| pair[0] < pair[1]), "each event once");
        let missing = report["streams"][stream.to_string()]["missing"]["cut_off"].as_u64().unwrap_or(0);
        let end = sequences.last().map_or(start, |last| last + 1);
        assert_eq!(sequences.len() as u64 + missing, end - start, "every gap is reported");
    }
    let verify = json(&keepup(here, &["verify", "c/run", "--json"]));
    assert_eq!(verify["fault_count"], 0, "{verify:#}");
    let again = json(&keepup(here, &["recover", "b/run", "--json"]));
    assert_eq!(again["changed"], false, "{again:#}");
    VOLUMES.iter().for_each(|volume| std::fs::remove_dir_all(here.join(volume)).unwrap());
    (0..).zip(&progress).map(|(stream, (_, acknowledged))| acknowledged - start_of(stream)).sum()
}

#[test]
#[ignore = "system"]
fn a_killed_recorder_keeps_acknowledged_events() {
    let kills: u64 = std::env::var("KEEPUP_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(KILLS);
    // Most of the time is spent waiting, so several recorders are killed in parallel.
    let acknowledged = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|worker| scope.spawn(move || kill(worker, kills))).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .fold([0, 0], |sum: [u64; 2], share| [sum[0] + share[0], sum[1] + share[1]])
    });
    for ((streams, _), acknowledged) in STREAMS.iter().zip(acknowledged) {
        assert!(acknowledged > 50 * kills, "{acknowledged} events of {streams} streams in {kills} runs");
    }
}

/// Performs a worker's share of the kills. Returns the number of acknowledged events for each of [`STREAMS`].
fn kill(worker: u64, kills: u64) -> [u64; 2] {
    let place = directory();
    let mut random = fastrand::Rng::new();
    let mut acknowledged = [0, 0];
    for (_, kind) in (worker..kills).step_by(WORKERS as usize).zip([0, 1].into_iter().cycle()) {
        let delay = Duration::from_micros(random.u64(1_000..500_000));
        acknowledged[kind] += kill_once(&place, STREAMS[kind], delay);
    }
    acknowledged
}
