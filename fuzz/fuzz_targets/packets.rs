//! Packets that anybody may send, through the decoders of counted packets, single or grouped, of VDIF and of
//! SPEAD, in batches; and capture files.
//!
//! The first byte says which format and window, the next one how many packets make a batch and how they are
//! grouped; then come packets, each with its sender and its length in front. Whatever arrives, the events of
//! a stream have rising sequence numbers, no more events are handed out than packets arrived, and the outcome
//! does not depend on the batches. With a batch byte of 255, the rest is a capture file, of which the packets
//! must not exceed its length.
#![no_main]

use keepup_sources::capture::{Capture, Chunk};
use keepup_sources::packets::{Counter, Format, Options, Packets, Spead, Vdif};
use keepup_sources::{Decoder, Input, Item, Limits};
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits = Limits { message_bytes_max: 0, event_bytes_max: 200 };

fuzz_target!(|data: &[u8]| {
    let [mode, batch, packets @ ..] = data else { return };
    if *batch == 255 {
        return read_capture(packets);
    }
    let packets = split(packets);
    let options = options(*mode, batch >> 4);
    let per_batch = usize::from(batch % 16) + 1;
    let batched = decoded(&options, &packets, per_batch);
    assert!(batched.iter().filter(|found| found.starts_with("event")).count() <= packets.len());
    assert_eq!(batched, decoded(&options, &packets, 1), "the outcome depends on the batches");
});

/// Reads a capture file.
fn read_capture(file: &[u8]) {
    let Ok(mut capture) = Capture::open(std::io::Cursor::new(file.to_vec()), None) else { return };
    let (mut chunk, mut bytes) = (Chunk::default(), 0);
    while let Ok(more) = capture.read(&mut chunk, 1000) {
        bytes += (0..).map_while(|index| chunk.packet(index)).map(|got| got.payload.len() + 8).sum::<usize>();
        assert!(bytes <= file.len());
        if !more {
            break;
        }
    }
    let _ = capture.remarks();
}

fn options(mode: u8, group: u8) -> Options {
    let (offset, bytes) = (usize::from(mode & 3), 1 << (mode >> 2 & 3));
    let counter = Counter { offset, bytes, ..Counter::default() };
    let frame = Counter { offset: 4, bytes: 1, ..counter };
    let is_frame = mode & 0x80 == 0 && group & 8 != 0;
    let group = (group & 3 != 0).then_some(u64::from(group & 3));
    // A counter that counts the packets of a frame has no step.
    let step = if is_frame && group.is_some() { 1 } else { u64::from(mode >> 4 & 3) + 1 };
    let format = match mode & 0xC0 {
        0xC0 => Format::Spead(Spead { step: u64::from(mode >> 4 & 3) + 1, senders: 1 }),
        0x80 => Format::Vdif(Vdif { frames_per_second: (mode & 1 != 0).then_some(10) }),
        _ => Format::Counter(Counter { step, ..counter }),
    };
    let group = group.filter(|_| !matches!(format, Format::Spead(_)));
    let frame = is_frame.then_some(frame);
    Options { window: usize::from(mode >> 5 & 3), group, frame, ..Options::new(format) }
}

/// Packets with their senders.
fn split(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut packets = Vec::new();
    while let [sender, length, rest @ ..] = bytes {
        let (packet, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        packets.push((*sender, packet.to_vec()));
        bytes = rest;
    }
    packets
}

fn decoded(options: &Options, packets: &[(u8, Vec<u8>)], per_batch: usize) -> Vec<String> {
    let mut decoder = Packets::new(options.clone(), LIMITS, 0);
    let (mut found, mut next) = (Vec::new(), Vec::new());
    for packets in packets.chunks(per_batch) {
        let Input::Datagrams(batch) = decoder.input() else { panic!("it receives packets") };
        batch.clear();
        for (sender, packet) in packets {
            assert!(batch.put(packet, (([10, 0, 0, sender % 20], 1).into(), None), 1));
        }
        decoder.received(packets.len(), 1);
        take(&mut decoder, &mut found, &mut next);
    }
    decoder.finish(0);
    take(&mut decoder, &mut found, &mut next);
    found.extend(decoder.remarks());
    found
}

fn take(decoder: &mut Packets, found: &mut Vec<String>, next: &mut Vec<u64>) {
    while let Some(item) = decoder.item().expect("packets have no errors") {
        match item {
            Item::Streams(streams) => next.resize(streams.len(), 0),
            Item::Event(event) => {
                let expected = &mut next[event.stream];
                assert!(event.sequence >= *expected, "{} after {expected}", event.sequence);
                assert_eq!(event.missing.is_some(), event.sequence > *expected);
                *expected = event.sequence + 1;
                found.push(format!("event {} {} {:?}", event.stream, event.sequence, event.payload));
            }
            // Of SPEAD.
            Item::End { .. } => {}
            Item::Start(_) | Item::Complete { .. } | Item::Lost { .. } => panic!("packets arrive whole"),
        }
        decoder.take();
    }
}
