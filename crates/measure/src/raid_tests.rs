//! RAID as described by the kernel.
use std::fs;

use super::*;

fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

#[test]
fn md_is_described_by_its_device() {
    let root = tree(&[
        ("sys/class/block/md0/md/level", "raid5\n"),
        ("sys/class/block/md0/md/raid_disks", "4\n"),
        ("sys/class/block/md0/md/chunk_size", "524288\n"),
    ]);
    let found = Raid::on(root.path(), "md0");
    assert_eq!(found.description.as_deref(), Some("md raid5 over 4 devices, chunks of 524288 bytes"));
    assert!(found.devices.is_empty(), "the kernel's stack of devices names them");
}

#[test]
fn btrfs_is_described_by_any_of_its_devices() {
    let root = tree(&[
        ("sys/fs/btrfs/features/raid56", "0"),
        ("sys/fs/btrfs/0001/devices/sda/size", "1"),
        ("sys/fs/btrfs/0001/allocation/data/single/used_bytes", "1"),
        ("sys/fs/btrfs/0002/devices/sdb/size", "1"),
        ("sys/fs/btrfs/0002/devices/sdc/size", "1"),
        ("sys/fs/btrfs/0002/allocation/data/bytes_used", "1"),
        ("sys/fs/btrfs/0002/allocation/data/raid0/used_bytes", "1"),
    ]);
    let found = Raid::on(root.path(), "sdc");
    assert_eq!(found.description.as_deref(), Some("btrfs raid0 over 2 devices"));
    assert_eq!(found.devices, ["sdb", "sdc"]);
    let one = Raid::on(root.path(), "sda");
    assert_eq!(one.description.as_deref(), Some("btrfs single over 1 device"));
    assert_eq!(Raid::on(root.path(), "sdz"), Raid::default());
}
