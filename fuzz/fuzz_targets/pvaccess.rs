//! What a pvAccess server may send, through the decoder of a monitor, cut into reads at arbitrary places.
//!
//! The first byte says how long a read is, and whether the rest is messages, each with a byte for its flags,
//! one for its command and two for its length in front, that get headers and follow a handshake. The outcome
//! must not depend on where the reads were cut.
#![no_main]

use keepup_fuzz::{Decoded, decoded};
use keepup_sources::pvaccess::{Options, PvAccess};
use keepup_sources::{Decoder, Item, Limits};
use libfuzzer_sys::fuzz_target;

const MESSAGE_BYTES_MAX: usize = 1 << 16;

fuzz_target!(|data: &[u8]| {
    let Some((&mode, bytes)) = data.split_first() else { return };
    let bytes = if mode & 0x80 != 0 { framed(bytes) } else { bytes.to_vec() };
    let piece = usize::from(mode & 0x7f) + 1;
    let whole = outcome(&bytes, bytes.len().max(1));
    assert_eq!(whole, outcome(&bytes, piece), "the outcome depends on how the bytes were cut");
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
fn outcome(bytes: &[u8], piece: usize) -> Vec<String> {
    let limits = Limits { message_bytes_max: MESSAGE_BYTES_MAX, event_bytes_max: u64::MAX };
    let mut decoder = PvAccess::new(Options::new("PV".to_owned()), limits);
    let mut next = 0;
    let Decoded { mut found, is_usable } = decoded(&mut decoder, bytes, piece, |item, streams| match item {
        Item::Streams(_) => {}
        Item::Event(event) => {
            let (stream, length) = (&streams[event.stream], event.payload.len() as u64);
            let is_free = stream.compression.is_some() || stream.shape.is_empty();
            assert!(is_free || stream.event_bytes() == Some(length));
            assert!(stream.check_shape().is_ok() && event.sequence >= next);
            next = event.sequence + 1;
        }
        other => panic!("a monitor has no {other:?}"),
    });
    if is_usable {
        decoder.tick(20_000_000_000);
        found.push(format!("{:?}", decoder.outgoing()));
        decoder.finish(0);
        found.extend(decoder.remarks());
    }
    found
}
