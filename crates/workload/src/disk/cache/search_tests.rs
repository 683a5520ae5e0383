//! The result brackets the true size within the announced number of files.
use super::*;

/// Searches a cache of `size` files; returns the final search and the files written.
fn searched(size: u64, limit: u64) -> (Search, u64) {
    let (mut search, mut written) = (Search::new(limit), 0);
    while let Some(files) = search.next() {
        assert!((1..=limit).contains(&files), "{files} of {limit}");
        written += files;
        search.record(files, files <= size);
    }
    (search, written)
}

#[test]
fn every_size_below_the_limit_is_bracketed() {
    for limit in [1, 2, 3, 10, 64, 100, 384] {
        for size in 0..limit {
            let (search, written) = searched(size, limit);
            let evicted = search.evicted().unwrap();
            assert!(search.cached() <= size && size < evicted, "{size} of {limit}: {search:?}");
            assert!(evicted - search.cached() <= (evicted / 16).max(1), "{size} of {limit}: {search:?}");
            assert!(written <= Search::files_written_max(limit), "{size} of {limit}: {written}");
        }
    }
}

#[test]
fn a_small_cache_costs_little() {
    let (search, written) = searched(11, 1 << 20);
    assert_eq!((search.cached(), search.evicted()), (11, Some(12)));
    assert!(written < 100, "{written}");
}

#[test]
fn a_size_beyond_the_limit_is_not_reported() {
    for limit in [1, 5, 64, 100] {
        let (search, written) = searched(limit, limit);
        assert_eq!((search.cached(), search.evicted()), (limit, None));
        assert!(written <= Search::files_written_max(limit), "{written}");
    }
}
