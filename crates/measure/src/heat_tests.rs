//! Simulated machines: with two drives and two cores, and without sensors.
use std::fs;
use std::os::unix::fs::symlink;

use super::*;

fn machine() -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    let root = tree.path();
    for (path, text) in [
        ("sys/devices/pci/nvme0/nvme0n1/size", "1"),
        ("sys/devices/pci/nvme0/hwmon3/name", "nvme\n"),
        ("sys/devices/pci/nvme0/hwmon3/temp1_input", "51850\n"),
        ("sys/devices/pci/nvme0/hwmon3/temp1_max", "81850\n"),
        ("sys/devices/pci/0:0:0:0/block/sda/size", "1"),
        ("sys/devices/pci/0:0:0:0/hwmon4/name", "drivetemp\n"),
        ("sys/devices/pci/0:0:0:0/hwmon4/temp1_input", "62000\n"),
        ("sys/devices/virtual/hwmon5/name", "acpitz\n"),
        ("sys/devices/virtual/hwmon5/temp1_input", "99000\n"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1000000\n"),
        ("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "4000000\n"),
        ("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "3000000\n"),
        ("sys/devices/system/cpu/cpu1/cpufreq/cpuinfo_max_freq", "4000000\n"),
        ("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "7\n"),
        ("sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "5\n"),
        ("sys/devices/system/cpu/cpu1/thermal_throttle/package_throttle_count", "30\n"),
        ("sys/devices/system/cpu/cpufreq/scaling_cur_freq", "1\n"),
    ] {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        fs::write(root.join(path), text).unwrap();
    }
    for directory in ["sys/class/block", "sys/class/hwmon"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    let devices = root.join("sys/devices");
    for (link, target) in [
        ("sys/class/block/nvme0n1", "pci/nvme0/nvme0n1"),
        ("sys/devices/pci/nvme0/nvme0n1/device", "pci/nvme0"),
        ("sys/class/block/sda", "pci/0:0:0:0/block/sda"),
        ("sys/devices/pci/0:0:0:0/block/sda/device", "pci/0:0:0:0"),
        ("sys/class/hwmon/hwmon3", "pci/nvme0/hwmon3"),
        ("sys/devices/pci/nvme0/hwmon3/device", "pci/nvme0"),
        ("sys/class/hwmon/hwmon4", "pci/0:0:0:0/hwmon4"),
        ("sys/devices/pci/0:0:0:0/hwmon4/device", "pci/0:0:0:0"),
        ("sys/class/hwmon/hwmon5", "virtual/hwmon5"),
    ] {
        symlink(devices.join(target), root.join(link)).unwrap();
    }
    tree
}

#[test]
fn the_sensors_of_the_drives_asked_about_are_read_and_no_others() {
    let tree = machine();
    let read = |disks: &[&str]| {
        let disks: Vec<String> = disks.iter().map(|disk| (*disk).to_owned()).collect();
        Heat::read(tree.path(), &disks)
    };
    let nvme = read(&["nvme0n1"]);
    assert_eq!((nvme.drive_celsius, nvme.drive_celsius_max), (Some(51.85), Some(81.85)));
    let both = read(&["nvme0n1", "sda"]);
    assert_eq!(
        (both.drive_celsius, both.drive_celsius_max),
        (Some(62.0), None),
        "the hottest, its own limit"
    );
    assert_eq!(read(&["vda"]).drive_celsius, None);
    assert_eq!((nvme.frequency_share, nvme.throttled), (Some(0.5), Some(42)));
}

#[test]
fn a_machine_that_tells_nothing_has_no_heat() {
    let tree = tempfile::tempdir().unwrap();
    assert_eq!(Heat::read(tree.path(), &["sda".to_owned()]), Heat::default());
}
