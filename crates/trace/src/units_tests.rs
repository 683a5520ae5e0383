//! Sectors against bytes: asked when requests speak for the other unit, and only then.
use std::fmt::Write;

use crate::trace::tests::{read, read_with, refused};
use crate::{Hints, Unit};

/// A trace of SPC, whose addresses should be sectors.
fn spc(requests: impl Iterator<Item = (u64, u64)>) -> String {
    let mut text = String::new();
    for (line, (address, bytes)) in requests.enumerate() {
        writeln!(text, "0,{address},{bytes},R,{line}.5").unwrap();
    }
    text
}

/// A trace of Alibaba, whose addresses should be bytes.
fn alibaba(requests: impl Iterator<Item = (u64, u64)>) -> String {
    let mut text = String::new();
    for (line, (address, bytes)) in requests.enumerate() {
        writeln!(text, "4,R,{address},{bytes},{}", 1_577_808_000_000_000 + line as u64).unwrap();
    }
    text
}

/// Somewhere, but always the same.
fn scattered(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 30
}

#[test]
fn bytes_where_sectors_belong() {
    let told = refused(spc((0..20).map(|n| (n * 4096, 4096))));
    assert!(told.contains("should be sectors and look like bytes"), "{told}");
    assert!(told.contains("--unit bytes or --unit sectors"), "{told}");
    // No two that follow one another, but further out than any disk.
    let told = refused(spc((0..100).map(|n| (scattered(n) * 512 + (1 << 43), 4096))));
    assert!(told.contains("all are multiples of 512") && told.contains("TiB"), "{told}");
}

#[test]
fn sectors_where_bytes_belong() {
    let told = refused(alibaba((0..20).map(|n| (n * 8, 4096))));
    assert!(told.contains("should be bytes and look like sectors"), "{told}");
    let told = refused(alibaba((0..100).map(|n| (scattered(n) | 1, 4096))));
    assert!(told.contains("all lengths are multiples of 512 bytes, and 100 of 100 addresses"), "{told}");
}

#[test]
fn what_is_as_it_should_be_is_not_asked_about() {
    for text in [
        spc((0..200).map(|n| (n * 8, 4096))),
        spc((0..200).map(|n| (scattered(n), 4096))),
        // Large aligned requests on a large disk.
        spc((0..200).map(|n| (scattered(n) / 2048 * 2048, 1 << 20))),
        alibaba((0..200).map(|n| (n * 4096, 4096))),
        alibaba((0..200).map(|n| (scattered(n) * 4096, 4096))),
        // Too few to tell.
        spc((0..5).map(|n| (n * 4096, 4096))),
    ] {
        read(text);
    }
}

#[test]
fn who_says_the_unit_is_not_asked() {
    let text = spc((0..20).map(|n| (n * 4096, 4096)));
    for (unit, offset) in [(Unit::Sectors, 4096 * 512), (Unit::Bytes, 4096)] {
        let hints = Hints { unit: Some(unit), ..Hints::default() };
        assert_eq!(read_with(text.clone(), &hints).unwrap().0[1].offset, offset);
    }
}
