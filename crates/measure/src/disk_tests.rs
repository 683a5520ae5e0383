//! Disk counters from kernel text; devices in simulated trees.

use std::fs;
use std::os::unix::fs::symlink;

use keepup_error::Cause;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

const DISKSTATS: &str = "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0\n\
 254       0 vda 28595 5751 2814826 16336 6338 14422 1092512 4287 3 8620 21000 3470 44 152448 358 342 18\n\
 104       0 cciss/c0d0 1 2 3 4 5 6 7 8 9 10 11\n broken\n";

#[test]
fn counters_are_read_and_sectors_become_bytes() {
    let all = parse_diskstats(DISKSTATS);
    let expected = DiskCounters {
        reads: 28_595,
        read_bytes: 2_814_826 * 512,
        read_ms: 16_336,
        writes: 6_338,
        written_bytes: 1_092_512 * 512,
        write_ms: 4_287,
        in_flight: 3,
        busy_ms: 8_620,
        flushes: 342,
        flush_ms: 18,
    };
    assert_eq!(all.keys().collect::<Vec<_>>(), ["cciss!c0d0", "loop0", "vda"]);
    assert_eq!(all["vda"], expected);
    assert_eq!(all["cciss!c0d0"].flushes, 0);
}

#[test]
fn usage_between_two_readings() {
    let before = parse_diskstats(DISKSTATS)["vda"];
    let after = DiskCounters {
        written_bytes: before.written_bytes + 4096,
        writes: before.writes + 4,
        write_ms: before.write_ms + 10,
        busy_ms: before.busy_ms + 25,
        in_flight: 7,
        ..before
    };
    let expected = DiskUsage {
        read_bytes: 0,
        written_bytes: 4096,
        in_flight: 7,
        busy_percent: 25.0,
        write_ms_mean: Some(2.5),
        flush_ms_mean: None,
    };
    assert_eq!(after.since(&before, 100_000_000), expected);
    assert_eq!(after.since(&before, 0).busy_percent, 0.0);
    assert_eq!(after.since(&before, 1_000_000).busy_percent, 100.0);
}

/// A tree in which the directory `under` is on `device`, independent of this machine.
fn tree(device: &str) -> TempDir {
    let tree = tempfile::tempdir().unwrap();
    let root = tree.path();
    fs::create_dir_all(root.join("under")).unwrap();
    for directory in ["sys/dev/block", "sys/class/block", "proc/self", "dev/mapper"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    for (name, path) in [
        ("sda", "block/sda"),
        ("sda1", "block/sda/sda1"),
        ("sdb", "block/sdb"),
        ("dm-0", "block/dm-0"),
        ("md0", "block/md0"),
    ] {
        fs::create_dir_all(root.join("sys").join(path).join("slaves")).unwrap();
        symlink(root.join("sys").join(path), root.join("sys/class/block").join(name)).unwrap();
    }
    fs::write(root.join("sys/block/sda/sda1/partition"), "1\n").unwrap();
    for (whole, part) in [("dm-0", "sda1"), ("dm-0", "sdb"), ("md0", "md0")] {
        fs::create_dir(root.join("sys/class/block").join(whole).join("slaves").join(part)).unwrap();
    }
    let dev = fs::metadata(root.join("under")).unwrap().dev();
    let (major, minor) = (rustix::fs::major(dev), rustix::fs::minor(dev));
    let class = root.join("sys/class/block").join(device);
    symlink(class, root.join(format!("sys/dev/block/{major}:{minor}"))).unwrap();
    // If temporary files are on tmpfs, the mount source must be used instead of the device number.
    fs::write(root.join("dev").join(device), "").unwrap();
    symlink(root.join("dev").join(device), root.join("dev/mapper/under")).unwrap();
    let mounts = format!("27 1 {major}:{minor} / / rw - btrfs /dev/mapper/under rw\n");
    fs::write(root.join("proc/self/mountinfo"), mounts).unwrap();
    tree
}

fn found(device: &str) -> Device {
    let tree = tree(device);
    Device::under(tree.path(), &tree.path().join("under")).unwrap()
}

#[test]
fn a_partition_leads_to_its_disk() {
    assert_eq!(found("sda1"), Device { name: "sda1".into(), disks: vec!["sda".into()] });
}

#[test]
fn a_whole_disk_is_itself() {
    assert_eq!(found("sdb"), Device { name: "sdb".into(), disks: vec!["sdb".into()] });
}

#[test]
fn a_stacked_device_leads_to_all_disks_below() {
    assert_eq!(found("dm-0"), Device { name: "dm-0".into(), disks: vec!["sda".into(), "sdb".into()] });
}

#[test]
fn a_loop_of_devices_ends() {
    assert_eq!(found("md0").disks, ["md0"]);
}

#[test]
fn a_mount_names_its_device_through_the_mapper() {
    let tree = tree("dm-0");
    assert_eq!(mounted_device(tree.path(), &tree.path().join("under")).unwrap(), "dm-0");
}

#[test]
fn a_file_system_without_a_device_is_refused_with_a_hint() {
    let tree = tree("sda");
    fs::write(tree.path().join("proc/self/mountinfo"), "27 1 0:9 / / rw - nfs4 host:/share rw\n").unwrap();
    let error = Cause::of(&mounted_device(tree.path(), &tree.path().join("under")).unwrap_err()).to_text();
    assert!(error.contains("(nfs4, host:/share)") && error.contains("\nhint: "), "{error}");
}

#[test]
fn a_device_that_is_not_listed_is_an_error() {
    let tree = tree("sda");
    fs::write(tree.path().join("proc/diskstats"), DISKSTATS).unwrap();
    assert!(DiskCounters::read(tree.path(), "vda").is_ok());
    let error = DiskCounters::read(tree.path(), "sdz").unwrap_err().to_string();
    assert!(error.ends_with("it does not list the device"), "{error}");
}

proptest! {
    #[test]
    fn any_text_is_survived(text in "( *[0-9]+ +[0-9]+ [a-z]+( [0-9]{1,25}){0,20}\n|.)*") {
        parse_diskstats(&text);
    }
}
