//! Segments that cannot be sealed or vanish, archives that change, and leftovers of killed copies.
use std::sync::atomic::Ordering;
use std::time::Duration;

use keepup_measure::clock::SystemClock;
use keepup_recording::fixture::{SegmentBuilder, manifest, scene_segment_of, scene_stream};
use keepup_recording::id::Id;
use keepup_recording::journal::{Journal, JournalRecord};
use keepup_recording::layout::segment_file_name;
use keepup_recording::manifest::Manifest;
use keepup_recording::retention::{Keep, KeepLimit, Removed, take_away};

use super::*;
use crate::inventory::Inventory;

/// Blocks of a small segment.
const SMALL: u64 = 40;
/// Blocks of a segment of 32 MiB, which is more than is read ahead.
const LARGE: u64 = 4096;

/// A recording of several segments in progress, and an empty archive.
struct Scene {
    place: tempfile::TempDir,
    dir: PathBuf,
    journal: Journal,
    manifest: Manifest,
}

impl Scene {
    /// A recording with `count` segments of `blocks`, which are sealed unless listed in `unsealed`.
    fn new(keep: Option<Keep>, count: u32, blocks: u64, unsealed: &[u32]) -> Self {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("volume");
        std::fs::create_dir(&root).unwrap();
        std::fs::create_dir(place.path().join("tape")).unwrap();
        let manifest = Manifest { keep, ..manifest(vec![root.clone()], 0) };
        let dir = manifest.create(&root).unwrap();
        let mut journal = Journal::create(&dir, &manifest).unwrap();
        journal.append(&JournalRecord::Stream(scene_stream())).unwrap();
        for index in 0..count {
            let (id, file) = (Id([index as u8 + 1; 16]), segment_file_name(index));
            let builder: SegmentBuilder = scene_segment_of(id, index, blocks).unwrap();
            let data_bytes = builder.bytes().len() as u64;
            let whole = builder.finish();
            std::fs::write(dir.join(&file), &whole).unwrap();
            let bytes = whole.len() as u64;
            journal.append(&JournalRecord::Segment { index, id, file, preallocated_bytes: bytes }).unwrap();
            if !unsealed.contains(&index) {
                let end = JournalRecord::SegmentEnd { index, bytes, data_bytes, blocks };
                journal.append(&end).unwrap();
            }
        }
        journal.flush().unwrap();
        Self { place, dir, journal, manifest }
    }

    /// Ends the recording.
    fn end(&mut self) {
        let end = JournalRecord::End { clean: false, reason: "test".to_owned(), streams: Vec::new() };
        self.journal.append_durable(&end).unwrap();
    }

    fn tape(&self) -> PathBuf {
        self.place.path().join("tape/run")
    }

    fn plan(&self) -> ArchivePlan {
        let to = Location::parse(&format!("file://{}", self.place.path().join("tape").display())).unwrap();
        ArchivePlan {
            recording: vec![self.dir.clone()],
            to,
            rate: None,
            follow: false,
            read_back: false,
            connections: 3,
            part_bytes: 1000,
        }
    }

    fn archive(&self, plan: &ArchivePlan, stop: bool) -> (Result<ArchiveReport, ArchiveError>, Vec<String>) {
        let live = ArchiveCounters::default();
        let outcome = archive(plan, &SystemClock, &AtomicBool::new(stop), &live);
        (outcome, live.take_warnings())
    }
}

#[test]
fn segments_behind_an_unsealed_one_are_sent_at_once() {
    let mut scene = Scene::new(None, 3, SMALL, &[0]);
    let (outcome, _) = scene.archive(&scene.plan(), false);
    assert!(!outcome.unwrap().is_archived, "the recording has not ended");
    let sent = |index| scene.tape().join(segment_file_name(index)).exists();
    assert_eq!([sent(0), sent(1), sent(2)], [false, true, true]);
    scene.end();
    let (outcome, _) = scene.archive(&scene.plan(), false);
    let report = outcome.unwrap();
    assert!(report.is_archived && report.files == 5, "{report:?}");
}

#[test]
fn a_segment_that_is_sealed_after_later_ones_were_sent_is_sent() {
    let mut scene = Scene::new(None, 3, SMALL, &[0]);
    assert!(!scene.archive(&scene.plan(), false).0.unwrap().is_archived);
    let bytes = std::fs::metadata(scene.dir.join(segment_file_name(0))).unwrap().len();
    let data_bytes = scene_segment_of(Id([1; 16]), 0, SMALL).unwrap().bytes().len() as u64;
    let end = JournalRecord::SegmentEnd { index: 0, bytes, data_bytes, blocks: SMALL };
    scene.journal.append(&end).unwrap();
    scene.end();
    let report = scene.archive(&scene.plan(), false).0.unwrap();
    assert!(report.is_archived && report.archived_segments == 3, "{report:?}");
}

