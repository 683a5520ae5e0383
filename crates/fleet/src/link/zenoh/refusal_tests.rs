//! Causes with peers that are no controllers.
use std::io::Write as _;
use std::net::TcpListener;
use std::thread;

use super::*;
use crate::link::zenoh::ControllerTls;

/// Cause with a peer that handles one connection.
fn with(peer: impl FnOnce(TcpStream) + Send + 'static, has_tls: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let peer = thread::spawn(move || peer(listener.accept().unwrap().0));
    let tls = ControllerTls::new(address).unwrap().agent();
    let cause = cause(address, has_tls.then_some(&tls));
    peer.join().unwrap();
    cause
}

#[test]
fn a_peer_that_closes_or_talks_something_else_is_reported() {
    let read = |socket: &mut TcpStream| {
        use std::io::Read as _;
        assert!(socket.read(&mut [0; 16]).unwrap() > 0);
    };
    let closes = move |mut socket: TcpStream| read(&mut socket);
    let closed = "no TLS connection: the connection was closed during the handshake";
    assert_eq!(with(closes, true), closed);
    assert_eq!(with(closes, false), "it refused the session");
    let talks = move |mut socket: TcpStream| {
        read(&mut socket);
        socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        let mut rest = Vec::new();
        let _ = std::io::Read::read_to_end(&mut socket, &mut rest);
    };
    assert_eq!(with(talks, true), "no TLS connection: received corrupt message of type InvalidContentType");
    assert_eq!(with(talks, false), "it refused the session");
}

#[test]
fn a_peer_that_sends_byte_by_byte_does_not_hold_an_agent() {
    // The header of a handshake record of 16 kB and its beginning.
    let drips = |mut socket: TcpStream| {
        let header = [22, 3, 3, 0x40, 0, 2, 0, 0x3f, 0xfc];
        let bytes = header.into_iter().chain(std::iter::repeat_n(0, 16_384));
        for byte in bytes {
            if socket.write_all(&[byte]).is_err() {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
        panic!("it was read to the end");
    };
    assert_eq!(with(drips, true), "no TLS connection: the handshake does not end");
}
