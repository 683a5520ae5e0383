//! The account of losses and rejected data is the same in a recording, in its drained copy, in its archive,
//! in its export, and after a kill and recovery, whatever clients skip, declare, damage or lose.
#![expect(clippy::unwrap_used, reason = "a helper of a test may fail the test")]
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use keepup_archive::archive::{ArchivePlan, archive};
use keepup_archive::restore::{RestorePlan, restore};
use keepup_archive::{ArchiveCounters, Location, PART_BYTES};
use keepup_measure::clock::SystemClock;
use keepup_recorder::drain::{DrainCounters, DrainPlan, drain};
use keepup_recorder::report::RecordReport;
use keepup_recorder::{Recorder, RecorderConfig, Target};
use keepup_recording::access::{From, StreamReader};
use keepup_recording::export::one_file;
use keepup_recording::id::Id;
use keepup_recording::journal::{JOURNAL_FILE, Journal, JournalRecord};
use keepup_recording::layout::SECTOR;
use keepup_recording::reader::Recording;
use keepup_recording::recover::{RecoverOptions, recover};
use keepup_recording::verify::{VerifyOptions, VerifyReport, verify};
use keepup_stream::ledger::{Gap, LossCause};
use keepup_stream::wire::{
    Ack, ControlMessage, End, EndStream, FrameKind, HEADER_BYTES, Header, Missing, Welcome, crc32,
};
use proptest::prelude::*;

#[path = "../../recorder/tests/support/frames.rs"]
mod frames;

const STREAMS: u32 = 3;
const PAYLOAD: [u8; 700] = [7; 700];

/// What a client does next.
#[derive(Clone, Debug)]
enum Action {
    Send(u64),
    Skip(u64),
    Declare(u64, LossCause),
    Damage,
    /// The connection breaks, and so many events are lost with it.
    Reconnect(u64),
    /// All received events become durable before the next action.
    Settle,
}

/// One client with one stream.
struct Client {
    to: SocketAddr,
    stream: u32,
    socket: TcpStream,
    next: u64,
    first: u64,
    sent: u64,
    /// One past the last number that the recorder can know of, on this connection.
    shown: u64,
    acked: u64,
}

fn frame(socket: &mut TcpStream) -> (Header, Vec<u8>) {
    frames::read(socket).unwrap()
}

impl Client {
    fn new(to: SocketAddr, stream: u32) -> Self {
        let (socket, next) = Self::connect(to, stream);
        Self { to, stream, socket, next, first: next, sent: 0, shown: 0, acked: 0 }
    }

