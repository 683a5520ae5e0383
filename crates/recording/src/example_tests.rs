//! The reader printed in `docs/recording-format.md` must work as printed, on complete and on
//! truncated recordings.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::layout::FLAG_GAP_BEFORE;
use crate::manifest::Placement;
use crate::reader::Recording;
use crate::testing::{TestRecording, payloads};
use crate::verify::{VerifyOptions, verify};

const PAGE: &str = include_str!("../../../docs/recording-format.md");

/// Output of the page's reader, and whether it succeeded; `None` without Python.
fn read(dirs: &[PathBuf]) -> Option<(String, bool)> {
    let (_, rest) = PAGE.split_once("```python\n").unwrap();
    let program = rest.split_once("```").unwrap().0;
    let output = Command::new("python3").args(["-c", program]).args(dirs).output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    Some((String::from_utf8(text).unwrap(), output.status.success()))
}

#[test]
fn the_python_reader_agrees_with_verify() {
    let mut test = TestRecording::new(2, Placement::Free, &[0, 1]);
    // Payload lengths around the end of a sector, where the pad needs one more.
    let mut next = test.block(0, 1, u64::from(u32::MAX) - 1, FLAG_GAP_BEFORE, &payloads(1, 4, 500));
    test.gap(0, 1, 0, u64::from(u32::MAX) - 1);
    for length in 4080..4100 {
        next = test.block(1, 1, next, 0, &[(5, vec![7; length])]);
    }
    test.volumes[1].rotate();
    let first = test.block(1, 0, 0, 0, &payloads(2, 30, 3000));
    test.volumes[0].watermark();
    test.volumes[1].watermark();
    check(&test.dirs());
    test.block(0, 0, first, 0, &payloads(3, 3, 100_000));
    test.end();
    check(&test.dirs());

    let path = test.volumes[0].segment_path();
    let mut bytes = fs::read(&path).unwrap();
    bytes[9000] ^= 1;
    fs::write(&path, bytes).unwrap();
    if let Some((text, is_content)) = read(&test.dirs()) {
        assert!(!is_content && text.contains("damaged block"), "{text}");
    }
}

fn check(dirs: &[PathBuf]) {
    let report = verify(&Recording::open(dirs).unwrap(), VerifyOptions { threads: 1 }, &|_| {});
    assert_eq!(report.faults, []);
    let line = |(id, stream): (&u32, &crate::verify::StreamReport)| {
        format!("stream {id}: {} events, {} bytes\n", stream.recorded.events, stream.recorded.bytes)
    };
    let expected: String = report.streams.iter().map(line).collect();
    match read(dirs) {
        Some(found) => assert_eq!(found, (expected, true)),
        None => eprintln!("skipped: no python3 here"),
    }
}
