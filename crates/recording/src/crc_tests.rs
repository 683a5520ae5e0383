//! The three ways to compute a checksum.

use proptest::prelude::*;

use super::*;

#[test]
fn check_value_of_the_catalogue() {
    // https://reveng.sourceforge.io/crc-catalogue/17plus.htm#crc.cat.crc-32-iso-hdlc
    assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
}

#[test]
fn combining_works_for_lengths_beyond_32_bits() {
    // Checksum of 2^34 zero bytes, combined from two halves, computed in two ways.
    let mut combiner = Combiner::new();
    let (mut doubled, mut length) = (crc32(&[0; 1024]), 1024u64);
    while length < 1 << 33 {
        doubled = combiner.combine(doubled, doubled, length);
        length *= 2;
    }
    let half = doubled;
    let whole = combiner.combine(half, half, length);
    // Second way: the same zeros, one GiB at a time.
    let (mut gib, mut at) = (crc32(&[0; 1024]), 1024u64);
    while at < 1 << 30 {
        gib = combiner.combine(gib, gib, at);
        at *= 2;
    }
    let stepped = (1..16).fold(gib, |crc, _| combiner.combine(crc, gib, 1 << 30));
    assert_eq!(whole, stepped);
    // And a first part in front of a length whose power needs the wrapped table.
    assert_eq!(combiner.combine(combiner.clone().combine(7, 0, 1 << 33), 0, 1 << 33), {
        Combiner::new().combine(7, 0, 1 << 34)
    });
}

proptest! {
    #[test]
    fn all_ways_agree(
        bytes in prop::collection::vec(any::<u8>(), 0..5000),
        cut in any::<prop::sample::Index>(),
    ) {
        let cut = cut.index(bytes.len() + 1);
        let (a, b) = bytes.split_at(cut);
        let whole = crc32(&bytes);
        let mut pieces = Crc32::new();
        pieces.update(a);
        pieces.update(b);
        prop_assert_eq!(pieces.value(), whole);
        let mut combiner = Combiner::new();
        prop_assert_eq!(combiner.combine(crc32(a), crc32(b), b.len() as u64), whole);
        // Again with the cached power.
        prop_assert_eq!(combiner.combine(crc32(a), crc32(b), b.len() as u64), whole);
    }
}
