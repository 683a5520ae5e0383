//! Every method reads the same values. Plain files replace those of the kernel.
use std::fs;
use std::path::PathBuf;

use keepup_error::Cause;
use keepup_sys::register::Width;

use super::*;

const FUNCTION: &str = "0000:00:04.0";

/// A PCI function of plain files: a BAR of memory, one of ports, a configuration space.
fn machine() -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let function = root.path().join("sys/bus/pci/devices").join(FUNCTION);
    fs::create_dir_all(&function).unwrap();
    let memory: Vec<u8> = (0..8192u32).flat_map(|index| (index * 3).to_le_bytes()).collect();
    fs::write(function.join("resource0"), &memory).unwrap();
    fs::write(function.join("resource0_wc"), &memory).unwrap();
    fs::write(function.join("resource1"), &memory[..64]).unwrap();
    fs::write(function.join("config"), &memory[..256]).unwrap();
    fs::write(function.join("enable"), "1\n").unwrap();
    let resource = "0x1000 0x8fff 0x0000000000040200\n0xc000 0xc03f 0x0000000000040101\n";
    fs::write(function.join("resource"), resource).unwrap();
    (root, function)
}

fn names(target: &str, root: &Path) -> Vec<&'static str> {
    let target = target.parse().unwrap();
    open(&target, root, None)
        .unwrap_or_else(|why| panic!("{why}"))
        .iter()
        .map(|method| method.name())
        .collect()
}

#[test]
fn all_ways_of_a_target_read_the_same() {
    let (root, function) = machine();
    let device = format!("xdma:{}", function.join("resource0").display());
    assert_eq!(names("pci:0000:00:04.0/bar0", root.path()), ["mmap", "mmap-wc"]);
    assert_eq!(names("pci:0000:00:04.0/bar1", root.path()), ["pread"]);
    assert_eq!(names("ram:", root.path()), ["mmap", "pread", "transfer"]);
    for (target, bytes) in [
        ("pci:0000:00:04.0/bar0", 32_768),
        ("pci:0000:00:04.0/bar1", 64),
        ("pci-config:0000:00:04.0", 256),
        (&device, 32_768),
    ] {
        for mut method in open(&target.parse().unwrap(), root.path(), None).unwrap() {
            assert_eq!(method.bytes(), bytes, "{target}");
            let mut values = Vec::new();
            let span = Span { offset: 8, count: 5, width: Width::Bits32, is_fifo: false };
            method.read(&span).unwrap();
            method.values(&span, &mut values).unwrap();
            assert_eq!(values, [6, 9, 12, 15, 18], "{target} {}", method.name());
            let narrow = Span { offset: 12, count: 2, width: Width::Bits16, is_fifo: false };
            method.values(&narrow, &mut values).unwrap();
            assert_eq!(values, [9, 0], "{target} {}", method.name());
            let beyond = Span { offset: bytes - 4, count: 2, ..span };
            assert!(method.read(&beyond).unwrap_err().to_string().contains("beyond"), "{target}");
            let fifo = method.values(&Span { is_fifo: true, ..span }, &mut values);
            match method.name() {
                "transfer" => assert!(fifo.is_err()),
                _ => assert_eq!((fifo.is_ok(), values.as_slice()), (true, &[6; 5][..]), "{target}"),
            }
        }
    }
}

#[test]
fn missing_targets_have_hints() {
    let (root, function) = machine();
    for (target, words) in [
        ("pci:0000:00:05.0/bar0", "lspci -D"),
        ("pci:0000:00:04.0/bar3", "lspci -v"),
        ("xdma:/nowhere/xdma0_c2h_0", "ls /dev/xdma*"),
    ] {
        let why = Cause::of(&open(&target.parse().unwrap(), root.path(), None).err().unwrap()).to_text();
        assert!(why.contains(words) && why.contains(target) && why.contains("hint:"), "{why}");
    }
    fs::write(function.join("enable"), "0\n").unwrap();
    let why = open(&"pci:0000:00:04.0/bar0".parse().unwrap(), root.path(), None).err().unwrap();
    let why = Cause::of(&why).to_text();
    assert!(why.contains("is disabled") && why.contains("echo 1"), "{why}");
}
