//! Whole series as a receiver gets them over a socket.
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use super::super::super::plan::{DectrisVersion, EventSize, Protocol, Rate, SourcePlan};
use super::super::super::{Destination, SourceCounters, SourceError, SourceReport, run};
use super::{Door, GUESTS_MAX};
use crate::bslz4::tests::decompressed;
use crate::wire::ElementType;
use crate::zmtp::{FLAG_COMMAND, FLAG_LONG, FLAG_MORE, greeting, ready};

fn plan(version: DectrisVersion) -> SourcePlan {
    SourcePlan {
        events: Some(3),
        element: ElementType::U16,
        shape: vec![200, 300],
        protocol: Protocol::Dectris(version),
        ..SourcePlan::new(EventSize::Fixed(120_000), Rate::Max)
    }
}

/// Runs a source for a receiver that starts with `opening`; returns its report, and all bytes received.
fn received(plan: &SourcePlan, opening: &[u8]) -> (Result<SourceReport, SourceError>, Vec<u8>) {
    let door = Door::open((Ipv4Addr::LOCALHOST, 0).into(), None).unwrap();
    let mut socket = TcpStream::connect(door.address()).unwrap();
    socket.write_all(opening).unwrap();
    let receiver = thread::spawn(move || {
        let mut bytes = Vec::new();
        socket.read_to_end(&mut bytes).map(|_| bytes)
    });
    let stop = AtomicBool::new(false);
    let report = run(plan, Destination::Accept(door), &stop, &SourceCounters::default());
    (report, receiver.join().unwrap().unwrap_or_default())
}

/// Messages behind the greeting and the READY command.
fn messages(bytes: &[u8]) -> Vec<Vec<&[u8]>> {
    let ready = ready("PUSH");
    let (head, mut rest) = bytes.split_at(64 + ready.len());
    assert_eq!(head, [&greeting()[..], &ready].concat());
    let (mut messages, mut frames) = (Vec::new(), Vec::new());
    while let Some((&flags, after)) = rest.split_first() {
        assert_eq!(flags & (FLAG_LONG | FLAG_COMMAND), FLAG_LONG);
        let (length, after) = after.split_first_chunk::<8>().unwrap();
        let (frame, after) = after.split_at(u64::from_be_bytes(*length) as usize);
        frames.push(frame);
        if flags & FLAG_MORE == 0 {
            messages.push(std::mem::take(&mut frames));
        }
        rest = after;
    }
    assert!(frames.is_empty());
    messages
}

fn opening() -> Vec<u8> {
    [&greeting()[..], &ready("PULL")].concat()
}

#[test]
fn a_series_of_stream_v1_is_json_around_the_pixels() {
    let (report, bytes) = received(&plan(DectrisVersion::V1), &opening());
    assert_eq!(report.unwrap().streams[0].sent.events, 3);
    let messages = messages(&bytes);
    assert_eq!(messages.iter().map(Vec::len).collect::<Vec<_>>(), [2, 4, 4, 4, 1]);
    let json = |at: usize, frame: usize| -> serde_json::Value {
        serde_json::from_slice(messages[at][frame]).unwrap()
    };
    assert_eq!((&json(0, 0)["htype"], &json(0, 1)["nimages"]), (&"dheader-1.0".into(), &3.into()));
    for (image, message) in messages.iter().enumerate().take(4).skip(1) {
        assert_eq!(json(image, 0)["frame"], image - 1);
        let data = json(image, 1);
        assert_eq!((&data["shape"], &data["type"]), (&serde_json::json!([300, 200]), &"uint16".into()));
        assert_eq!(message[2].len(), 120_000);
        assert_eq!(json(image, 3)["htype"], "dconfig-1.0");
    }
    assert_eq!(json(4, 0)["htype"], "dseries_end-1.0");
}

#[test]
fn a_series_of_stream_v2_ends_each_message_with_the_pixels() {
    let (report, bytes) = received(&plan(DectrisVersion::V2), &opening());
    assert!(!report.unwrap().is_acknowledged);
    let messages = messages(&bytes);
    assert_eq!(messages.len(), 5);
    // A map that is marked as CBOR, as detectors mark it.
    let is_marked =
        |frames: &Vec<&[u8]>| frames[0].starts_with(&[0xD9, 0xD9, 0xF7]) && frames[0][3] >> 5 == 5;
    assert!(messages.iter().all(is_marked));
    for message in &messages[1..4] {
        // A byte string of 120000 bytes of 16-bit integers, at the very end.
        let head = [0xD8, 69, 0x5A, 0, 1, 0xD4, 0xC0];
        let at = message[0].len() - 120_000 - head.len();
        assert_eq!(message[0][at..at + head.len()], head);
    }
}

/// Connections that say nothing, such as those of a port scan, keep no receiver waiting.
#[test]
fn silent_connections_do_not_keep_a_receiver_out() {
    let door = Door::open((Ipv4Addr::LOCALHOST, 0).into(), None).unwrap();
    let silent: Vec<TcpStream> =
        (0..2 * GUESTS_MAX).map(|_| TcpStream::connect(door.address()).unwrap()).collect();
    let mut socket = TcpStream::connect(door.address()).unwrap();
    let receiver = thread::spawn(move || {
        let mut bytes = Vec::new();
        // In parts, as a slow receiver sends it.
        for part in opening().chunks(30) {
            socket.write_all(part).unwrap();
        }
        socket.read_to_end(&mut bytes).map(|_| bytes)
    });
    let stop = AtomicBool::new(false);
    let plan = plan(DectrisVersion::V2);
    let report = run(&plan, Destination::Accept(door), &stop, &SourceCounters::default()).unwrap();
    assert_eq!(report.streams[0].sent.events, 3);
    assert_eq!(messages(&receiver.join().unwrap().unwrap()).len(), 5);
    drop(silent);
}

