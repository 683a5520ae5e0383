//! Paths of watched directories after changes, in the order in which the kernel reports them.
use std::fs;
use std::path::Path;

use keepup_sources::SourceAddress;
use rustix::fs::CWD;

use super::*;

/// A tree of an existing directory, and what its first scan found.
fn tree(root: &Path, options: &str) -> (Tree, Scan) {
    let address = format!("dir:{},recursive{options}", root.display());
    let SourceAddress::Directory(address) = address.parse().unwrap() else { panic!("no directory") };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let directory = rustix::fs::openat(CWD, root, flags, Mode::empty()).unwrap();
    let mut tree = Tree::new(address, directory).unwrap();
    let scan = tree.scan(b"").unwrap();
    (tree, scan)
}

/// Changes until now; new directories are entered, and the files in them returned as if created.
fn changes(tree: &mut Tree) -> Vec<Change> {
    let mut all = Vec::new();
    loop {
        let reports = tree.reports().unwrap();
        if reports.is_empty() {
            return all;
        }
        for report in reports {
            match tree.change(report) {
                Some(Change::DirectoryIn(path)) if !tree.is_watched(&path) => {
                    let scan = tree.scan(&path).unwrap();
                    all.extend(scan.files.into_iter().map(|(name, _)| Change::Created(name)));
                }
                Some(Change::Created(_) | Change::DirectoryIn(_)) | None => {}
                Some(change) => all.push(change),
            }
        }
    }
}

fn closed(name: &str) -> Change {
    Change::Closed(name.as_bytes().to_vec())
}

#[test]
fn files_of_existing_directories_are_listed_and_links_are_not_followed() {
    let (place, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = |name: &str| place.path().join(name);
    fs::create_dir_all(path("a/b")).unwrap();
    fs::create_dir_all(path(".hidden")).unwrap();
    for name in ["1", "a/2", "a/b/3.tmp", "a/b/4", ".hidden/5"] {
        fs::write(path(name), name).unwrap();
    }
    fs::write(other.path().join("6"), "6").unwrap();
    std::os::unix::fs::symlink(other.path(), path("a/link")).unwrap();
    let (mut tree, scan) = tree(place.path(), "");
    let mut names = scan.names().into_iter().collect::<Vec<_>>();
    names.sort();
    assert_eq!(names, [&b"1"[..], b"a/2", b"a/b/4"]);
    assert_eq!((scan.directories, scan.irregular), (1, vec![b"a/link".to_vec()]));
    fs::write(other.path().join("7"), "7").unwrap();
    fs::write(path("a/b/8"), "8").unwrap();
    assert_eq!(changes(&mut tree), [closed("a/b/8")]);
    for name in [&b"a/link/6"[..], b"../x", b"a/b/missing"] {
        assert!(tree.stat(name).is_err() && tree.open(name, OFlags::RDONLY).is_err(), "{name:?}");
    }
    // The directory of a file that is due is replaced by a link.
    fs::rename(path("a/b"), path(".b")).unwrap();
    std::os::unix::fs::symlink(other.path(), path("a/b")).unwrap();
    assert_eq!(tree.stat(b"a/b/6").unwrap_err(), Errno::NOENT);
}

#[test]
fn reports_have_the_paths_of_their_moment() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    let (mut tree, _) = tree(place.path(), "");
    fs::create_dir_all(path("a/b/c")).unwrap();
    fs::write(path("a/b/c/early"), "1").unwrap();
    assert_eq!(changes(&mut tree), [Change::Created(b"a/b/c/early".to_vec())]);
    fs::write(path("a/b/c/1"), "1").unwrap();
    fs::rename(path("a/b"), path("x")).unwrap();
    fs::write(path("x/c/2"), "2").unwrap();
    fs::rename(path("x/c"), path("x/c.tmp")).unwrap();
    fs::write(path("x/c.tmp/3"), "3").unwrap();
    let renamed = |from: &str, to: &str, is_exchanged| Change::DirectoryRenamed {
        from: from.as_bytes().to_vec(),
        to: to.as_bytes().to_vec(),
        is_exchanged,
    };
    let found = changes(&mut tree);
    let expected = [closed("a/b/c/1"), renamed("a/b", "x", false), closed("x/c/2")];
    // What follows the rename to an unfinished name may or may not have been reported.
    assert_eq!(found[..4], [&expected[..], &[Change::DirectoryOut(b"x/c".to_vec())]].concat()[..]);
    fs::rename(path("x/c.tmp"), path("x/d")).unwrap();
    let back: Vec<Change> =
        ["1", "2", "3", "early"].map(|name| format!("x/d/{name}").into_bytes()).map(Change::Created).into();
    let mut found = changes(&mut tree);
    found.sort_by_key(|change| format!("{change:?}"));
    let mut wanted = back;
    wanted.sort_by_key(|change| format!("{change:?}"));
    assert_eq!(found, wanted, "a directory that gets its final name is new");
    // It replaces an empty directory.
    fs::create_dir(path("e")).unwrap();
    assert_eq!(changes(&mut tree), []);
    fs::rename(path("x/d"), path("e")).unwrap();
    assert_eq!(changes(&mut tree), [renamed("x/d", "e", true)]);
    fs::write(path("e/5"), "5").unwrap();
    assert_eq!(changes(&mut tree), [closed("e/5")]);
}

#[test]
fn a_directory_that_is_removed_or_moved_out_is_forgotten() {
    let (place, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = |name: &str| place.path().join(name);
    fs::create_dir_all(path("a/b")).unwrap();
    fs::create_dir_all(path("gone")).unwrap();
    let (mut tree, _) = tree(place.path(), "");
    fs::rename(path("a"), other.path().join("a")).unwrap();
    assert_eq!(changes(&mut tree), [Change::DirectoryOut(b"a".to_vec())]);
    fs::write(other.path().join("a/b/1"), "1").unwrap();
    fs::remove_dir(path("gone")).unwrap();
    assert_eq!(changes(&mut tree), []);
    assert_eq!(tree.watches.len(), 1, "{:?}", tree.watches);
    assert_eq!(tree.paths.len(), 1);
    // It comes back with a file that was written elsewhere.
    fs::rename(other.path().join("a"), path("a")).unwrap();
    assert_eq!(changes(&mut tree), [Change::Created(b"a/b/1".to_vec())]);
    fs::write(path("a/b/2"), "2").unwrap();
    assert_eq!(changes(&mut tree), [closed("a/b/2")]);
}

#[test]
fn a_scan_finds_renames_that_were_not_reported() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::create_dir_all(path("a/b")).unwrap();
    let (mut tree, _) = tree(place.path(), "");
    fs::rename(path("a"), path("z")).unwrap();
    drop(tree.reports().unwrap());
    let scan = tree.scan(b"").unwrap();
    assert_eq!(scan.renamed, [(b"a".to_vec(), b"z".to_vec())]);
    fs::write(path("z/b/1"), "1").unwrap();
    assert_eq!(changes(&mut tree), [closed("z/b/1")]);
    assert_eq!((tree.paths.len(), tree.watches.len()), (3, 3));
}
