//! Ranges and relative paths.
use std::path::Path;

use super::{joined, relative, unseen};
use crate::ranges::Seen;

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

#[test]
fn rows_of_an_earlier_segment_are_left_out() {
    let mut seen = Seen::default();
    assert_eq!(unseen(&[0..10, 20..30], &mut seen), (vec![0..10, 20..30], vec![0, 10]));
    // The second segment has rows 5..25 and 40..50; its dataset has 30 rows.
    assert_eq!(unseen(&[5..25, 40..50], &mut seen), (vec![10..20, 40..50], vec![5, 20]));
    assert_eq!(unseen(&[0..50, 60..70], &mut seen), (vec![30..40, 60..70], vec![30, 50]));
    assert_eq!(unseen(&[0..50, 60..70], &mut seen), (Vec::new(), Vec::new()));
}
