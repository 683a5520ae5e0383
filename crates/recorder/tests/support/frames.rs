//! The frames of a test's client with one stream of bytes.
use std::io::{self, Read};
use std::net::TcpStream;

use keepup_stream::wire::{ControlMessage, ElementType, FrameKind, HEADER_BYTES, Header, Hello, StreamInfo};

/// Hello of a client whose events have `bytes` bytes.
pub(crate) fn hello(stream: u32, bytes: usize) -> Vec<u8> {
    let (name, shape) = (format!("s{stream}"), vec![bytes as u64]);
    let info = StreamInfo { id: stream, name, element: ElementType::U8, shape, compression: None };
    Hello::new("test", vec![info]).to_frame().unwrap()
}

/// Event with this checksum, which may be wrong.
pub(crate) fn event(stream: u32, sequence: u64, payload: &[u8], crc: u32) -> Vec<u8> {
    let header = Header {
        kind: FrameKind::Event,
        stream,
        sequence,
        timestamp_ns: sequence,
        length: payload.len() as u64,
        crc,
        a: 0,
        b: 0,
    };
    [&header.encode()[..], payload].concat()
}

/// Next frame from the recorder.
pub(crate) fn read(socket: &mut TcpStream) -> io::Result<(Header, Vec<u8>)> {
    let mut head = [0; HEADER_BYTES];
    socket.read_exact(&mut head)?;
    let header = Header::decode(&head).unwrap();
    let mut payload = vec![0; header.length as usize];
    socket.read_exact(&mut payload)?;
    Ok((header, payload))
}
