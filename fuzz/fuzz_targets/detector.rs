//! What a detector may send, through ZeroMQ framing and the decoder of Stream V2, cut into reads at arbitrary
//! places.
//!
//! The first byte says how long a read is, and whether the rest is messages, each with two bytes of length in
//! front, that get a handshake and frames around them. The outcome must not depend on where the reads were
//! cut.
#![no_main]

use keepup_fuzz::decoded;
use keepup_sources::dectris::Dectris;
use keepup_sources::{Item, Limits};
use libfuzzer_sys::fuzz_target;

const MESSAGE_BYTES_MAX: usize = 1 << 16;

fuzz_target!(|data: &[u8]| {
    let Some((&mode, bytes)) = data.split_first() else { return };
    let bytes = if mode & 0x80 != 0 { framed(bytes) } else { bytes.to_vec() };
    let piece = usize::from(mode & 0x7f) + 1;
    let whole = outcome(&bytes, bytes.len().max(1));
    assert_eq!(whole, outcome(&bytes, piece), "the outcome depends on how the bytes were cut");
});

/// A handshake, and the messages in frames.
fn framed(mut messages: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 64];
    (out[0], out[9], out[10]) = (0xFF, 0x7F, 3);
    out[12..16].copy_from_slice(b"NULL");
    out.extend_from_slice(b"\x04\x1a\x05READY\x0bSocket-Type\0\0\0\x04PUSH");
    while let Some((length, rest)) = messages.split_first_chunk::<2>() {
        let (message, rest) = rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
        out.push(2);
        out.extend_from_slice(&(message.len() as u64).to_be_bytes());
        out.extend_from_slice(message);
        messages = rest;
    }
    out
}

/// What the decoder hands out, item by item, and its error.
fn outcome(bytes: &[u8], piece: usize) -> Vec<String> {
    let limits = Limits { message_bytes_max: MESSAGE_BYTES_MAX, event_bytes_max: u64::MAX };
    let decoded = decoded(&mut Dectris::new(limits), bytes, piece, |item, streams| match item {
        Item::Event(event) => {
            let (stream, length) = (&streams[event.stream], event.payload.len() as u64);
            assert!(stream.compression.is_some() || stream.event_bytes() == Some(length));
        }
        Item::Streams(_) | Item::End { .. } => {}
        Item::Start(_) | Item::Complete { .. } | Item::Lost { .. } => panic!("images arrive whole"),
    });
    decoded.found
}
