//! Bit transposition compared with moving single bits.
use proptest::prelude::*;

use super::*;

/// Bit `b` of sample `n` becomes bit `n` of row `b`.
fn one_by_one<const SIZE: usize>(input: &[u8]) -> Vec<u8> {
    let count = input.len() / SIZE;
    let mut output = vec![0; input.len()];
    for sample in 0..count {
        for bit in 0..8 * SIZE {
            if input[sample * SIZE + bit / 8] >> (bit % 8) & 1 == 1 {
                output[bit * (count / 8) + sample / 8] |= 1 << (sample % 8);
            }
        }
    }
    output
}

fn check<const SIZE: usize>(groups: usize, seed: &[u8]) {
    let input: Vec<u8> = seed.iter().copied().cycle().take(groups * GROUP * SIZE).collect();
    let mut output = vec![0xee; input.len()];
    transpose::<SIZE>(&input, &mut output);
    assert_eq!(output, one_by_one::<SIZE>(&input), "{SIZE} bytes, {groups} groups");
}

proptest! {
    #[test]
    fn transposed_bits_match_bits_moved_one_by_one(
        groups in 0..40usize,
        seed in proptest::collection::vec(any::<u8>(), 200..400),
    ) {
        check::<1>(groups, &seed);
        check::<2>(groups, &seed);
        check::<4>(groups, &seed);
        check::<8>(groups, &seed);
    }
}