    /// Connects, as soon as the recorder has noticed the end of an earlier connection.
    fn connect(to: SocketAddr, stream: u32) -> (TcpStream, u64) {
        let hello = frames::hello(stream, PAYLOAD.len());
        loop {
            let mut socket = TcpStream::connect(to).unwrap();
            socket.write_all(&hello).unwrap();
            let (header, payload) = frame(&mut socket);
            if header.kind == FrameKind::Welcome {
                return (socket, Welcome::from_payload(&payload).unwrap().streams[0].next_sequence);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn event(&mut self, crc: u32) {
        self.socket.write_all(&frames::event(self.stream, self.next, &PAYLOAD, crc)).unwrap();
        (self.next, self.sent) = (self.next + 1, self.sent + 1);
        self.shown = self.next;
    }

    fn act(&mut self, action: &Action) {
        match *action {
            Action::Send(events) => (0..events).for_each(|_| self.event(crc32(&PAYLOAD))),
            Action::Skip(events) => self.next += events,
            Action::Declare(events, cause) => {
                let gap = Gap { stream: self.stream, first_sequence: self.next, events, cause };
                let missing = Missing { gaps: vec![gap], rejected: Vec::new() };
                self.socket.write_all(&missing.to_frame().unwrap()).unwrap();
                self.next += events;
                self.shown = self.next;
            }
            Action::Damage => self.event(!crc32(&PAYLOAD)),
            Action::Reconnect(lost) => {
                let (socket, next) = Self::connect_again(self);
                (self.socket, self.first, self.sent, self.shown) = (socket, next, 0, 0);
                self.next = next + lost;
            }
            Action::Settle => self.settle(),
        }
    }

    fn connect_again(&self) -> (TcpStream, u64) {
        self.socket.shutdown(std::net::Shutdown::Both).unwrap();
        Self::connect(self.to, self.stream)
    }

    /// Waits until what the recorder knows of is durable: skipped numbers show with the next event.
    fn settle(&mut self) {
        while self.acked < self.shown {
            let (header, _) = frame(&mut self.socket);
            assert_eq!(header.kind, FrameKind::Ack);
            self.acked = Ack::from_header(&header).durable_next;
        }
    }

    /// Final counts, which explain what was skipped or do not, and bye.
    fn end(mut self, explains: bool) {
        let numbers = self.next - self.first;
        let lost_events = if explains { numbers - self.sent } else { 0 };
        let bytes = self.sent * PAYLOAD.len() as u64;
        let (id, events, next_sequence) = (self.stream, self.sent, self.next);
        let last = EndStream { id, events, bytes, lost_events, lost_bytes: 0, next_sequence };
        self.socket.write_all(&End { streams: vec![last] }.to_frame().unwrap()).unwrap();
        while frame(&mut self.socket).0.kind != FrameKind::Bye {}
    }
}

/// A stranger, and a client that contradicts its hello; each until the recorder closes the connection.
fn send_rejected(to: SocketAddr) {
    let mut stranger = TcpStream::connect(to).unwrap();
    stranger.write_all(&[7; HEADER_BYTES]).unwrap();
    let mut client = Client::new(to, STREAMS);
    client.stream += 1;
    client.event(crc32(&PAYLOAD));
    for mut socket in [stranger, client.socket] {
        let _ = socket.read_to_end(&mut Vec::new());
    }
}

fn start(root: &Path, volumes: usize, id: u8, reductions: &[&str]) -> (Recorder, Vec<PathBuf>) {
    let places: Vec<PathBuf> = (0..volumes).map(|at| root.join(format!("volume{at}"))).collect();
    places.iter().for_each(|place| fs::create_dir_all(place).unwrap());
    let target = Target::Volumes(places);
    let mut config = RecorderConfig::new(([127, 0, 0, 1], 0).into(), target, "run");
    (config.pool_bytes, config.segment_bytes, config.block_bytes) = (8 << 20, 8 << 20, 64 << 10);
    (config.stay, config.slow_after) = (true, Duration::from_secs(120));
    (config.seal_after, config.sync_every) = (Duration::from_millis(1), Duration::from_millis(2));
    config.reductions = reductions.iter().map(|text| text.parse().unwrap()).collect();
    let recorder = Recorder::start(config, Id([id; 16]), Arc::new(SystemClock)).unwrap();
    let directories = recorder.directories();
    (recorder, directories)
}

fn stop(recorder: Recorder) -> RecordReport {
    recorder.stopper().stop();
    recorder.join().unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

fn check(directories: &[PathBuf]) -> (VerifyReport, Vec<Gap>) {
    let recording = Recording::open(directories).unwrap();
    let report = verify(&recording, VerifyOptions { threads: 1 }, &|_| {});
    (report, recording.gaps())
}

/// Archives a recording to a directory in `root` and restores it there; returns the restored directory.
fn archive_and_restore(directories: &[PathBuf], root: &Path) -> PathBuf {
    let tape = root.join("tape");
    fs::create_dir(&tape).unwrap();
    let to = Location::parse(&format!("file://{}", tape.display())).unwrap();
    let back = RestorePlan {
        from: to.below("run"),
        to: root.join("back"),
        rate: None,
        connections: 3,
        part_bytes: PART_BYTES,
    };
    let plan = ArchivePlan {
        recording: directories.to_vec(),
        to,
        rate: None,
        follow: false,
        read_back: false,
        connections: 3,
        part_bytes: PART_BYTES,
    };
    let (live, stop) = (ArchiveCounters::default(), AtomicBool::new(false));
    // A copy lowers the priority of its thread.
    let copied = std::thread::scope(|scope| {
        scope.spawn(|| archive(&plan, &SystemClock, &stop, &live)).join().unwrap().unwrap()
    });
    assert!(copied.is_archived, "{copied:#?}");
    std::thread::scope(|scope| {
        scope.spawn(|| restore(&back, &SystemClock, &stop, &live)).join().unwrap().unwrap()
    });
    back.to
}

/// Events by stream and sequence number, of which MCAP has 32 bits.
type Events = BTreeMap<u32, Vec<(u32, Vec<u8>)>>;

fn events(recording: &Recording) -> Events {
    let mut events = Events::new();
    for id in recording.streams().into_keys() {
        let found = events.entry(id).or_default();
        let mut reader = StreamReader::open(recording, id).unwrap().unwrap();
        let mut add = |event: keepup_recording::reader::Event<'_>| {
            found.push((event.sequence as u32, event.payload.to_vec()));
            ControlFlow::Continue(())
        };
        reader.read(From::Sequence(0), &mut add).unwrap();
        found.sort();
    }
    events
}

/// Events of an exported file, and the gaps in its metadata.
fn exported(path: &Path) -> (Events, Vec<Gap>) {
    let bytes = fs::read(path).unwrap();
    let summary = mcap::Summary::read(&bytes).unwrap().unwrap();
    let mut events: Events = summary.channels.keys().map(|id| (u32::from(*id), Vec::new())).collect();
    for message in mcap::MessageStream::new(&bytes).unwrap().map(Result::unwrap) {
        let found = events.get_mut(&message.channel.id.into()).unwrap();
        found.push((message.sequence, message.data.to_vec()));
    }
    events.values_mut().for_each(|events| events.sort());
    let metadata = mcap::read::metadata(&bytes, &summary.metadata_indexes[0]).unwrap();
    assert_eq!((metadata.name.as_str(), summary.metadata_indexes.len()), ("missing", 1));
    let mut gaps = Vec::new();
    for (stream, text) in &metadata.metadata {
        let rows: Vec<(u64, u64, LossCause)> = serde_json::from_str(text).unwrap();
        let stream = stream.parse().unwrap();
        let gap = |(first_sequence, events, cause)| Gap { stream, first_sequence, events, cause };
        gaps.extend(rows.into_iter().map(gap));
    }
    gaps.sort_by_key(|gap| (gap.stream, gap.first_sequence));
    (events, gaps)
}

/// Losses by stream, each with its cause; touching ones of one cause are one.
fn losses(gaps: &[Gap]) -> Vec<Gap> {
    let mut joined: Vec<Gap> = Vec::new();
    for gap in gaps {
        match joined.last_mut() {
            Some(last)
                if (last.stream, last.cause) == (gap.stream, gap.cause)
                    && last.first_sequence + last.events == gap.first_sequence =>
            {
                last.events += gap.events;
            }
            _ => joined.push(*gap),
        }
    }
    joined
}

/// Cause of a missing event.
fn cause_of(gaps: &[Gap], stream: u32, sequence: u64) -> Option<LossCause> {
    let has = |gap: &&Gap| {
        gap.stream == stream && (gap.first_sequence..gap.first_sequence + gap.events).contains(&sequence)
    };
    gaps.iter().find(has).map(|gap| gap.cause)
}

/// Cuts a recording as a kill may: the journal anywhere behind its first line, and the segment anywhere
/// behind its last watermark.
fn cut(directory: &Path, (journal_at, segment_at): (f64, f64)) {
    let path = directory.join(JOURNAL_FILE);
    let journal = fs::read(&path).unwrap();
    let first = journal.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let kept = first + ((journal.len() - first) as f64 * journal_at) as usize;
    fs::write(&path, &journal[..kept]).unwrap();
    let (records, _) = Journal::read(directory).unwrap();
    let mut durable: BTreeMap<u32, u64> = BTreeMap::new();
    for record in records {
        if let JournalRecord::Watermark { segment, durable_bytes, .. } = record {
            durable.insert(segment, durable_bytes);
        }
    }
    for (index, path) in segments(directory).into_iter().enumerate() {
        let bytes = fs::read(&path).unwrap();
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
        let durable = durable.get(&(index as u32)).copied().unwrap_or(0) as usize;
        // The preamble is one sector, written before anything refers to the segment.
        let durable = durable.max(SECTOR);
        let at = durable + (end.saturating_sub(durable) as f64 * segment_at) as usize;
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_len(at as u64).unwrap();
        file.set_len(bytes.len() as u64).unwrap();
    }
}

fn segments(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut segments: Vec<_> = entries.filter(|path| path.extension().is_some_and(|e| e == "mcap")).collect();
    segments.sort();
    segments
}

fn action() -> impl Strategy<Value = Action> {
    let cause = prop::sample::select(&LossCause::ALL[..]);
    prop_oneof![
        4 => (1u64..12).prop_map(Action::Send),
        2 => (1u64..5).prop_map(Action::Skip),
        2 => (1u64..5, cause).prop_map(|(events, cause)| Action::Declare(events, cause)),
        1 => Just(Action::Skip(1 << 40)),
        1 => Just(Action::Damage),
        1 => (0u64..4).prop_map(Action::Reconnect),
        1 => Just(Action::Settle),
    ]
}

/// What the clients of one recording do.
#[derive(Clone, Debug)]
struct Script {
    actions: Vec<(u32, Action)>,
    /// Whether clients explain what they skipped.
    explains: bool,
    /// Whether one stream is reduced.
    reduces: bool,
    /// Whether data arrive that are rejected.
    rejects: bool,
    /// Where kills cut the recording.
    cuts: Vec<(f64, f64)>,
}

fn script() -> impl Strategy<Value = Script> {
    let actions = prop::collection::vec((0..STREAMS, action()), 1..40);
    let cuts = prop::collection::vec((0.0f64..=1.0, 0.0f64..=1.0), 3);
    (actions, any::<(bool, bool, bool)>(), cuts).prop_map(|(actions, (explains, reduces, rejects), cuts)| {
        Script { actions, explains, reduces, rejects, cuts }
    })
}

// Two tests, because they mostly wait for disks and run beside each other.
proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(12) })]
    #[test]
    fn every_copy_has_the_losses_of_the_original_on_one_volume(script in script()) {
        check_losses(script, 1)?;
    }

    #[test]
    fn every_copy_has_the_losses_of_the_original_on_two_volumes(script in script()) {
        check_losses(script, 2)?;
    }
}

