//! When the source is stopped, alone and in a trial.
use std::net::Ipv4Addr;

use keepup_recorder::{RecorderConfig, Target};
use keepup_recording::id::Id;
use keepup_stream::source::{EventSize, Rate, SourcePlan};

use super::*;
use crate::record::{LocalSource, RecordTrial, TrialMeasured, TrialSpec};
use crate::run;
use crate::testing::context;

fn sample(t_s: f64, lost_bytes: u64) -> Sample {
    Sample { t_s, lost_bytes, ..Sample::default() }
}

#[test]
fn the_source_ends_a_while_after_its_first_loss() {
    let mut cut_off = CutOff::new(Duration::from_secs(2), Arc::default());
    let stop = cut_off.source_stop();
    let mut is_stopped_at = |t_s, lost_bytes| {
        cut_off.observe(&sample(t_s, lost_bytes));
        stop.load(Ordering::Acquire)
    };
    assert!(!is_stopped_at(0.0, 0) && !is_stopped_at(10.0, 0));
    // The stall that caused the loss may last longer: its length is wanted.
    assert!(!is_stopped_at(10.5, 1) && !is_stopped_at(12.4, 9));
    assert!(is_stopped_at(12.5, 9));
}

#[test]
fn a_stopped_run_stops_the_source() {
    let run_stop = Arc::new(AtomicBool::new(false));
    let mut cut_off = CutOff::new(Duration::from_secs(2), Arc::clone(&run_stop));
    let stop = cut_off.source_stop();
    cut_off.observe(&sample(1.0, 0));
    assert!(!stop.load(Ordering::Acquire));
    run_stop.store(true, Ordering::Release);
    cut_off.observe(&sample(1.1, 0));
    assert!(stop.load(Ordering::Acquire));
}

/// A trial that discards everything, at a rate in events of 64 KiB per second, for `time`.
fn measured(rate: f64, time: Duration, cut_off: Option<Duration>) -> TrialMeasured {
    let listen = (Ipv4Addr::LOCALHOST, 0).into();
    let recorder =
        RecorderConfig { pool_bytes: 32 << 20, ..RecorderConfig::new(listen, Target::Null, "trial") };
    let mut trial = RecordTrial::new(TrialSpec {
        source: SourcePlan {
            duration: Some(time),
            ..SourcePlan::new(EventSize::Fixed(65_536), Rate::EventsPerSecond(rate))
        },
        generator: Arc::new(LocalSource),
        recorder,
        recording: Id::random().unwrap(),
        drain: None,
        verify: None,
        read_back: false,
        cut_off,
        first_events: None,
        sample_every: Duration::from_millis(10),
        watcher_slot: None,
    });
    run(&mut trial, &mut context()).unwrap()
}

#[test]
fn a_trial_that_loses_events_ends_early_and_adds_up() {
    // Faster than any memory.
    let found = measured(4e6, Duration::from_secs(60), Some(Duration::from_millis(100)));
    let [due, lost, sent] =
        [found.source.total(|s| s.due), found.source.total(|s| s.lost), found.source.total(|s| s.sent)];
    assert!(lost.events > 0 && found.broken.is_none(), "{found:#?}");
    assert_eq!((sent + lost, sent), (due, found.record.ledger.total().durable));
    assert!(found.source.elapsed_ns < 30_000_000_000, "{}", found.source.elapsed_ns);
}

#[test]
fn a_trial_without_losses_is_not_cut_off() {
    let time = Duration::from_secs(1);
    let found = measured(20.0, time, Some(Duration::ZERO));
    assert_eq!(found.source.total(|s| s.due).events, 20);
    assert!(u128::from(found.source.elapsed_ns) >= time.as_nanos(), "{}", found.source.elapsed_ns);
}
