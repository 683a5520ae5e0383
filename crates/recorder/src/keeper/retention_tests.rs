//! Which segments are removed and which are kept.
use std::collections::BTreeMap;
use std::path::PathBuf;

use keepup_recording::archived::{ArchivedFile, StateLine, size_and_time};
use keepup_recording::layout::segment_file_name;
use keepup_recording::line::put_line;

use super::*;

const SECOND_NS: u64 = 1_000_000_000;

struct Ring {
    root: tempfile::TempDir,
    retention: Retention,
    segments: u32,
}

impl Ring {
    fn new(limit: KeepLimit, disposable: bool, volumes: usize) -> Self {
        let root = tempfile::tempdir().unwrap();
        let retention = Retention::new(
            Keep { limit, disposable, until: KeepUntil::Drained },
            Removed::default(),
            volumes,
            root.path(),
            100,
        );
        Self { root, retention, segments: 0 }
    }

    /// Seals a segment of 100 bytes with ten events of stream 0, at this second.
    fn seal(&mut self, second: u64) {
        std::fs::write(self.file(self.segments), b"blocks").unwrap();
        self.segments += 1;
        let end_sequence = u64::from(self.segments) * 10;
        let stream = RemovedStream { events: 10, bytes: 90, end_sequence };
        self.retention.sealed(self.segments - 1, 100, second * SECOND_NS, vec![(0, stream)]);
    }

    fn file(&self, index: u32) -> PathBuf {
        self.root.path().join(segment_file_name(index))
    }

    fn enforce(&mut self, second: u64) -> u64 {
        // As often as an idle keeper.
        let mut excess = 0;
        for _ in 0..10 {
            excess = self.retention.enforce(self.root.path(), Id::default(), second * SECOND_NS).unwrap();
        }
        excess
    }

    fn left(&self) -> Vec<u32> {
        (0..self.segments).filter(|index| self.file(*index).exists()).collect()
    }
}

#[test]
fn a_size_limit_removes_the_oldest_and_counts_two_open_segments() {
    // 1000 bytes on two volumes: 500 here, including 200 for the one being written and the next.
    let mut ring = Ring::new(KeepLimit::Bytes(1000), true, 2);
    (0..3).for_each(|second| ring.seal(second));
    assert_eq!((ring.enforce(3), ring.left()), (0, vec![0, 1, 2]));
    (3..5).for_each(|second| ring.seal(second));
    assert_eq!((ring.enforce(1000), ring.left()), (0, vec![2, 3, 4]));
    assert_eq!(ring.retention.removed.streams[&0].events, 20);
}

#[test]
fn an_unsealed_segment_stays_with_all_later_ones() {
    let mut ring = Ring::new(KeepLimit::Bytes(300), true, 1);
    ring.seal(0);
    std::fs::write(ring.file(1), b"blocks").unwrap();
    ring.segments += 1;
    (2..6).for_each(|second| ring.seal(second));
    ring.enforce(9);
    assert_eq!(ring.left(), [1, 2, 3, 4, 5], "an unsealed segment must be kept");
}

#[test]
fn an_age_limit_removes_old_segments() {
    let mut ring = Ring::new(KeepLimit::Seconds(60), true, 1);
    [0, 30, 50].into_iter().for_each(|second| ring.seal(second));
    assert_eq!((ring.enforce(59), ring.left()), (0, vec![0, 1, 2]));
    assert_eq!((ring.enforce(90), ring.left()), (0, vec![2]));
}

#[test]
fn segments_without_a_copy_elsewhere_are_kept() {
    let mut ring = Ring::new(KeepLimit::Bytes(300), false, 1);
    (0..4).for_each(|second| ring.seal(second));
    assert_eq!((ring.enforce(9), ring.left()), (300, vec![0, 1, 2, 3]));
    let mark =
        |ring: &Ring, end| Drained::enter(ring.root.path(), Id::default(), &BTreeMap::from([(0, end)]), 0);
    mark(&ring, 19).unwrap();
    assert_eq!(
        (ring.enforce(9), ring.left()),
        (200, vec![1, 2, 3]),
        "the last event of segment 2 has no copy elsewhere"
    );
    mark(&ring, 40).unwrap();
    assert_eq!((ring.enforce(9), ring.left()), (0, vec![3]));
    (4..6).for_each(|second| ring.seal(second));
    Drained::enter(ring.root.path(), Id::default(), &BTreeMap::new(), 5).unwrap();
    ring.seal(6);
    ring.seal(7);
    assert_eq!(
        (ring.enforce(9), ring.left()),
        (200, vec![5, 6, 7]),
        "segments below the number may be removed"
    );
}

/// Writes a state file that says that an archive has these segments.
fn write_state(ring: &Ring, segments: impl Iterator<Item = u32>, bytes: u64, intact: Option<bool>) {
    let begin = StateLine::Begin { recording: Id::default(), to: "s3://bucket/run".to_owned() };
    let line = |index| {
        let modified = size_and_time(&ring.file(index)).map_or(0, |(_, modified)| modified);
        let (path, sha256) = (segment_file_name(index), "0".repeat(64));
        let file = ArchivedFile { path, bytes, sha256, modified_unix_ns: modified };
        StateLine::File { file, etag: None, intact }
    };
    let mut all = Vec::new();
    for line in std::iter::once(begin).chain(segments.map(line)) {
        let mut text = Vec::new();
        put_line(&mut text, &line).unwrap();
        all.extend_from_slice(&text);
    }
    std::fs::write(ring.root.path().join("archive-0.jsonl"), all).unwrap();
}

