//! Copies of a small recording to a directory and back.
use keepup_measure::clock::SystemClock;
use keepup_recording::fixture::{scene, scene_segment};
use keepup_recording::recover::{RecoverOptions, recover};

use super::*;
use crate::restore::{RestorePlan, restore};

/// A recording with one sealed segment, and an empty archive.
struct Scene {
    place: tempfile::TempDir,
    recording: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("volume");
        std::fs::create_dir(&root).unwrap();
        std::fs::create_dir(place.path().join("tape")).unwrap();
        let recording = scene(&root, &scene_segment(40).unwrap()).unwrap();
        Self { place, recording }
    }

    /// Ends the recording, as after a crash.
    fn end(&self) {
        let options = RecoverOptions::default();
        let report = recover(std::slice::from_ref(&self.recording), options, &mut |_| {}).unwrap();
        assert!(report.changed, "{report:?}");
    }

    fn location(&self) -> Location {
        Location::parse(&format!("file://{}", self.place.path().join("tape").display())).unwrap()
    }

    fn archive(&self, part_bytes: u64, stop: bool) -> Result<ArchiveReport, ArchiveError> {
        let plan = ArchivePlan {
            recording: vec![self.recording.clone()],
            to: self.location(),
            rate: None,
            follow: false,
            read_back: false,
            connections: 3,
            part_bytes,
        };
        archive(&plan, &SystemClock, &AtomicBool::new(stop), &ArchiveCounters::default())
    }
}

#[test]
fn a_recording_without_an_end_is_cut_off() {
    let scene = Scene::new();
    let outcome = scene.archive(1 << 20, false);
    assert!(matches!(outcome, Err(ArchiveError::CutOff { .. })), "{outcome:?}");
}

#[test]
fn what_is_archived_is_restored_in_parts_of_any_size() {
    for part_bytes in [1 << 20, 1000, 4096] {
        let scene = Scene::new();
        scene.end();
        let report = scene.archive(part_bytes, false).unwrap();
        assert!(report.is_archived && report.files == 3, "{report:?}");
        let name = scene.recording.file_name().unwrap().to_str().unwrap().to_owned();
        let to = scene.place.path().join("back");
        let plan = RestorePlan {
            from: scene.location().below(&name),
            to: to.clone(),
            rate: None,
            connections: 2,
            part_bytes,
        };
        let stopped = restore(&plan, &SystemClock, &AtomicBool::new(true), &ArchiveCounters::default());
        assert!(matches!(stopped, Err(ArchiveError::Stopped)), "{stopped:?}");
        let live = ArchiveCounters::default();
        let report = restore(&plan, &SystemClock, &AtomicBool::new(false), &live).unwrap();
        assert_eq!((report.files, report.known_bytes), (3, 0));
        for name in ["keepup.json", "journal.jsonl", "segment-000000.mcap"] {
            assert_eq!(
                std::fs::read(scene.recording.join(name)).unwrap(),
                std::fs::read(to.join(name)).unwrap(),
                "{name}"
            );
        }
        let again = restore(&plan, &SystemClock, &AtomicBool::new(false), &live);
        assert!(matches!(again, Err(ArchiveError::Occupied { .. })), "{again:?}");
    }
}

#[test]
fn a_stopped_copy_sends_nothing_twice() {
    let scene = Scene::new();
    scene.end();
    let stopped = scene.archive(1000, true);
    assert!(matches!(stopped, Err(ArchiveError::Stopped)), "{stopped:?}");
    assert_eq!(scene.archive(1000, false).unwrap().known_bytes, 0);
    let again = scene.archive(1000, false).unwrap();
    assert_eq!(again.known_bytes, again.bytes);
}
