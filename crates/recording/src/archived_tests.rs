//! State files prove what they say, as long as they are there.
use std::io::Write as _;

use super::*;
use crate::line::put_line;

const RECORDING: Id = Id([7; 16]);

fn begin() -> StateLine {
    StateLine::Begin { recording: RECORDING, to: "s3://bucket/run".to_owned() }
}

fn file(path: &str, intact: Option<bool>) -> StateLine {
    let file =
        ArchivedFile { path: path.to_owned(), bytes: 100, sha256: "0".repeat(64), modified_unix_ns: 5 };
    StateLine::File { file, etag: None, intact }
}

fn upload(path: &str) -> StateLine {
    let (path, id) = (path.to_owned(), "id".to_owned());
    StateLine::Upload { path, id, bytes: 100, modified_unix_ns: 5, part_bytes: 10 }
}

fn text(lines: &[StateLine]) -> Vec<u8> {
    let mut all = Vec::new();
    for line in lines {
        let mut text = Vec::new();
        put_line(&mut text, line).unwrap();
        all.extend_from_slice(&text);
    }
    all
}

/// A directory with a state file, and its reader.
struct Scene {
    place: tempfile::TempDir,
    states: ArchiveStates,
}

impl Scene {
    fn new(volume: Option<u32>) -> Self {
        let place = tempfile::tempdir().unwrap();
        let states = ArchiveStates::new(place.path(), RECORDING, volume);
        Self { place, states }
    }

    fn path(&self) -> PathBuf {
        self.place.path().join("archive-0.jsonl")
    }

    fn write(&self, lines: &[StateLine]) {
        std::fs::write(self.path(), text(lines)).unwrap();
    }

    /// Whether segments 0 to 2 of the first volume are archived.
    fn proofs(&mut self) -> [bool; 3] {
        self.states.poll();
        [0, 1, 2].map(|index| self.states.proof(0, index, 100).is_some())
    }
}

#[test]
fn lines_count_as_they_are_written() {
    let mut scene = Scene::new(None);
    assert_eq!(scene.proofs(), [false; 3]);
    scene.write(&[begin(), file("segment-000000.mcap", Some(true))]);
    assert_eq!(scene.proofs(), [true, false, false]);
    let mut out = File::options().append(true).open(scene.path()).unwrap();
    let line = text(&[file("segment-000001.mcap", Some(true))]);
    out.write_all(&line[..20]).unwrap();
    assert_eq!(scene.proofs(), [true, false, false]);
    out.write_all(&line[20..]).unwrap();
    assert_eq!(scene.proofs(), [true, true, false]);
    assert!(scene.states.proof(0, 0, 99).is_none(), "another length");
    assert!(scene.states.proof(1, 0, 100).is_none(), "another volume");
    scene.states.forget(0, 0);
    assert_eq!(scene.proofs(), [false, true, false], "removed from memory only");
}

#[test]
fn uploads_in_progress_are_replaced_by_later_lines() {
    let mut scene = Scene::new(Some(0));
    let first = file("segment-000000.mcap", Some(true));
    scene.write(&[begin(), first, upload("segment-000001.mcap")]);
    assert_eq!(scene.proofs(), [true, false, false]);
    let first = file("segment-000000.mcap", Some(true));
    let next = file("segment-000001.mcap", Some(true));
    // In place, as the drain does it.
    let whole = text(&[begin(), first, next, upload("segment-000002.mcap")]);
    let out = File::options().write(true).open(scene.path()).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&out, &whole, 0).unwrap();
    assert_eq!(scene.proofs(), [true, true, false]);
}

#[test]
fn only_intact_segments_of_this_recording_are_proven() {
    let mut scene = Scene::new(Some(0));
    let other = StateLine::Begin { recording: Id([8; 16]), to: "s3://bucket/run".to_owned() };
    scene.write(&[other, file("segment-000000.mcap", Some(true))]);
    assert_eq!(scene.proofs(), [false; 3]);
    scene.write(&[
        begin(),
        file("segment-000000.mcap", Some(false)),
        file("segment-000001.mcap", None),
        file("volume-1/segment-000002.mcap", Some(true)),
        file("../segment-000002.mcap", Some(true)),
    ]);
    assert_eq!(scene.proofs(), [false; 3]);
    let path = "segment-000002.mcap";
    scene.write(&[begin(), file(path, Some(true)), StateLine::Forgotten { path: path.to_owned() }]);
    assert_eq!(scene.proofs(), [false; 3], "the archive lost it");
}

