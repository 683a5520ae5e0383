//! Packets that anybody may send, through the decoders of counted packets and of VDIF, in batches.
//!
//! The first byte says which format and window, the next one how many packets make a batch; then come
//! packets, each with its sender and its length in front. Whatever arrives, the events of a stream have
//! rising sequence numbers, no more events are handed out than packets arrived, and the outcome does not
//! depend on the batches.
#![no_main]

use keepup_sources::packets::{Counter, Format, Options, Packets, Vdif};
use keepup_sources::{Decoder, Input, Item, Limits};
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits = Limits { message_bytes_max: 0, event_bytes_max: 200 };

fuzz_target!(|data: &[u8]| {
    let [mode, batch, packets @ ..] = data else { return };
    let packets = split(packets);
    let options = options(*mode);
    let per_batch = usize::from(batch % 16) + 1;
    let batched = decoded(&options, &packets, per_batch);
    assert!(batched.iter().filter(|found| found.starts_with("event")).count() <= packets.len());
    assert_eq!(batched, decoded(&options, &packets, 1), "the outcome depends on the batches");
});

fn options(mode: u8) -> Options {
    let (offset, bytes) = (usize::from(mode & 3), 1 << (mode >> 2 & 3));
    let counter = Counter { offset, bytes, ..Counter::default() };
    let format = match mode & 0x80 {
        0 => Format::Counter(Counter { step: u64::from(mode >> 4 & 3) + 1, ..counter }),
        _ => Format::Vdif(Vdif { frames_per_second: (mode & 1 != 0).then_some(10) }),
    };
    Options { window: usize::from(mode >> 5 & 3), ..Options::new(format) }
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
            assert!(batch.put(packet, ([10, 0, 0, sender % 20], 1).into(), 1));
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
            Item::End { .. } => panic!("packets have no end"),
            Item::Start(_) | Item::Complete { .. } | Item::Lost { .. } => panic!("packets arrive whole"),
        }
        decoder.take();
    }
}
