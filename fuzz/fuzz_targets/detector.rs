//! What a detector may send, through ZeroMQ framing and the decoder of Stream V2, cut into reads at arbitrary
//! places.
//!
//! The first byte says how long a read is, and whether the rest is messages, each with two bytes of length in
//! front, that get a handshake and frames around them. The outcome must not depend on where the reads were
//! cut.
#![no_main]

use keepup_sources::dectris::Dectris;
use keepup_sources::{Decoder, Input, Item, Limits};
use libfuzzer_sys::fuzz_target;

const MESSAGE_BYTES_MAX: usize = 1 << 16;

fuzz_target!(|data: &[u8]| {
    let Some((&mode, bytes)) = data.split_first() else { return };
    let bytes = if mode & 0x80 != 0 { framed(bytes) } else { bytes.to_vec() };
    let piece = usize::from(mode & 0x7f) + 1;
    let whole = decoded(&bytes, bytes.len().max(1));
    assert_eq!(whole, decoded(&bytes, piece), "the outcome depends on how the bytes were cut");
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
fn decoded(mut bytes: &[u8], piece: usize) -> Vec<String> {
    let limits = Limits { message_bytes_max: MESSAGE_BYTES_MAX, event_bytes_max: u64::MAX };
    let mut decoder = Dectris::new(limits);
    let (mut found, mut streams) = (Vec::new(), Vec::new());
    loop {
        loop {
            match decoder.item() {
                Ok(None) => break,
                Err(error) => {
                    found.push(error.to_string());
                    return found;
                }
                Ok(Some(item)) => {
                    found.push(format!("{item:?}"));
                    match item {
                        Item::Streams(declared) => streams = declared.to_vec(),
                        Item::Event(event) => {
                            let stream = &streams[event.stream];
                            let length = event.payload.len() as u64;
                            assert!(stream.compression.is_some() || stream.event_bytes() == Some(length));
                        }
                        Item::End { .. } => {}
                        Item::Start(_) | Item::Complete { .. } | Item::Lost { .. } => {
                            panic!("images arrive whole")
                        }
                    }
                }
            }
            decoder.take();
        }
        if bytes.is_empty() {
            return found;
        }
        let Input::Bytes(space) = decoder.input() else { return found };
        let count = space.len().min(piece).min(bytes.len());
        if count == 0 {
            // The series has ended; nothing is read behind it.
            return found;
        }
        space[..count].copy_from_slice(&bytes[..count]);
        decoder.received(count, 0);
        bytes = &bytes[count..];
    }
}
