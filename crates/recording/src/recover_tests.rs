//! Interrupted recordings, recovered and verified.
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use keepup_stream::ledger::LossCause;

use super::RecoverOptions;
use crate::error::RecordingError;
use crate::journal::{JOURNAL_FILE, JournalRecord, Rotation, RotationState};
use crate::layout::{SECTOR, segment_file_name};
use crate::manifest::Placement;
use crate::reader::Recording;
use crate::testing::damage::lookup;
use crate::testing::{TestRecording, TestVolume, payloads, recover, recover_with};
use crate::verify::{Ending, VerifyOptions, VerifyReport, verify};

fn verified(recording: &TestRecording) -> VerifyReport {
    verify(&Recording::open(&recording.dirs()).unwrap(), VerifyOptions { threads: 1 }, &|_| {})
}

/// Two volumes with two alternating streams, interrupted: volume 0 has a watermark after all of
/// its blocks, volume 1 only after the first two, and its last block is torn.
fn cut_off() -> TestRecording {
    let mut recording = TestRecording::new(2, Placement::Free, &[1, 2]);
    for turn in 0..4u64 {
        for stream in [1, 2] {
            let events = payloads(turn, 5, 900);
            recording.block((turn % 2) as usize, stream, turn * 5, 0, &events);
        }
        if turn == 1 {
            recording.volumes.iter_mut().for_each(|volume| volume.watermark());
        }
    }
    recording.volumes[0].watermark();
    let path = recording.volumes[1].segment_path();
    let mut bytes = recording.volumes[1].builder.bytes().to_vec();
    let torn = bytes.len() - 900;
    bytes[torn] ^= 1;
    fs::write(&path, &bytes).unwrap();
    recording.release();
    recording
}

#[test]
fn intact_blocks_are_sealed_and_missing_events_are_reported() {
    let recording = cut_off();
    assert!(matches!(verified(&recording).ending, Ending::NotEnded { .. }));
    let report = recover(&recording.dirs()).unwrap();
    assert!(report.complete && report.changed, "{report:#?}");
    let sealed = &report.volumes[1].sealed;
    // On volume 1, stream 1's second block is intact above the watermark, and stream 2's is torn.
    assert_eq!((sealed.len(), sealed[0].blocks, sealed[0].blocks_behind), (1, 3, 1));
    assert_eq!(report.streams[&1].recorded.events, 20);
    assert_eq!(report.streams[&2].recorded.events, 15);
    let after = verified(&recording);
    assert_eq!(after.fault_count, 0, "{after:#?}");
    assert_eq!(after.ending, Ending::Unclean { reason: super::REASON.into() });
    assert_eq!(after.streams[&2].recorded.events, 15);
    assert!(report.master.unwrap().exists());
}

#[test]
fn a_hole_before_durable_events_gets_a_cause() {
    let recording = {
        let mut recording = TestRecording::new(2, Placement::Free, &[2]);
        recording.block(0, 2, 0, 0, &payloads(1, 5, 100));
        // These five were given to volume 1 and not written.
        recording.skip_block(2);
        recording.block(0, 2, 10, 0, &payloads(2, 5, 100));
        recording.volumes.iter_mut().for_each(|volume| volume.watermark());
        recording.release();
        recording
    };
    let report = recover(&recording.dirs()).unwrap();
    assert_eq!(report.streams[&2].missing, [(LossCause::CutOff, 5)].into());
    let after = verified(&recording);
    assert_eq!((after.fault_count, after.lost_events()), (0, 5), "{after:#?}");
}

#[test]
fn a_second_recovery_has_nothing_to_do() {
    let recording = cut_off();
    recover(&recording.dirs()).unwrap();
    let before = snapshot(recording.root.path());
    let report = recover(&recording.dirs()).unwrap();
    assert!(report.complete && !report.changed, "{report:#?}");
    assert_eq!(snapshot(recording.root.path()), before);
}

/// All files below a directory with their bytes.
fn snapshot(root: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(snapshot(&path));
        } else {
            files.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
    files.sort();
    files
}

