//! The client printed in `docs/wire-protocol.md` must work as printed, and the bytes shown there
//! must be correct.

use std::process::Command;

use crate::ledger::Count;
use crate::receiver::{Behaviour, receive};
use crate::wire::{FrameKind, Header};

const PAGE: &str = include_str!("../../../docs/wire-protocol.md");

/// The first fenced block of this language.
fn block(language: &str) -> &'static str {
    let (_, rest) = PAGE.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn the_python_client_delivers_its_events() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: no python3 here");
        return;
    }
    let (addr, receiver) = receive(1, || Behaviour { next_sequence: 40, ..Behaviour::default() });
    let output = Command::new("python3").args(["-c", block("python"), &addr.to_string()]).output().unwrap();
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{error}");
    assert!(out.contains("'received_events': 1000") && out.contains("'lost_events': 0"), "{out}");
    let talk = &receiver.join().unwrap()[0];
    let stream = &talk.streams[&7];
    assert_eq!(stream.received, Count { events: 1000, bytes: 64_000 });
    assert_eq!((stream.missing_events, stream.bad_checksums, stream.next_sequence), (0, 0, 1040));
    assert_eq!(talk.hello.as_ref().unwrap().streams[0].event_bytes(), Some(64));
    assert_eq!(talk.end.as_ref().unwrap().streams[0].next_sequence, 1040);
}

#[test]
fn the_bytes_shown_match_the_header() {
    let digits = block("hex").lines().flat_map(|line| line.split_whitespace().skip(1));
    let shown: Vec<u8> = digits.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    let header = Header {
        stream: 7,
        sequence: 40,
        timestamp_ns: 1_700_000_000_123_456_789,
        ..Header::control(FrameKind::Event, b"123456789")
    };
    assert_eq!(shown, header.encode());
}
