//! A panic in any thread ends the recording in order: what was received is durable, the journals have an end
//! record with the reason, and recovery has nothing to lose.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper of a test may fail the test")]
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use keepup_measure::clock::{Clock, SystemClock};
use keepup_recorder::report::{Ended, RecordReport};
use keepup_recorder::run::{RunControl, RunOffer, RunParts};
use keepup_recorder::{Recorder, RecorderConfig, Target};
use keepup_recording::id::Id;
use keepup_recording::journal::{Journal, JournalRecord};
use keepup_recording::reader::Recording;
use keepup_recording::recover::{RecoverOptions, recover};
use keepup_recording::verify::{VerifyOptions, verify};
use keepup_results::live::{RunCommand, RunSettings, RunState};
use keepup_stream::wire::{Ack, FrameKind, Header, crc32};

#[path = "support/frames.rs"]
mod frames;

static PAYLOAD: [u8; 20_000] = [7; 20_000];
const MESSAGE: &str = "a defect";

/// The machine's clocks, for all threads except one, in which they panic.
#[derive(Default)]
struct FaultyClock {
    /// Name of the thread, and how often it panics.
    fault: Mutex<(String, u32)>,
}

impl FaultyClock {
    fn set_fault(&self, thread: &str, panics: u32) {
        *self.fault.lock().unwrap() = (thread.to_owned(), panics);
    }

    fn panic_if_due(&self) {
        let mut fault = self.fault.lock().unwrap();
        if fault.1 > 0 && std::thread::current().name() == Some(&fault.0) {
            fault.1 -= 1;
            drop(fault);
            panic!("{MESSAGE}");
        }
    }
}

impl Clock for FaultyClock {
    fn now_ns(&self) -> u64 {
        self.panic_if_due();
        SystemClock.now_ns()
    }

    fn unix_ns(&self) -> u64 {
        self.panic_if_due();
        SystemClock.unix_ns()
    }

    fn sleep_until_ns(&self, deadline_ns: u64) {
        SystemClock.sleep_until_ns(deadline_ns);
    }
}

/// A client with one stream.
struct Client {
    stream: u32,
    socket: TcpStream,
    next: u64,
    acked: u64,
    /// Of the acknowledged events, those that the recorder lost and says so.
    lost: u64,
}

impl Client {
    fn new(to: SocketAddr, stream: u32) -> Self {
        let mut socket = TcpStream::connect(to).unwrap();
        socket.write_all(&frames::hello(stream, PAYLOAD.len())).unwrap();
        let mut client = Self { stream, socket, next: 0, acked: 0, lost: 0 };
        assert_eq!(client.frame().unwrap().kind, FrameKind::Welcome);
        client
    }

    fn frame(&mut self) -> Option<Header> {
        Some(frames::read(&mut self.socket).ok()?.0)
    }

    /// Sends an event; false if the recorder takes no more.
    fn send(&mut self) -> bool {
        let event = frames::event(self.stream, self.next, &PAYLOAD, crc32(&PAYLOAD));
        self.next += 1;
        self.socket.write_all(&event).is_ok()
    }

    /// Waits until everything sent is durable, or the recorder ends the connection.
    fn settle(&mut self) {
        while self.acked < self.next {
            match self.frame() {
                Some(header) if header.kind == FrameKind::Ack => {
                    let ack = Ack::from_header(&header);
                    (self.acked, self.lost) = (ack.durable_next, ack.lost_events);
                }
                _ => return,
            }
        }
    }

    fn send_and_settle(&mut self, events: u64) {
        assert!((0..events).all(|_| self.send()));
        self.settle();
        assert_eq!(self.acked, self.next);
    }
}

fn config(root: &Path, volumes: usize, intakes: usize) -> RecorderConfig {
    let places: Vec<PathBuf> = (0..volumes).map(|at| root.join(format!("volume{at}"))).collect();
    places.iter().for_each(|place| std::fs::create_dir_all(place).unwrap());
    let mut config = RecorderConfig::new(([127, 0, 0, 1], 0).into(), Target::Volumes(places), "run");
    config.intake_threads = intakes;
    (config.pool_bytes, config.segment_bytes, config.block_bytes) = (intakes * (8 << 20), 1 << 20, 64 << 10);
    (config.stay, config.slow_after) = (true, Duration::from_secs(120));
    (config.seal_after, config.sync_every) = (Duration::from_millis(1), Duration::from_millis(2));
    config
}

fn start(config: RecorderConfig, clock: &Arc<FaultyClock>) -> Recorder {
    Recorder::start(config, Id([7; 16]), Arc::clone(clock) as Arc<dyn Clock>).unwrap()
}