#[test]
fn a_recording_in_progress_is_refused() {
    let mut recording = TestRecording::new(1, Placement::Free, &[1]);
    recording.block(0, 1, 0, 0, &payloads(1, 5, 100));
    recording.volumes[0].watermark();
    let before = snapshot(recording.root.path());
    let error = super::recover(&recording.dirs(), RecoverOptions::default(), &mut |_| {}).unwrap_err();
    assert!(matches!(error, RecordingError::Busy { .. }), "{error}");
    assert_eq!(snapshot(recording.root.path()), before);
}

#[test]
fn progress_ends_with_every_block_that_was_read() {
    let recording = cut_off();
    let unsealed = |volume: &TestVolume| volume.builder.bytes().len() as u64 - SECTOR as u64;
    let bytes: u64 = recording.volumes.iter().map(unsealed).sum();
    let mut seen = Vec::new();
    recover_with(&recording.dirs(), &mut |progress| seen.push(progress)).unwrap();
    assert!(seen.is_sorted_by_key(|progress| progress.done_bytes));
    assert!(seen.iter().all(|progress| progress.done_bytes <= progress.total_bytes), "{seen:?}");
    let last = seen.last().unwrap();
    assert_eq!(last.done_bytes, last.total_bytes);
    // The torn block was not found, and the first sector of a segment is not one.
    assert!(last.done_bytes > bytes / 2 && last.done_bytes < bytes, "{last:?} of {bytes}");
}

#[test]
fn a_torn_line_is_cut_off_and_an_unused_segment_removed() {
    let recording = cut_off();
    let dir = recording.volumes[0].dir.clone();
    let journal = dir.join(JOURNAL_FILE);
    OpenOptions::new().append(true).open(&journal).unwrap().write_all(b"{\"t\":\"waterm").unwrap();
    // Prepared ahead, never used.
    fs::write(dir.join(segment_file_name(1)), [0; 9000]).unwrap();
    let report = recover(&recording.dirs()).unwrap();
    assert_eq!(report.volumes[0].journal_cut_bytes, 12);
    assert_eq!(report.volumes[0].removed, [dir.join(segment_file_name(1))]);
    assert_eq!(verified(&recording).fault_count, 0);
}

#[test]
fn a_segment_missing_in_the_journal_is_added() {
    let recording = cut_off();
    let dir = recording.volumes[0].dir.clone();
    let journal = dir.join(JOURNAL_FILE);
    // A power loss may lose lines that were not flushed, even if their blocks were.
    let lines = fs::read_to_string(&journal).unwrap();
    let kept: String = lines.split_inclusive('\n').filter(|l| !l.contains("\"segment")).collect();
    fs::write(&journal, kept).unwrap();
    let report = recover(&recording.dirs()).unwrap();
    assert_eq!(report.streams[&1].recorded.events, 20, "{report:#?}");
    assert_eq!(verified(&recording).fault_count, 0);
}

#[test]
fn a_missing_volume_is_reported_and_the_rest_is_sealed() {
    let recording = cut_off();
    let away = recording.root.path().join("away");
    fs::rename(recording.root.path().join("disk1"), &away).unwrap();
    let dirs = vec![recording.volumes[0].dir.clone()];
    let report = recover(&dirs).unwrap();
    assert!(!report.complete && report.streams.is_empty());
    assert_eq!(report.missing_volumes, [recording.root.path().join("disk1")]);
    assert_eq!(report.volumes[0].sealed.len(), 1);
    // When the volume returns, recovery completes.
    fs::rename(away, recording.root.path().join("disk1")).unwrap();
    let report = recover(&dirs).unwrap();
    assert!(report.complete && report.streams[&1].recorded.events == 20);
    assert_eq!(verified(&recording).fault_count, 0);
}

#[test]
fn damage_below_the_watermark_is_reported_and_kept() {
    let recording = cut_off();
    let path = recording.volumes[0].segment_path();
    let mut bytes = fs::read(&path).unwrap();
    bytes[4096 + 20] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let report = recover(&recording.dirs()).unwrap();
    assert!(!report.complete);
    assert!(report.volumes[0].faults[0].contains("at offset 4096"), "{report:#?}");
    assert_eq!(fs::read(&path).unwrap(), bytes, "the file is unchanged");
}

