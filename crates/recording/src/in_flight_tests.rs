//! A lock lasts as long as anything refers to the open file.
use std::fs::File;
use std::sync::mpsc;
use std::time::Duration;

use super::{lock_segment, wait_for_writes};

#[test]
fn the_wait_ends_with_the_last_reference() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("segment");
    let file = File::create(&path).unwrap();
    lock_segment(&file);
    // As a write in flight does.
    let reference = file.try_clone().unwrap();
    drop(file);
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| tell.send(wait_for_writes(&path)).unwrap());
        assert!(told.recv_timeout(Duration::from_millis(100)).is_err(), "the file is still referred to");
        drop(reference);
        told.recv().unwrap().unwrap();
    });
}

#[test]
fn a_missing_file_has_no_writes() {
    let directory = tempfile::tempdir().unwrap();
    wait_for_writes(&directory.path().join("none")).unwrap();
}