/// End record of a journal: whether it is clean, and the reason.
fn end(directory: &Path) -> (bool, String) {
    let (records, torn) = Journal::read(directory).unwrap();
    assert!(torn.is_none());
    match records.last() {
        Some(JournalRecord::End { clean, reason, .. }) => (*clean, reason.clone()),
        other => panic!("{}: {other:?}", directory.display()),
    }
}

/// Recovers, and checks that every acknowledged event is there.
fn check_recovered(directories: &[PathBuf], clients: &[Client]) {
    let recovered = recover(directories, RecoverOptions::default(), &mut |_| {}).unwrap();
    assert!(recovered.complete, "{recovered:#?}");
    let recording = Recording::open(directories).unwrap();
    let report = verify(&recording, VerifyOptions { threads: 1 }, &|_| {});
    assert!(report.is_intact(), "{report:#?}");
    for client in clients {
        let recorded = report.streams[&client.stream].recorded.events;
        let durable = client.acked - client.lost;
        assert!(recorded >= durable, "{recorded} recorded, {durable} acknowledged");
    }
    let again = recover(directories, RecoverOptions::default(), &mut |_| {}).unwrap();
    assert!(!again.changed, "{again:#?}");
}

fn names_the_error(text: &str, thread: &str) -> bool {
    text.contains(&format!("internal error: thread {thread}: {MESSAGE}"))
}

/// Whether the report names the panic, and asks for a report of it.
fn check_report(report: &RecordReport, thread: &str) {
    assert!(!report.is_whole(), "{report:#?}");
    let asks = |what: &String| names_the_error(what, thread) && what.contains("hint: report this");
    assert!(report.trouble.iter().any(asks), "{report:#?}");
}

#[test]
fn a_panic_of_an_intake_ends_the_recording_in_order() {
    for (intakes, panics) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        let (root, clock) = (tempfile::tempdir().unwrap(), Arc::new(FaultyClock::default()));
        let recorder = start(config(root.path(), 2, intakes), &clock);
        let directories = recorder.directories();
        let mut clients: Vec<Client> = (0..2).map(|id| Client::new(recorder.address(), id)).collect();
        clients.iter_mut().for_each(|client| client.send_and_settle(10));
        let thread = format!("ku-intake-{}", intakes - 1);
        clock.set_fault(&thread, panics);
        clients.iter_mut().for_each(|client| while client.next < 30 && client.send() {});
        let report = recorder.join().unwrap();
        clients.iter_mut().for_each(Client::settle);
        check_report(&report, &thread);
        assert!(matches!(&report.ended, Ended::InternalError(why) if names_the_error(why, &thread)));
        for directory in &directories {
            let (clean, reason) = end(directory);
            assert!(!clean && names_the_error(&reason, &thread), "{reason}");
        }
        if panics == 1 {
            let received = report.ledger.total().received;
            assert_eq!(report.ledger.total().durable, received, "what was received is durable");
        }
        check_recovered(&directories, &clients);
    }
}

#[test]
fn a_panic_of_a_writer_ends_the_recording_in_order() {
    for volumes in [1, 2] {
        let (root, clock) = (tempfile::tempdir().unwrap(), Arc::new(FaultyClock::default()));
        let recorder = start(config(root.path(), volumes, 1), &clock);
        let directories = recorder.directories();
        let mut client = Client::new(recorder.address(), 0);
        client.send_and_settle(10);
        clock.set_fault("ku-writer-0", 1);
        while client.next < 300 && client.send() {}
        let report = recorder.join().unwrap();
        client.settle();
        check_report(&report, "ku-writer-0");
        assert!(matches!(&report.ended, Ended::InternalError(why) if names_the_error(why, "ku-writer-0")));
        assert!(report.volumes[0].failure.as_ref().is_some_and(|why| names_the_error(why, "ku-writer-0")));
        for directory in &directories {
            let (clean, reason) = end(directory);
            assert!(!clean && names_the_error(&reason, "ku-writer-0"), "{reason}");
        }
        check_recovered(&directories, &[client]);
    }
}

#[test]
fn a_panic_of_a_keeper_is_a_failed_volume() {
    let thread = "ku-keeper-0";
    for (volumes, panics) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        let (root, clock) = (tempfile::tempdir().unwrap(), Arc::new(FaultyClock::default()));
        let recorder = start(config(root.path(), volumes, 1), &clock);
        let directories = recorder.directories();
        let mut client = Client::new(recorder.address(), 0);
        client.send_and_settle(10);
        clock.set_fault(thread, panics);
        // Enough that every volume needs further segments.
        while client.next < 300 && client.send() {}
        client.settle();
        if volumes > 1 {
            assert_eq!(client.acked, client.next, "the other volume takes everything");
        }
        recorder.stopper().stop();
        let report = recorder.join().unwrap();
        check_report(&report, thread);
        assert!(report.volumes[0].failure.as_ref().is_some_and(|why| names_the_error(why, thread)));
        if volumes > 1 {
            assert_eq!(report.ended, Ended::Stopped);
            report.ledger.balance().unwrap();
        } else {
            assert!(matches!(&report.ended, Ended::VolumesFailed(why) if names_the_error(why, thread)));
            let (clean, reason) = end(&directories[0]);
            assert!(!clean && names_the_error(&reason, thread), "{reason}");
        }
        directories.iter().for_each(|directory| drop(end(directory)));
        check_recovered(&directories, &[client]);
    }
}

