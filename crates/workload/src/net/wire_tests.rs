//! Messages survive a round trip; invalid bytes are refused before memory is allocated.
use proptest::prelude::*;

use super::*;
use crate::net::proof::SECRET_BYTES;
use crate::net::spec::NetSpec;

fn bytes(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes, message).unwrap();
    bytes
}

#[test]
fn messages_round_trip() {
    let sent = vec![Sent { number: 3, due: u64::MAX, sent: 1, refused: 0 }];
    let all = [
        Message::Hello { version: VERSION, nonce: "a nonce, \"quoted\"".into() },
        Message::Challenge { version: VERSION, nonce: "0".repeat(SECRET_BYTES) },
        Message::Prepare { spec: Box::new(NetSpec { rate: Some(0.1), ..NetSpec::default() }) },
        Message::Ready { secret: "0".repeat(SECRET_BYTES), ports: vec![1, 65535] },
        Message::Quiet { sent },
        Message::Alive,
    ];
    let mut stream: Vec<u8> = all.iter().flat_map(bytes).collect();
    stream.extend([1, 0]);
    let mut from = stream.as_slice();
    for message in &all {
        assert_eq!(read(&mut from, MESSAGE_BYTES_MAX).unwrap().as_ref(), Some(message));
    }
    let cut = read(&mut from, MESSAGE_BYTES_MAX).unwrap_err();
    assert_eq!(cut.kind(), std::io::ErrorKind::UnexpectedEof);
    assert!(read(&mut [].as_slice(), MESSAGE_BYTES_MAX).unwrap().is_none());
}

#[test]
fn unauthenticated_peers_cannot_allocate_memory() {
    let mut claim = (STRANGER_BYTES_MAX + 1).to_le_bytes().to_vec();
    claim.extend(vec![b' '; 10]);
    let refused = read(&mut claim.as_slice(), STRANGER_BYTES_MAX).unwrap_err();
    assert!(refused.to_string().contains("more than 4096"), "{refused}");
}

proptest! {
    #[test]
    fn any_bytes_are_a_message_or_an_error(
        mut data in prop::collection::vec(any::<u8>(), 0..200), fits in any::<bool>(),
    ) {
        if fits && data.len() >= 4 {
            let length = (data.len() - 4) as u32;
            data[..4].copy_from_slice(&length.to_le_bytes());
        }
        drop(read(&mut data.as_slice(), STRANGER_BYTES_MAX));
    }
}
