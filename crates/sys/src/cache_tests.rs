//! Written data is in the cache, dropped data is not, and the query changes neither.
use super::*;
use crate::file::{Access, Durability, forget_cached, open_file, sync_data, write_all_at};

#[test]
fn a_file_is_cached_until_its_cache_is_dropped() {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let path = directory.path().join("data");
    let bytes = vec![7; 1 << 20];
    let file = open_file(&path, Access::Buffered, Durability::Flushed).unwrap();
    write_all_at(&file, &bytes, 0).unwrap();
    sync_data(&file, &path).unwrap();
    let Some(cached) = cached_bytes(&file) else { return };
    assert_eq!(cached, 1 << 20);
    let again = open_file(&path, Access::Buffered, Durability::Flushed).unwrap();
    assert_eq!(cached_bytes(&again), Some(1 << 20), "the cache belongs to the file, not to the descriptor");
    forget_cached(&again, &path).unwrap();
    // A file system in memory drops nothing.
    let left = cached_bytes(&file).unwrap();
    assert!(left == 0 || left == 1 << 20, "{left}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    assert_eq!(cached_bytes(&file), Some(1 << 20));
}

#[test]
fn a_pipe_has_no_cache() {
    let (reader, _writer) = std::io::pipe().unwrap();
    assert_eq!(cached_bytes(&reader.into()).unwrap_or(0), 0);
}
