//! Packet numbers are accepted once and in order; only the last replies are kept.
use super::*;

#[test]
fn numbers_are_accepted_in_order_and_zero_always() {
    let mut sequence = Sequence::new(2);
    assert!(!sequence.accepts(2) && sequence.accepts(0) && sequence.accepts(1) && !sequence.accepts(1));
    assert_eq!(sequence.next(), 2);
    for id in 2..=u16::MAX {
        assert!(sequence.accepts(id));
    }
    assert!(sequence.accepts(1) && !sequence.accepts(1));
}

#[test]
fn the_last_replies_are_kept_per_client() {
    let (peer, other) = ("127.0.0.1:1".parse().unwrap(), "127.0.0.1:2".parse().unwrap());
    let mut sequence = Sequence::new(2);
    for id in 1..=3 {
        sequence.keep(peer, id, &[id as u8; 5]);
    }
    assert_eq!(sequence.kept_reply(peer, 1), None);
    assert_eq!(
        (sequence.kept_reply(peer, 2), sequence.kept_reply(peer, 3)),
        (Some(&[2; 5][..]), Some(&[3; 5][..]))
    );
    sequence.keep(peer, 2, &[9]);
    assert_eq!(sequence.kept_reply(peer, 2), Some(&[9][..]), "the latest reply with this number");
    assert_eq!(sequence.kept_reply(other, 2), None, "another port is another client");
}