fn check_losses(script: Script, volumes: usize) -> Result<(), TestCaseError> {
    let Script { actions, explains, reduces, rejects, cuts } = script;
    let root = tempfile::tempdir().unwrap();
    let reductions = ["streams=1 keep=both: decimate by=7"];
    let reductions = if reduces { &reductions[..] } else { &[] };
    let (recorder, directories) = start(&root.path().join("original"), volumes, 1, reductions);
    let to = recorder.address();
    let mut clients: Vec<Client> = (0..STREAMS).map(|stream| Client::new(to, stream)).collect();
    for (stream, action) in &actions {
        clients[*stream as usize].act(action);
    }
    for client in &mut clients {
        client.act(&Action::Send(1));
        client.settle();
    }
    if rejects {
        send_rejected(to);
    }
    let killed = |at| root.path().join(format!("killed{at}/run"));
    let killed: Vec<PathBuf> = (0..volumes).map(killed).collect();
    directories.iter().zip(&killed).for_each(|(from, to)| copy(from, to));
    // The last stream also loses events behind its last one.
    clients.iter_mut().for_each(|client| client.next += u64::from(client.stream) * 3);
    clients.into_iter().for_each(|client| client.end(explains));
    drop(stop(recorder));
    let (original, gaps) = check(&directories);
    prop_assert!(original.is_intact(), "{original:#?}");
    if reduces {
        let raw: Vec<Gap> = gaps.iter().filter(|gap| gap.stream == 1).copied().collect();
        let derived = gaps.iter().filter(|gap| gap.stream == 32_768);
        let derived: Vec<Gap> = derived.map(|gap| Gap { stream: 1, ..*gap }).collect();
        prop_assert_eq!(losses(&derived), losses(&raw));
    }

    check_copies(&directories, root.path(), (&original, &gaps))?;
    prop_assert_eq!(original.rejected.len(), if rejects { 2 } else { 0 });
    check_recovery(&killed, &cuts, root.path(), (&original, &gaps))
}

