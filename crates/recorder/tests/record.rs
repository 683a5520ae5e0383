//! The whole pipeline with real sockets, real files, and a ledger that must balance.
#![expect(clippy::unwrap_used, reason = "a helper of a test may fail the test")]
#![allow(clippy::disallowed_methods, reason = "tests may sum")]
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use keepup_measure::clock::{Clock, SystemClock};
use keepup_recorder::drain::{DrainCounters, DrainPlan, drain};
use keepup_recorder::report::{Ended, RecordReport};
use keepup_recorder::watch::{Qualified, Watcher};
use keepup_recorder::{PlacementKind, Recorder, RecorderConfig, Target};
use keepup_recording::id::Id;
use keepup_recording::reader::Recording;
use keepup_recording::retention::{Keep, KeepLimit, KeepUntil, REMOVED_FILE};
use keepup_recording::verify::{VerifyOptions, VerifyReport, verify};
use keepup_results::FailedRate;
use keepup_results::live::Moment;
use keepup_stream::source::{EventSize, Rate, SourceCounters, SourcePlan, SourceReport, run};

fn plan(streams: u32, connections: u32, size: EventSize, events: u64) -> SourcePlan {
    SourcePlan { streams, connections, events: Some(events), ..SourcePlan::new(size, Rate::Max) }
}

fn config(target: Target) -> RecorderConfig {
    let mut config = RecorderConfig::new(([127, 0, 0, 1], 0).into(), target, "run");
    let threads = std::env::var("KEEPUP_TEST_INTAKE_THREADS");
    config.intake_threads = threads.map_or(1, |threads| threads.parse().unwrap());
    config.pool_bytes = config.intake_threads * (64 << 20);
    config.segment_bytes = 24 << 20;
    // All volumes are on one disk, which other programs may keep busy.
    config.slow_after = Duration::from_secs(120);
    config
}

fn send(recorder: &Recorder, plan: &SourcePlan) -> SourceReport {
    run(plan, recorder.address(), &AtomicBool::new(false), &SourceCounters::default()).unwrap()
}

fn record(config: RecorderConfig, plan: &SourcePlan) -> (SourceReport, RecordReport, Vec<PathBuf>) {
    let recorder = Recorder::start(config, Id([7; 16]), Arc::new(SystemClock)).unwrap();
    let directories = recorder.directories();
    let source = send(&recorder, plan);
    (source, recorder.join().unwrap(), directories)
}

fn check(directories: &[PathBuf]) -> VerifyReport {
    let report = verify(&Recording::open(&directories[..1]).unwrap(), VerifyOptions { threads: 1 }, &|_| {});
    assert!(report.is_intact(), "{report:#?}");
    report
}

fn agree(source: &SourceReport, record: &RecordReport, verified: &VerifyReport) {
    let sent = source.total(|s| s.sent);
    let total = record.ledger.total();
    assert_eq!(sent, total.received);
    assert_eq!(sent, total.written);
    assert_eq!(sent, total.durable);
    record.ledger.balance().unwrap();
    for stream in &source.streams {
        assert_eq!(verified.streams[&stream.id].recorded, stream.sent);
    }
    assert_eq!(record.ended, Ended::EndOfRun);
    assert_eq!(record.incidents.total, 0, "{:?}", record.incidents);
}

#[test]
fn large_events_over_two_volumes_and_many_segments() {
    for placement in [PlacementKind::Free, PlacementKind::Pinned] {
        let volumes = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let target = Target::Volumes(volumes.iter().map(|v| v.path().to_path_buf()).collect());
        let config = RecorderConfig { placement, ..config(target) };
        let (source, report, directories) = record(config, &plan(4, 2, EventSize::Fixed(256 << 10), 800));
        agree(&source, &report, &check(&directories));
        assert!(report.volumes.iter().all(|v| v.write_latency.count > 0), "both volumes were used");
    }
}

#[test]
fn small_events_of_all_sizes_and_many_streams() {
    let volume = tempfile::tempdir().unwrap();
    let target = Target::Volumes(vec![volume.path().into()]);
    let size = EventSize::Uniform { min: 0, max: 9000 };
    let (source, report, directories) = record(config(target), &plan(150, 3, size, 60_000));
    agree(&source, &report, &check(&directories));
}

#[test]
fn events_larger_than_a_block_and_than_the_socket() {
    let volume = tempfile::tempdir().unwrap();
    let target = Target::Volumes(vec![volume.path().into()]);
    let size = EventSize::Uniform { min: 1, max: 9 << 20 };
    let (source, report, directories) = record(config(target), &plan(2, 1, size, 60));
    agree(&source, &report, &check(&directories));
}

