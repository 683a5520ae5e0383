//! For tests: a set of two recordings that share a part of a stream.

use std::ops::Range;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{
    LocalDirectories, OpenSet, RecordingSet, SET_FILE, SetAccount, SetEnd, SetMove, SetRecording,
    describe_set, verify_set,
};
use crate::id::Id;
use crate::journal::JournalRecord;
use crate::manifest::Placement;
use crate::testing::{TestRecording, payloads};
use crate::verify::VerifyOptions;

/// Recordings of the hosts `daq1` and `daq2`, and their set.
pub(super) struct TestSet {
    pub(super) root: TempDir,
    pub(super) recordings: Vec<TestRecording>,
    pub(super) set: RecordingSet,
}

/// Events of a stream: the same in every recording.
pub(super) fn event(stream: u32, sequence: u64) -> (u64, Vec<u8>) {
    match stream % 2 {
        0 => (1000 + sequence, vec![(u64::from(stream) * 7 + sequence) as u8; 64]),
        _ => (1000 + sequence, payloads(sequence, 1, 300).remove(0).1),
    }
}

pub(super) fn id(host: u8) -> Id {
    Id([0xD0 + host; 16])
}

impl TestSet {
    /// `daq1` has stream 2 up to event 20 and stream 3; `daq2` has stream 2 from event `from` to 40, in
    /// blocks of another length, and stream 4.
    pub(super) fn new(from: u64) -> TestSet {
        let mut daq1 = TestRecording::with_id(id(1), 2, Placement::Free, &[2, 3]);
        for turn in 0..4 {
            add(&mut daq1, (turn % 2) as usize, 2, turn * 5..turn * 5 + 5);
            add(&mut daq1, (turn % 2) as usize, 3, turn * 5..turn * 5 + 5);
        }
        let mut daq2 = TestRecording::with_id(id(2), 1, Placement::Free, &[2, 4]);
        let mut at = from;
        while at < 40 {
            let end = (at + 7).min(40);
            add(&mut daq2, 0, 2, at..end);
            at = end;
        }
        add(&mut daq2, 0, 4, 0..3);
        TestSet::of(vec![daq1, daq2])
    }

    pub(super) fn of(recordings: Vec<TestRecording>) -> TestSet {
        let entry = |(number, recording): (usize, &TestRecording)| SetRecording {
            host: format!("daq{}", number + 1),
            id: Some(id(number as u8 + 1)),
            directories: recording.dirs(),
            end: SetEnd::Finished,
            why: None,
        };
        let entries = recordings.iter().enumerate().map(entry).collect();
        let set = RecordingSet {
            name: "run 7".into(),
            run: Some(7),
            id: Id([0xAB; 16]),
            created_unix_ns: 1_700_000_000_000_000_000,
            fleet: "hall-3".into(),
            recordings: entries,
            moves: vec![SetMove {
                from: "daq1".into(),
                to: Some("daq2".into()),
                epoch: 2,
                at_unix_ns: 1_700_000_001_000_000_000,
            }],
        };
        TestSet { root: tempfile::tempdir().unwrap(), recordings, set }
    }

    /// Ends all recordings.
    pub(super) fn end(&mut self) {
        self.recordings.iter_mut().for_each(|recording| {
            recording.end();
            recording.release();
        });
    }

    /// Ends the recording at this index, or cuts it off.
    pub(super) fn finish(&mut self, index: usize, is_clean: bool) {
        let recording = &mut self.recordings[index];
        match is_clean {
            true => recording.end(),
            false => recording.volumes.iter_mut().for_each(|volume| volume.watermark()),
        }
        recording.release();
    }

    pub(super) fn path(&self) -> PathBuf {
        self.root.path().join(SET_FILE)
    }

    pub(super) fn open(&self) -> OpenSet {
        self.open_at(&LocalDirectories::new())
    }

    pub(super) fn open_at(&self, at: &LocalDirectories) -> OpenSet {
        self.set.write(&self.path()).unwrap();
        OpenSet::open(&self.path(), at).unwrap()
    }
}

/// Adds a block with these events.
pub(super) fn add(recording: &mut TestRecording, volume: usize, stream: u32, events: Range<u64>) {
    add_later(recording, volume, stream, events, 0);
}

/// The same with later times.
pub(super) fn add_later(
    recording: &mut TestRecording,
    volume: usize,
    stream: u32,
    events: Range<u64>,
    delay_ns: u64,
) {
    let later = |(time_ns, payload): (u64, Vec<u8>)| (time_ns + delay_ns, payload);
    let content: Vec<_> = events.clone().map(|sequence| later(event(stream, sequence))).collect();
    recording.block(volume, stream, events.start, 0, &content);
}

/// A recording of host number `host` with one volume and these streams: id, start, and recorded events.
pub(super) fn continued(host: u8, streams: &[(u32, u64, Range<u64>)]) -> TestRecording {
    let ids: Vec<u32> = streams.iter().map(|(stream, ..)| *stream).collect();
    let mut recording = TestRecording::with_id(id(host), 1, Placement::Free, &ids);
    for (stream, start, events) in streams {
        if *start > 0 {
            let record = JournalRecord::Start { stream: *stream, first_sequence: *start };
            recording.volumes[0].journal().append(&record).unwrap();
        }
        if !events.is_empty() {
            add(&mut recording, 0, *stream, events.clone());
        }
    }
    recording
}

/// Account of a set without a comparison of duplicates.
pub(super) fn account(open: &OpenSet) -> SetAccount {
    describe_set(open, false).account
}

/// The same with a comparison.
pub(super) fn account_and_compare(open: &OpenSet) -> SetAccount {
    verify_set(open, VerifyOptions { threads: 1 }, &|| 0, &|_| {}).account
}

/// Moves a directory tree to another place.
pub(super) fn move_to(from: &Path, to: &Path) {
    std::fs::rename(from, to).unwrap();
}
