//! Messages that arrive in pieces, with and without staging.
use super::*;

const HEADROOM: usize = 16;

/// Receives `bytes` in pieces; bodies have the lengths `bodies`, and together they are the message.
fn message(bytes: &[u8], bodies: &[usize], piece: usize) -> Vec<u8> {
    let mut staging = Staging::new(HEADROOM);
    let (mut rest, mut found) = (bytes, Vec::new());
    for &body in bodies {
        staging.begin_body(body);
        while !staging.fill() {
            assert!(staging.bytes_due() <= rest.len());
            let space = staging.space();
            let count = space.len().min(piece).min(rest.len());
            space[..count].copy_from_slice(&rest[..count]);
            staging.received(count);
            rest = &rest[count..];
        }
        found.extend_from_slice(&staging.bytes()[HEADROOM..]);
        staging.clear();
    }
    found
}

#[test]
fn bodies_are_the_same_however_they_arrive() {
    let bodies = [0, 1, 9000, 200_000, 3, 70_000, 8192, 8191];
    let bytes: Vec<u8> = (0..bodies.iter().sum::<usize>()).map(|at| ((at * 31) >> 3) as u8).collect();
    for piece in [1, 100, 8191, 8192, 65_536, 1 << 20] {
        assert_eq!(message(&bytes, &bodies, piece), bytes, "pieces of {piece}");
    }
}

#[test]
fn a_long_body_is_received_into_the_message_and_what_follows_it_is_not() {
    let mut staging = Staging::new(HEADROOM);
    staging.begin_body(DIRECT_BYTES);
    assert_eq!((staging.space().len(), staging.bytes_due()), (DIRECT_BYTES, DIRECT_BYTES));
    staging.received(DIRECT_BYTES);
    assert!(staging.fill() && staging.staged().is_empty());
    assert_eq!((staging.len(), staging.bytes().len()), (DIRECT_BYTES, DIRECT_BYTES + HEADROOM));
    staging.clear();
    staging.begin_body(DIRECT_BYTES - 1);
    assert_eq!(staging.space().len(), STAGING_BYTES);
    staging.received(STAGING_BYTES);
    assert!(staging.fill());
    assert_eq!(staging.staged().len(), STAGING_BYTES - DIRECT_BYTES + 1);
}

#[test]
fn memory_grows_only_as_data_arrives() {
    let mut staging = Staging::new(0);
    staging.begin_body(1 << 40);
    assert_eq!(staging.space().len(), GROWTH_BYTES);
    assert_eq!(staging.message_memory(), GROWTH_BYTES);
    staging.received(5);
    assert_eq!((staging.len(), staging.bytes_due()), (5, (1 << 40) - 5));
    staging.reset();
    assert_eq!((staging.len(), staging.bytes_due()), (0, 1));
}
