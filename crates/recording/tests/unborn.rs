//! Every state in which a starting recorder may be killed, and states that look like one.
#![expect(clippy::unwrap_used, reason = "a helper of a test may fail the test")]
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use keepup_recording::error::RecordingError;
use keepup_recording::fixture::{manifest, scene_segment};
use keepup_recording::journal::{JOURNAL_FILE, Journal};
use keepup_recording::layout::{SECTOR, segment_file_name};
use keepup_recording::manifest::{MANIFEST_FILE, Manifest};
use keepup_recording::reader::Recording;
use keepup_recording::recover::{RecoverOptions, recover};
use keepup_recording::seal::put_end_mark;
use keepup_recording::unborn::{explain, find, is_empty, remove};

/// Manifests of a recording on these volumes, which exist.
fn manifests(root: &Path, volumes: usize) -> Vec<Manifest> {
    let places: Vec<PathBuf> = (0..volumes).map(|at| root.join(format!("volume{at}"))).collect();
    places.iter().for_each(|place| fs::create_dir_all(place).unwrap());
    (0..volumes).map(|index| manifest(places.clone(), index as u32)).collect()
}

/// Checks that the remains in `dirs` are recognized by all verbs, and that recovery ends them.
fn check_unborn(root: &Path, dirs: &[PathBuf], what: &str) {
    for dir in dirs.iter().filter(|dir| dir.join(MANIFEST_FILE).exists()) {
        let opened = Recording::open(std::slice::from_ref(dir)).unwrap_err();
        assert!(matches!(opened, RecordingError::Unborn { .. }), "{what}: {opened}");
        let recovered = recover(std::slice::from_ref(dir), RecoverOptions::default(), &mut |_| {});
        assert!(matches!(recovered, Err(RecordingError::Unborn { .. })), "{what}: {recovered:?}");
        let created = explain(manifests(root, dirs.len())[0].create(dir.parent().unwrap()).unwrap_err());
        assert!(matches!(created, RecordingError::Remains { .. }), "{what}: {created}");
    }
    while let Some(dir) = dirs.iter().find(|dir| dir.join(MANIFEST_FILE).exists()) {
        remove(&find(std::slice::from_ref(dir)).unwrap()).unwrap();
        assert!(!dir.exists(), "{what}");
    }
    for manifest in manifests(root, dirs.len()) {
        let dir = manifest.create(&manifest.volumes[manifest.volume_index as usize]).unwrap();
        drop(Journal::create(&dir, &manifest).unwrap());
    }
    assert!(find(dirs).is_none(), "{what}: it has begun");
    fs::remove_dir_all(root).unwrap();
}

#[test]
fn a_recorder_killed_at_its_start_leaves_what_recovery_removes() {
    for volumes in 1..3 {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path().join("root");
        let dirs: Vec<PathBuf> = (0..volumes).map(|at| root.join(format!("volume{at}/run"))).collect();
        // The manifest of volume `at` has so many bytes, those of the volumes before it are whole.
        let bytes = manifests(&root, volumes)[0].create(&root.join("volume0")).unwrap();
        let bytes = fs::read(bytes.join(MANIFEST_FILE)).unwrap().len();
        fs::remove_dir_all(&root).unwrap();
        for at in 0..volumes {
            for (cut, is_zero) in
                (0..=bytes).step_by(40).chain([bytes - 1, bytes]).flat_map(|n| [(n, false), (n, true)])
            {
                let all = manifests(&root, volumes);
                for manifest in &all[..=at] {
                    manifest.create(&manifest.volumes[manifest.volume_index as usize]).unwrap();
                }
                let file = File::options().write(true).open(dirs[at].join(MANIFEST_FILE)).unwrap();
                let whole = file.metadata().unwrap().len();
                if (cut as u64) < whole {
                    file.set_len(cut as u64).unwrap();
                    file.set_len(if is_zero { whole } else { cut as u64 }).unwrap();
                }
                check_unborn(
                    &root,
                    &dirs,
                    &format!("volume {at}: {cut} bytes of the manifest, then zeros: {is_zero}"),
                );
            }
        }
        // The journal of the last volume has so many bytes, those of the others are whole.
        for (cut, is_zero) in [0, 1, 20, 90].into_iter().flat_map(|n| [(n, false), (n, true)]) {
            for manifest in manifests(&root, volumes) {
                let dir = manifest.create(&manifest.volumes[manifest.volume_index as usize]).unwrap();
                drop(Journal::create(&dir, &manifest).unwrap());
            }
            let file = File::options().write(true).open(dirs[volumes - 1].join(JOURNAL_FILE)).unwrap();
            let whole = file.metadata().unwrap().len();
            file.set_len(cut).unwrap();
            file.set_len(if is_zero { whole } else { cut }).unwrap();
            // A power loss may leave the name of a segment and zeros.
            if is_zero {
                let segment = File::create(dirs[volumes - 1].join(segment_file_name(0))).unwrap();
                segment.set_len(1 << 20).unwrap();
            }
            check_unborn(&root, &dirs, &format!("{cut} bytes of the journal, then zeros: {is_zero}"));
        }
    }
}