#[test]
fn events_declared_lost_and_found_again_are_not_lost() {
    let mut recording = TestRecording::new(2, Placement::Free, &[2]);
    for turn in 0..3u64 {
        recording.block(usize::from(turn == 1), 2, turn * 5, 0, &payloads(turn, 5, 100));
    }
    recording.volumes.iter_mut().for_each(|volume| volume.watermark());
    // The recorder took volume 1 for failed, but its blocks were written.
    recording.gap(0, 2, 4, 5);
    recording.release();
    let report = recover(&recording.dirs()).unwrap();
    assert_eq!((report.streams[&2].recorded.events, report.streams[&2].missing.len()), (15, 0));
    let after = verified(&recording);
    assert_eq!((after.fault_count, after.lost_events()), (0, 0), "{after:#?}");
}

/// Volume 1 failed and its last block was also given to volume 0. Both copies are intact;
/// `differs` changes the second one.
fn written_twice(differs: bool) -> TestRecording {
    let mut recording = TestRecording::new(2, Placement::Free, &[2]);
    let events: Vec<_> = (0..4).map(|turn| payloads(turn, 5, 900)).collect();
    recording.block(1, 2, 0, 0, &events[0]);
    recording.volumes[1].watermark();
    recording.block(1, 2, 5, 0, &events[1]);
    recording.block_again(0, 2, if differs { &events[3] } else { &events[1] });
    recording.block(0, 2, 10, 0, &events[2]);
    recording.volumes[0].watermark();
    fs::write(recording.volumes[1].segment_path(), recording.volumes[1].builder.bytes()).unwrap();
    let (state, why) = (RotationState::Failed, "writing failed".to_owned());
    let rotation = Rotation { time_unix_ns: 1, volume: 1, state, why };
    recording.volumes[0].journal().append(&JournalRecord::Rotation(rotation)).unwrap();
    recording
}

#[test]
fn a_block_that_was_written_twice_is_kept_once() {
    let mut recording = written_twice(false);
    recording.release();
    let report = recover(&recording.dirs()).unwrap();
    assert!(report.complete, "{report:#?}");
    let sealed: Vec<_> =
        report.volumes.iter().map(|v| (v.sealed[0].blocks, v.sealed[0].duplicates)).collect();
    assert_eq!(sealed, [(2, 0), (1, 1)], "the durable copy stays");
    assert_eq!(report.streams[&2].recorded.events, 15);
    let after = verified(&recording);
    assert_eq!(
        (after.fault_count, after.streams[&2].recorded.events, after.blocks),
        (0, 15, 3),
        "{after:#?}"
    );
    assert!(!recover(&recording.dirs()).unwrap().changed);
}

#[test]
fn blocks_of_the_same_events_that_differ_both_stay() {
    let mut recording = written_twice(true);
    recording.release();
    let report = recover(&recording.dirs()).unwrap();
    assert_eq!(report.volumes[1].sealed[0].duplicates, 0, "{report:#?}");
    assert!(verified(&recording).faults.iter().any(|fault| fault.what.contains("twice")));
}

#[test]
fn a_block_that_was_sealed_twice_counts_once() {
    // As recovered by version 1.
    let mut recording = written_twice(false);
    recording.end();
    let opened = Recording::open(&recording.dirs()).unwrap();
    let report = verified(&recording);
    assert_eq!((report.blocks, report.duplicate_blocks), (4, 1));
    assert_eq!((report.streams[&2].recorded.events, report.fault_count), (15, 0), "{report:#?}");
    let info = crate::info::info(&opened).unwrap();
    assert_eq!(info.streams[&2].events, 15);
    assert_eq!(info.streams[&2].payload_bytes, Some(report.streams[&2].recorded.bytes));
    let mut sequences = Vec::new();
    let mut reader = crate::access::StreamReader::open(&opened, 2).unwrap().unwrap();
    let read = reader.read(crate::access::From::Sequence(0), &mut |event| {
        sequences.push(event.sequence);
        std::ops::ControlFlow::Continue(())
    });
    assert_eq!(read.unwrap(), 15);
    assert_eq!(sequences, (0..15).collect::<Vec<u64>>());
    let all = recording.root.path().join("all.mcap");
    assert_eq!(crate::export::one_file(&opened, None, &all, &mut |_| {}).unwrap().events, 15);
    crate::master::write_master(&opened).unwrap();
    recording.release();
    let recovered = recover(&recording.dirs()).unwrap();
    assert_eq!((recovered.complete, recovered.streams[&2].recorded.events), (true, 15), "{recovered:#?}");
}

