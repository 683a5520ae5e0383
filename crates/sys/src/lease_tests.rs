//! Files with and without a writer.
use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;

use super::*;

#[test]
fn a_writer_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let writer = File::create(&path).unwrap();
    let reader = File::open(&path).unwrap();
    let other = File::open(&path).unwrap();
    match is_open_for_writing(reader.as_fd()) {
        Ok(is_open) => assert!(is_open),
        // Where the file system has no leases.
        Err(error) => return assert_eq!(error.raw_os_error(), Some(libc::EINVAL)),
    }
    drop(writer);
    assert!(!is_open_for_writing(reader.as_fd()).unwrap());
    // Other readers do not matter, and no lease stays.
    assert!(!is_open_for_writing(other.as_fd()).unwrap());
    let _writer = OpenOptions::new().append(true).open(&path).unwrap();
    assert!(is_open_for_writing(reader.as_fd()).unwrap());
}