const RING: Keep = Keep { limit: KeepLimit::Bytes(1 << 30), disposable: true, until: KeepUntil::Drained };
const ARCHIVED: Keep = Keep { disposable: false, until: KeepUntil::Archived, ..RING };

impl Scene {
    /// Removes the first segment, as the recorder does.
    fn remove_first(&self) {
        let mut removed = Removed::read(&self.dir, &self.manifest).unwrap();
        let path = removed.enter(&self.dir, &[]).unwrap();
        take_away(&path).unwrap().set_len(5000).unwrap();
    }

    /// Paths in the inventory.
    fn listed(&self) -> Vec<String> {
        let inventory = std::fs::read(self.tape().join(INVENTORY_FILE)).unwrap();
        Inventory::parse(&inventory).unwrap().files.into_iter().map(|file| file.path).collect()
    }

    /// State file of the copy.
    fn state(&self) -> PathBuf {
        let entries = std::fs::read_dir(&self.dir).unwrap().map(|entry| entry.unwrap().path());
        let is_state = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("archive-");
        entries.into_iter().find(is_state).unwrap()
    }
}

/// Removes segment 0 while the copy of the recording has sent part of it, and ends the recording.
fn with_a_removal(scene: &mut Scene, part_bytes: u64, rate: f64) -> (ArchiveReport, Vec<String>) {
    let plan = ArchivePlan { rate: Some(rate), follow: true, part_bytes, connections: 1, ..scene.plan() };
    let live = ArchiveCounters::default();
    let outcome = std::thread::scope(|scope| {
        let copy = scope.spawn(|| archive(&plan, &SystemClock, &AtomicBool::new(false), &live));
        while live.done_bytes.load(Ordering::Relaxed) == 0 && !copy.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        scene.remove_first();
        scene.end();
        copy.join().unwrap()
    });
    (outcome.unwrap(), live.take_warnings())
}

#[test]
fn a_segment_that_is_removed_before_it_was_read_does_not_end_the_copy() {
    let mut scene = Scene::new(Some(RING), 3, LARGE, &[]);
    let (report, warnings) = with_a_removal(&mut scene, 1 << 20, 60e6);
    assert!(report.is_archived && report.archived_segments == 2, "{report:?}");
    assert!(warnings.iter().any(|what| what.contains("was removed before")), "{warnings:?}");
    let wanted =
        ["journal.jsonl", "keepup.json", "removed.jsonl", "segment-000001.mcap", "segment-000002.mcap"];
    assert_eq!(scene.listed(), wanted);
}

#[test]
fn a_segment_that_is_removed_after_it_was_read_is_archived() {
    let mut scene = Scene::new(Some(RING), 3, SMALL, &[]);
    let (report, warnings) = with_a_removal(&mut scene, 1000, 400e3);
    assert!(report.is_archived && report.archived_segments == 3, "{report:?} {warnings:?}");
}

/// Removes a segment that is archived, and loses what `lose` names. The copy must end with all segments.
fn with_a_loss(lose: impl Fn(&Scene)) -> (Scene, Result<ArchiveReport, ArchiveError>, Vec<String>) {
    let mut scene = Scene::new(Some(ARCHIVED), 3, SMALL, &[]);
    assert!(!scene.archive(&scene.plan(), false).0.unwrap().is_archived);
    scene.remove_first();
    scene.remove_first();
    lose(&scene);
    scene.end();
    let (outcome, warnings) = scene.archive(&scene.plan(), false);
    (scene, outcome, warnings)
}

#[test]
fn a_removed_segment_stays_in_the_archive_without_the_state_file() {
    for lose in [|_: &Scene| {}, |scene: &Scene| std::fs::remove_file(scene.state()).unwrap()] {
        let (scene, outcome, warnings) = with_a_loss(lose);
        let report = outcome.unwrap();
        assert!(report.is_archived && report.archived_segments == 3, "{report:?} {warnings:?}");
        let listed = scene.listed();
        assert!(listed.contains(&"segment-000000.mcap".to_owned()) && listed.len() == 5, "{listed:?}");
    }
}

