//! What is left by killed measurements, and what is not.
use super::*;
use crate::scratch::Scratch;

fn directory_with(volume: &Path, name: &str, file: &str, bytes: usize) -> PathBuf {
    let directory = volume.join(name);
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join(file), vec![1; bytes]).unwrap();
    directory
}

#[test]
fn names_what_killed_measurements_left_and_how_to_remove_it() {
    let volume = tempfile::tempdir().unwrap();
    let path = volume.path();
    assert_eq!(warning(path), None);
    let left = directory_with(path, "keepup-qualify-4d1bcf71-002", JOURNAL_FILE, 20_480);
    let said = warning(path).unwrap();
    assert!(said.contains("20.5 kB") && said.ends_with(&format!("rm -r {}", left.display())), "{said}");
    directory_with(path, "keepup-disk-1", MARKER, 4096);
    for n in 0..4 {
        directory_with(path, &format!("keepup-trial-{n}"), JOURNAL_FILE, 4096);
    }
    let said = warning(path).unwrap();
    assert!(said.contains("41.0 kB") && said.ends_with("keepup-trial-1, and 2 more"), "{said}");
}

#[test]
fn the_command_can_be_pasted() {
    let place = tempfile::tempdir().unwrap();
    let volume = place.path().join("run 1");
    std::fs::create_dir(&volume).unwrap();
    directory_with(&volume, "keepup-trial-;id", JOURNAL_FILE, 1);
    let said = warning(&volume).unwrap();
    assert!(said.ends_with(&format!("rm -r '{}/keepup-trial-;id'", volume.display())), "{said}");
}

#[test]
fn recordings_of_the_user_and_running_measurements_are_not_named() {
    let volume = tempfile::tempdir().unwrap();
    let path = volume.path();
    directory_with(path, "hall-run-1", JOURNAL_FILE, 4096);
    directory_with(path, "keepup-qualify-notes", "notes.txt", 4096);
    let running = directory_with(path, "keepup-qualify-4d1bcf71-003", JOURNAL_FILE, 4096);
    let journal = File::open(running.join(JOURNAL_FILE)).unwrap();
    journal.lock().unwrap();
    std::os::unix::fs::symlink(&running, path.join("keepup-qualify-link")).unwrap();
    let scratch = Scratch::create(path, "keepup-disk-1").unwrap();
    assert_eq!(warning(path), None);
    drop(journal);
    assert!(warning(path).is_some_and(|said| said.ends_with("keepup-qualify-4d1bcf71-003")));
    drop(scratch);
}
