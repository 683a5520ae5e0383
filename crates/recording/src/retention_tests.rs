//! Removed counts and drain marks.

use super::*;
use crate::manifest::Placement;
use crate::reader::Recording;
use crate::testing::{TestRecording, TestVolume, recover};
use crate::verify::{VerifyOptions, verify};

fn stream(events: u64, end_sequence: u64) -> RemovedStream {
    RemovedStream { events, bytes: events * 10, end_sequence }
}

#[test]
fn removed_counts_add_up_and_survive() {
    let root = tempfile::tempdir().unwrap();
    let test = TestRecording::new(1, Placement::Free, &[0]);
    let manifest = Manifest { keep: None, ..Manifest::read(&test.volumes[0].dir).unwrap() };
    let mut removed = Removed::read(root.path(), &manifest).unwrap();
    assert_eq!((removed.first_segment, removed.streams.len()), (0, 0));
    for index in 0..2 {
        fs::write(root.path().join(segment_file_name(index)), b"x").unwrap();
    }
    take_away(&removed.enter(root.path(), &[(0, stream(5, 5)), (1, stream(2, 2))]).unwrap()).unwrap();
    take_away(&removed.enter(root.path(), &[(0, stream(4, 12))]).unwrap()).unwrap();
    assert!(!root.path().join(segment_file_name(0)).exists());
    assert!(!root.path().join(segment_file_name(1)).exists());
    let read = Removed::read(root.path(), &manifest).unwrap();
    assert_eq!(read, removed);
    assert_eq!(read.first_segment, 2);
    assert_eq!(read.streams[&0], stream(9, 12));
    assert_eq!(read.left_over(root.path()).count(), 0);
    // Entered but not deleted, as after a crash.
    fs::write(root.path().join(segment_file_name(1)), b"x").unwrap();
    let left: Vec<_> = read.left_over(root.path()).collect();
    assert_eq!(left, [root.path().join(segment_file_name(1))]);
    let other = Manifest { volume_index: 1, ..manifest };
    let error = Removed::read(root.path(), &other).unwrap_err().to_string();
    assert!(error.contains(REMOVED_FILE) && error.contains("another"), "{error}");
}

#[test]
fn marks_never_go_back() {
    let root = tempfile::tempdir().unwrap();
    let id = Id([3; 16]);
    Drained::enter(root.path(), id, &BTreeMap::from([(0, 10), (1, 5)]), 2).unwrap();
    Drained::enter(root.path(), id, &BTreeMap::from([(0, 7), (2, 1)]), 1).unwrap();
    let drained = Drained::read(root.path(), id).unwrap();
    assert_eq!(drained.streams, BTreeMap::from([(0, 10), (1, 5), (2, 1)]));
    assert!(drained.has(2, &[(0, stream(3, 10)), (1, stream(1, 5))]));
    assert!(!drained.has(2, &[(0, stream(3, 10)), (1, stream(1, 6))]));
    assert!(!drained.has(2, &[(9, stream(1, 1))]));
    assert!(drained.has(1, &[(9, stream(1, 1))]), "segment 1 is drained as a whole");
    assert!(Drained::read(root.path(), Id([4; 16])).is_err(), "of another recording");
    let path = root.path().join(DRAINED_FILE);
    let whole = fs::read(&path).unwrap();
    for (at, bit) in (0..whole.len()).zip((0..8).cycle()) {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << bit;
        fs::write(&path, &flipped).unwrap();
        let error = Drained::read(root.path(), id).unwrap_err().to_string();
        assert!(error.contains(DRAINED_FILE), "{error}");
        fs::write(&path, &whole[..at]).unwrap();
        assert!(Drained::read(root.path(), id).is_err(), "cut at {at}");
    }
}

#[test]
fn removed_events_explain_at_most_their_number() {
    let mut removed = stream(5, 12);
    assert_eq!(removed.explain(&(0..4), 4), 4);
    assert_eq!(removed.explain(&(11..14), 3), 1, "12 and 13 are above the end");
    assert_eq!(removed.explain(&(5..8), 3), 0, "all five are already explained");
    assert_eq!(stream(5, 12).explain(&(0..9), 2), 2, "at most the unexplained ones");
}

/// Adds a retention limit to the manifest.
fn keep_a_part(volume: &mut TestVolume) {
    let dir = volume.dir.clone();
    let mut manifest = Manifest::read(&dir).unwrap();
    manifest.keep =
        Some(Keep { limit: KeepLimit::Bytes(1 << 30), disposable: true, until: KeepUntil::Drained });
    volume.journal().replace_manifest(&dir, &manifest).unwrap();
}

#[test]
fn removed_events_are_neither_faults_nor_losses() {
    let mut test = TestRecording::new(2, Placement::Free, &[0]);
    let events = crate::testing::payloads(1, 3, 100);
    for (block, volume) in [0, 1, 0, 1].into_iter().enumerate() {
        test.block(volume, 0, block as u64 * 3, 0, &events);
        if block < 2 {
            test.volumes[volume].rotate();
        } else {
            test.volumes[volume].watermark();
        }
    }
    let dirs = test.dirs();
    test.volumes.iter_mut().for_each(keep_a_part);
    test.release();
    let index = |dir: &Path| {
        let recording = Recording::open(&[dir.to_owned()]).unwrap();
        let volume = recording.volumes().iter().find(|v| v.dir() == dir).unwrap();
        crate::seal::SegmentLookup::open(&volume.segments()[0]).unwrap().streams[0]
    };
    for dir in &dirs {
        let was = index(dir);
        let part = RemovedStream {
            events: was.events,
            bytes: was.payload_bytes,
            end_sequence: was.last_sequence + 1,
        };
        let mut removed = Removed::read(dir, &Manifest::read(dir).unwrap()).unwrap();
        take_away(&removed.enter(dir, &[(0, part)]).unwrap()).unwrap();
    }
    let check = |complete: bool| {
        let recording = Recording::open(&dirs[..1]).unwrap();
        let report = verify(&recording, VerifyOptions { threads: 1 }, &|_| {});
        assert!(report.is_intact(), "{report:#?}");
        assert_eq!(report.streams[&0].removed.events, 6, "{report:#?}");
        if complete {
            assert_eq!((report.streams[&0].recorded.events, report.streams[&0].lost_events), (6, 0));
            let summary = crate::info::info(&recording).unwrap();
            assert_eq!((summary.streams[&0].events, summary.streams[&0].removed.events), (6, 6));
        }
    };
    check(false);
    let report = recover(&dirs).unwrap();
    assert!(report.complete, "{report:#?}");
    let stream = &report.streams[&0];
    assert_eq!((stream.recorded.events, stream.removed.events), (6, 6), "{report:#?}");
    assert!(stream.missing.is_empty(), "{report:#?}");
    check(true);
    assert!(!recover(&dirs).unwrap().changed);
}
