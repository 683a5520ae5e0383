//! What a pvAccess server may send, through the decoder of a monitor, cut into reads at arbitrary places.
//!
//! The first byte says how long a read is, and whether the rest is messages, each with a byte for its flags,
//! one for its command and two for its length in front, that get headers and follow a handshake. The outcome
//! must not depend on where the reads were cut.
#![no_main]

use keepup_sources::pvaccess::{Options, PvAccess};
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

fn message(flags: u8, command: u8, body: &[u8]) -> Vec<u8> {
    let length = body.len() as u32;
    let length = if flags & 0x80 != 0 { length.to_be_bytes() } else { length.to_le_bytes() };
    [&[0xCA, 2, flags | 0x40, command][..], &length, body].concat()
}

/// A handshake up to the channel, and the messages.
fn framed(mut messages: &[u8]) -> Vec<u8> {
    let mut out = message(1, 2, &[]);
    out.extend(message(0, 1, b"\0\0\x01\0\xff\x7f\x01\x09anonymous"));
    out.extend(message(0, 9, &[0xFF]));
    out.extend(message(0, 7, &[2, 0, 0, 0, 5, 0, 0, 0, 0xFF]));
    while let Some(([flags, command, low, high], rest)) = messages.split_first_chunk::<4>() {
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        let (body, rest) = rest.split_at(length.min(rest.len()));
        out.extend(message(*flags, *command, body));
        messages = rest;
    }
    out
}

/// What the decoder hands out, item by item, and its error.
fn decoded(mut bytes: &[u8], piece: usize) -> Vec<String> {
    let limits = Limits { message_bytes_max: MESSAGE_BYTES_MAX, event_bytes_max: u64::MAX };
    let mut decoder = PvAccess::new(Options::new("PV".to_owned()), limits);
    let (mut found, mut streams) = (Vec::new(), Vec::new());
    let (mut next, mut now_ns) = (0, 0);
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
                            let is_free = stream.compression.is_some() || stream.shape.is_empty();
                            assert!(is_free || stream.event_bytes() == Some(length));
                            assert!(stream.check_shape().is_ok() && event.sequence >= next);
                            next = event.sequence + 1;
                        }
                        other => panic!("a monitor has no {other:?}"),
                    }
                }
            }
            decoder.take();
        }
        if bytes.is_empty() {
            // Whatever arrived: the decoder stays usable.
            now_ns += 20_000_000_000;
            decoder.tick(now_ns);
            found.push(format!("{:?}", decoder.outgoing()));
            decoder.finish(0);
            found.extend(decoder.remarks());
            return found;
        }
        let Input::Bytes(space) = decoder.input() else { return found };
        let count = space.len().min(piece).min(bytes.len());
        space[..count].copy_from_slice(&bytes[..count]);
        decoder.received(count, 0);
        bytes = &bytes[count..];
    }
}
