//! What a heartbeat has of a recorder, and how many bytes that takes.
use keepup_measure::clock::SystemClock;
use keepup_recorder::{RecorderConfig, Target};
use keepup_recording::id::Id;
use keepup_results::Count;
use keepup_results::live::{Flow, PoolNow};

use super::*;
use crate::message::{Heartbeat, HostState, VERSION};

fn moment() -> Moment {
    let volume = |at: u64| VolumeNow {
        path: format!("/data/disk{at}/run-7"),
        written_bytes: 1_234_567_890_123,
        stalled_seconds: 0.012,
        write_seconds_max: 0.25,
        flush_seconds_max: 0.5,
        free_bytes: Some(15_360_000_000_000),
        total_bytes: Some(16_000_000_000_000),
        ..VolumeNow::default()
    };
    Moment {
        flow: Flow { durable: Count { events: 9, bytes: 2_469_135_780_246 }, ..Flow::default() },
        pool: PoolNow { bytes: 1 << 34, used_bytes: 1 << 30, wait_seconds: 1.5, ..PoolNow::default() },
        volumes: vec![volume(0), volume(1)],
        ..Moment::default()
    }
}

fn heartbeat(health: Option<Health>) -> Heartbeat {
    Heartbeat {
        version: VERSION,
        host: 12,
        incarnation: u64::MAX,
        number: 100_000,
        sent_ns: 1_700_000_000_000_000_000,
        state: HostState::Running { run: 117 },
        epoch: 1,
        clock: None,
        counters: Counters::default(),
        health: health.map(Box::new),
    }
}

#[test]
fn a_failed_volume_and_missing_events_are_reported() {
    let mut now = moment();
    now.flow.missing = [("volume failed".to_owned(), 3)].into();
    now.volumes[1].failure = Some("no space".to_owned());
    now.warnings = (0..WARNINGS_MAX + 9).map(|at| format!("warning {at}")).collect();
    let health = health(now);
    assert_eq!(health.volumes.iter().map(|volume| volume.has_failed).collect::<Vec<_>>(), [false, true]);
    assert_eq!((health.volumes[0].oldest_ns, health.volumes[0].longest_ns), (12_000_000, 500_000_000));
    assert_eq!((health.missing["volume failed"], health.pool_wait_ns), (3, 1_500_000_000));
    assert_eq!((health.warnings.len(), health.warnings[0].as_str()), (WARNINGS_MAX, "warning 0"));
    let json = serde_json::to_string(&heartbeat(Some(health.clone()))).unwrap();
    assert_eq!(serde_json::from_str::<Heartbeat>(&json).unwrap(), heartbeat(Some(health)));
}

/// Most heartbeats have no health: control traffic must stay below 0.1 % of the payload.
#[test]
fn the_health_of_two_volumes_takes_few_bytes() {
    let bytes = |health| serde_json::to_string(&heartbeat(health)).unwrap().len();
    let (without, with) = (bytes(None), bytes(Some(health(moment()))));
    assert!(!serde_json::to_string(&heartbeat(None)).unwrap().contains("health"));
    assert!(with - without < 450, "{without} and {with} bytes");
}

#[test]
fn without_a_recorder_there_is_no_health() {
    let progress = Progress::default();
    assert_eq!((progress.health(), progress.counters()), (None, Counters::default()));
}

fn recorder(id: u8) -> Recorder {
    let mut config = RecorderConfig::new(([127, 0, 0, 1], 0).into(), Target::Null, "run");
    (config.pool_bytes, config.block_bytes) = (64 << 20, 1 << 20);
    Recorder::arm(config, Id([id; 16]), Arc::new(SystemClock)).unwrap()
}

#[test]
fn a_recorder_that_was_disarmed_is_not_watched_any_more() {
    let progress = Progress::default();
    let is_watched = || progress.lock().as_ref().is_some_and(|watched| watched.watcher.is_some());
    let first = recorder(1);
    let guard = progress.watch(&first, Arc::new(SystemClock));
    assert!(is_watched());
    first.disarm().unwrap();
    drop(guard);
    assert!(!is_watched());
    assert!(progress.health().unwrap().pool_bytes > 0, "its last figures stay");
    // The end of an earlier recorder is not that of the latest one.
    let second = recorder(2);
    let old = progress.watch(&second, Arc::new(SystemClock));
    let third = recorder(3);
    let latest = progress.watch(&third, Arc::new(SystemClock));
    drop(old);
    assert!(is_watched());
    drop(latest);
    assert!(!is_watched());
    second.disarm().unwrap();
    third.disarm().unwrap();
}

#[test]
fn a_panic_ends_the_figures_of_a_recorder() {
    let progress = Progress::default();
    let recorder = recorder(4);
    let part = std::panic::AssertUnwindSafe(|| {
        let _figures = progress.watch(&recorder, Arc::new(SystemClock));
        panic!("in the part");
    });
    assert!(std::panic::catch_unwind(part).is_err());
    assert!(progress.lock().as_ref().unwrap().watcher.is_none());
    recorder.disarm().unwrap();
}
