//! Error counters of simulated machines and of `smartctl` output.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A tree in which the directory `data` is on `device`.
fn tree(device: &str) -> TempDir {
    let tree = tempfile::tempdir().unwrap();
    let root = tree.path();
    for directory in ["data", "sys/dev/block", "sys/class/block", "proc/self"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    for name in ["sda", "sdb", "md0", "nvme0n1"] {
        fs::create_dir_all(root.join("sys/class/block").join(name).join("slaves")).unwrap();
    }
    for part in ["sda", "sdb"] {
        fs::create_dir(root.join("sys/class/block/md0/slaves").join(part)).unwrap();
    }
    let dev = fs::metadata(root.join("data")).unwrap().dev();
    let (major, minor) = (rustix::fs::major(dev), rustix::fs::minor(dev));
    match major {
        // A file system without a device number, found by its mount.
        0 => {
            let point = root.canonicalize().unwrap();
            let line = format!("1 1 0:1 / {} rw - btrfs /dev/{device} rw\n", point.display());
            write(root, "proc/self/mountinfo", &line);
            write(root, &format!("dev/{device}"), "");
        }
        _ => symlink(
            root.join("sys/class/block").join(device),
            root.join(format!("sys/dev/block/{major}:{minor}")),
        )
        .unwrap(),
    }
    tree
}

fn pairs(counters: &[ErrorCounter]) -> Vec<(&str, Option<u64>)> {
    counters.iter().map(|c| (c.name.as_str(), c.value)).collect()
}

#[test]
fn every_layer_below_a_volume_is_asked() {
    let tree = tree("md0");
    let root = tree.path();
    write(root, "sys/class/block/sda/device/ioerr_cnt", "0x1f\n");
    write(root, "sys/class/block/md0/md/mismatch_cnt", "128\n");
    write(root, "sys/class/block/md0/md/dev-sda/errors", "2\n");
    write(root, "sys/class/block/md0/md/dev-sdb/errors", "none\n");
    write(root, "sys/fs/ext4/md0/errors_count", "3\n");
    write(root, "sys/fs/ext4/other/errors_count", "9\n");
    let found = volume_errors(root, &root.join("data"));
    let expected = [
        ("sda: ioerr_cnt", Some(31)),
        ("sdb: ioerr_cnt", None),
        ("md0: mismatch_cnt", Some(128)),
        ("md0: dev-sda errors", Some(2)),
        ("md0: dev-sdb errors", None),
        ("md0: ext4 errors_count", Some(3)),
    ];
    assert_eq!(pairs(&found), expected);
    assert_eq!(disks_below(root, &root.join("data")), ["sda", "sdb"]);
}

#[test]
fn btrfs_counts_device_by_device() {
    let tree = tree("nvme0n1");
    let root = tree.path();
    let stats = "write_errs 0\nread_errs 1\nflush_errs 0\ncorruption_errs 121\ngeneration_errs 0\n";
    write(root, "sys/fs/btrfs/0a/devices/nvme0n1", "");
    write(root, "sys/fs/btrfs/0a/devinfo/1/error_stats", stats);
    write(root, "sys/fs/btrfs/0a/devinfo/2/error_stats", "");
    write(root, "sys/fs/btrfs/0b/devices/sda", "");
    write(root, "sys/fs/btrfs/0b/devinfo/1/error_stats", "write_errs 7\n");
    let found = volume_errors(root, &root.join("data"));
    let expected = [
        ("nvme0n1: ioerr_cnt", None),
        ("nvme0n1: btrfs device 1 write_errs", Some(0)),
        ("nvme0n1: btrfs device 1 read_errs", Some(1)),
        ("nvme0n1: btrfs device 1 flush_errs", Some(0)),
        ("nvme0n1: btrfs device 1 corruption_errs", Some(121)),
        ("nvme0n1: btrfs device 1 generation_errs", Some(0)),
        ("nvme0n1: btrfs device 2 error_stats", None),
    ];
    assert_eq!(pairs(&found), expected);
}

#[test]
fn missing_counters_have_no_value() {
    let tree = tempfile::tempdir().unwrap();
    let found = volume_errors(tree.path(), &tree.path().join("gone"));
    assert_eq!((found.len(), found[0].value), (1, None));
    assert_eq!(pairs(&memory_errors(tree.path())), [("memory: ce_count, ue_count", None)]);
    write(tree.path(), "sys/devices/system/edac/mc/mc0/ce_count", "4\n");
    let memory = [("memory mc0: ce_count", Some(4)), ("memory mc0: ue_count", None)];
    assert_eq!(pairs(&memory_errors(tree.path())), memory);
    for text in [None, Some(""), Some("{}"), Some(r#"{"ata_smart_attributes": {"table": 3}}"#)] {
        assert_eq!(pairs(&smart_errors("sda", text)), [("sda: SMART", None)]);
    }
}

#[test]
fn smart_accounts_of_every_bus_are_read() {
    let ata = r#"{"ata_smart_attributes": {"table": [
        {"id": 5, "name": "Reallocated_Sector_Ct", "raw": {"value": 8, "string": "8"}},
        {"id": 9, "name": "Power_On_Hours", "raw": {"value": 12345}},
        {"id": 197, "name": "Current_Pending_Sector", "raw": {"value": 1}}]}}"#;
    let found = smart_errors("sda", Some(ata));
    let expected =
        [("sda: SMART Reallocated_Sector_Ct", Some(8)), ("sda: SMART Current_Pending_Sector", Some(1))];
    assert_eq!(pairs(&found), expected);
    let nvme = r#"{"nvme_smart_health_information_log":
        {"critical_warning": 0, "temperature": 40, "media_errors": 2, "num_err_log_entries": 17}}"#;
    let entry = |name: &str, value| (name.to_owned(), value);
    let expected = [entry("critical_warning", 0), entry("media_errors", 2), entry("num_err_log_entries", 17)];
    assert_eq!(parse_smart(nvme), expected);
    let scsi = r#"{"scsi_grown_defect_list": 5, "scsi_error_counter_log":
        {"read": {"total_errors_corrected": 6, "total_uncorrected_errors": 1}}}"#;
    let expected = [
        entry("read total_errors_corrected", 6),
        entry("read total_uncorrected_errors", 1),
        entry("scsi_grown_defect_list", 5),
    ];
    assert_eq!(parse_smart(scsi), expected);
}

proptest! {
    #[test]
    fn no_text_is_too_strange(text in any::<String>()) {
        let _ = parse_smart(&text);
        let _ = parse_error_stats(&text);
        let _ = parse_hexadecimal(&text);
    }
}