#[test]
fn a_recording_written_at_full_speed_keeps_its_retention_limit() {
    let volume = tempfile::tempdir().unwrap();
    let keep = Keep { limit: KeepLimit::Bytes(8 << 20), disposable: true, until: KeepUntil::Drained };
    let mut config = config(Target::Volumes(vec![volume.path().into()]));
    (config.keep, config.segment_bytes, config.block_bytes) = (Some(keep), 1 << 20, 64 << 10);
    // So fast that the keeper always has other requests to handle too.
    let (source, report, directories) = record(config, &plan(2, 1, EventSize::Fixed(32 << 10), 2000));
    assert_eq!(source.total(|s| s.sent), report.ledger.total().durable);
    let files = std::fs::read_dir(&directories[0]).unwrap().map(|entry| entry.unwrap());
    let segments = files.filter(|file| file.path().extension().is_some_and(|of| of == "mcap"));
    let bytes: u64 = segments.map(|file| file.metadata().unwrap().len()).sum();
    assert!(bytes <= 8 << 20, "{bytes} bytes remain");
    check(&directories);
}

/// The machine's clocks, with the wall clock ahead by an adjustable step.
#[derive(Default)]
struct SteppedClock {
    ahead_ns: AtomicU64,
}

impl Clock for SteppedClock {
    fn now_ns(&self) -> u64 {
        SystemClock.now_ns()
    }

    fn unix_ns(&self) -> u64 {
        SystemClock.unix_ns() + self.ahead_ns.load(Relaxed)
    }

    fn sleep_until_ns(&self, deadline_ns: u64) {
        SystemClock.sleep_until_ns(deadline_ns);
    }
}

#[test]
fn a_step_of_the_wall_clock_does_not_age_segments() {
    let volume = tempfile::tempdir().unwrap();
    let keep = Keep { limit: KeepLimit::Seconds(3600), disposable: true, until: KeepUntil::Drained };
    let mut config = config(Target::Volumes(vec![volume.path().into()]));
    (config.keep, config.segment_bytes, config.block_bytes) = (Some(keep), 1 << 20, 64 << 10);
    config.stay = true;
    let clock = Arc::new(SteppedClock::default());
    let recorder = Recorder::start(config, Id([7; 16]), Arc::clone(&clock) as Arc<dyn Clock>).unwrap();
    let plan = plan(1, 1, EventSize::Fixed(32 << 10), 200);
    let sent = send(&recorder, &plan).total(|s| s.sent);
    clock.ahead_ns.store(10 * 3600 * 1_000_000_000, Relaxed);
    // Sealed after the step: the keeper checks the retention limit each time, and once more at
    // the end.
    let again = send(&recorder, &plan).total(|s| s.sent);
    let directories = recorder.directories();
    recorder.stopper().stop();
    recorder.join().unwrap();
    assert!(!directories[0].join(REMOVED_FILE).exists(), "nothing was removed");
    let verified = check(&directories);
    assert_eq!(verified.streams[&0].recorded, sent + again);
}

#[test]
fn the_null_target_counts_and_stores_nothing() {
    let (source, report, directories) =
        record(config(Target::Null), &plan(1, 1, EventSize::Fixed(100_000), 2000));
    assert!(directories.is_empty());
    assert_eq!(source.total(|s| s.sent), report.ledger.total().durable);
}

#[test]
fn a_drain_follows_and_every_ledger_agrees() {
    let volumes = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let path = |n: usize| volumes[n].path().to_path_buf();
    let tape =
        Recorder::start(config(Target::Volumes(vec![path(2)])), Id([9; 16]), Arc::new(SystemClock)).unwrap();
    let target = Target::Volumes(vec![path(0), path(1)]);
    let recorder = Recorder::start(config(target), Id([7; 16]), Arc::new(SystemClock)).unwrap();
    let plan_ = DrainPlan {
        recording: recorder.directories(),
        to: tape.address().into(),
        rate: None,
        follow: true,
        finish_timeout: Duration::from_secs(30),
    };
    let counters = Arc::new(DrainCounters::default());
    let live = Arc::clone(&counters);
    let drainer =
        std::thread::spawn(move || drain(&plan_, &SystemClock, &AtomicBool::new(false), &live).unwrap());
    let source = send(&recorder, &plan(5, 2, EventSize::Uniform { min: 1, max: 300_000 }, 2000));
    let directories = recorder.directories();
    let report = recorder.join().unwrap();
    agree(&source, &report, &check(&directories));
    let drained = drainer.join().unwrap();
    assert!(drained.is_complete);
    assert_eq!(drained.sent, source.total(|s| s.sent));
    assert_eq!(drained.durable, drained.sent);
    assert!(counters.passed_bytes.load(Relaxed) >= drained.sent.bytes);
    assert_eq!(counters.behind_bytes.load(Relaxed), 0);
    assert!(!counters.is_growing.load(Relaxed), "the recording has ended");
    let tape_directories = tape.directories();
    agree(&source, &tape.join().unwrap(), &check(&tape_directories));
}