/// Checks the drained, the restored and the exported copy of a recording.
fn check_copies(
    directories: &[PathBuf],
    root: &Path,
    (original, gaps): (&VerifyReport, &Vec<Gap>),
) -> Result<(), TestCaseError> {
    let (sink, copies) = start(&root.join("copy"), 1, 2, &[]);
    let plan = DrainPlan {
        recording: directories.to_vec(),
        to: sink.address().into(),
        rate: None,
        follow: false,
        finish_timeout: Duration::from_secs(60),
    };
    let drained = drain(&plan, &SystemClock, &AtomicBool::new(false), &DrainCounters::default()).unwrap();
    prop_assert!(drained.is_complete && drained.faults.total == 0, "{drained:#?}");
    stop(sink).ledger.balance().unwrap();
    let (copied, copied_gaps) = check(&copies);
    prop_assert!(copied.is_intact(), "{copied:#?}");
    prop_assert_eq!(losses(&copied_gaps), losses(gaps));
    prop_assert_eq!(&copied.streams, &original.streams);
    prop_assert_eq!(&copied.rejected, &original.rejected);
    prop_assert_eq!(copied.is_complete(), original.is_complete());

    let (restored, restored_gaps) = check(&[archive_and_restore(directories, root)]);
    prop_assert_eq!(&restored_gaps, gaps);
    let account = |report| serde_json::to_value(report).unwrap();
    prop_assert_eq!(account(&restored), account(original));

    let recording = Recording::open(directories).unwrap();
    let path = root.join("all.mcap");
    let said = one_file(&recording, None, &path, &mut |_| {}).unwrap();
    let (found, found_gaps) = exported(&path);
    prop_assert_eq!(&said.missing, gaps);
    prop_assert_eq!(&found_gaps, gaps);
    prop_assert_eq!(&found, &events(&recording));
    prop_assert!(found.values().any(|events| !events.is_empty()));
    Ok(())
}

