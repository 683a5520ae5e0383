//! Ranges and relative paths.
use std::path::Path;

use super::{joined, relative};

#[test]
fn adjacent_ranges_are_joined() {
    assert_eq!(joined([0..3, 3..5, 7..8, 8..9].into_iter()), [0..5, 7..9]);
    assert!(joined(std::iter::empty()).is_empty());
}

#[test]
fn relative_paths_lead_from_one_directory_to_another() {
    let root = tempfile::tempdir().unwrap();
    let make = |path: &str| {
        let path = root.path().join(path);
        std::fs::create_dir_all(&path).unwrap();
        path
    };
    let (a, b) = (make("a/run"), make("b/deep/run"));
    assert_eq!(relative(&a, &b).unwrap(), Path::new("../../b/deep/run"));
    assert_eq!(relative(&b, &a).unwrap(), Path::new("../../../a/run"));
    assert_eq!(relative(&a, &a).unwrap(), Path::new(""));
    // A volume that is a link: the path leads through its target.
    std::os::unix::fs::symlink(root.path().join("b/deep"), root.path().join("disk")).unwrap();
    assert_eq!(relative(&a, &root.path().join("disk/run")).unwrap(), Path::new("../../b/deep/run"));
}
