//! Bit transposition compatible with the library bitshuffle: for n samples of b bits, first the
//! lowest bit of all samples, then the next one, and so on. Bits that hardly change become
//! neighbours and compress.

/// Samples per group: their bits fill whole bytes.
pub(super) const GROUP: usize = 8;
/// Groups per 64-bit word.
const GROUPS: usize = 8;

/// Writes the transposed bits of `input` to `output` of the same length: samples of `SIZE` bytes,
/// in a multiple of [`GROUP`].
pub(super) fn transpose<const SIZE: usize>(input: &[u8], output: &mut [u8]) {
    let row_bytes = input.len() / SIZE / GROUP;
    let whole = row_bytes - row_bytes % GROUPS;
    for first in (0..whole).step_by(GROUPS) {
        let samples = &input[first * GROUP * SIZE..(first + GROUPS) * GROUP * SIZE];
        for byte in 0..SIZE {
            let mut words = [0; GROUPS];
            for (word, group) in words.iter_mut().zip(samples.chunks_exact(GROUP * SIZE)) {
                *word = bits(gathered::<SIZE>(group, byte));
            }
            for (bit, word) in bytes(words).into_iter().enumerate() {
                let at = (byte * 8 + bit) * row_bytes + first;
                output[at..at + 8].copy_from_slice(&word.to_le_bytes());
            }
        }
    }
    for group in whole..row_bytes {
        let samples = &input[group * GROUP * SIZE..(group + 1) * GROUP * SIZE];
        for byte in 0..SIZE {
            let word = bits(gathered::<SIZE>(samples, byte)).to_le_bytes();
            for (bit, value) in word.into_iter().enumerate() {
                output[(byte * 8 + bit) * row_bytes + group] = value;
            }
        }
    }
}

/// One byte of each of eight samples.
fn gathered<const SIZE: usize>(samples: &[u8], byte: usize) -> u64 {
    let mut word = [0; GROUP];
    for (to, sample) in word.iter_mut().zip(samples.chunks_exact(SIZE)) {
        *to = sample[byte];
    }
    u64::from_le_bytes(word)
}

/// Transposes a matrix of 8 by 8 bits by exchanging blocks of three sizes (H. S. Warren, Hacker's
/// Delight, section 7-3).
fn bits(mut word: u64) -> u64 {
    for (shift, mask) in
        [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)]
    {
        let changed = (word ^ (word >> shift)) & mask;
        word ^= changed ^ (changed << shift);
    }
    word
}

/// Transposes a matrix of 8 by 8 bytes by the same method.
fn bytes(mut words: [u64; 8]) -> [u64; 8] {
    let steps =
        [(1, 8, 0x00ff_00ff_00ff_00ff), (2, 16, 0x0000_ffff_0000_ffff), (4, 32, 0x0000_0000_ffff_ffff)];
    for (distance, shift, mask) in steps {
        for index in (0..8).filter(|index| index & distance == 0) {
            let (low, high) = (words[index], words[index + distance]);
            let changed = ((low >> shift) ^ high) & mask;
            words[index] = low ^ (changed << shift);
            words[index + distance] = high ^ changed;
        }
    }
    words
}

#[cfg(test)]
#[path = "bitshuffle_tests.rs"]
mod tests;
