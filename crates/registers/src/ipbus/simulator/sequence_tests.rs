//! Each number is taken once and in turn; the last replies are kept, and no others.
use super::*;

#[test]
fn numbers_in_turn_and_nought_always() {
    let mut sequence = Sequence::new(2);
    assert!(!sequence.accepts(2) && sequence.accepts(0) && sequence.accepts(1) && !sequence.accepts(1));
    assert_eq!(sequence.next(), 2);
    for id in 2..=u16::MAX {
        assert!(sequence.accepts(id));
    }
    assert!(sequence.accepts(1) && !sequence.accepts(1));
}

#[test]
fn the_last_replies_are_kept_for_those_who_asked() {
    let (peer, other) = ("127.0.0.1:1".parse().unwrap(), "127.0.0.1:2".parse().unwrap());
    let mut sequence = Sequence::new(2);
    for id in 1..=3 {
        sequence.keep(peer, id, &[id as u8; 5]);
    }
    assert_eq!(sequence.kept(peer, 1), None);
    assert_eq!((sequence.kept(peer, 2), sequence.kept(peer, 3)), (Some(&[2; 5][..]), Some(&[3; 5][..])));
    sequence.keep(peer, 2, &[9]);
    assert_eq!(sequence.kept(peer, 2), Some(&[9][..]), "the later one of the same number");
    assert_eq!(sequence.kept(other, 2), None, "another port is another program");
}