/// Series of compressed images, and the sizes that the source counts.
fn compressed(version: DectrisVersion) -> SourcePlan {
    let size = EventSize::Uniform { min: 12_000, max: 40_000 };
    SourcePlan { size, compressed: true, ..plan(version) }
}

#[test]
fn compressed_images_of_stream_v2_are_tagged() {
    let (report, bytes) = received(&compressed(DectrisVersion::V2), &opening());
    let sent = report.unwrap().streams[0].sent;
    let messages = messages(&bytes);
    assert_eq!((messages.len(), sent.events), (5, 3));
    let mut chunk_bytes = 0;
    for message in &messages[1..4] {
        // The tags of 16-bit integers and of compression, its name, the size of an integer, a byte string.
        let head = [&[0xD8, 69, 0xD9, 0xDC, 0xB4, 0x83, 0x65][..], b"bslz4", &[2, 0x59]].concat();
        let at = message[0].windows(head.len()).position(|bytes| bytes == head).unwrap() + head.len();
        let (length, chunk) = message[0][at..].split_first_chunk().unwrap();
        assert_eq!(chunk.len(), usize::from(u16::from_be_bytes(*length)));
        assert_eq!(decompressed(chunk, 2).len(), 120_000);
        chunk_bytes += chunk.len() as u64;
    }
    assert_eq!(chunk_bytes, sent.bytes);
}

#[test]
fn compressed_images_of_stream_v1_state_their_encoding() {
    for (element, encoding) in [(ElementType::U8, "bs8-lz4<"), (ElementType::U32, "bs32-lz4<")] {
        let plan = SourcePlan { element, ..compressed(DectrisVersion::V1) };
        let (report, bytes) = received(&plan, &opening());
        let sent = report.unwrap().streams[0].sent;
        let messages = messages(&bytes);
        let config: serde_json::Value = serde_json::from_slice(messages[0][1]).unwrap();
        assert_eq!(config["compression"], "bslz4");
        for message in &messages[1..4] {
            let data: serde_json::Value = serde_json::from_slice(message[1]).unwrap();
            assert_eq!(
                (&data["encoding"], &data["shape"]),
                (&encoding.into(), &serde_json::json!([300, 200]))
            );
            assert_eq!(data["size"], message[2].len());
            let pixel_bytes = element.bytes() as usize;
            assert_eq!(decompressed(message[2], pixel_bytes).len(), 60_000 * pixel_bytes);
        }
        assert_eq!(messages[1..4].iter().map(|message| message[2].len() as u64).sum::<u64>(), sent.bytes);
    }
}

#[test]
fn images_larger_than_the_pool_arrive_whole() {
    let large = SourcePlan { shape: vec![1000, 1000], ..plan(DectrisVersion::V1) };
    let large = SourcePlan { size: EventSize::Fixed(2_000_000), ..large };
    let (report, bytes) = received(&large, &opening());
    report.unwrap();
    assert!(messages(&bytes)[1..4].iter().all(|image| image.len() == 4 && image[2].len() == 2_000_000));
}

#[test]
fn a_receiver_of_another_kind_is_refused() {
    let cases = [
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: b\r\n\r\nGET / HTTP".to_vec(), "ZMTP 3"),
        ([&greeting()[..], &ready("SUB")].concat(), "not a PULL socket"),
    ];
    for (opening, why) in cases {
        let door = Door::open((Ipv4Addr::LOCALHOST, 0).into(), Some(Duration::ZERO)).unwrap();
        let mut socket = TcpStream::connect(door.address()).unwrap();
        socket.write_all(&opening).unwrap();
        let stop = AtomicBool::new(false);
        let report =
            run(&plan(DectrisVersion::V2), Destination::Accept(door), &stop, &SourceCounters::default());
        let error = report.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_receiver_may_come_after_others() {
    let door = Door::open((Ipv4Addr::LOCALHOST, 0).into(), None).unwrap();
    drop(TcpStream::connect(door.address()).unwrap());
    let mut socket = TcpStream::connect(door.address()).unwrap();
    socket.write_all(&opening()).unwrap();
    let reader = thread::spawn(move || socket.read_to_end(&mut Vec::new()));
    let stop = AtomicBool::new(false);
    let report = run(&plan(DectrisVersion::V2), Destination::Accept(door), &stop, &SourceCounters::default());
    assert_eq!(report.unwrap().streams[0].sent.events, 3);
    reader.join().unwrap().unwrap();
}

#[test]
fn without_a_receiver_the_source_stops_when_asked() {
    let door = Door::open((Ipv4Addr::LOCALHOST, 0).into(), None).unwrap();
    let stop = AtomicBool::new(true);
    let report = run(&plan(DectrisVersion::V2), Destination::Accept(door), &stop, &SourceCounters::default());
    let report = report.unwrap();
    assert!(report.streams.is_empty() && !report.is_acknowledged);
}

#[test]
fn plans_that_the_protocol_cannot_carry_are_refused() {
    let varied = SourcePlan { size: EventSize::Uniform { min: 1, max: 2 }, ..plan(DectrisVersion::V2) };
    let varied = SourcePlan { shape: Vec::new(), ..varied };
    let many = SourcePlan { streams: 2, ..plan(DectrisVersion::V2) };
    for (plan, why) in [(varied, "fixed event size"), (many, "has one")] {
        let error = plan.check().unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}
