//! Space of real directories, and memory disks in simulated trees.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use super::*;

#[test]
fn a_temporary_directory_has_room() {
    let directory = tempfile::tempdir().unwrap();
    let space = Space::of(directory.path()).unwrap();
    assert!(space.total_bytes >= space.free_bytes + space.used_bytes && space.total_bytes > 0, "{space:?}");
    assert!((0.0..=100.0).contains(&space.fill_percent()));
}

#[test]
fn a_path_that_does_not_exist_is_named() {
    let error = Space::of(Path::new("/no/such/place")).unwrap_err().to_string();
    assert!(error.starts_with("cannot read /no/such/place: "), "{error}");
}

#[test]
fn fill_in_per_cent_leaves_the_reserve_out() {
    let space = |used_bytes, free_bytes| Space {
        fs_type: "ext4".into(),
        total_bytes: 1000,
        used_bytes,
        free_bytes,
        free_inodes: None,
    };
    assert_eq!(space(600, 200).fill_percent(), 75.0);
    assert_eq!(space(0, 0).fill_percent(), 0.0);
}

#[test]
fn known_and_unknown_file_systems() {
    assert_eq!(fs_type_name(0xef53), "ext4");
    assert_eq!(fs_type_name(0x0102_1994), "tmpfs");
    assert_eq!(fs_type_name(0x1234), "0x1234");
}

#[test]
fn names_of_memory_disks() {
    assert!(is_memory_disk("ram0") && is_memory_disk("zram12"));
    for disk in ["ram", "vda", "ramdisk1", "nvme0n1", "loop0"] {
        assert!(!is_memory_disk(disk), "{disk}");
    }
}

#[test]
fn shared_memory_is_memory() {
    let shared = Path::new("/dev/shm");
    if Space::of(shared).is_ok_and(|space| space.fs_type == "tmpfs") {
        assert!(is_memory_backed(Path::new("/"), shared).unwrap());
    }
}

/// Result for a simulated directory on `disk`. `None` if real temporary files are in memory, where
/// the answer would be known already.
fn on_disk(disk: &str, loop_file: Option<&str>) -> Option<bool> {
    let tree = tempfile::tempdir().unwrap();
    let root = tree.path();
    if Space::of(root).unwrap().fs_type == "tmpfs" {
        return None;
    }
    let block = root.join("sys/block").join(disk);
    fs::create_dir_all(block.join("loop")).unwrap();
    fs::create_dir_all(root.join("sys/dev/block")).unwrap();
    if let Some(file) = loop_file {
        fs::write(block.join("loop/backing_file"), file).unwrap();
    }
    let dev = fs::metadata(root).unwrap().dev();
    let number = format!("{}:{}", rustix::fs::major(dev), rustix::fs::minor(dev));
    symlink(&block, root.join("sys/dev/block").join(number)).unwrap();
    Some(is_memory_backed(root, root).unwrap())
}

#[test]
fn memory_disks_are_memory_and_others_are_not() {
    assert_ne!(on_disk("zram0", None), Some(false));
    assert_ne!(on_disk("vda", None), Some(true));
}

#[test]
fn a_loop_device_is_what_its_file_lies_on() {
    assert_ne!(on_disk("loop0", Some("/proc/version")), Some(true));
    // A file on itself: the search ends.
    assert_ne!(on_disk("loop0", Some("/tmp")), Some(true));
    if Path::new("/dev/shm").is_dir() && Space::of(Path::new("/dev/shm")).unwrap().fs_type == "tmpfs" {
        assert_ne!(on_disk("loop0", Some("/dev/shm")), Some(false));
    }
}
