//! Reads return the stored values, and refused reads access nothing.
use std::fs;

use keepup_error::Cause;
use keepup_sys::register::Width;

use super::*;

fn span(offset: u64, count: u64) -> Span {
    Span { offset, count, width: Width::Bits32, is_fifo: false }
}

fn machine() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let function = root.path().join("sys/bus/pci/devices/0000:00:04.0");
    fs::create_dir_all(&function).unwrap();
    let registers: Vec<u8> = (0..1024u32).flat_map(|index| (index * 5).to_le_bytes()).collect();
    fs::write(function.join("resource0"), registers).unwrap();
    fs::write(function.join("enable"), "1\n").unwrap();
    root
}

#[test]
fn reads_return_values_and_refuse_protected_registers() {
    let root = machine();
    let target = "pci:0000:00:04.0/bar0".parse().unwrap();
    let text = "name = \"card\"\nread-to-clear = [0x20]";
    let profile = TargetProfile::parse("card.toml", text).unwrap();
    let plain = ReadRequest { span: span(8, 3), method: None, profile: None, read_to_clear: &[] };
    assert_eq!(get(&target, root.path(), &plain).unwrap(), [10, 15, 20]);
    let with = |span, allowed| ReadRequest { span, profile: Some(&profile), read_to_clear: allowed, ..plain };
    let refusal = |read: &ReadRequest<'_>| Cause::of(&get(&target, root.path(), read).unwrap_err()).to_text();
    let why = refusal(&with(span(0, 9), &[]));
    assert!(
        why.contains("the one at 0x20, according to profile card") && why.contains("--read-to-clear"),
        "{why}"
    );
    assert_eq!(get(&target, root.path(), &with(span(0x20, 1), &[0x20])).unwrap(), [40]);
    assert_eq!(get(&target, root.path(), &with(span(0x24, 1), &[])).unwrap(), [45]);
    assert!(refusal(&ReadRequest { method: Some("dma"), ..plain }).contains("--method mmap"));
    assert!(refusal(&ReadRequest { span: span(0, 1025), ..plain }).contains("beyond its 4096 bytes"));
    assert!(refusal(&ReadRequest { span: span(0, u64::MAX), ..plain }).contains("exceed the maximum"));
}