#[test]
fn a_removed_segment_that_the_archive_lost_is_an_error() {
    let segment = |scene: &Scene| scene.tape().join(segment_file_name(0));
    let damage = |scene: &Scene| {
        let mut bytes = std::fs::read(segment(scene)).unwrap();
        bytes[9000] ^= 1;
        std::fs::remove_file(segment(scene)).unwrap();
        std::fs::write(segment(scene), bytes).unwrap();
    };
    let losses: [&dyn Fn(&Scene); 3] =
        [&|scene| std::fs::remove_file(segment(scene)).unwrap(), &damage, &|scene| {
            damage(scene);
            std::fs::remove_file(scene.state()).unwrap();
        }];
    for lose in losses {
        let (scene, outcome, _) = with_a_loss(lose);
        assert!(matches!(outcome, Err(ArchiveError::Vanished { segment: 0, .. })), "{outcome:?}");
        assert!(!scene.tape().join(INVENTORY_FILE).exists());
        let again = scene.archive(&scene.plan(), false).0;
        assert!(matches!(again, Err(ArchiveError::Vanished { segment: 0, .. })), "{again:?}");
        let whole = scene_segment_of(Id([1; 16]), 0, SMALL).unwrap().finish();
        std::fs::write(segment(&scene), whole).unwrap();
        let report = scene.archive(&scene.plan(), false).0.unwrap();
        assert!(report.is_archived && report.archived_segments == 3, "restored from a backup: {report:?}");
    }
}

const DRAINED: Keep = Keep { until: KeepUntil::Drained, ..ARCHIVED };

#[test]
fn a_copy_that_begins_after_a_removal_is_partial() {
    for (keep, is_archived) in [(ARCHIVED, false), (DRAINED, false), (RING, true)] {
        let mut scene = Scene::new(Some(keep), 3, SMALL, &[]);
        scene.remove_first();
        assert!(!scene.archive(&scene.plan(), false).0.unwrap().is_archived, "not ended");
        scene.end();
        for _ in 0..2 {
            let report = scene.archive(&scene.plan(), false).0.unwrap();
            assert_eq!((report.is_archived, report.removed_segments), (is_archived, 1), "{report:?}");
        }
        let wanted =
            ["journal.jsonl", "keepup.json", "removed.jsonl", "segment-000001.mcap", "segment-000002.mcap"];
        assert_eq!(scene.listed(), wanted);
    }
}

#[test]
fn a_segment_that_was_removed_between_archived_ones_is_an_error() {
    for (keep, is_error) in [(DRAINED, true), (RING, false)] {
        let mut scene = Scene::new(Some(keep), 4, SMALL, &[1]);
        assert!(!scene.archive(&scene.plan(), false).0.unwrap().is_archived, "not ended");
        let bytes = std::fs::metadata(scene.dir.join(segment_file_name(1))).unwrap().len();
        let data_bytes = scene_segment_of(Id([2; 16]), 1, SMALL).unwrap().bytes().len() as u64;
        let end = JournalRecord::SegmentEnd { index: 1, bytes, data_bytes, blocks: SMALL };
        scene.journal.append(&end).unwrap();
        scene.remove_first();
        scene.remove_first();
        scene.end();
        let (outcome, _) = scene.archive(&scene.plan(), false);
        if is_error {
            assert!(matches!(outcome, Err(ArchiveError::Removed { segment: 1, .. })), "{outcome:?}");
            assert!(!scene.tape().join(INVENTORY_FILE).exists());
        } else {
            let report = outcome.unwrap();
            assert_eq!((report.is_archived, report.removed_segments), (true, 2), "{report:?}");
        }
    }
}

#[test]
fn a_loss_is_noted_before_the_next_request_fails() {
    let mut scene = Scene::new(Some(ARCHIVED), 3, SMALL, &[]);
    scene.end();
    assert!(scene.archive(&scene.plan(), false).0.unwrap().is_archived);
    let object = |index| scene.tape().join(segment_file_name(index));
    std::fs::remove_file(object(0)).unwrap();
    // Its length cannot be determined.
    std::fs::remove_file(object(1)).unwrap();
    std::os::unix::fs::symlink(object(1), object(1)).unwrap();
    let outcome = scene.archive(&scene.plan(), false).0;
    assert!(matches!(outcome, Err(ArchiveError::Store { .. })), "{outcome:?}");
    let state = std::fs::read_to_string(scene.state()).unwrap();
    assert!(state.contains("\"forgotten\"") && state.contains(&segment_file_name(0)), "{state}");
    assert!(!scene.tape().join(INVENTORY_FILE).exists());
    std::fs::remove_file(object(1)).unwrap();
    let report = scene.archive(&scene.plan(), false).0.unwrap();
    assert!(report.is_archived && report.archived_segments == 3, "{report:?}");
}

#[test]
fn without_a_state_file_the_warning_says_that_nothing_is_removed() {
    let scene = |keep| Scene::new(keep, 1, SMALL, &[]);
    let warning = |scene: Scene| cannot_keep_state(&scene.dir, &scene.manifest);
    assert!(warning(scene(Some(ARCHIVED))).contains("removes no segment (--keep-until archived)"));
    for keep in [None, Some(DRAINED), Some(RING)] {
        assert!(warning(scene(keep)).ends_with("an interrupted copy will start over"));
    }
}