#[test]
fn a_lost_replaced_or_damaged_file_proves_nothing() {
    let mut scene = Scene::new(None);
    let lines =
        || [begin(), file("segment-000000.mcap", Some(true)), file("segment-000001.mcap", Some(true))];
    scene.write(&lines());
    assert_eq!(scene.proofs(), [true, true, false]);
    std::fs::remove_file(scene.path()).unwrap();
    assert_eq!(scene.proofs(), [false; 3], "lost");
    scene.write(&lines());
    assert_eq!(scene.proofs(), [true, true, false]);
    let fresh = scene.place.path().join("fresh");
    std::fs::write(&fresh, text(&[begin()])).unwrap();
    std::fs::rename(fresh, scene.path()).unwrap();
    assert_eq!(scene.proofs(), [false; 3], "replaced");
    scene.write(&lines());
    let whole = std::fs::read(scene.path()).unwrap();
    for length in (0..whole.len()).step_by(7) {
        let mut states = ArchiveStates::new(scene.place.path(), RECORDING, None);
        std::fs::write(scene.path(), &whole[..length]).unwrap();
        states.poll();
        let both = states.proof(0, 0, 100).is_some() && states.proof(0, 1, 100).is_some();
        assert!(!both, "cut at {length}");
    }
    let target = scene.place.path().join("target");
    std::fs::write(&target, &whole).unwrap();
    std::fs::remove_file(scene.path()).unwrap();
    std::os::unix::fs::symlink(&target, scene.path()).unwrap();
    let mut states = ArchiveStates::new(scene.place.path(), RECORDING, None);
    states.poll();
    assert!(states.proof(0, 0, 100).is_none(), "links are not followed");
}

/// Whether segment 0 is archived, with `first` in the scene's state file and `second` in another one.
fn both(first: &[StateLine], second: &[u8]) -> (bool, Vec<String>) {
    let mut scene = Scene::new(Some(0));
    scene.write(first);
    std::fs::write(scene.place.path().join("archive-1.jsonl"), second).unwrap();
    scene.proofs();
    let is_proven = scene.proofs()[0];
    (is_proven, scene.states.faults().map(|(_, what)| what.to_owned()).collect())
}

#[test]
fn every_archive_must_have_a_segment() {
    let name = "segment-000000.mcap";
    let whole = [begin(), file(name, Some(true))];
    assert_eq!(both(&whole, &text(&whole)), (true, vec![]));
    let StateLine::File { file: of, .. } = file(name, None) else { unreachable!() };
    let changed = ArchivedFile { modified_unix_ns: 6, ..of };
    let changed = StateLine::File { file: changed, etag: None, intact: Some(true) };
    for second in [vec![begin()], vec![begin(), file(name, Some(false))], vec![begin(), changed]] {
        assert_eq!(both(&whole, &text(&second)), (false, vec![]), "{second:?}");
    }
    assert_eq!(both(&whole, b""), (false, vec![]), "a drain has just created the file");
    let other = StateLine::Begin { recording: Id([8; 16]), to: "s3://bucket/run".to_owned() };
    assert_eq!(both(&whole, &text(&[other])), (true, vec![]), "an archive of another recording");
}

#[test]
fn a_file_that_cannot_be_used_blocks_and_is_named() {
    let whole = [begin(), file("segment-000000.mcap", Some(true))];
    assert_eq!(both(&whole, b"x\n"), (false, vec!["damaged first line".to_owned()]));
    let mut damaged = text(&whole);
    damaged.extend_from_slice(b"{}\n");
    let offset = damaged.len() - 3;
    assert_eq!(both(&whole, &damaged), (false, vec![format!("damaged line at offset {offset}")]));
    let mut scene = Scene::new(Some(0));
    scene.write(&whole);
    let link = scene.place.path().join("archive-1.jsonl");
    std::os::unix::fs::symlink("/nowhere", &link).unwrap();
    assert_eq!(scene.proofs(), [false; 3]);
    assert!(scene.states.faults().map(|(path, _)| path).eq([link.as_path()]));
    std::fs::remove_file(link).unwrap();
    assert_eq!((scene.proofs(), scene.states.faults().count()), ([true, false, false], 0), "released");
}
