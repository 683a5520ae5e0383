//! A client of the wire protocol, frame by frame.
use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use keepup_stream::wire::{
    Ack, ControlMessage, ElementType, End, EndStream, FrameKind, HEADER_BYTES, Header, Hello, StreamInfo,
    crc32,
};

/// A connection on which a missing reply fails the test.
pub(crate) fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// Streams of opaque bytes.
pub(crate) fn streams(ids: &[u32]) -> Vec<StreamInfo> {
    let info = |&id: &u32| StreamInfo {
        id,
        name: format!("s{id}"),
        element: ElementType::U8,
        shape: vec![],
        compression: None,
    };
    ids.iter().map(info).collect()
}

/// First frame of a client with these streams.
pub(crate) fn hello(ids: &[u32]) -> Vec<u8> {
    Hello::new("test", streams(ids)).to_frame().unwrap()
}

/// First frame of a client that can resume.
pub(crate) fn hello_to_resume(ids: &[u32], identity: &str) -> Vec<u8> {
    let resume = Some(identity.to_owned());
    Hello { resume, ..Hello::new("test", streams(ids)) }.to_frame().unwrap()
}

/// Last frame of a client that sent `events` with a total of `bytes`, from sequence 0, on one stream.
pub(crate) fn end(id: u32, events: u64, bytes: u64) -> Vec<u8> {
    let last = EndStream { id, events, bytes, lost_events: 0, lost_bytes: 0, next_sequence: events };
    End { streams: vec![last] }.to_frame().unwrap()
}

/// The recorder's next frame; `None` if the connection is closed.
pub(crate) fn frame(stream: &mut TcpStream) -> Option<(Header, String)> {
    let mut head = [0; HEADER_BYTES];
    stream.read_exact(&mut head).ok()?;
    let header = Header::decode(&head).unwrap();
    let mut payload = vec![0; header.length as usize];
    stream.read_exact(&mut payload).ok()?;
    Some((header, String::from_utf8(payload).unwrap()))
}

/// The recorder's next frame of this kind.
pub(crate) fn answer(stream: &mut TcpStream, kind: FrameKind) -> (Header, String) {
    loop {
        let (header, payload) = frame(stream).unwrap_or_else(|| panic!("closed, and no {kind} came"));
        if header.kind == kind {
            return (header, payload);
        }
        assert!(matches!(header.kind, FrameKind::Ack | FrameKind::Welcome), "{kind} was to come: {payload}");
    }
}

/// Waits for an acknowledgement of everything before `next`.
pub(crate) fn acked(stream: &mut TcpStream, next: u64) -> Ack {
    loop {
        let ack = Ack::from_header(&answer(stream, FrameKind::Ack).0);
        if ack.durable_next >= next {
            return ack;
        }
    }
}

/// An event frame.
pub(crate) fn event(stream: u32, sequence: u64, payload: &[u8]) -> Vec<u8> {
    let (length, crc) = (payload.len() as u64, crc32(payload));
    let head = Header { kind: FrameKind::Event, stream, sequence, timestamp_ns: 1, length, crc, a: 0, b: 0 };
    [&head.encode()[..], payload].concat()
}