#[test]
fn a_panic_of_a_reducer_ends_the_recording_in_order() {
    let (root, clock) = (tempfile::tempdir().unwrap(), Arc::new(FaultyClock::default()));
    let mut config = config(root.path(), 1, 1);
    config.reductions = vec!["streams=0 keep=both: decimate by=4".parse().unwrap()];
    let recorder = start(config, &clock);
    let directories = recorder.directories();
    let mut clients: Vec<Client> = (0..2).map(|id| Client::new(recorder.address(), id)).collect();
    clients.iter_mut().for_each(|client| client.send_and_settle(10));
    clock.set_fault("ku-reduce-0", 1);
    clients.iter_mut().for_each(|client| while client.next < 30 && client.send() {});
    let report = recorder.join().unwrap();
    clients.iter_mut().for_each(Client::settle);
    check_report(&report, "ku-reduce-0");
    assert!(matches!(&report.ended, Ended::InternalError(why) if names_the_error(why, "ku-reduce-0")));
    let other = &report.ledger.streams[&1];
    assert_eq!(other.durable, other.received, "the stream without a reduction");
    let (clean, reason) = end(&directories[0]);
    assert!(!clean && names_the_error(&reason, "ku-reduce-0"), "{reason}");
    check_recovered(&directories, &clients);
}

/// Run control of one run, which is recording.
fn controlled(root: &Path, clock: &Arc<FaultyClock>) -> RunControl {
    let base = config(root, 1, 1);
    let Target::Volumes(volumes) = base.target.clone() else { panic!("volumes") };
    let mut control = RunControl::new(RunParts {
        offer: RunOffer { volumes, listen: ([127, 0, 0, 1], 0).into(), takes_commands: true },
        prepare: Box::new(move |_, _, _| Ok(base.clone())),
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        new_id: Box::new(|| Ok(Id([7; 16]))),
    });
    control.command(RunCommand::Configure, Some(&RunSettings::default())).unwrap();
    control.command(RunCommand::Arm, None).unwrap();
    control.command(RunCommand::Start, None).unwrap();
    control
}

#[test]
fn the_owner_of_a_run_ends_it_after_a_panic_of_its_own() {
    let (root, clock) = (tempfile::tempdir().unwrap(), Arc::new(FaultyClock::default()));
    let mut control = controlled(root.path(), &clock);
    let directories = control.recorder().unwrap().directories();
    let mut client = Client::new(control.recorder().unwrap().address(), 0);
    client.send_and_settle(10);
    let owner = std::thread::current().name().unwrap().to_owned();
    clock.set_fault(&owner, 1);
    let why = keepup_recorder::catch_panic(|| control.poll()).unwrap_err();
    assert!(names_the_error(&why, &owner), "{why}");
    control.end_with_error(&why);
    assert_eq!(control.state(), RunState::Error);
    check_report(control.report().unwrap(), &owner);
    let (clean, reason) = end(&directories[0]);
    assert!(!clean && names_the_error(&reason, &owner), "{reason}");
    check_recovered(&directories, &[client]);
}

#[test]
fn a_recording_whose_owner_is_gone_after_a_panic_ends() {
    let (root, clock) = (tempfile::tempdir().unwrap(), Arc::new(FaultyClock::default()));
    let recorder = start(config(root.path(), 1, 1), &clock);
    let directories = recorder.directories();
    let mut client = Client::new(recorder.address(), 0);
    client.send_and_settle(10);
    let owner = std::thread::spawn(move || {
        let _recorder = recorder;
        std::panic::resume_unwind(Box::new("a defect"));
    });
    assert!(owner.join().is_err());
    // The connection ends after the end record was handed over; recovery waits for no lock.
    client.settle();
    while client.frame().is_some() {}
    let locked = || recover(&directories, RecoverOptions::default(), &mut |_| {}).is_err();
    while locked() {
        std::thread::sleep(Duration::from_millis(2));
    }
    let (clean, reason) = end(&directories[0]);
    assert!(!clean && reason.contains("internal error: thread"), "{reason}");
    check_recovered(&directories, &[client]);
}
