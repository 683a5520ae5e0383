//! Written data has the requested pattern.
use std::collections::BTreeSet;

use super::*;

fn written(pattern: Pattern, requests: usize) -> Vec<u8> {
    let mut memory = vec![0; 16 * PAGE_BYTES];
    pattern.fill(&mut memory, 7);
    let (mut all, mut count) = (Vec::new(), 0);
    for _ in 0..requests {
        pattern.stamp(&mut memory, &mut count);
        all.extend_from_slice(&memory);
    }
    all
}

fn distinct(bytes: &[u8]) -> usize {
    bytes.chunks(PAGE_BYTES).collect::<BTreeSet<_>>().len()
}

#[test]
fn no_two_pages_are_alike_unless_asked_for() {
    let all = written(Pattern::default(), 100);
    assert_eq!(distinct(&all), 1600);
    let half = distinct(&written(Pattern { compressible: 0, duplicate: 50 }, 100));
    assert!((700..=816).contains(&half), "{half} of 1600 pages differ");
    // With 100 % duplicates only the pages of the buffer memory remain.
    assert_eq!(distinct(&written(Pattern { compressible: 0, duplicate: 100 }, 100)), 16);
}

#[test]
fn pages_are_as_compressible_as_asked_for() {
    for share in [0, 30, 75, 100] {
        let all = written(Pattern { compressible: share, duplicate: 0 }, 10);
        let zeros = all.iter().filter(|byte| **byte == 0).count() as f64 / all.len() as f64 * 100.0;
        assert!((zeros - f64::from(share)).abs() < 2.0, "{zeros} % zeros for {share} %");
        assert_eq!(distinct(&all), 160, "stamps differ whatever the rest is");
    }
}

#[test]
fn a_target_ends_where_the_next_begins_and_begins_anew_at_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let mode = Mode { access: Access::Buffered, ..Mode::default() };
    let path = directory.path().join("file");
    let mut parts = Target::create_shared(&path, 8192, 3, &mode).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 3 * 8192);
    assert_eq!(parts.iter_mut().map(|part| part.next(4096)).collect::<Vec<_>>(), [0, 8192, 16384]);
    assert!(!parts[1].is_full(4096) && parts[1].is_full(8192));
    parts[1].next(4096);
    assert!(parts[1].is_full(4096));
    parts[1].reset(&mode).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 3 * 8192, "others have their parts still");
    assert_eq!(parts[1].next(4096), 8192);

    let new = Mode { space: Space::New, ..mode };
    let mut alone = Target::create(&directory.path().join("alone"), 8192, &new).unwrap();
    std::fs::write(&alone.path, [1; 5000]).unwrap();
    alone.reset(&new).unwrap();
    assert_eq!(std::fs::metadata(&alone.path).unwrap().len(), 0);
}