#[test]
fn what_may_have_events_or_other_files_is_no_remains() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path().join("root");
    let make = || {
        let _ = fs::remove_dir_all(&root);
        let manifest = manifests(&root, 1).remove(0);
        manifest.create(&root.join("volume0")).unwrap()
    };
    let dir = make();
    fs::write(dir.join("notes.txt"), "mine").unwrap();
    assert!(find(&[dir]).is_none(), "another file");
    let dir = make();
    fs::write(dir.join(MANIFEST_FILE), "{\"version\": 1").unwrap();
    assert!(find(&[dir]).is_none(), "a file of another program");
    let dir = make();
    let segment = File::create(dir.join(segment_file_name(0))).unwrap();
    segment.set_len(1 << 20).unwrap();
    assert!(find(std::slice::from_ref(&dir)).is_some(), "a segment without a block");
    let mut mark = vec![0; SECTOR];
    put_end_mark(&mut mark);
    for (end, is_damaged) in [(30, false), (SECTOR, false), (SECTOR, true)] {
        mark[12] ^= u8::from(is_damaged);
        segment.write_all_at(&mark[..end], SECTOR as u64).unwrap();
        assert_eq!(find(std::slice::from_ref(&dir)).is_none(), is_damaged, "{end} bytes of an end mark");
    }
    segment.write_all_at(&scene_segment(1).unwrap(), 0).unwrap();
    assert!(find(&[dir]).is_none(), "a segment with a block");
    let dir = make();
    let segment = File::create(dir.join(segment_file_name(0))).unwrap();
    segment.set_len(1 << 20).unwrap();
    segment.write_all_at(b"payload", 700_000).unwrap();
    assert!(find(&[dir]).is_none(), "a segment with the rest of a damaged block");
    let _ = fs::remove_dir_all(&root);
    let manifest = manifests(&root, 2).remove(0);
    let dir = manifest.create(&root.join("volume0")).unwrap();
    fs::remove_dir(root.join("volume1")).unwrap();
    assert!(find(&[dir]).is_none(), "a volume that is not mounted");
}

#[test]
fn a_starting_recorder_keeps_its_files() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path().join("root");
    let manifest = manifests(&root, 1).remove(0);
    let (dir, lock) = manifest.create_locked(&root.join("volume0")).unwrap();
    let remains = find(std::slice::from_ref(&dir)).unwrap();
    assert!(matches!(remove(&remains), Err(RecordingError::Busy { .. })));
    drop(lock);
    remove(&remains).unwrap();
    assert!(!dir.exists());
    assert!(!is_empty(&dir));
    fs::create_dir(&dir).unwrap();
    assert!(is_empty(&dir) && find(&[dir]).is_none());
}
