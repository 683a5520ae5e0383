//! Check of the unit of addresses: an error only if the requests indicate the other unit.
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

/// A reproducible pseudo-random address.
fn scattered(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 30
}

#[test]
fn bytes_instead_of_sectors_are_detected() {
    let message = refused(spc((0..20).map(|n| (n * 4096, 4096))));
    assert!(message.contains("should be sectors but look like bytes"), "{message}");
    assert!(message.contains("--unit bytes or --unit sectors"), "{message}");
    // Not contiguous, but beyond any disk.
    let message = refused(spc((0..100).map(|n| (scattered(n) * 512 + (1 << 43), 4096))));
    assert!(message.contains("all are multiples of 512") && message.contains("TiB"), "{message}");
}

#[test]
fn sectors_instead_of_bytes_are_detected() {
    let message = refused(alibaba((0..20).map(|n| (n * 8, 4096))));
    assert!(message.contains("should be bytes but look like sectors"), "{message}");
    let message = refused(alibaba((0..100).map(|n| (scattered(n) | 1, 4096))));
    assert!(
        message.contains("all lengths are multiples of 512 bytes, but 100 of 100 addresses"),
        "{message}"
    );
}

#[test]
fn a_correct_unit_is_accepted() {
    for text in [
        spc((0..200).map(|n| (n * 8, 4096))),
        spc((0..200).map(|n| (scattered(n), 4096))),
        // Large aligned requests on a large disk.
        spc((0..200).map(|n| (scattered(n) / 2048 * 2048, 1 << 20))),
        alibaba((0..200).map(|n| (n * 4096, 4096))),
        alibaba((0..200).map(|n| (scattered(n) * 4096, 4096))),
        // Too few requests for a decision.
        spc((0..5).map(|n| (n * 4096, 4096))),
    ] {
        read(text);
    }
}

#[test]
fn a_given_unit_is_not_checked() {
    let text = spc((0..20).map(|n| (n * 4096, 4096)));
    for (unit, offset) in [(Unit::Sectors, 4096 * 512), (Unit::Bytes, 4096)] {
        let hints = Hints { unit: Some(unit), ..Hints::default() };
        assert_eq!(read_with(text.clone(), &hints).unwrap().0[1].offset, offset);
    }
}
