//! Only registers that a profile lists as writable are written.
use std::fs;

use keepup_error::Cause;

use super::*;

const FUNCTION: &str = "sys/bus/pci/devices/0000:00:04.0";

fn machine(id: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let function = root.path().join(FUNCTION);
    fs::create_dir_all(&function).unwrap();
    let mut registers = vec![0; 1 << 20];
    registers[..4].copy_from_slice(&0x0100_00ed_u32.to_le_bytes());
    fs::write(function.join("resource0"), registers).unwrap();
    for (name, text) in [("enable", "1\n"), ("vendor", "0x1234\n"), ("device", id)] {
        fs::write(function.join(name), text).unwrap();
    }
    root
}

fn write(root: &Path, name: &str, offset: u64, value: u64) -> Result<WriteOutcome, String> {
    let profile = TargetProfile::find("edu").unwrap();
    let target = name.parse().unwrap();
    set(&target, root, &profile, (offset, Width::Bits32), value).map_err(|why| Cause::of(&why).to_text())
}

#[test]
fn only_listed_registers_are_written() {
    let root = machine("0x11e8\n");
    let registers = || fs::read(root.path().join(FUNCTION).join("resource0")).unwrap();
    let target = "pci:0000:00:04.0/bar0";
    let written = write(root.path(), target, 4, 0x1234_5678).unwrap();
    assert_eq!(written, WriteOutcome { before: Some(0), after: Some(0x1234_5678) });
    assert_eq!(registers()[..9], [0xed, 0, 0, 1, 0x78, 0x56, 0x34, 0x12, 0]);
    let before = registers();
    for (offset, value, words) in [
        (0, 1, "does not list the 32 bits at 0x0 as writable"),
        (0xc, 1, "does not list"),
        (6, 1, "not a multiple of 4"),
        (4, 1 << 32, "does not fit into the 32 bits"),
    ] {
        let why = write(root.path(), target, offset, value).unwrap_err();
        assert!(why.contains(words) && why.contains(target), "{why}");
    }
    assert_eq!(before, registers());
}

#[test]
fn another_device_is_not_written() {
    let root = machine("0x11e9\n");
    let why = write(root.path(), "pci:0000:00:04.0/bar0", 4, 1).unwrap_err();
    assert!(why.contains("is for 1234:11e8, and this device is 1234:11e9") && why.contains("hint:"), "{why}");
    let why = write(root.path(), "ram:", 4, 1).unwrap_err();
    assert!(why.contains("has no PCI ID"), "{why}");
    let gone = machine("0x11e8\n");
    let path = gone.path().join(FUNCTION).join("resource0");
    fs::write(&path, vec![0xff; 1 << 20]).unwrap();
    let why = write(gone.path(), "pci:0000:00:04.0/bar0", 4, 1).unwrap_err();
    assert!(why.contains("reads 0xffffffff instead of 0x10000ed"), "{why}");
    fs::write(&path, vec![0; 0x90]).unwrap();
    let why = write(gone.path(), "pci:0000:00:04.0/bar0", 4, 1).unwrap_err();
    assert!(why.contains("beyond the 144 bytes"), "{why}");
}
