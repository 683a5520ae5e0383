//! Framing, whatever pieces the bytes come in.
use proptest::prelude::*;

use super::*;

/// What a PUSH socket of libzmq 4.3 sends first.
fn push_handshake() -> Vec<u8> {
    let mut out = greeting().to_vec();
    let mut properties = b"\x0bSocket-Type\0\0\0\x04PUSH".to_vec();
    properties.extend_from_slice(b"\x08Identity\0\0\0\0");
    out.extend_from_slice(&command(b"READY", &properties));
    out
}

fn frame(flags: u8, body: &[u8]) -> Vec<u8> {
    let mut out = match u8::try_from(body.len()) {
        Ok(length) => vec![flags, length],
        Err(_) => [&[flags | FLAG_LONG][..], &(body.len() as u64).to_be_bytes()].concat(),
    };
    out.extend_from_slice(body);
    out
}

/// Feeds `bytes` in pieces of at most `piece`; returns the messages, frame by frame.
fn fed(zmtp: &mut Zmtp, mut bytes: &[u8], piece: usize) -> Result<Vec<Vec<Vec<u8>>>, DetectorError> {
    let mut messages = Vec::new();
    loop {
        while let Some(Message { bytes: message, ends }) = zmtp.message()? {
            let starts = std::iter::once(&0).chain(ends);
            messages.push(starts.zip(ends).map(|(from, to)| message[*from..*to].to_vec()).collect());
            zmtp.take();
        }
        if bytes.is_empty() {
            return Ok(messages);
        }
        let space = zmtp.space();
        assert!(!space.is_empty());
        let count = space.len().min(piece).min(bytes.len());
        space[..count].copy_from_slice(&bytes[..count]);
        zmtp.received(count);
        bytes = &bytes[count..];
    }
}

fn connected() -> Zmtp {
    let mut zmtp = Zmtp::new(1 << 20);
    assert_eq!(fed(&mut zmtp, &push_handshake(), 1000).unwrap(), Vec::<Vec<Vec<u8>>>::new());
    zmtp.outgoing();
    zmtp
}

/// The error that these bytes cause after the handshake.
fn refused(bytes: &[u8]) -> String {
    fed(&mut connected(), bytes, 4096).unwrap_err().to_string()
}

proptest! {
    #[test]
    fn messages_arrive_whole_in_any_pieces(
        messages in prop::collection::vec(prop::collection::vec(0..200_000_usize, 1..4), 0..6),
        piece in prop::sample::select(vec![1_usize, 7, 4096, 70_000, 1 << 20]),
    ) {
        prop_assume!(piece > 1 || messages.iter().flatten().sum::<usize>() < 300_000);
        let body = |bytes: usize| (0..bytes).map(|n| (n * 7 + bytes) as u8).collect::<Vec<u8>>();
        let mut bytes = push_handshake();
        let mut expected = Vec::new();
        for parts in &messages {
            let parts: Vec<Vec<u8>> = parts.iter().map(|&bytes| body(bytes)).collect();
            for (at, part) in parts.iter().enumerate() {
                bytes.extend_from_slice(&command(b"PING", b"\0\x01abc"));
                bytes.extend_from_slice(&frame(if at + 1 < parts.len() { FLAG_MORE } else { 0 }, part));
            }
            expected.push(parts);
        }
        let mut zmtp = Zmtp::new(1 << 20);
        prop_assert_eq!(fed(&mut zmtp, &bytes, piece).unwrap(), expected);
        prop_assert!(!zmtp.is_within_message());
        let mut answers = [&greeting()[..], &ready("PULL")].concat();
        let pings = messages.iter().flatten().count();
        answers.extend(std::iter::repeat_n(command(b"PONG", b"abc"), pings).flatten());
        prop_assert_eq!(zmtp.outgoing(), answers);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..4096), is_connected: bool) {
        let mut zmtp = if is_connected { connected() } else { Zmtp::new(1 << 20) };
        let _ = fed(&mut zmtp, &bytes, 100);
        prop_assert!(zmtp.staging.message_memory() <= 1 << 20);
    }
}

#[test]
fn other_peers_are_refused() {
    let greeted = |bytes: &[u8]| fed(&mut Zmtp::new(100), bytes, 4096).unwrap_err().to_string();
    assert!(greeted(b"HTTP/1.1 200 OK").ends_with("the peer did not send a ZeroMQ greeting"));
    let mut old = greeting();
    old[10] = 1;
    assert!(greeted(&old[..11]).contains("version 1 of ZMTP"));
    let mut safe = greeting();
    safe[12..20].copy_from_slice(b"CURVE\0\0\0");
    assert!(greeted(&safe).contains("\"CURVE\""));
    let publisher = command(b"READY", b"\x0bsocket-type\0\0\0\x03PUB");
    assert!(greeted(&[&greeting()[..], &publisher].concat()).contains("\"PUB\" socket, not PUSH"));
    assert!(greeted(&[&greeting()[..], &frame(0, b"early")].concat()).contains("before it is ready"));
    let error = command(b"ERROR", b"\x04busy");
    assert!(greeted(&[&greeting()[..], &error].concat()).contains("\"busy\""));
}

#[test]
fn hostile_frames_are_refused_before_memory_is_allocated() {
    assert!(refused(&[8, 1, 0]).contains("flags 0x08"));
    let long = [&[FLAG_LONG][..], &u64::MAX.to_be_bytes()].concat();
    assert!(refused(&long).contains("more than 1048576"));
    assert!(
        refused(&[frame(FLAG_MORE, &[1; 600_000]), frame(0, &[1; 600_000])].concat())
            .contains("1200000 bytes")
    );
    assert!(refused(&frame(FLAG_COMMAND, &[0; 5000])).contains("5000 bytes"));
    assert!(refused(&frame(FLAG_MORE, b"").repeat(PARTS_MAX + 1)).contains("more than 16 frames"));
    // A claim alone takes no memory.
    let mut zmtp = connected();
    let claim = [&[FLAG_LONG][..], &(1_u64 << 20).to_be_bytes()].concat();
    fed(&mut zmtp, &claim, 4096).unwrap();
    assert!(zmtp.staging.message_memory() == 0 && zmtp.is_within_message());
}

#[test]
fn a_new_connection_starts_between_messages() {
    let mut zmtp = connected();
    fed(&mut zmtp, &frame(0, &[1; 70_000])[..50_000], 4096).unwrap();
    zmtp.reconnect();
    assert_eq!(zmtp.outgoing(), greeting());
    let bytes = [push_handshake(), frame(0, b"whole")].concat();
    assert_eq!(fed(&mut zmtp, &bytes, 4096).unwrap(), [[b"whole".to_vec()]]);
}
