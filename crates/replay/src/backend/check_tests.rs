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
    let look = || {
        let file: OwnedFd = std::fs::File::open(&path).unwrap().into();
        let mut found = ReplayCheck::default();
        // In two ranges, as if the second block began another file of the same contents.
        for addresses in [0..512, 512..u64::MAX] {
            let begin = addresses.start;
            let part = std::fs::read(&path).unwrap()[begin as usize..].to_vec();
            let other = directory.path().join(format!("part-{begin}"));
            std::fs::write(&other, part).unwrap();
            let file: OwnedFd = std::fs::File::open(&other).unwrap().into();
            check((&file, &other), addresses, &log, 512, &mut found).unwrap();
        }
        let mut whole = ReplayCheck::default();
        check((&file, &path), 0..u64::MAX, &log, 512, &mut whole).unwrap();
        assert_eq!((whole.blocks, whole.wrong), (found.blocks, found.wrong));
        whole
    };
    let found = look();
    assert_eq!((found.blocks, found.ambiguous, found.wrong), (4, 1, 0), "{found:?}");
    let file = std::fs::OpenOptions::new().write(true).read(true).open(&path).unwrap();
    // One write that was lost, one that went to another place.
    file.write_all_at(&page(2, 0), 1024).unwrap();
    file.write_all_at(&page(1, 2), 4 * 512).unwrap();
    let found = look();
    assert_eq!((found.blocks, found.wrong), (4, 2));
    let first = found.first_wrong.unwrap();
    assert!(first.contains("at 1024: written last by write 1") && first.contains("block 2 of write 0"));
}