#[test]
fn an_archive_that_another_recording_takes_permits_no_removal() {
    let scene = Scene::new(Some(ARCHIVED), 3, SMALL, &[]);
    let plan = ArchivePlan { rate: Some(400e3), connections: 1, ..scene.plan() };
    let live = ArchiveCounters::default();
    let outcome = std::thread::scope(|scope| {
        let copy = scope.spawn(|| archive(&plan, &SystemClock, &AtomicBool::new(false), &live));
        while live.done_bytes.load(Ordering::Relaxed) == 0 && !copy.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let other = Manifest { recording: Id([99; 16]), ..scene.manifest.clone() };
        std::fs::write(scene.tape().join("keepup.json"), serde_json::to_vec(&other).unwrap()).unwrap();
        copy.join().unwrap()
    });
    assert!(matches!(outcome, Err(ArchiveError::Taken { .. })), "{outcome:?}");
    let state = std::fs::read_to_string(scene.state()).unwrap();
    assert!(!state.contains("\"file\""), "{state}");
    assert!(!scene.tape().join("receipts").exists());
}

#[test]
fn a_damaged_segment_is_archived_and_never_proven() {
    let mut scene = Scene::new(Some(ARCHIVED), 2, SMALL, &[]);
    let path = scene.dir.join(segment_file_name(1));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[20_000] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    scene.end();
    let (outcome, warnings) = scene.archive(&scene.plan(), false);
    let report = outcome.unwrap();
    assert_eq!((report.archived_segments, report.damaged_segments), (2, 1), "{report:?}");
    assert!(warnings.iter().any(|what| what.contains("damaged at offset")), "{warnings:?}");
    assert_eq!(std::fs::read(scene.tape().join(segment_file_name(1))).unwrap(), bytes);
    let mut states =
        keepup_recording::archived::ArchiveStates::new(&scene.dir, scene.manifest.recording, None);
    states.poll();
    let is_proven = |index| {
        let bytes = std::fs::metadata(scene.dir.join(segment_file_name(index))).unwrap().len();
        states.proof(0, index, bytes).is_some()
    };
    assert_eq!([is_proven(0), is_proven(1)], [true, false]);
    assert_eq!(scene.archive(&scene.plan(), false).0.unwrap().damaged_segments, 1, "still known");
}

#[test]
fn an_archive_that_is_sent_again_has_no_inventory_meanwhile() {
    let mut scene = Scene::new(None, 2, SMALL, &[]);
    scene.end();
    assert!(scene.archive(&scene.plan(), false).0.unwrap().is_archived);
    let inventory = scene.tape().join(INVENTORY_FILE);
    assert!(inventory.exists());
    std::fs::remove_file(scene.tape().join(segment_file_name(1))).unwrap();
    let (outcome, _) = scene.archive(&scene.plan(), true);
    assert!(matches!(outcome, Err(ArchiveError::Stopped)), "{outcome:?}");
    assert!(!inventory.exists(), "the archive lacks a segment");
    assert!(scene.archive(&scene.plan(), false).0.unwrap().is_archived && inventory.exists());
    // A file that has changed on this side, as after a recovery.
    scene.journal.append_durable(&JournalRecord::Recover { tool_version: "0".to_owned() }).unwrap();
    scene.end();
    let plan = ArchivePlan { rate: Some(1.0), ..scene.plan() };
    let (outcome, _) = scene.archive(&plan, true);
    assert!(matches!(outcome, Err(ArchiveError::Stopped)), "{outcome:?}");
    assert!(!inventory.exists(), "the journal in the archive is an old one");
    assert!(scene.archive(&scene.plan(), false).0.unwrap().is_archived && inventory.exists());
}

#[test]
fn leftovers_of_a_killed_copy_are_removed_from_a_directory() {
    let mut scene = Scene::new(None, 2, SMALL, &[]);
    scene.end();
    let tape = scene.tape();
    std::fs::create_dir(&tape).unwrap();
    let leftovers = ["segment-000001.mcap#1", "keepup.json#12", "keepup-archive.json#1"];
    let others = ["notes.txt#1", "segment-000001.mcap#x", "segment-1.mcap#1"];
    leftovers.iter().chain(&others).for_each(|name| std::fs::write(tape.join(name), "x").unwrap());
    assert!(scene.archive(&scene.plan(), false).0.unwrap().is_archived);
    assert_eq!(leftovers.map(|name| tape.join(name).exists()), [false; 3]);
    assert_eq!(others.map(|name| tape.join(name).exists()), [true; 3]);
}
