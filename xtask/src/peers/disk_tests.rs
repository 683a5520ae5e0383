//! What the campaign accepts, and what it finds out about the machine.

use super::*;
use crate::peers::options;

#[test]
fn names_are_checked_before_anything_runs() {
    let asked = |flags: &[&str]| options::disk(flags).and_then(check);
    assert!(asked(&["--only", "sweep,fio-unique,listing,bonnie-direct"]).is_ok());
    let why = asked(&["--only", "dd"]).unwrap_err();
    assert!(why.starts_with("--only dd: ") && why.contains("keepup-constant"), "{why}");
    let why = asked(&["--testdisk", "/no/such/program"]).unwrap_err();
    assert!(why.starts_with("--testdisk /no/such/program: "), "{why}");
    let (_, disk) = asked(&["--testdisk", "/usr/../usr/bin/env"]).unwrap();
    assert!(disk.testdisk.is_some_and(|path| path.is_absolute() && !path.to_string_lossy().contains("..")));
}

#[test]
fn free_huge_pages_are_counted() {
    let text = "HugePages_Total:     256\nHugePages_Free:      200\nHugepagesize:       2048 kB\n";
    assert_eq!(free_huge_bytes(text), Some(400 << 20));
    assert_eq!(free_huge_bytes("MemTotal: 1 kB\n"), None);
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(huge_bytes(empty.path()), 0);
}
