//! What is made is removed, and nothing else.

use super::*;

#[test]
fn everything_that_was_made_goes() {
    let above = tempfile::tempdir().unwrap();
    let volume = above.path().join("volume");
    let scratch = Scratch::below(&volume).unwrap();
    let run = scratch.within("run").unwrap();
    fs::write(run.path().join("file"), "x").unwrap();
    assert!(scratch.within("run").is_err(), "it is not empty any more");
    run.remove();
    assert!(scratch.path().exists() && fs::read_dir(scratch.path()).unwrap().next().is_none());
    drop(scratch);
    assert!(!volume.exists(), "it was not there before");
}

#[test]
fn what_was_there_before_stays() {
    let volume = tempfile::tempdir().unwrap();
    fs::write(volume.path().join("mine"), "x").unwrap();
    drop(Scratch::below(volume.path()).unwrap());
    assert!(volume.path().join("mine").exists());
}

#[test]
fn room_is_looked_for_before_anything_is_written() {
    let volume = tempfile::tempdir().unwrap();
    let scratch = Scratch::below(volume.path()).unwrap();
    let error = scratch.check_free_space(1 << 60).unwrap_err().to_string();
    assert!(error.contains("GB free") && error.contains("--volume"), "{error}");
}

#[test]
fn leftovers_are_those_of_processes_that_are_no_more() {
    let volume = tempfile::tempdir().unwrap();
    for name in ["keepup-peers-1", "keepup-peers-4294967295", "keepup-peers-x", "other"] {
        fs::create_dir(volume.path().join(name)).unwrap();
    }
    assert_eq!(abandoned(volume.path()), [volume.path().join("keepup-peers-4294967295")]);
}
