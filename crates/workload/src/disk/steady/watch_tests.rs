//! Simulated machine: own traffic is excluded, unreadable values are absent.
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use super::*;

const MB: u64 = 1_000_000;

/// Writes simulated kernel files: bytes written to and read from the device, and stolen ticks (10
/// ms).
fn write_proc(root: &Path, written: u64, read: u64, stolen: u64) {
    let (written, read) = (written / 512, read / 512);
    let diskstats = format!("8 16 sdz 1 0 {read} 1 1 0 {written} 1 0 1 1\n");
    fs::write(root.join("proc/diskstats"), diskstats).unwrap();
    let stat = format!("cpu0 0 0 0 0 0 0 0 {stolen} 0 0\ncpu1 0 0 0 0 0 0 0 {stolen} 0 0\n");
    fs::write(root.join("proc/stat"), stat).unwrap();
    fs::write(root.join("proc/uptime"), "5.00 6.00\n").unwrap();
}

#[test]
fn foreign_traffic_excludes_this_test() {
    let tree = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let root = tree.path();
    for directory in ["proc", "sys/dev/block", "sys/class/block/sdz"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    let dev = fs::metadata(root).unwrap().dev();
    // glibc's encoding of device numbers.
    let (major, minor) = ((dev >> 8) & 0xfff, (dev & 0xff) | ((dev >> 12) & 0xff_ff00));
    if major == 0 {
        return;
    }
    let device = root.join("sys/class/block/sdz");
    symlink(device, root.join(format!("sys/dev/block/{major}:{minor}"))).unwrap();
    let mut watch = Watch::new(root, root);
    write_proc(root, 5000 * MB, 70 * MB, 100);
    let first = watch.read(1_000_000_000, 0);
    assert_eq!(
        (first.neighbour_bytes_per_second, first.steal_cores),
        (None, None),
        "nothing to compare with"
    );
    assert_eq!((first.drive_celsius, first.throttled), (None, None));
    assert!(first.fill_percent.is_some_and(|percent| percent > 0.0));
    // 1200 MB written, 1000 of them ours, and 60 read, in 2 s; 50 stolen ticks per core.
    write_proc(root, 6200 * MB, 130 * MB, 150);
    let second = watch.read(3_000_000_000, 1000 * MB);
    let others = second.neighbour_bytes_per_second.unwrap();
    assert!((others - 130e6).abs() < 1000.0, "{others}");
    assert!((second.steal_cores.unwrap() - 0.5).abs() < 1e-9, "{second:?}");
    // The kernel may count our writes later than this test.
    write_proc(root, 6900 * MB, 130 * MB, 150);
    let third = watch.read(4_000_000_000, 1800 * MB);
    assert_eq!((third.neighbour_bytes_per_second, third.steal_cores), (Some(0.0), Some(0.0)));
}

#[test]
fn a_machine_without_sensors_gives_no_readings() {
    let tree = tempfile::tempdir().unwrap();
    let mut watch = Watch::new(tree.path(), &tree.path().join("gone"));
    watch.read(0, 0);
    assert_eq!(watch.read(1_000_000_000, 1), SteadyConditions::default());
}
