//! Segments are evicted from the page cache before they are read back.
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use keepup_measure::space::{Space, is_memory_backed};
use keepup_recorder::{RecorderConfig, Target};
use keepup_recording::id::Id;
use keepup_stream::source::{EventSize, Rate, SourcePlan};

use super::*;
use crate::Workload as _;
use crate::record::{LocalSource, RecordTrial, TrialSpec, Verification};
use crate::testing::context;

/// A trial on `volume` that has ended, but was not verified.
fn recorded(volume: &Path, verify: Verification) -> RecordTrial {
    let target = Target::Volumes(vec![volume.into()]);
    let recorder = RecorderConfig {
        pool_bytes: 32 << 20,
        segment_bytes: 16 << 20,
        ..RecorderConfig::new((Ipv4Addr::LOCALHOST, 0).into(), target, "trial")
    };
    let mut trial = RecordTrial::new(TrialSpec {
        source: SourcePlan {
            events: Some(400),
            duration: Some(Duration::from_secs(10)),
            ..SourcePlan::new(EventSize::Fixed(65_536), Rate::EventsPerSecond(4000.0))
        },
        generator: Arc::new(LocalSource),
        recorder,
        recording: Id::random().unwrap(),
        drain: None,
        verify: Some(verify),
        read_back: false,
        cut_off: None,
        first_events: None,
        sample_every: Duration::from_millis(10),
        watcher_slot: None,
    });
    let mut context = context();
    trial.prepare(&mut context).unwrap();
    trial.measure(&mut context).unwrap();
    trial.drain(&mut context).unwrap();
    trial
}

/// Bytes of the segments in the page cache, if the kernel counts them.
fn cached(recording: &Recording) -> Option<u64> {
    let segments = recording.volumes().iter().flat_map(|volume| volume.segments());
    segments.map(|segment| cached_bytes(&open_to_read(&segment.path, Access::Buffered).unwrap())).sum()
}

/// Reads all segments, as a drain does.
fn read_all(recording: &Recording) {
    for segment in recording.volumes().iter().flat_map(|volume| volume.segments()) {
        std::fs::read(&segment.path).unwrap();
    }
}

#[test]
fn segments_are_evicted_before_they_are_verified() {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    // Memory is the only place of such data.
    if is_memory_backed(Path::new("/"), directory.path()).unwrap() {
        return;
    }
    let mut trial = recorded(directory.path(), Verification::Whole);
    let recording = Recording::open(&trial.directories).unwrap();
    assert!(recording.volumes()[0].segments().len() > 1);
    read_all(&recording);
    assert_ne!(cached(&recording), Some(0));
    assert_eq!(evict(&recording).unwrap(), 0);
    assert!(cached(&recording).is_none_or(|bytes| bytes == 0), "every segment was evicted");
    read_all(&recording);
    trial.verify(&mut context()).unwrap();
    trial.clean_up().unwrap();
    let measured = trial.measured().unwrap();
    let notes = measured.run(&trial.spec, None).notes;
    assert!(!notes.iter().any(|note| note.contains("read back")), "{notes:#?}");
    assert!(measured.verify.is_some_and(|report| report.is_intact() && report.unread_segments == 0));
    assert_eq!(measured.read_from, Some(ReadFrom::Disks));
}

#[test]
fn data_in_memory_is_not_read_back_from_a_disk() {
    let shared = Path::new("/dev/shm");
    if !Space::of(shared).is_ok_and(|space| space.fs_type == "tmpfs" && space.free_bytes > 256 << 20) {
        return;
    }
    let directory = tempfile::tempdir_in(shared).unwrap();
    let mut trial = recorded(directory.path(), Verification::Sample(Duration::from_secs(5)));
    let recording = Recording::open(&trial.directories).unwrap();
    let is_counted = cached(&recording).is_some();
    trial.verify(&mut context()).unwrap();
    trial.clean_up().unwrap();
    let measured = trial.measured().unwrap();
    if is_counted {
        let said = measured.read_from.as_ref().unwrap().to_string();
        assert!(said.starts_with("read back may have come from the page cache: "), "{said}");
        assert!(said.ends_with("MB of the segments stayed in it"), "{said}");
        assert!(measured.run(&trial.spec, None).notes.contains(&said), "the run has it as a note");
    }
}

#[test]
fn an_eviction_that_fails_is_a_note() {
    let failed = WorkloadError::Thread { name: "ku-reader" };
    assert_eq!(
        ReadFrom::of(Err(failed)).to_string(),
        "read back may have come from the page cache: the ku-reader thread panicked"
    );
    assert_eq!(
        ReadFrom::of(Ok(4096)).to_string(),
        "read back may have come from the page cache: 4.10 kB of the segments stayed in it"
    );
    assert_eq!(
        ReadFrom::of(Ok(0)).to_string(),
        "read back from the disks: the page cache was dropped before"
    );
}
