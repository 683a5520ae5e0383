//! Unit tests of the look at what was written.
use std::os::unix::fs::FileExt;

use super::*;

fn page(block: u64, write: u64) -> Vec<u8> {
    let mut page = vec![7; 512];
    Stamp { block, write }.put(&mut page);
    page
}

#[test]
fn the_last_write_counts_and_what_overlaps_is_not_judged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("target");
    let file = std::fs::File::create_new(&path).unwrap();
    let mut log = WriteLog::default();
    log.begun(0, 0..4, 1);
    // While the first is under way, another goes over its end.
    log.begun(1, 3..5, 2);
    log.ended(0);
    log.ended(1);
    log.begun(0, 0..1, 3);
    log.ended(0);
    for (block, write) in [(0, 3), (1, 1), (2, 1), (3, 1), (4, 2)] {
        file.write_all_at(&page(block, write), block * 512).unwrap();
    }
    let file: OwnedFd = std::fs::File::open(&path).unwrap().into();
    let found = check(&file, &path, &log, 512).unwrap();
    assert_eq!((found.blocks, found.ambiguous, found.wrong), (4, 1, 0), "{found:?}");
    let file = std::fs::OpenOptions::new().write(true).read(true).open(&path).unwrap();
    // One write that was lost, one that went to another place.
    file.write_all_at(&page(2, 0), 1024).unwrap();
    file.write_all_at(&page(1, 2), 4 * 512).unwrap();
    let found = check(&file.into(), &path, &log, 512).unwrap();
    assert_eq!((found.blocks, found.wrong), (4, 2));
    let first = found.first_wrong.unwrap();
    assert!(first.contains("at 1024: written last by write 1") && first.contains("block 2 of write 0"));
}