/// Checks what recovery makes of a recording that was killed: no loss without a cause, and no other cause
/// than that of the original.
fn check_recovery(
    killed: &[PathBuf],
    cuts: &[(f64, f64)],
    root: &Path,
    (original, gaps): (&VerifyReport, &[Gap]),
) -> Result<(), TestCaseError> {
    for (number, &positions) in cuts.iter().enumerate() {
        let place = |at| root.join(format!("cut{number}/volume{at}/run"));
        let places: Vec<PathBuf> = (0..killed.len()).map(place).collect();
        for (from, to) in killed.iter().zip(&places) {
            copy(from, to);
            cut(to, positions);
        }
        let recovered = recover(&places, RecoverOptions::default(), &mut |_| {}).unwrap();
        prop_assert!(recovered.complete, "{recovered:#?}");
        let (report, left) = check(&places);
        prop_assert!(report.is_intact(), "{positions:?}: {report:#?}\n{left:#?}\n{gaps:#?}");
        prop_assert!(report.rejected.iter().all(|row| original.rejected.contains(row)), "{report:#?}");
        for gap in &left {
            // Long jumps have one cause: their ends stand for all numbers.
            for sequence in [gap.first_sequence, gap.first_sequence + gap.events - 1] {
                let before = cause_of(gaps, gap.stream, sequence);
                let was_skipped = (Some(LossCause::Source), LossCause::SequenceGap);
                let is_right = gap.cause == LossCause::CutOff
                    || before == Some(gap.cause)
                    || (before, gap.cause) == was_skipped;
                prop_assert!(is_right, "{gap:?}, but the original has {before:?} at {sequence}");
            }
        }
        let again = recover(&places, RecoverOptions::default(), &mut |_| {}).unwrap();
        prop_assert!(!again.changed, "{again:#?}");
    }
    Ok(())
}
