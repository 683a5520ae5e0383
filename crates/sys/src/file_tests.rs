//! Time stamps.
use std::os::unix::fs::MetadataExt;

use super::*;

#[test]
fn a_file_that_changes_later_has_no_earlier_time_stamp() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    for _ in 0..1000 {
        let before_ns = time_stamp_ns();
        std::fs::write(&path, "changed").unwrap();
        let found = std::fs::metadata(&path).unwrap();
        assert!(found.mtime() as u64 * 1_000_000_000 + found.mtime_nsec() as u64 >= before_ns);
    }
}
