//! Maps and BARs of UIO devices. Plain files replace those of the kernel.
use std::fs;
use std::os::unix::fs::symlink;

use keepup_error::Cause;
use keepup_sys::register::{Span, Width};

use crate::method::open;
use crate::{RegisterError, TargetProfile};

use super::*;
use crate::RegisterWrite;

/// Two UIO devices of a PCI function. The driver of device 0 offers a map of one page and a smaller one, that
/// of device 1 offers none.
fn machine() -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    let root = tree.path();
    let function = root.join("sys/bus/pci/devices/0000:00:04.0");
    fs::create_dir_all(function.join("uio/uio1")).unwrap();
    let memory: Vec<u8> = (0..2048u32).flat_map(|index| (index * 3).to_le_bytes()).collect();
    fs::write(function.join("resource0"), &memory).unwrap();
    for (name, text) in [("enable", "1\n"), ("vendor", "0x1234\n"), ("device", "0x11e8\n")] {
        fs::write(function.join(name), text).unwrap();
    }
    let class = root.join("sys/class/uio");
    for (number, driver) in [("uio0", "cif"), ("uio1", "uio_pci_generic")] {
        fs::create_dir_all(class.join(number)).unwrap();
        fs::write(class.join(number).join("name"), format!("{driver}\n")).unwrap();
        symlink(&function, class.join(number).join("device")).unwrap();
    }
    for (map, size, offset) in [("map0", "0x1000", "0x0"), ("map1", "0x800", "0x10")] {
        let map = class.join("uio0/maps").join(map);
        fs::create_dir_all(&map).unwrap();
        fs::write(map.join("size"), format!("{size}\n")).unwrap();
        fs::write(map.join("offset"), format!("{offset}\n")).unwrap();
    }
    fs::create_dir_all(root.join("dev")).unwrap();
    fs::write(root.join("dev/uio0"), &memory).unwrap();
    fs::write(root.join("dev/uio1"), "").unwrap();
    tree
}

fn read(root: &Path, name: &str, offset: u64) -> Result<(u64, u64), RegisterError> {
    let mut methods = open(&name.parse().unwrap(), root, None)?;
    let mut values = Vec::new();
    let span = Span { offset, count: 1, width: Width::Bits32, is_fifo: false };
    methods[0].values(&span, &mut values).unwrap();
    Ok((methods[0].bytes(), values[0]))
}

#[test]
fn maps_and_bars_are_read_at_their_offsets() {
    let tree = machine();
    for (name, found) in [
        ("uio:0", (0x1000, 6)),
        ("uio:/dev/uio0/map0", (0x1000, 6)),
        // 0x10 bytes into the second page.
        ("uio:0/map1", (0x800, (1024 + 4 + 2) * 3)),
        ("uio:1/bar0", (8192, 6)),
        ("uio:0000:00:04.0/bar0", (8192, 6)),
    ] {
        assert_eq!(read(tree.path(), name, 8).unwrap(), found, "{name}");
    }
}

#[test]
fn the_profile_is_checked_against_the_pci_function() {
    let tree = machine();
    let mut profile =
        TargetProfile::parse("card", "name = \"card\"\nid = \"1234:11e8\"\nwrite = [4]").unwrap();
    let target = "uio:0".parse().unwrap();
    let methods = open(&target, tree.path(), Some(&profile)).unwrap();
    let store = |offset| RegisterWrite { offset, value: 0x0102_0304 };
    let span = Span { offset: 0, count: 1, width: Width::Bits32, is_fifo: false };
    methods[0].write_methods(store(4), Width::Bits32).unwrap()[0].read(&span).unwrap();
    assert_eq!(fs::read(tree.path().join("dev/uio0")).unwrap()[4..8], [4, 3, 2, 1]);
    assert!(methods[0].write_methods(store(0x1000), Width::Bits8).is_err());
    profile.id = Some("1234:11e9".into());
    let why = open(&target, tree.path(), Some(&profile)).err().unwrap().to_string();
    assert!(why.contains("is for 1234:11e9, and this device is 1234:11e8"), "{why}");
}

#[test]
fn missing_devices_and_maps_have_hints() {
    let tree = machine();
    for (name, words) in [
        ("uio:7", "ls /sys/class/uio"),
        ("uio:0/map2", "choose one of map0, map1"),
        ("uio:1", "uio_pci_generic offers no maps"),
        ("uio:1", "read a BAR: uio:1/bar0"),
        ("uio:0/bar3", "lspci -v"),
        ("uio:0000:00:05.0", "lspci -D"),
    ] {
        let why = Cause::of(&read(tree.path(), name, 0).unwrap_err()).to_text();
        assert!(why.contains(words) && why.contains("hint:"), "{name}: {why}");
    }
    fs::remove_file(tree.path().join("dev/uio0")).unwrap();
    let why = read(tree.path(), "uio:0", 0).unwrap_err().to_string();
    assert!(why.contains("cannot open") && why.contains("dev/uio0"), "{why}");
}