#[test]
fn segments_are_kept_until_an_archive_has_them() {
    let mut ring = Ring::new(KeepLimit::Bytes(300), false, 1);
    let keep = Keep { limit: KeepLimit::Bytes(300), disposable: false, until: KeepUntil::Archived };
    ring.retention = Retention::new(keep, Removed::default(), 1, ring.root.path(), 100);
    (0..4).for_each(|second| ring.seal(second));
    (0..4).for_each(|index| std::fs::write(ring.file(index), [0; 100]).unwrap());
    Drained::enter(ring.root.path(), Id::default(), &BTreeMap::from([(0, 99)]), 4).unwrap();
    assert_eq!((ring.enforce(9), ring.left()), (300, vec![0, 1, 2, 3]), "drained is not archived");
    write_state(&ring, 0..4, 100, None);
    assert_eq!((ring.enforce(10), ring.left()), (300, vec![0, 1, 2, 3]), "not checked");
    write_state(&ring, 0..4, 99, Some(true));
    assert_eq!((ring.enforce(11), ring.left()), (300, vec![0, 1, 2, 3]), "another length");
    write_state(&ring, 0..1, 100, Some(true));
    assert_eq!((ring.enforce(12), ring.left()), (200, vec![1, 2, 3]));
    write_state(&ring, 2..4, 100, Some(true));
    assert_eq!((ring.enforce(13), ring.left()), (100, vec![1, 2, 3]), "segment 1 is not archived");
    write_state(&ring, 1..4, 100, Some(true));
    std::fs::remove_file(ring.root.path().join("archive-0.jsonl")).unwrap();
    assert_eq!((ring.enforce(14), ring.left()), (200, vec![1, 2, 3]), "the state file was lost");
    write_state(&ring, 1..4, 100, Some(true));
    assert_eq!((ring.enforce(15), ring.left()), (0, vec![3]));
}

/// A recording whose four segments of 100 bytes, three of them beyond the limit, are in an archive.
fn archived_ring() -> Ring {
    let mut ring = Ring::new(KeepLimit::Bytes(300), false, 1);
    let keep = Keep { limit: KeepLimit::Bytes(300), disposable: false, until: KeepUntil::Archived };
    ring.retention = Retention::new(keep, Removed::default(), 1, ring.root.path(), 100);
    (0..4).for_each(|second| ring.seal(second));
    (0..4).for_each(|index| std::fs::write(ring.file(index), [0; 100]).unwrap());
    write_state(&ring, 0..4, 100, Some(true));
    ring
}

#[test]
fn state_files_are_read_once_per_second() {
    let mut ring = archived_ring();
    let state = ring.root.path().join("archive-0.jsonl");
    let whole = std::fs::read(&state).unwrap();
    std::fs::remove_file(&state).unwrap();
    let mut enforce = |ns| ring.retention.enforce(ring.root.path(), Id::default(), ns).unwrap();
    assert_eq!(enforce(9 * SECOND_NS), 300);
    std::fs::write(&state, whole).unwrap();
    assert_eq!(enforce(10 * SECOND_NS - 1), 300, "not read again");
    assert_eq!(enforce(10 * SECOND_NS), 0);
}

#[test]
fn an_archive_that_is_begun_between_two_looks_is_seen_before_a_removal() {
    let mut ring = archived_ring();
    ring.retention.enforce(ring.root.path(), Id::default(), 9 * SECOND_NS).unwrap();
    assert_eq!(ring.left(), [1, 2, 3]);
    let second = ring.root.path().join("archive-1.jsonl");
    std::fs::write(&second, b"").unwrap();
    for _ in 0..3 {
        ring.retention.enforce(ring.root.path(), Id::default(), 9 * SECOND_NS + 5).unwrap();
    }
    assert_eq!(ring.left(), [1, 2, 3]);
    assert!(ring.retention.take_warnings().is_empty());
    std::fs::remove_file(second).unwrap();
    assert_eq!((ring.enforce(11), ring.left()), (0, vec![3]), "an abandoned archive is released");
}

#[test]
fn a_damaged_state_file_blocks_removal_with_one_warning() {
    let mut ring = archived_ring();
    let second = ring.root.path().join("archive-1.jsonl");
    std::fs::write(&second, b"damaged\n").unwrap();
    assert_eq!((ring.enforce(9), ring.enforce(11), ring.left()), (300, 300, vec![0, 1, 2, 3]));
    let warnings = ring.retention.take_warnings();
    assert!(
        warnings.len() == 1 && warnings[0].contains("archive-1.jsonl: damaged first line"),
        "{warnings:?}"
    );
    assert!(ring.retention.take_warnings().is_empty());
}

#[test]
fn a_segment_that_has_changed_since_it_was_archived_is_kept() {
    let mut ring = archived_ring();
    let file = std::fs::File::options().write(true).open(ring.file(0)).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!((ring.enforce(9), ring.enforce(11), ring.left()), (100, 100, vec![0, 1, 2, 3]));
    let warnings = ring.retention.take_warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("has changed since it was archived"), "{warnings:?}");
    write_state(&ring, 0..4, 100, Some(true));
    assert_eq!((ring.enforce(13), ring.left()), (0, vec![3]), "archived again");
}
