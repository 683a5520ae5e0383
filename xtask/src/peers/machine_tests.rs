//! The record of this machine has all its lines, and one of a machine that tells nothing too.

use super::*;

#[test]
fn nothing_is_left_out_when_nothing_can_be_read() {
    let empty = tempfile::tempdir().unwrap();
    let rows = describe(&Environment::collect(&[empty.path().to_path_buf()], empty.path()));
    let names: Vec<&str> = rows.iter().map(|(name, _)| name.as_str()).collect();
    let expected =
        ["processor", "memory", "huge pages", "kernel", "TCP buffers", "load average", "file system"];
    assert_eq!(names, expected);
    assert_eq!(rows[3].1, "unknown");
    assert_eq!(rows[1].1, "unknown, unknown available");
}

#[test]
fn this_machine_is_described() {
    let directory = tempfile::tempdir().unwrap();
    let rows = machine(directory.path());
    assert!(rows[1].1.contains(" GB, "), "{rows:?}");
    assert!(rows.last().unwrap().1.contains(" GB free"), "{rows:?}");
}
