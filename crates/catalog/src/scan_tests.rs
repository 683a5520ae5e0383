//! What a scan finds, how deep it goes, and what it does not follow.
use std::fs;
use std::path::{Path, PathBuf};

use super::{Scan, ScanLimits, scan};

fn result(path: &Path) {
    fs::create_dir_all(path).unwrap();
    fs::write(path.join(".keepup-result"), "x\n").unwrap();
}

fn recording(path: &Path) {
    fs::create_dir_all(path).unwrap();
    fs::write(path.join("keepup.json"), "{}").unwrap();
}

fn found(root: &Path, limits: ScanLimits) -> Scan {
    let found = scan(&[root.to_path_buf()], limits);
    let short = |paths: Vec<PathBuf>| {
        paths.into_iter().map(|path| path.strip_prefix(root).unwrap().to_path_buf()).collect()
    };
    Scan { results: short(found.results), recordings: short(found.recordings), left_out: found.left_out }
}

fn paths(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

#[test]
fn results_and_recordings_are_known_by_what_marks_them() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path();
    result(&root.join("b/2026/sweep"));
    result(&root.join("a"));
    recording(&root.join("volume/run1"));
    fs::create_dir_all(root.join("results-of-somebody")).unwrap();
    fs::write(root.join("result.json"), "{}").unwrap();
    let found = found(root, ScanLimits::default());
    assert_eq!(found.results, paths(&["a", "b/2026/sweep"]));
    assert_eq!(found.recordings, paths(&["volume/run1"]));
    assert_eq!(found.left_out, None);
}

#[test]
fn cells_of_a_campaign_are_found_only_where_the_campaign_itself_is_given() {
    let place = tempfile::tempdir().unwrap();
    let campaign = place.path().join("campaign");
    result(&campaign);
    result(&campaign.join("cells/1-r1/sweep"));
    assert_eq!(found(place.path(), ScanLimits::default()).results, paths(&["campaign"]));
    assert_eq!(found(&campaign, ScanLimits::default()).results, paths(&["", "cells/1-r1/sweep"]));
}

#[test]
fn links_are_not_followed_and_what_is_given_twice_is_found_once() {
    let place = tempfile::tempdir().unwrap();
    let (root, elsewhere) = (place.path().join("root"), place.path().join("elsewhere"));
    result(&root.join("own"));
    result(&elsewhere.join("foreign"));
    std::os::unix::fs::symlink(&elsewhere, root.join("link")).unwrap();
    std::os::unix::fs::symlink(&root, root.join("circle")).unwrap();
    let found = scan(&[root.clone(), root.join("own"), root.clone()], ScanLimits::default());
    assert_eq!(found.results, [root.join("own")]);
}

#[test]
fn a_link_in_place_of_a_manifest_marks_no_recording() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir_all(place.path().join("run")).unwrap();
    fs::write(place.path().join("other.json"), "{}").unwrap();
    std::os::unix::fs::symlink("../other.json", place.path().join("run/keepup.json")).unwrap();
    assert_eq!(found(place.path(), ScanLimits::default()).recordings, paths(&[]));
}

#[test]
fn depth_and_number_are_bounded_and_what_is_left_out_is_told() {
    let place = tempfile::tempdir().unwrap();
    result(&place.path().join("1/2/3"));
    result(&place.path().join("1/b"));
    let two = found(place.path(), ScanLimits { directories: 100, depth: 2 });
    assert_eq!(two.results, paths(&["1/b"]));
    assert_eq!(two.left_out.unwrap(), "1 directories deeper than 2 levels were not scanned");
    let few = found(place.path(), ScanLimits { directories: 2, depth: 9 });
    assert_eq!(few.results, paths(&[]));
    assert_eq!(few.left_out.unwrap(), "only the first 2 directories were scanned");
}
