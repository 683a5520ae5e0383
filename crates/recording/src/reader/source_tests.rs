//! Both ways read the same bytes, in any order, from files that grow or are too short.
use super::*;

fn contents(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at / PAGE_BYTES * 31 + at % 251) as u8).collect()
}

#[test]
fn both_ways_read_the_same() {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let path = directory.path().join("file");
    let whole = contents(5 * (1 << 20) + 3 * PAGE_BYTES + 17);
    std::fs::write(&path, &whole).unwrap();
    let mut source = Source::open(&path, true).unwrap();
    assert_eq!(source.size().unwrap(), whole.len() as u64);
    let page = PAGE_BYTES as u64;
    let limit = whole.len() as u64;
    // Forwards, back, over a gap, and over the end.
    for (offset, pages) in [(0, 1), (page, 300), (301 * page, 900), (0, 2), (900 * page, 4), (1280 * page, 8)]
    {
        for way in [Way::Ahead(limit), Way::Once] {
            for part in [0..PAGE_BYTES, PAGE_BYTES..pages * PAGE_BYTES] {
                let at = offset as usize + part.start;
                let expected = &whole[at.min(whole.len())..(at + part.len()).min(whole.len())];
                let read = source.read(offset, part.clone(), way).unwrap();
                assert_eq!(read, expected.len(), "{offset} {part:?} {way:?}");
                assert!(source.bytes()[part.start..][..read] == *expected, "{offset} {part:?} {way:?}");
            }
        }
    }
}

#[test]
fn a_growing_limit_is_followed() {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let path = directory.path().join("file");
    let whole = contents(100 * PAGE_BYTES);
    std::fs::write(&path, &whole).unwrap();
    let mut source = Source::open(&path, false).unwrap();
    for pages in 0..100 {
        let offset = (pages * PAGE_BYTES) as u64;
        // Sometimes ahead of what is read.
        let limit = offset + (1 + pages % 3) as u64 * PAGE_BYTES as u64;
        assert_eq!(source.read(offset, 0..PAGE_BYTES, Way::Ahead(limit)).unwrap(), PAGE_BYTES);
        assert!(source.bytes()[..PAGE_BYTES] == whole[offset as usize..][..PAGE_BYTES]);
    }
}
