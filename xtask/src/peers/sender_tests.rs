//! The bare sender against a receiver that counts.

use std::net::TcpListener;

use super::*;

#[test]
fn every_byte_arrives_also_when_the_last_piece_is_short() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let bytes = 9 * PIECE_BYTES + 77;
    let sending = std::thread::spawn(move || send(to, bytes as u64));
    let mut received = Vec::new();
    listener.accept().unwrap().0.read_to_end(&mut received).unwrap();
    sending.join().unwrap().unwrap();
    assert_eq!(received.len(), bytes);
    assert_ne!(received[..PIECE_BYTES], received[PIECE_BYTES..2 * PIECE_BYTES]);
}

#[test]
fn its_rate_is_read_back() {
    assert_eq!(accepted("2.5\n", 5), Some(2.0));
    assert_eq!(accepted("", 5), None);
    assert_eq!(accepted("0", 5), None);
}