#[test]
fn a_damaged_index_is_reported_and_the_blocks_are_counted() {
    let mut recording = cut_off();
    recover(&recording.dirs()).unwrap();
    let path = recording.volumes[0].segment_path();
    let mut bytes = fs::read(&path).unwrap();
    let at = lookup(&bytes).start + 30;
    bytes[at] ^= 1;
    fs::remove_file(&path).unwrap();
    fs::write(&path, &bytes).unwrap();
    recording.release();
    for changed in [false, false] {
        let report = recover(&recording.dirs()).unwrap();
        assert_eq!((report.complete, report.changed), (false, changed), "{report:#?}");
        assert!(report.volumes[0].faults[0].contains("its index of blocks is damaged"), "{report:#?}");
        let recorded = [1, 2].map(|stream| report.streams[&stream].recorded.events);
        assert_eq!(recorded, [20, 15]);
    }
    assert_eq!(fs::read(&path).unwrap(), bytes, "a sealed segment is never touched");
}

#[test]
fn nothing_is_cut_off_that_a_lost_line_may_have_listed_as_durable() {
    let mut recording = TestRecording::new(1, Placement::Free, &[1]);
    let first = recording.block(0, 1, 0, 0, &payloads(1, 5, 900));
    let damaged = recording.volumes[0].builder.bytes().len() + 5000;
    recording.block(0, 1, first, 0, &payloads(2, 9, 900));
    let path = recording.volumes[0].segment_path();
    recording.volumes[0].rotate();
    recording.release();
    // The line with the segment's end is lost, and the segment is damaged.
    let journal = recording.volumes[0].dir.join(JOURNAL_FILE);
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, text.replace("segment_end", "segment_and")).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[damaged] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let report = recover(&recording.dirs()).unwrap();
    assert!(!report.complete && report.volumes[0].sealed.is_empty(), "{report:#?}");
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

/// A stream that starts at event 40: interrupted, with or without the line that says so.
fn started_later(has_line: bool) -> TestRecording {
    let mut recording = TestRecording::new(2, Placement::Free, &[2]);
    for volume in recording.volumes.iter_mut().filter(|_| has_line) {
        let start = JournalRecord::Start { stream: 2, first_sequence: 40 };
        volume.journal().append(&start).unwrap();
    }
    recording.block(0, 2, 40, 0, &payloads(1, 5, 100));
    recording.block(1, 2, 45, 0, &payloads(2, 5, 100));
    recording.volumes.iter_mut().for_each(|volume| volume.watermark());
    recording.release();
    recording
}

#[test]
fn events_before_the_start_of_a_stream_are_not_missing() {
    for has_line in [true, false] {
        let recording = started_later(has_line);
        let report = recover(&recording.dirs()).unwrap();
        assert!(report.complete && report.changed, "{report:#?}");
        assert_eq!((report.streams[&2].recorded.events, report.streams[&2].missing.len()), (10, 0));
        let after = verified(&recording);
        assert_eq!((after.fault_count, after.lost_events()), (0, 0), "{after:#?}");
        assert_eq!(Recording::open(&recording.dirs()).unwrap().starts(), [(2, 40)].into());
        assert!(!recover(&recording.dirs()).unwrap().changed);
    }
}

#[test]
fn a_start_that_cannot_be_is_damage() {
    for (first_sequence, what) in [(0, "cannot start"), (1 << 63, "cannot start"), (40, "second time")] {
        let mut recording = TestRecording::new(1, Placement::Free, &[2]);
        for first_sequence in [30, first_sequence] {
            let start = JournalRecord::Start { stream: 2, first_sequence };
            recording.volumes[0].journal().append(&start).unwrap();
        }
        recording.block(0, 2, 30, 0, &payloads(1, 5, 100));
        recording.end();
        recording.release();
        let report = verified(&recording);
        assert_eq!(report.fault_count, 1, "{report:#?}");
        assert!(report.faults[0].what.contains(what), "{report:#?}");
    }
}
