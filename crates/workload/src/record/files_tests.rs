//! Trials of a simulated detector that writes files.
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use keepup_recorder::{RecorderConfig, Target};
use keepup_recording::id::Id;
use keepup_stream::ledger::LossCause;
use keepup_stream::source::{EventSize, Protocol, Rate, SourcePlan};

use super::*;
use crate::file_store::FileStore;
use crate::record::{FileSource, RecordTrial, TrialMeasured, TrialSpec, Verification};
use crate::run;
use crate::testing::context;

/// Trial of `events` files of 200 kB at `rate` files per second.
fn measured(here: &Path, rate: f64, events: u64, keep_bytes: u64) -> TrialMeasured {
    let (volume, below) = (here.join("volume"), here.join("files"));
    [&volume, &below].iter().for_each(|path| fs::create_dir_all(path).unwrap());
    let listen = (Ipv4Addr::LOCALHOST, 0).into();
    let target = Target::Volumes(vec![volume]);
    let recorder = RecorderConfig {
        pool_bytes: 32 << 20,
        segment_bytes: 32 << 20,
        ..RecorderConfig::new(listen, target, "trial")
    };
    let source = SourcePlan {
        events: Some(events),
        streams: 2,
        ..SourcePlan::new(EventSize::Fixed(200_000), Rate::EventsPerSecond(rate))
    };
    let mut trial = RecordTrial::new(TrialSpec {
        source: source.in_protocol(Protocol::Files),
        generator: Arc::new(FileSource { store: FileStore { below, keep_bytes } }),
        recorder,
        recording: Id::random().unwrap(),
        drain: None,
        verify: Some(Verification::Whole),
        read_back: false,
        cut_off: None,
        first_events: Some(10),
        sample_every: Duration::from_millis(10),
        watcher_slot: None,
    });
    run(&mut trial, &mut context()).unwrap()
}

fn is_empty(path: &Path) -> bool {
    fs::read_dir(path).unwrap().next().is_none()
}

#[test]
fn every_file_is_durable_and_verified_and_the_index_is_no_event() {
    let place = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let found = measured(place.path(), 200.0, 100, 1 << 30);
    let ledger = found.ledger();
    assert_eq!((ledger.sent.events, ledger.sent.bytes), (100, 20_000_000));
    assert_eq!((ledger.durable, ledger.received), (ledger.sent, ledger.sent));
    assert_eq!((ledger.verified, ledger.lost.events), (Some(ledger.sent), 0));
    assert_eq!(found.index_durable.events, 100, "a line for each file");
    let last = found.samples.last().unwrap();
    assert_eq!((last.written_bytes, last.backlog_bytes()), (20_000_000, 0));
    assert!(found.first.is_none());
    assert!(is_empty(&place.path().join("files")) && is_empty(&place.path().join("volume")));
}

#[test]
fn files_that_were_removed_too_early_are_counted_with_their_cause() {
    let place = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    // Two files remain, and 20 more are complete in the 20 ms in which the recorder does not read a file.
    let found = measured(place.path(), 1000.0, 200, 1);
    let ledger = found.ledger();
    assert_eq!(ledger.sent.events + ledger.lost_at_source.events, 200);
    assert!(ledger.lost.events > 0 && ledger.durable.events >= 2, "{ledger:#?}");
    assert_eq!(ledger.durable.events + ledger.lost.events, 200);
    let unreadable = found.record.ledger.total().gap_events[&LossCause::FileUnreadable];
    assert_eq!(unreadable, ledger.lost.events - ledger.lost_at_source.events, "{ledger:#?}");
    let cause = &ledger.lost_by_cause["file not readable"];
    assert_eq!((cause.events, cause.bytes), (unreadable, unreadable * 200_000));
}