#[test]
fn the_last_sample_agrees_with_the_ledger() {
    let volume = tempfile::tempdir().unwrap();
    let config = RecorderConfig { stay: true, ..config(Target::Volumes(vec![volume.path().into()])) };
    let recorder = Recorder::start(config, Id([7; 16]), Arc::new(SystemClock)).unwrap();
    let failed_above = FailedRate {
        bytes_per_second: 2e6,
        seconds: 30.0,
        lost_events: 1,
        condition: "events were lost".into(),
    };
    let qualified = Qualified {
        bytes_per_second: 1e6,
        failed_above: Some(failed_above.clone()),
        result: "results/one".into(),
        differs: vec![],
    };
    let mut watcher = Watcher::new(&recorder, Arc::new(SystemClock), Some(qualified));
    let before = watcher.sample();
    assert_eq!((before.flow.received.events, before.streams.len()), (0, 0));
    let source = send(&recorder, &plan(5, 2, EventSize::Fixed(50_000), 400));
    let sent = source.total(|s| s.sent);
    let is_shown = |moment: &Moment| {
        moment.flow.durable.events == sent.events
            && moment.streams.iter().map(|stream| stream.durable.events).sum::<u64>() == sent.events
            && moment.streams.iter().all(|stream| !stream.connected)
    };
    let moment = (0..200).map(|_| std::thread::sleep(Duration::from_millis(20))).map(|()| watcher.sample());
    let moment = moment.into_iter().find(is_shown).expect("everything becomes durable and is shown so");
    assert_eq!(moment.flow.received.bytes, sent.bytes);
    assert_eq!(moment.flow.written.bytes, sent.bytes);
    assert_eq!(moment.streams.len(), 5);
    for (stream, sent) in moment.streams.iter().zip(&source.streams) {
        assert_eq!((stream.id, stream.received.events), (sent.id, sent.sent.events));
        assert_eq!(stream.next_sequence, sent.sent.events);
        assert_eq!(stream.missing_events, 0);
        assert!(stream.silent_seconds.is_some());
    }
    assert_eq!(moment.volumes[0].durable_bytes, sent.bytes);
    assert_eq!(moment.volumes[0].queue_bytes, 0);
    assert!(moment.volumes[0].free_bytes.is_some_and(|bytes| bytes > 0));
    let margin = moment.margin.unwrap();
    assert_eq!((margin.qualified_bytes_per_second, margin.failed_above), (1e6, Some(failed_above)));
    recorder.stopper().stop();
    recorder.join().unwrap();
}

#[test]
fn a_recorder_for_one_address_refuses_others() {
    let config = RecorderConfig { only_from: Some([127, 0, 0, 2].into()), ..config(Target::Null) };
    let recorder = Recorder::start(config, Id([7; 16]), Arc::new(SystemClock)).unwrap();
    let plan = plan(1, 1, EventSize::Fixed(4096), 10);
    let outcome = run(&plan, recorder.address(), &AtomicBool::new(false), &SourceCounters::default());
    // The reply may arrive after the reset of the connection, so its text is not certain.
    assert!(matches!(outcome, Err(keepup_stream::source::SourceError::Connect { .. })), "{outcome:?}");
    recorder.stopper().stop();
    let report = recorder.join().unwrap();
    assert_eq!((report.incidents.total, report.ledger.total().received.events), (1, 0));
    assert!(report.incidents.listed[0].contains("refused, another address"), "{:?}", report.incidents);
}

/// An intake that cannot run on its CPUs ends the others, also where memory is used again.
#[test]
fn an_intake_without_its_cpu_is_an_error_each_time() {
    let mut config = config(Target::Null);
    (config.intake_threads, config.intake_cpus) = (2, vec![0, 4000]);
    for _ in 0..2 {
        let started = Recorder::start(config.clone(), Id([8; 16]), Arc::new(SystemClock));
        assert!(started.err().unwrap().to_string().contains("4000"));
    }
    config.intake_cpus = Vec::new();
    let recorder = Recorder::start(config, Id([8; 16]), Arc::new(SystemClock)).unwrap();
    recorder.stopper().stop();
    assert_eq!(recorder.join().unwrap().ended, Ended::Stopped);
}
